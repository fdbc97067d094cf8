//! What stands below the tables: findings, checks, probe costs, passes and notes, as plain
//! content for all renderers.

use std::collections::{BTreeMap, BTreeSet};

use assay_analyses::metric::Metric;
use assay_captures::manifest::Status;

use crate::numbers;
use crate::report::{Check, Outcome, Report};

/// A titled list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// Its title.
    pub title: &'static str,
    /// Its points; without any, it is not shown.
    pub points: Vec<Point>,
}

/// One point of a list. Foreign text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Point {
    /// The point.
    pub head: String,
    /// What belongs to it: a word, and a sentence.
    pub details: Vec<(&'static str, String)>,
}

impl Point {
    fn new(head: impl Into<String>) -> Self {
        Self { head: head.into(), details: Vec::new() }
    }
}

/// All sections, in the order of reading; findings of the routes named, or of all where none is.
#[must_use]
pub fn all(report: &Report, routes: &[String]) -> Vec<Section> {
    vec![
        Section { title: "Findings", points: findings(report, routes) },
        Section { title: "Can the figures be trusted?", points: checks(report) },
        Section { title: "What each probe cost the service", points: probes(report) },
        Section { title: "Not complete", points: incomplete(report) },
        Section { title: "Notes", points: report.run.notes.iter().map(Point::new).collect() },
        Section { title: "Files", points: files(report) },
    ]
}

/// What was measured and on what: it stands above the tables.
#[must_use]
pub fn setting(report: &Report) -> Section {
    let run = &report.run;
    let subjects: BTreeSet<&str> = run.arms.iter().map(|arm| arm.subject.as_str()).collect();
    let mut points = vec![Point::new(format!(
        "{} of {}, {}: what does one request cost?",
        plural(run.arms.len(), "variant"),
        subjects.into_iter().collect::<Vec<_>>().join(", "),
        plural(run.routes.len(), "route"),
    ))];
    let named = |facts: &BTreeMap<String, String>| -> String {
        facts.iter().map(|(name, value)| format!("{name} {value}")).collect::<Vec<_>>().join(" · ")
    };
    for (facts, before) in
        [(&run.machine, "machine: "), (&run.pinning, "on CPUs: "), (&run.versions, "versions: ")]
    {
        if !facts.is_empty() {
            points.push(Point::new(format!("{before}{}", named(facts))));
        }
    }
    if let Some(time) = run.select_1 {
        let micros = numbers::number(time.seconds() * 1e6, 1);
        points.push(Point::new(format!("one SELECT 1 takes {micros} µs (median of 2,000)")));
    }
    Section { title: "Assay", points }
}

