//! Profiles, load reports and traces: one file, one set of costs.

use anyhow::Result;
use assay_analyses::costs::foreign::{self, View};
use assay_captures::parsed::Parsed;
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
    found.integrity.push(format!(
        "{name}: {parts} part(s), by {}, of {}",
        if of("creator").is_empty() { "an unnamed tool".to_owned() } else { of("creator") },
        if of("cmd").is_empty() { "an unnamed program".to_owned() } else { of("cmd") },
    ));
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
        found.integrity.push(format!("{name}: {command}; peak at {peak} of {end} {unit}"));
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
        found.integrity.push(format!("{name}: {samples} samples in {length}, {mappings} mappings"));
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

pub(super) fn gctrace(name: &str, file: &Input, view: &View, found: &mut Inspected) -> Result<()> {
    let (mut decoder, mut summary) = (gctrace::Decoder::default(), gctrace::Summary::default());
    file.feed(|bytes| decoder.feed(bytes, &mut summary))?;
    decoder.finish(&mut summary);
    found.costs.extend(foreign::gctrace(&summary, view));
    let (collections, forced) = (summary.collections, summary.forced);
    found.integrity.push(format!("{name}: {collections} collections, {forced} of them forced"));
    problems(name, &summary.problems, found);
    Ok(())
}
