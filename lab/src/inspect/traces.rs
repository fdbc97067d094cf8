//! Traces of strace: one log, or the files of `-ff` as one capture.

use std::path::Path;

use anyhow::Result;
use assay_analyses::costs::foreign::View;
use assay_analyses::costs::whole_trace::TraceFold;
use assay_captures::ids::Tid;
use assay_captures::strace::{Decoder, Stamp};
use assay_reports::json::Inspected;

use super::input::Input;
use super::moments::utc;
use super::{Question, origin, problems};

/// The thread that a file of `-ff` is named after: `trace.1234`.
pub(super) fn thread(name: &str) -> Option<Tid> {
    let path = Path::new(name);
    let path = if path.extension()? == "gz" { Path::new(path.file_stem()?) } else { path };
    path.extension()?.to_str()?.parse().ok().map(Tid)
}

pub(super) fn inspect(
    files: &[(String, Input)],
    question: &Question,
    found: &mut Inspected,
) -> Result<()> {
    let name = files.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(" ");
    let mut fold = TraceFold::new(question.span);
    for (name, file) in files {
        let mut decoder = thread(name).map_or_else(Decoder::new, Decoder::for_thread);
        file.feed(|bytes| decoder.feed(bytes, &mut fold))?;
        decoder.finish(&mut fold);
        let totals = &mut fold.totals;
        let more = totals.problem_count.saturating_sub(totals.problems.len() as u64);
        problems(name, &std::mem::take(&mut totals.problems), found);
        if more > 0 {
            found.problems.push(format!("{name}: {more} problems more"));
        }
        totals.problem_count = 0;
    }
    let view = View { origin: origin(&name), requests: question.requests, top: question.top };
    let first = files.first().map_or("", |(name, _)| name.as_str());
    if let Some((Stamp::Unix(began), _)) = fold.totals.stamps {
        found.about(first, format!("from {} on", utc(began)));
    }
    if let Some(about) = fold.about() {
        found.about(first, about);
    }
    found.costs.extend(fold.costs(&view));
    found.integrity.extend(fold.notes().into_iter().map(|note| format!("{name}: {note}")));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_ff_are_named_after_their_thread() {
        assert_eq!(thread("dir.7/trace.1234"), Some(Tid(1234)));
        assert_eq!(thread("trace.1234.gz"), Some(Tid(1234)));
        assert_eq!(thread("trace.strace"), None);
        assert_eq!(thread("trace"), None);
    }
}
