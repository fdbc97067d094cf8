//! Before and after: how far each arm's costs lie from the reference's.

use assay_analyses::metric::Metric;
use assay_analyses::verdict::Verdict;

use super::{Change, Changes, ChangesRow, Chart, Drawing, Numbers};
use crate::cost_table::{Finder, Wanted, mark};
use crate::numbers::{self, Scale};

/// The costs that are drawn; what was not measured is left out.
fn wanted() -> Vec<Wanted<'static>> {
    const FAIR: &[&str] = &["fair"];
    const USAGE: &[&str] = &["fair", "usage"];
    const WIRE: &[&str] = &["serial", "wire"];
    const CALLS: &[&str] = &["syscalls", "serial"];
    const HEAP: &[&str] = &["allocations"];
    vec![
        Wanted::new("throughput", Metric::Throughput, "req/s", FAIR),
        Wanted::new("latency p99", Metric::Latency, "", FAIR).with("quantile", "0.99"),
        Wanted::new("CPU, service", Metric::CpuTime, "", USAGE).with("process", "subject"),
        Wanted::new("CPU, Postgres", Metric::CpuTime, "", USAGE).with("process", "postgres"),
        Wanted::new("round trips", Metric::PostgresFlights, "trips", WIRE),
        Wanted::new("Redis commands", Metric::RedisCommands, "cmds", WIRE),
        Wanted::new("system calls", Metric::Syscalls, "calls", CALLS),
        Wanted::new("heap blocks", Metric::AllocationsBlocks, "count", HEAP),
        Wanted::new("heap bytes", Metric::AllocationsBytes, "B", HEAP),
        Wanted::new("instructions", Metric::Instructions, "count", &["instructions"]),
    ]
}

/// The change of each cost of each arm against the reference.
pub(super) fn against_reference(finder: &Finder<'_>) -> Option<Chart> {
    let arms: Vec<String> = finder.arms.iter().skip(1).map(|arm| arm.title.clone()).collect();
    let mut rows = Vec::new();
    for wanted in wanted() {
        let costs = finder.find(&wanted);
        let figure = |index: usize| costs[index].and_then(|cost| cost.amount.figure());
        let Some(before) = costs.first().and_then(|_| figure(0)) else { continue };
        let amounts: Vec<(f64, f64)> =
            (0..costs.len()).filter_map(figure).map(|figure| (figure.value, 0.0)).collect();
        let scale = Scale::of(wanted.metric.unit(), wanted.count, &amounts);
        let changes: Vec<Option<Change>> = (1..costs.len())
            .map(|index| {
                let judged = finder.comparison(costs[index]?)?;
                let change = judged.change()?;
                let half = judged.effect.map(|effect| effect.half_width());
                let after = figure(index)?;
                let percent = numbers::percent(change, half);
                let sign = mark(judged.verdict);
                Some(Change {
                    percent: change * 100.0,
                    interval: judged.effect.map(|e| (e.low * 100.0, e.high * 100.0)),
                    unsure: matches!(
                        judged.verdict,
                        Verdict::CannotTell { .. } | Verdict::NotJudged { overlap: true }
                    ),
                    text: format!(
                        "{} → {} ({})",
                        scale.show(before.value),
                        scale.show(after.value),
                        format!("{percent} {sign}").trim_end(),
                    ),
                })
            })
            .collect();
        if changes.iter().flatten().next().is_some() {
            let unit =
                if scale.unit.is_empty() { String::new() } else { format!(", {}", scale.unit) };
            rows.push(ChangesRow { name: format!("{}{unit}", wanted.name), changes });
        }
    }
    if rows.is_empty() {
        return None;
    }
    let mut head = vec!["cost".to_owned()];
    head.extend(arms.iter().cloned());
    let table = rows
        .iter()
        .map(|row| {
            let cell = |change: &Option<Change>| {
                change.as_ref().map_or("–".to_owned(), |change| change.text.clone())
            };
            std::iter::once(row.name.clone()).chain(row.changes.iter().map(cell)).collect()
        })
        .collect();
    let reference = finder.arms.first().map_or("", |arm| arm.title.as_str());
    Some(Chart {
        title: "Before → after, change in %".into(),
        says: format!(
            "Each variant against “{reference}”; whiskers are 95 % intervals, hollow bars are \
             changes that cannot be told from none."
        ),
        drawing: Drawing::Changes(Changes { arms, rows }),
        numbers: Numbers { head, rows: table },
    })
}