fn plural(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

fn findings(report: &Report, routes: &[String]) -> Vec<Point> {
    let wanted = |route: &String| routes.is_empty() || routes.contains(route);
    report
        .findings
        .iter()
        .filter(|finding| wanted(&finding.route))
        .map(|finding| {
            let arms: Vec<&str> = finding.arms.iter().map(|arm| report.title(arm)).collect();
            let head = if arms.len() == report.run.arms.len() {
                format!("{}: {}", finding.route, finding.what)
            } else {
                format!("{} ({}): {}", finding.route, arms.join("; "), finding.what)
            };
            let why = if finding.hypothesis { "perhaps" } else { "why" };
            let mut details = vec![(why, finding.why.clone()), ("shown by", finding.shown.clone())];
            details.extend(finding.not_shown.iter().map(|text| ("not shown", text.clone())));
            Point { head, details }
        })
        .collect()
}

/// Checks with the same pass and words are one point: the sums where all hold, and each one that
/// does not.
fn checks(report: &Report) -> Vec<Point> {
    let mut points: Vec<Point> = Vec::new();
    let mut told: Vec<(&str, &str, &str)> = Vec::new();
    for check in &report.checks {
        let key = (check.pass.as_str(), check.counted.as_str(), check.against.as_str());
        if told.contains(&key) {
            continue;
        }
        told.push(key);
        let same: Vec<&Check> = report
            .checks
            .iter()
            .filter(|other| {
                (other.pass.as_str(), other.counted.as_str(), other.against.as_str()) == key
            })
            .collect();
        points.push(summed(report, &same));
    }
    points
}

fn summed(report: &Report, checks: &[&Check]) -> Point {
    let Some(first) = checks.first() else { return Point::new("") };
    let checked: Vec<&&Check> =
        checks.iter().filter(|check| !matches!(check.outcome, Outcome::NotChecked(_))).collect();
    let found: f64 = checked.iter().map(|check| check.found).sum();
    let expected: f64 = checked.iter().map(|check| check.expected).sum();
    let head = if checked.is_empty() {
        format!("{}: {} not checked", first.pass, first.counted)
    } else if first.against.is_empty() {
        format!("{}: {} {}", first.pass, numbers::count(found), first.counted)
    } else {
        format!(
            "{}: {} {}, {} {}",
            first.pass,
            numbers::count(found),
            first.counted,
            numbers::count(expected),
            first.against
        )
    };
    let broken = |check: &&&Check| check.outcome != Outcome::Holds;
    let holds = checks.iter().filter(|check| check.outcome == Outcome::Holds).count();
    let mut details: Vec<(&'static str, String)> = checks
        .iter()
        .filter(broken)
        .map(|check| match &check.outcome {
            Outcome::Broken(meaning) => ("✗ but", format!("{}{meaning}", place(report, check))),
            Outcome::NotChecked(reason) => ("? not", format!("{}{reason}", place(report, check))),
            Outcome::Holds => ("", String::new()),
        })
        .collect();
    // Hundreds of captures may fail for one reason; the machine-readable results have them all.
    if details.len() > 5 {
        let more = details.len() - 4;
        details.truncate(4);
        details.push(("", format!("and {more} more like these in results.json")));
    }
    let mark = if details.is_empty() { "✓" } else { "✗" };
    let captures = match holds {
        1 if checks.len() == 1 => String::new(),
        _ if details.is_empty() => format!(" (in all of {holds} captures)"),
        _ => format!(" (as it should be in {holds} of {})", checks.len()),
    };
    let mark = if checked.is_empty() { "?" } else { mark };
    Point { head: format!("{mark} {head}{captures}"), details }
}

fn place(report: &Report, check: &Check) -> String {
    let mut place: Vec<&str> = check.route.iter().map(String::as_str).collect();
    place.extend(check.arm.as_ref().map(|arm| report.title(arm)));
    if place.is_empty() { String::new() } else { format!("{}: ", place.join(", ")) }
}

fn probes(report: &Report) -> Vec<Point> {
    report
        .observer_effects
        .iter()
        .map(|effect| {
            let what = match effect.of {
                Metric::Throughput => "of the rate",
                Metric::CpuTime => "more CPU per request",
                other => other.name(),
            };
            let rate = effect.of == Metric::Throughput;
            let (low, high) = if rate {
                (-effect.effect.high, -effect.effect.low)
            } else {
                (effect.effect.low, effect.effect.high)
            };
            let cost = format!(
                "{}: {} {what} ({} to {}, {} pairs of laps; {}, {})",
                effect.pass,
                unsigned(effect.cost()),
                unsigned(low),
                unsigned(high),
                effect.effect.rounds,
                effect.route,
                report.title(&effect.arm)
            );
            let mut point = Point::new(cost);
            if effect.spoils_times() {
                let text = "above 10 %: counts of this pass hold, its times are not shown";
                point.details.push(("so", text.to_owned()));
            }
            point
        })
        .collect()
}

/// A percentage that needs no plus sign.
fn unsigned(share: f64) -> String {
    numbers::percent(share, None).trim_start_matches('+').to_owned()
}

fn incomplete(report: &Report) -> Vec<Point> {
    let run = &report.run;
    let mut points = Vec::new();
    if run.status != Status::Complete {
        let reason = run.reason.as_deref().unwrap_or("it was ended before its last step");
        points.push(Point::new(format!("this run: {reason}")));
    }
    for pass in run.passes.iter().filter(|pass| pass.status != Status::Complete) {
        let reason = pass.reason.as_deref().unwrap_or("it was ended before its last lap");
        points.push(Point::new(format!("pass {}: {reason}", pass.name)));
    }
    points
}

fn files(report: &Report) -> Vec<Point> {
    let paths = &report.paths;
    [&paths.run, &paths.results, &paths.tables]
        .into_iter()
        .filter(|path| !path.is_empty())
        .map(Point::new)
        .collect()
}
