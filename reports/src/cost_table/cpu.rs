//! CPU time: each process by its clock, what its samples say it was spent on, and the price of a
//! round trip.

use std::collections::BTreeMap;

use assay_analyses::cost::{Amount, Cost};
use assay_analyses::metric::Metric;
use assay_analyses::ping_price::PingPrice;

use super::finder::{Finder, Wanted};
use super::notes::Notes;
use super::{Entry, Group, Line, Remark};
use crate::numbers::{self, Scale};

const USAGE: &[&str] = &["fair", "usage", "foreign"];
const CPU: &[&str] = &["cpu", "foreign"];

/// Phases of one process that get a line of their own; the rest is in results.
const PHASES: [(&str, usize); 4] = [("subject", 6), ("pooler", 0), ("postgres", 3), ("redis", 0)];

pub(super) fn group(finder: &Finder<'_>, notes: &mut Notes) -> Group {
    let mut lines: Vec<Line> = Vec::new();
    let processes = [
        ("the service", "subject"),
        ("the pooler", "pooler"),
        ("Postgres", "postgres"),
        ("Redis", "redis"),
    ];
    let largest = finder
        .costs(Metric::CpuTime)
        .filter_map(|cost| cost.amount.figure())
        .map(|figure| figure.value)
        .fold(0.0, f64::max);
    for (name, process) in processes {
        let clock = Wanted::new(name, Metric::CpuTime, "", USAGE).with("process", process);
        let clock = Wanted { beside: largest, ..clock };
        let Some(line) = finder.line(&clock, notes) else { continue };
        lines.push(line);
        if !matches!(process, "redis" | "pooler") {
            lines.extend(finder.verdicts(&clock, notes));
        }
        lines.extend(phases(finder, process, largest, notes));
    }
    let mut remarks: Vec<Remark> = samples(finder).into_iter().collect();
    remarks.extend(prices(finder, notes));
    let how = "by process clocks in these laps; parts by samples".to_owned();
    Group { title: "CPU time, per request", how, lines, remarks }
}

fn is_exclusive(cost: &Cost, process: &str) -> bool {
    cost.labels.get("view").is_some_and(|view| view == "exclusive")
        && cost.labels.get("process").is_some_and(|own| own == process)
}

/// The lines of the largest exclusive phases of a process, the largest of the first column first,
/// `other` last.
fn phases(finder: &Finder<'_>, process: &str, largest: f64, notes: &mut Notes) -> Vec<Line> {
    let mut sizes: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
    for cost in finder.costs(Metric::CpuPhase).filter(|cost| is_exclusive(cost, process)) {
        let (Some(phase), Some(figure)) = (cost.labels.get("phase"), cost.amount.figure()) else {
            continue;
        };
        let (first, any) = sizes.entry(phase).or_default();
        *any = any.max(figure.value);
        if finder.is_first(cost) {
            *first = figure.value;
        }
    }
    let mut phases: Vec<(&str, (f64, f64))> = sizes.into_iter().collect();
    phases.sort_by(|(_, a), (_, b)| b.0.total_cmp(&a.0).then(b.1.total_cmp(&a.1)));
    let rest = phases.iter().position(|(name, _)| *name == "other");
    let rest = rest.map(|index| phases.remove(index));
    let most = PHASES.iter().find(|(name, _)| *name == process).map_or(0, |(_, most)| *most);
    let more: Vec<&str> = phases.iter().skip(most).map(|(phase, _)| *phase).collect();
    phases.truncate(most);
    let more = if most > 0 { more_parts(finder, process, &more, largest) } else { None };
    phases.extend(rest.filter(|_| most > 0));
    let uneven = uneven(finder, process);
    let mut lines: Vec<Line> = phases
        .iter()
        .filter_map(|(phase, _)| {
            let wanted = Wanted::new(*phase, Metric::CpuPhase, "", CPU).inside();
            let wanted = wanted.with("process", process).with("phase", phase);
            let wanted = wanted.with("view", "exclusive");
            let mut line = finder.line(&Wanted { beside: largest, ..wanted }, notes)?;
            if *phase == "other" && uneven {
                line.entries.iter_mut().for_each(|entry| entry.change.clear());
            }
            Some(line)
        })
        .collect();
    let end = lines.len() - usize::from(lines.last().is_some_and(|line| line.name == "other"));
    lines.splice(end..end, more);
    lines
}

