//! Packet captures: trips, rows and bytes per HTTP response in the capture, or per request as
//! somebody counted them, or in all.

use anyhow::Result;
use assay_analyses::costs::wire::{Protocol, WireFold, WireOutcome, conclusions, details};
use assay_captures::parsed::{Problem, Sink};
use assay_captures::pcap::{self, Record};
use assay_captures::units::{Moment, Span};
use assay_reports::json::Inspected;

use super::input::Input;
use super::moments::{length, utc};
use super::{Question, origin};

/// Everything: no capture ends after the year 2500.
pub(super) const ALWAYS: Span = Span { start: Moment(0), end: Moment(u64::MAX) };

/// The files as one capture, in the order of their first packets: rotated ones come in any.
pub(super) fn inspect(
    files: &mut [(String, Input)],
    question: &Question,
    found: &mut Inspected,
) -> Result<()> {
    let mut firsts = Vec::with_capacity(files.len());
    for (_, file) in files.iter() {
        firsts.push(first_moment(&file.head()?));
    }
    let mut order: Vec<usize> = (0..files.len()).collect();
    // Stable: files without a packet stay where they were named.
    order.sort_by_key(|&index| firsts[index].unwrap_or(Moment(0)));
    let files: Vec<&(String, Input)> = order.into_iter().map(|index| &files[index]).collect();
    let name = files.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(" ");
    let span = question.span.unwrap_or(ALWAYS);
    let fold = WireFold::foreign(span, question.requests.unwrap_or(0), question.ports.clone());
    let mut seen = Seen { fold, extent: Extent::default() };
    for (file_name, file) in &files {
        seen.extent = Extent::default();
        let mut decoder = pcap::Decoder::default();
        file.feed(|bytes| decoder.feed(bytes, &mut seen))?;
        decoder.finish(&mut seen);
        found.about(file_name, seen.extent.to_string());
    }
    let origin = origin(&name);
    let outcome = seen.fold.finish(&origin);
    say_what_was_found(&name, &outcome, question, found);
    found.costs.extend(outcome.costs.iter().cloned());
    found.costs.extend(details(&outcome, &origin, question.top));
    found.findings.extend(conclusions(&outcome));
    let notes = outcome.integrity.notes();
    found.integrity.extend(notes.into_iter().map(|note| format!("{name}: {note}")));
    let problems = outcome.integrity.problems.iter().take(super::PROBLEMS_SHOWN);
    found.problems.extend(problems.map(|problem| format!("{name}: {problem}")));
    Ok(())
}

fn say_what_was_found(
    name: &str,
    outcome: &WireOutcome,
    question: &Question,
    found: &mut Inspected,
) {
    let first = name.split(' ').next().unwrap_or(name);
    let spoken: Vec<String> = Protocol::ALL
        .into_iter()
        .filter_map(|protocol| {
            let count = outcome.details.connections.get(&protocol)?;
            Some(format!("{count} of {}", protocol.word()))
        })
        .collect();
    let encrypted = outcome.details.encrypted;
    if encrypted > 0 {
        found.problems.push(format!(
            "{name}: {encrypted} connections are TLS: nothing in them can be read; capture where \
             they are not encrypted, or switch TLS off for the measurement"
        ));
    }
    if !spoken.is_empty() {
        found.about(first, format!("connections: {}", spoken.join(", ")));
    }
    if question.requests.is_none()
        && let Some(requests) = outcome.requests
    {
        let note = format!("{name}: per request: the capture holds {requests} HTTP responses");
        found.integrity.push(note);
    }
    if outcome.costs.is_empty() && encrypted == 0 {
        found.problems.push(format!(
            "{name}: no Postgres, Redis or HTTP was recognised in it; name its port, as in \
             --port pg=6543"
        ));
    }
}

/// The fold, and what passes by.
struct Seen {
    fold: WireFold,
    extent: Extent,
}

impl Sink<Record<'_>> for Seen {
    fn record(&mut self, record: Record<'_>) {
        match &record {
            Record::Packet(packet) => self.extent.see(Some(packet.moment), true),
            Record::Other { moment, .. } => self.extent.see(*moment, false),
            _ => {}
        }
        self.fold.record(record);
    }

    fn problem(&mut self, problem: Problem) {
        self.fold.problem(problem);
    }
}

/// How much of what a file holds, and when it was recorded.
#[derive(Default)]
struct Extent {
    tcp: u64,
    others: u64,
    span: Option<(Moment, Moment)>,
}

impl Extent {
    fn see(&mut self, moment: Option<Moment>, tcp: bool) {
        self.tcp += u64::from(tcp);
        self.others += u64::from(!tcp);
        if let Some(moment) = moment {
            let (first, last) = self.span.get_or_insert((moment, moment));
            *first = moment.min(*first);
            *last = moment.max(*last);
        }
    }
}

impl std::fmt::Display for Extent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} packets, {} of them TCP", self.tcp + self.others, self.tcp)?;
        if let Some((first, last)) = self.span {
            write!(f, ", from {} on, over {}", utc(first), length(first, last))?;
        }
        Ok(())
    }
}

/// The moment of the first packet of a file.
fn first_moment(head: &[u8]) -> Option<Moment> {
    struct First(Option<Moment>);
    impl Sink<Record<'_>> for First {
        fn record(&mut self, record: Record<'_>) {
            let moment = match &record {
                Record::Packet(packet) => Some(packet.moment),
                Record::Other { moment, .. } => *moment,
                _ => None,
            };
            self.0 = self.0.or(moment);
        }

        fn problem(&mut self, _: Problem) {}
    }
    let (mut decoder, mut first) = (pcap::Decoder::default(), First(None));
    decoder.feed(head, &mut first);
    first.0
}
