//! What stands below the tables: findings, checks, probe costs, passes and notes, as plain
//! content for all renderers.

mod checks;
pub(crate) mod claims;
mod over_time;

use std::collections::{BTreeMap, BTreeSet};

use assay_analyses::metric::Metric;
use assay_analyses::observer::PassEffect;
use assay_captures::manifest::Status;

use crate::cost_table;
use crate::numbers;
use crate::report::Report;

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

/// What one wants to know of a machine first.
const FIRST_FACTS: [&str; 6] =
    ["cpu", "cores", "memory", "virtualisation", "distribution", "kernel"];

/// All sections, in the order of reading; findings of the routes named, or of all where none is.
#[must_use]
pub fn all(report: &Report, routes: &[String]) -> Vec<Section> {
    vec![
        Section { title: "Findings", points: findings(report, routes) },
        Section { title: "Causes put to the test", points: claims::points(report, routes) },
        Section { title: "Over time", points: over_time::points(report, routes) },
        Section { title: "Can the figures be trusted?", points: checks::points(report) },
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
        plural(cost_table::routes(report, &[]).count(), "route"),
    ))];
    let named = |facts: &BTreeMap<String, String>| -> String {
        let mut facts: Vec<(&String, &String)> = facts.iter().collect();
        let place = |name: &str| FIRST_FACTS.iter().position(|first| *first == name);
        facts.sort_by_key(|(name, _)| place(name).unwrap_or(FIRST_FACTS.len()));
        let facts = facts.into_iter().map(|(name, value)| format!("{name} {value}"));
        facts.collect::<Vec<_>>().join(" · ")
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
            // The word before it says already that it is a guess.
            let cause = finding.why.strip_prefix("perhaps ").unwrap_or(&finding.why).to_owned();
            let mut details = vec![(why, cause), ("shown by", finding.shown.clone())];
            details.extend(finding.not_shown.iter().map(|text| ("not shown", text.clone())));
            Point { head, details }
        })
        .collect()
}

/// What one probe cost: rate and CPU in one line for each pass.
fn probes(report: &Report) -> Vec<Point> {
    let mut points: Vec<Point> = Vec::new();
    let of_pass = |pass: &str, of: Metric| {
        report.pass_effects.iter().find(|effect| effect.pass == pass && effect.of == of)
    };
    let passes: BTreeSet<&str> = report.pass_effects.iter().map(|e| e.pass.as_str()).collect();
    let order = |pass: &&str| report.run.passes.iter().position(|known| known.name == *pass);
    let mut passes: Vec<&str> = passes.into_iter().collect();
    passes.sort_by_key(order);
    for pass in passes {
        let rate = of_pass(pass, Metric::Throughput);
        let cpu = of_pass(pass, Metric::CpuTime);
        let effects: Vec<(&str, &PassEffect)> = [("rate", rate), ("CPU per request", cpu)]
            .into_iter()
            .filter_map(|(what, effect)| Some((what, effect?)))
            .collect();
        let Some((_, first)) = effects.first() else { continue };
        let said: Vec<String> = effects
            .iter()
            .map(|(what, effect)| {
                let half = effect.effect.half_width();
                let change = numbers::percent(effect.effect.change, Some(half));
                format!("{what} {change} {}", numbers::plus_minus(half))
            })
            .collect();
        let mut point = Point::new(format!(
            "{pass}: {} ({} pairs; ± is the least seen)",
            said.join(", "),
            numbers::count(f64::from(first.effect.rounds)),
        ));
        if rate.into_iter().chain(cpu).any(PassEffect::spoils_times) {
            let text = "above 10 %: counts of this pass hold, its times are not shown";
            point.details.push(("so", text.to_owned()));
        }
        points.push(point);
    }
    points
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
    [&paths.run, &paths.page, &paths.results, &paths.tables]
        .into_iter()
        .filter(|path| !path.is_empty())
        .map(Point::new)
        .collect()
}
