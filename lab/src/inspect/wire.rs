//! Packet captures: trips, rows and bytes per HTTP response in the capture, or per request as
//! somebody counted them, or in all.

use anyhow::Result;
use assay_analyses::cost::Per;
use assay_analyses::costs::wire::{Count, WireFold, WireOutcome};
use assay_analyses::window::Window;
use assay_captures::pcap;
use assay_captures::units::{Moment, Span};
use assay_reports::json::Inspected;

use super::input::Input;
use super::{Question, origin};

/// Everything: no capture ends after the year 2500.
const ALWAYS: Span = Span { start: Moment(0), end: Moment(u64::MAX) };

pub(super) fn inspect(
    files: &[(String, Input)],
    question: &Question,
    found: &mut Inspected,
) -> Result<()> {
    let name = files.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(" ");
    let first = read(files, &name, question, question.requests.unwrap_or(1))?;
    let responses = first.totals.get(Count::HttpResponses);
    let (outcome, known) = match question.requests {
        Some(_) => (first, true),
        None if responses > 0 => (read(files, &name, question, responses)?, true),
        None => (first, false),
    };
    for mut cost in outcome.costs {
        if !known && cost.per == Per::Request {
            cost.per = Per::Capture;
        }
        found.costs.push(cost);
    }
    if question.requests.is_none() && known {
        let note = format!("{name}: per request: the capture holds {responses} HTTP responses");
        found.integrity.push(note);
    }
    if found.costs.iter().all(|cost| cost.origin.capture.as_deref() != Some(name.as_str())) {
        found.problems.push(format!(
            "{name}: no Postgres, Redis or HTTP was recognised in it; name its port, as in \
             --port pg=6543"
        ));
    }
    let notes = outcome.integrity.notes();
    found.integrity.extend(notes.into_iter().map(|note| format!("{name}: {note}")));
    let problems = outcome.integrity.problems.iter().take(super::PROBLEMS_SHOWN);
    found.problems.extend(problems.map(|problem| format!("{name}: {problem}")));
    Ok(())
}

fn read(
    files: &[(String, Input)],
    name: &str,
    question: &Question,
    requests: u64,
) -> Result<WireOutcome> {
    let window = Window { span: question.span.unwrap_or(ALWAYS), requests };
    let mut fold = WireFold::new(&[window], question.ports.clone());
    for (_, file) in files {
        let mut decoder = pcap::Decoder::default();
        file.feed(|bytes| decoder.feed(bytes, &mut fold))?;
        decoder.finish(&mut fold);
    }
    Ok(fold.finish(&origin(name)))
}
