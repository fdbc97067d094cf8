//! Captures of our own, out of their run: counters, logs of requests and laps, manifests.

use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result};
use assay_analyses::costs::foreign::View;
use assay_analyses::costs::whole_file::{self, Ends, LapTotals, RequestTotals};
use assay_captures::json_lines::Decoder;
use assay_captures::lap::Lap;
use assay_captures::manifest::{Manifest, Status};
use assay_captures::parsed::{Problem, Sink};
use assay_captures::request_log::Slot;
use assay_captures::run_dir;
use assay_captures::run_record::RunRecord;
use assay_captures::units::{Moment, Span};
use assay_captures::{allocation_counts, bpf_counts, usage};
use assay_reports::json::Inspected;
use serde::de::DeserializeOwned;

use super::input::Input;
use super::problems;

/// The largest manifest or run record that is read: they hold a few KB.
const RECORD_MAX: usize = 16 << 20;

/// A folder stands for its manifest and the files that it names, or for its run record.
pub(super) fn expand(files: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut expanded = Vec::new();
    for path in files {
        if !path.is_dir() {
            expanded.push(path.clone());
            continue;
        }
        let manifest = path.join(run_dir::MANIFEST);
        let record = path.join(run_dir::RUN_RECORD);
        if manifest.is_file() {
            expanded.push(manifest.clone());
            let text = std::fs::read(&manifest)
                .with_context(|| format!("cannot read {}", manifest.display()))?;
            // A manifest that is broken is told when its turn comes.
            if let Ok(manifest) = serde_json::from_slice::<Manifest>(&text) {
                let inside = manifest.files.iter().filter(|name| is_plain(name));
                expanded.extend(inside.map(|name| path.join(name)).filter(|file| file.is_file()));
            }
        } else if record.is_file() {
            expanded.push(record);
        } else {
            let folder = path.display();
            anyhow::bail!("{folder} is a folder without a manifest.json; name the files in it");
        }
    }
    Ok(expanded)
}

/// Whether a name stays in its folder, wherever the manifest came from.
fn is_plain(name: &str) -> bool {
    let mut parts = Path::new(name).components();
    matches!((parts.next(), parts.next()), (Some(Component::Normal(_)), None))
}

pub(super) fn usage(
    name: &str,
    file: &Input,
    view: &View,
    span: Option<Span>,
    found: &mut Inspected,
) -> Result<()> {
    let ends: Ends<usage::Sample> = read(file, span, |sample: &usage::Sample| sample.moment)?;
    found.costs.extend(whole_file::usage(&ends, view));
    samples(name, &ends, found);
    Ok(())
}

pub(super) fn syscalls(
    name: &str,
    file: &Input,
    view: &View,
    span: Option<Span>,
    found: &mut Inspected,
) -> Result<()> {
    let ends: Ends<bpf_counts::Sample> =
        read(file, span, |sample: &bpf_counts::Sample| sample.moment)?;
    found.costs.extend(whole_file::syscall_counts(&ends, view));
    samples(name, &ends, found);
    Ok(())
}

pub(super) fn allocations(
    name: &str,
    file: &Input,
    view: &View,
    span: Option<Span>,
    found: &mut Inspected,
) -> Result<()> {
    let ends: Ends<allocation_counts::Sample> =
        read(file, span, |sample: &allocation_counts::Sample| sample.moment)?;
    found.costs.extend(whole_file::allocation_counts(&ends, view));
    samples(name, &ends, found);
    Ok(())
}

fn samples<R>(name: &str, ends: &Ends<R>, found: &mut Inspected) {
    found.about(name, format!("{} samples", ends.records));
    let note = "the last sample less the first: what happened between requests is in it, too";
    found.integrity.push(format!("{name}: {note}"));
    problems(name, &ends.problems, found);
}

pub(super) fn requests(
    name: &str,
    file: &Input,
    view: &View,
    span: Option<Span>,
    found: &mut Inspected,
) -> Result<()> {
    let totals: RequestTotals = read(file, span, |slot: &Slot| slot.start)?;
    let empty = totals.empty;
    found.integrity.push(format!("{name}: {empty} slots were left empty on purpose"));
    problems(name, &totals.problems, found);
    found.costs.extend(totals.costs(view));
    Ok(())
}

