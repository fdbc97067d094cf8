//! CPU time: by process, and within one by phase.

use std::collections::BTreeMap;

use assay_analyses::metric::Metric;

use super::Chart;
use super::parts::{self, Whole};
use crate::cost_table::{Finder, Wanted};

const USAGE: &[&str] = &["fair", "usage"];
const CPU: &[&str] = &["cpu"];

/// Phases that are a part of their own.
const PHASES: usize = 7;
/// The phase of what no rule knows.
const OTHER: &str = "other";

/// CPU time of the service and of what it asks.
pub(super) fn by_process(finder: &Finder<'_>) -> Option<Chart> {
    let parts = [("service", "subject"), ("Postgres", "postgres"), ("Redis", "redis")];
    let parts = parts.map(|(name, process)| {
        Wanted::new(name, Metric::CpuTime, "", USAGE).with("process", process)
    });
    let says = "By the process clocks in laps without a probe.".into();
    let parts = parts.into();
    let whole = Whole { title: "CPU time by process", says, whole: None, parts, rest: None };
    parts::chart(finder, &whole)
}

/// CPU time of one process by phase: the exclusive view, which sums to the process's clock.
pub(super) fn by_phase<'a>(
    finder: &Finder<'a>,
    process: &'a str,
    name: &'static str,
) -> Option<Chart> {
    let mut sizes: BTreeMap<&str, f64> = BTreeMap::new();
    for cost in finder.costs(Metric::CpuPhase) {
        let of = |label: &str, wanted: &str| cost.labels.get(label).is_some_and(|v| v == wanted);
        if let (true, true, Some(phase), Some(figure)) = (
            of("process", process),
            of("view", "exclusive"),
            cost.labels.get("phase"),
            cost.amount.figure(),
        ) && phase != OTHER
        {
            let known = sizes.entry(phase).or_default();
            *known = known.max(figure.value);
        }
    }
    if sizes.is_empty() {
        return None;
    }
    let mut phases: Vec<(&str, f64)> = sizes.into_iter().collect();
    phases.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(b.0)));
    let parts = phases.iter().take(PHASES).map(|(phase, _)| {
        Wanted::new(*phase, Metric::CpuPhase, "", CPU)
            .with("process", process)
            .with("phase", phase)
            .with("view", "exclusive")
    });
    let title = if process == "subject" {
        "CPU time of the service by phase"
    } else {
        "CPU time of Postgres by phase"
    };
    parts::chart(
        finder,
        &Whole {
            title,
            says: format!(
                "The process clock of {name}, in laps without a probe, divided by shares of samples; each \
                 moment counts in one phase, so the parts sum to the whole."
            ),
            whole: Some(Wanted::new(name, Metric::CpuTime, "", USAGE).with("process", process)),
            parts: parts.collect(),
            rest: Some("all others"),
        },
    )
}