/// The phases without a line of their own as one, so that the parts add up to the process.
fn more_parts(finder: &Finder<'_>, process: &str, phases: &[&str], largest: f64) -> Option<Line> {
    let of_phase = |phase: &str| {
        let wanted = Wanted::new("", Metric::CpuPhase, "", CPU).with("view", "exclusive");
        finder.find(&wanted.with("process", process).with("phase", phase))
    };
    let mut sums: Vec<Option<(f64, f64)>> = vec![None; finder.arms.len()];
    let mut seen = 0;
    for phase in phases {
        let figures: Vec<_> =
            of_phase(phase).into_iter().map(|cost| cost.and_then(|c| c.amount.figure())).collect();
        seen += usize::from(figures.iter().any(Option::is_some));
        for (sum, figure) in sums.iter_mut().zip(figures) {
            if let Some(figure) = figure {
                let (value, half) = sum.unwrap_or_default();
                let own = (figure.high - figure.low) / 2.0;
                *sum = Some((value + figure.value, f64::hypot(half, own)));
            }
        }
    }
    let figures: Vec<(f64, f64)> = sums.iter().copied().flatten().collect();
    if seen == 0 {
        return None;
    }
    let scale = Scale::beside("s", "", &figures, largest);
    let entry = |sum: &Option<(f64, f64)>| {
        let value = sum.map_or_else(|| "–".to_owned(), |(value, _)| scale.show(value));
        Entry { value, ..Entry::default() }
    };
    let parts = if seen == 1 { "part" } else { "parts" };
    Some(Line {
        name: format!("{seen} more {parts}, together"),
        indent: 2,
        unit: scale.unit,
        entries: sums.iter().map(entry).collect(),
        notes: Vec::new(),
    })
}

/// Whether a phase stands by itself in one column and counts in `other` in another: then the two
/// of `other` are not of the same thing.
fn uneven(finder: &Finder<'_>, process: &str) -> bool {
    let mut seen: BTreeMap<&str, [bool; 2]> = BTreeMap::new();
    for cost in finder.costs(Metric::CpuPhase).filter(|cost| is_exclusive(cost, process)) {
        if let Some(phase) = cost.labels.get("phase") {
            seen.entry(phase).or_default()[usize::from(cost.amount.figure().is_some())] = true;
        }
    }
    seen.values().any(|both| both[0] && both[1])
}

/// What the phases rest on, and which ones have too few samples for a line.
fn samples(finder: &Finder<'_>) -> Option<Remark> {
    let mut seen: BTreeMap<(&str, &str), bool> = BTreeMap::new();
    let mut widest: f64 = 0.0;
    let exclusive = |cost: &&Cost| ["subject", "postgres"].iter().any(|p| is_exclusive(cost, p));
    for cost in finder.costs(Metric::CpuPhase).filter(exclusive) {
        let (Some(phase), Some(process)) = (cost.labels.get("phase"), cost.labels.get("process"))
        else {
            continue;
        };
        let shown = seen.entry((process, phase)).or_default();
        *shown |= cost.amount.figure().is_some();
        if let Amount::Measured(figure) = &cost.amount {
            widest = widest.max((figure.high - figure.low) / 2.0);
        }
    }
    if !seen.values().any(|shown| *shown) {
        return None;
    }
    let few: Vec<&str> =
        seen.iter().filter(|(_, shown)| !**shown).map(|((_, phase), _)| *phase).collect();
    let scale = Scale::of("s", "", &[(widest, widest)]);
    let mut text =
        format!("parts are shares of samples, at most ±{} {}", scale.show(widest), scale.unit);
    match few.len() {
        0 => {}
        1..=3 => text.push_str(&format!("; too few samples of {}", few.join(", "))),
        many => text.push_str(&format!("; {many} more parts have too few samples")),
    }
    Some(Remark { text, notes: Vec::new() })
}

/// What a saved round trip is worth, one sentence for each pair of arms.
fn prices(finder: &Finder<'_>, notes: &mut Notes) -> Vec<Remark> {
    let of_route = |price: &&PingPrice| price.route == finder.route;
    let mut pairs: Vec<(&PingPrice, Vec<String>, Vec<usize>)> = Vec::new();
    for price in finder.report.ping_prices.iter().filter(of_route) {
        let text = price_text(price);
        let doubts = price.doubts.iter().map(|doubt| notes.of_line(doubt));
        match pairs
            .iter_mut()
            .find(|(known, ..)| known.with == price.with && known.without == price.without)
        {
            Some((_, texts, numbers)) => {
                texts.push(text);
                numbers.extend(doubts);
            }
            None => {
                let doubts = doubts.collect();
                pairs.push((price, vec![text], doubts));
            }
        }
    }
    pairs
        .into_iter()
        .map(|(price, texts, notes)| {
            let trips = numbers::count(price.trips_saved);
            let without = finder.report.title(&price.without);
            let costs = texts.join(", ");
            let text = format!("CPU of a pool ping (“{without}” has {trips} fewer): {costs}");
            Remark { text, notes }
        })
        .collect()
}

fn price_text(price: &PingPrice) -> String {
    let figure = price.per_trip;
    let whose = if price.process == "subject" { "service" } else { "Postgres" };
    let half = (figure.high - figure.low) / 2.0;
    let scale = Scale::of("s", "", &[(figure.value, half)]);
    let (low, high) = (scale.show(figure.low), scale.show(figure.high));
    if figure.low <= 0.0 && figure.high >= 0.0 {
        return format!("{whose} unclear, {low} to {high} {}", scale.unit);
    }
    format!("{whose} {} {} ({low} to {high})", scale.show(figure.value), scale.unit)
}