pub(super) fn laps(
    name: &str,
    file: &Input,
    view: &View,
    span: Option<Span>,
    found: &mut Inspected,
) -> Result<()> {
    let totals: LapTotals = read(file, span, |lap: &Lap| lap.span.start)?;
    found.costs.extend(totals.costs(view));
    problems(name, &totals.problems, found);
    Ok(())
}

fn read<R: DeserializeOwned, S: Sink<R> + Default>(
    file: &Input,
    span: Option<Span>,
    moment: fn(&R) -> Moment,
) -> Result<S> {
    let mut decoder = Decoder::<R>::default();
    let mut within = Within { sink: S::default(), span, moment };
    file.feed(|bytes| decoder.feed(bytes, &mut within))?;
    decoder.finish(&mut within);
    Ok(within.sink)
}

/// Hands on what lies in a span.
struct Within<S, R> {
    sink: S,
    span: Option<Span>,
    moment: fn(&R) -> Moment,
}

impl<R, S: Sink<R>> Sink<R> for Within<S, R> {
    fn record(&mut self, record: R) {
        if self.span.is_none_or(|span| span.contains((self.moment)(&record))) {
            self.sink.record(record);
        }
    }

    fn problem(&mut self, problem: Problem) {
        self.sink.problem(problem);
    }
}

/// A manifest or a run record: no figures, but how complete the captures are.
pub(super) fn record(name: &str, file: &Input, found: &mut Inspected) -> Result<()> {
    let mut text = Vec::new();
    file.feed(|bytes| {
        if text.len() < RECORD_MAX {
            text.extend_from_slice(bytes);
        }
    })?;
    match (serde_json::from_slice::<Manifest>(&text), serde_json::from_slice::<RunRecord>(&text)) {
        (Ok(manifest), _) => describe(name, &manifest, found),
        (_, Ok(record)) => {
            let (experiment, status) = (&record.experiment, word(record.status));
            found.about(name, format!("a run of {experiment}, {status}"));
            let folder = Path::new(name).parent().unwrap_or(Path::new("."));
            let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
            found.problems.push(format!(
                "{name}: the figures of a run are in its captures: assay report {}",
                folder.display()
            ));
        }
        (Err(error), Err(_)) => {
            let line = error.line();
            found.problems.push(format!(
                "{name}: line {line}: neither a manifest nor a record of a run that this assay \
                 reads"
            ));
        }
    }
    Ok(())
}

fn describe(name: &str, manifest: &Manifest, found: &mut Inspected) {
    let backend = manifest.backend.as_ref().map_or(String::new(), |way| format!(" by {way}"));
    let length = manifest.window.map_or("an unknown time".to_owned(), |window| {
        format!("{:.3} s", window.length().seconds())
    });
    let (probe, status) = (&manifest.probe, word(manifest.status));
    found.about(name, format!("{probe}{backend}, {status}, over {length}"));
    let counts = manifest.integrity.iter().map(|(what, count)| format!("{what} {count}"));
    let counts = counts.collect::<Vec<_>>().join(", ");
    if !counts.is_empty() {
        found.integrity.push(format!("{name}: {counts}"));
    }
    found.integrity.extend(manifest.notes.iter().map(|note| format!("{name}: {note}")));
    if let Some(reason) = &manifest.reason {
        found.problems.push(format!("{name}: {reason}"));
    }
    if let Err(unknown) = manifest.version.check() {
        found.problems.push(format!("{name}: {unknown}"));
    }
    for file in manifest.files.iter().filter(|file| !is_plain(file)) {
        found.problems.push(format!("{name}: {file} lies outside the folder and is not read"));
    }
}

fn word(status: Status) -> &'static str {
    match status {
        Status::Recording => "without its end",
        Status::Complete => "complete",
        Status::Incomplete => "incomplete",
        Status::Failed => "failed",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_cannot_name_files_elsewhere() {
        assert!(is_plain("wire.pcapng"));
        for name in ["../secret", "/etc/passwd", "a/b", "..", ""] {
            assert!(!is_plain(name), "{name}");
        }
    }
}
