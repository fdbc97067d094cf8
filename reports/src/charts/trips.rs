//! What a request asks of others: round trips by reason, system calls by name, and where an idle
//! machine's time goes.

use std::collections::BTreeMap;

use assay_analyses::metric::Metric;

use super::parts::{self, Whole};
use super::{Chart, Drawing, Numbers, Stacked, StackedRow};
use crate::cost_table::{Finder, REASONS, Wanted};

const ONE_AT_A_TIME: &[&str] = &["serial", "wire"];
const LOADED: &[&str] = &["syscalls"];
const SERIAL: &[&str] = &["serial"];

/// System calls that are a part of their own.
const CALLS: usize = 6;

/// Round trips to Postgres by their reason.
pub(super) fn by_reason(finder: &Finder<'_>) -> Option<Chart> {
    let total = Wanted::new("round trips", Metric::PostgresFlights, "trips", ONE_AT_A_TIME);
    let reasons = REASONS
        .map(|(reason, name)| Wanted { name: name.into(), ..total.clone() }.with("reason", reason));
    parts::chart(
        finder,
        &Whole {
            title: "Round trips to Postgres",
            says: "Counted on the wire by answers owed, one request at a time where the serial \
                   pass was run."
                .into(),
            whole: Some(total.clone()),
            parts: reasons.into(),
            rest: None,
        },
    )
}

/// System calls under load by name.
pub(super) fn syscalls(finder: &Finder<'_>) -> Option<Chart> {
    let mut largest: BTreeMap<&str, f64> = BTreeMap::new();
    for cost in finder.costs(Metric::Syscalls).filter(|cost| cost.origin.pass == LOADED[0]) {
        if let (Some(name), Some(figure)) = (cost.labels.get("name"), cost.amount.figure()) {
            let known = largest.entry(name).or_default();
            *known = known.max(figure.value);
        }
    }
    let mut names: Vec<(&str, f64)> = largest.into_iter().collect();
    names.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(b.0)));
    let total = Wanted::new("all calls", Metric::Syscalls, "calls", LOADED);
    let part = |name: &str| Wanted { name: name.to_owned(), ..total.clone() };
    let parts = names.iter().take(CALLS).map(|(name, _)| part(name).with("name", name)).collect();
    parts::chart(
        finder,
        &Whole {
            title: "System calls",
            says: "Counted in the kernel under load. How often a service polls in vain depends \
                   on load and placement."
                .into(),
            whole: Some(total.clone()),
            parts,
            rest: Some("all others"),
        },
    )
}

/// Where the time of one request goes on an idle machine.
pub(super) fn idle_machine(finder: &Finder<'_>) -> Option<Chart> {
    let parts = vec![
        Wanted::new("before the first trip", Metric::PhaseBefore, "", SERIAL),
        Wanted::new("waiting for Postgres", Metric::Wait, "", SERIAL).with("on", "postgres"),
        Wanted::new("waiting for Redis", Metric::Wait, "", SERIAL).with("on", "redis"),
        Wanted::new("between trips", Metric::PhaseBetween, "", SERIAL),
        Wanted::new("after the last one", Metric::PhaseAfter, "", SERIAL),
    ];
    parts::chart(
        finder,
        &Whole {
            title: "One request on an idle machine: where its time goes",
            says: "From packets, one request at a time. These times never add to CPU time under \
                   load."
                .into(),
            whole: None,
            parts,
            rest: None,
        },
    )
}

/// How many requests made how many trips.
pub(super) fn distribution(finder: &Finder<'_>) -> Option<Chart> {
    let mut rows = Vec::new();
    let mut table = Vec::new();
    for arm in &finder.arms {
        let spread = finder.report.distributions.iter().find(|spread| {
            spread.distribution.metric == Metric::PostgresFlights
                && spread.route == finder.route
                && spread.arm.subject == arm.subject
                && spread.arm.variant == arm.variant
        });
        let Some(spread) = spread else { continue };
        let (steady, preparing) = (&spread.distribution.steady, &spread.distribution.preparing);
        let all: u64 = steady.values().chain(preparing.values()).sum();
        let mut values: Vec<u64> = steady.keys().chain(preparing.keys()).copied().collect();
        values.sort_unstable();
        values.dedup();
        for value in values {
            let of = |counts: &BTreeMap<u64, u64>| counts.get(&value).copied().unwrap_or(0);
            let sizes = [of(steady), of(preparing)];
            let trips = if value == 1 { "1 trip".to_owned() } else { format!("{value} trips") };
            rows.push(StackedRow {
                name: format!("{}: {trips}", arm.title),
                sizes: sizes.iter().map(|&count| Some(count as f64)).collect(),
                interval: None,
                text: format!("{} of {all}", sizes[0] + sizes[1]),
            });
            table.push(vec![
                arm.title.clone(),
                value.to_string(),
                sizes[0].to_string(),
                sizes[1].to_string(),
            ]);
        }
    }
    if rows.is_empty() {
        return None;
    }
    Some(Chart {
        title: "Requests by their round trips to Postgres".into(),
        says: "One request at a time. A request that prepares a statement or opens a connection \
               has trips that others do not have."
            .into(),
        drawing: Drawing::Stacked(Stacked {
            parts: vec!["requests that prepare nothing".into(), "requests that prepare".into()],
            rest: false,
            rows,
        }),
        numbers: Numbers {
            head: ["variant", "trips", "requests that prepare nothing", "that prepare"]
                .map(str::to_owned)
                .into(),
            rows: table,
        },
    })
}
