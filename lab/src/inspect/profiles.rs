//! Profiles, load reports and traces: one file, one set of costs.

use anyhow::Result;
use assay_analyses::costs::foreign::{self, View};
use assay_captures::load_tools::Report;
use assay_captures::parsed::{Parsed, Problem, Sink};
use assay_captures::units::{Moment, Span};
use assay_captures::{callgrind, dhat, gctrace, load_tools, pprof};
use assay_reports::json::Inspected;

use super::input::Input;
use super::problems;

pub(super) fn callgrind(
    name: &str,
    file: &Input,
    view: &View,
    found: &mut Inspected,
) -> Result<()> {
    let (mut decoder, mut profile) = (callgrind::Decoder::default(), callgrind::Profile::default());
    file.feed(|bytes| decoder.feed(bytes, &mut profile))?;
    decoder.finish(&mut profile);
    found.costs.extend(foreign::callgrind(&profile, view));
    let parts = profile.parts().count();
    let of = |key: &str| profile.headers.get(key).cloned().unwrap_or_default();
    found.about(
        name,
        format!(
            "{} by {}, of {}",
            if parts == 1 { "1 part".to_owned() } else { format!("{parts} parts") },
            if of("creator").is_empty() { "an unnamed tool".to_owned() } else { of("creator") },
            if of("cmd").is_empty() { "an unnamed program".to_owned() } else { of("cmd") },
        ),
    );
    if profile.is_cut() {
        found.integrity.push(format!("{name}: the file is cut: its last totals are missing"));
    }
    problems(name, &profile.problems, found);
    Ok(())
}

pub(super) fn dhat(name: &str, file: &Input, view: &View, found: &mut Inspected) -> Result<()> {
    let (mut decoder, mut parsed) = (dhat::Decoder::default(), Parsed::default());
    file.feed(|bytes| decoder.feed(bytes, &mut parsed))?;
    decoder.finish(&mut parsed);
    for profile in &parsed.records {
        found.costs.extend(foreign::dhat(profile, view));
        let (end, unit) = (profile.end, &profile.time_unit);
        let peak = profile.peak.map_or("unknown".to_owned(), |peak| peak.to_string());
        let command = &profile.command;
        found.about(name, format!("of {command}; peak at {peak} of {end} {unit}"));
    }
    problems(name, &parsed.problems, found);
    Ok(())
}

pub(super) fn pprof(name: &str, file: &Input, view: &View, found: &mut Inspected) -> Result<()> {
    let (mut decoder, mut parsed) = (pprof::Decoder::default(), Parsed::default());
    file.feed(|bytes| decoder.feed(bytes, &mut parsed))?;
    decoder.finish(&mut parsed);
    for profile in &parsed.records {
        found.costs.extend(foreign::pprof(profile, view));
        let length = profile
            .duration
            .map_or("an unknown time".to_owned(), |length| format!("{:.2} s", length.seconds()));
        let (samples, mappings) = (profile.samples, profile.mappings);
        found.about(name, format!("{samples} samples in {length}, {mappings} mappings"));
        if !profile.symbolized {
            found.integrity.push(format!("{name}: no function has a name; only addresses"));
        }
    }
    problems(name, &parsed.problems, found);
    Ok(())
}

pub(super) fn load(name: &str, file: &Input, view: &View, found: &mut Inspected) -> Result<()> {
    let (mut decoder, mut parsed) = (load_tools::Decoder::default(), Parsed::default());
    file.feed(|bytes| decoder.feed(bytes, &mut parsed))?;
    decoder.finish(&mut parsed);
    for report in &parsed.records {
        found.costs.extend(foreign::load(report, view));
        let tool = report.tool.name();
        found.about(name, about(report));
        found.integrity.extend(report.notes.iter().map(|note| format!("{name}: {tool}: {note}")));
        for threshold in &report.thresholds {
            let outcome = if threshold.passed { "passed" } else { "failed" };
            let (metric, rule) = (&threshold.metric, &threshold.rule);
            found.findings.push(format!("threshold {rule} of {metric}: {outcome}"));
        }
        if let Some(failed) = report.checks_failed.filter(|&failed| failed > 0) {
            found.findings.push(format!("{failed} checks of the script failed"));
        }
    }
    problems(name, &parsed.problems, found);
    Ok(())
}

/// Which tool, against what, how long, with how many connections.
fn about(report: &Report) -> String {
    let mut text = format!("by {}", report.tool.name());
    if let Some(target) = &report.target {
        text.push_str(&format!(", of {target}"));
    }
    if let Some(duration) = report.duration.value() {
        text.push_str(&format!(", over {:.3} s", duration.seconds()));
    }
    if let Some(connections) = report.connections {
        text.push_str(&format!(", {connections} connections"));
    }
    if let Some(threads) = report.threads {
        text.push_str(&format!(", {threads} threads"));
    }
    text
}

/// Collections in a span of the program's own clock, which begins when it starts.
struct Within {
    summary: gctrace::Summary,
    span: Option<Span>,
    outside: u64,
}

impl Sink<gctrace::Collection> for Within {
    fn record(&mut self, collection: gctrace::Collection) {
        let moment = Moment(collection.since_start.0);
        if self.span.is_some_and(|span| !span.contains(moment)) {
            self.outside += 1;
        } else {
            self.summary.record(collection);
        }
    }

    fn problem(&mut self, problem: Problem) {
        self.summary.problem(problem);
    }
}

pub(super) fn gctrace(
    name: &str,
    file: &Input,
    view: &View,
    span: Option<Span>,
    found: &mut Inspected,
) -> Result<()> {
    let mut decoder = gctrace::Decoder::default();
    let mut within = Within { summary: gctrace::Summary::default(), span, outside: 0 };
    file.feed(|bytes| decoder.feed(bytes, &mut within))?;
    decoder.finish(&mut within);
    let Within { summary, outside, .. } = within;
    if outside > 0 {
        let clock = "by the program's own clock, which begins at 0";
        found.integrity.push(format!("{name}: {outside} collections lie outside, {clock}"));
    }
    found.costs.extend(foreign::gctrace(&summary, view));
    let (collections, forced) = (summary.collections, summary.forced);
    let (pause, heap) = (summary.longest_pause.seconds() * 1e3, summary.largest_heap >> 20);
    found.about(name, format!(
        "{collections} collections, {forced} of them forced; longest pause {pause:.3} ms, largest \
         heap {heap} MB"
    ));
    problems(name, &summary.problems, found);
    Ok(())
}
