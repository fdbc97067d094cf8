//! Checks in few lines: one for each pass where all hold, and each fault with its places.

use assay_analyses::metric::Metric;

use super::Point;
use crate::numbers;
use crate::report::{Check, Outcome, Report};

/// Places that one line names; hundreds of captures may fail for one reason, and the
/// machine-readable results have them all.
const PLACES: usize = 6;

/// What was checked in each pass.
pub(super) fn points(report: &Report) -> Vec<Point> {
    let mut passes: Vec<&str> = Vec::new();
    for check in &report.checks {
        if !passes.contains(&check.pass.as_str()) {
            passes.push(&check.pass);
        }
    }
    let mut points: Vec<Point> = passes.into_iter().map(|pass| point(report, pass)).collect();
    points.extend(self_tests(report));
    points.push(calibration(report));
    points
}

/// The reference against its own copy: what is found there is the method's own error.
fn self_tests(report: &Report) -> Option<Point> {
    let (_, first) = report.self_tests.first()?;
    let told: Vec<String> = (report.self_tests.iter())
        .map(|(metric, test)| {
            let what = if *metric == Metric::CpuTime { "CPU per request" } else { metric.name() };
            let noise = numbers::number(test.noise * 100.0, 1);
            format!("{what} p = {}, noise {noise} % a lap", numbers::number(test.p_value, 3))
        })
        .collect();
    let rejected = report.self_tests.iter().any(|(_, test)| test.rejects());
    let (mark, follows) = if rejected {
        ("✗", "a difference between equals: no verdict of this run can be trusted")
    } else {
        ("✓", "no difference is found where there is none")
    };
    let routes = if first.cells == 1 { "route" } else { "routes" };
    Some(Point::new(format!(
        "{mark} A/A: the reference against its own copy on {} {routes}: {}; {follows}",
        first.cells,
        told.join("; "),
    )))
}

/// How the instruments did where the truth was known.
fn calibration(report: &Report) -> Point {
    let Some(calibration) = &report.run.calibration else {
        let text =
            "? calibration: none of this machine with this version; `assay calibrate` makes one";
        return Point::new(text);
    };
    let mark = match (calibration.broken.is_empty(), calibration.not_measured.is_empty()) {
        (false, _) => "✗",
        (true, false) => "?",
        (true, true) => "✓",
    };
    let told = [
        ("outside", calibration.broken.len()),
        ("too noisy to tell", calibration.cannot_tell.len()),
        ("not measured", calibration.not_measured.len()),
    ];
    let told: Vec<String> = told
        .into_iter()
        .filter(|&(_, number)| number > 0)
        .map(|(what, number)| format!(", {number} {what}"))
        .collect();
    let mut point = Point::new(format!(
        "{mark} calibration of {}{}: {} of {} figures within their limits{}",
        calibration.made,
        if calibration.quick { " (quick)" } else { "" },
        calibration.hold,
        calibration.figures(),
        told.concat(),
    ));
    if !calibration.broken.is_empty() {
        point.details.push(("✗ but", calibration.broken.join("; ")));
    }
    point
}

/// All checks of one pass.
fn point(report: &Report, pass: &str) -> Point {
    let of_pass: Vec<&Check> = report.checks.iter().filter(|check| check.pass == pass).collect();
    let kinds = kinds(&of_pass);
    let holding: Vec<&Vec<&Check>> =
        kinds.iter().filter(|checks| checks.iter().all(|check| holds(check))).collect();
    let said = sums(&holding).join("; ");
    let mut captures: Vec<&str> =
        of_pass.iter().filter_map(|check| check.capture.as_deref()).collect();
    captures.sort_unstable();
    captures.dedup();
    let captures = match captures.len() {
        0 => String::new(),
        1 => " (1 capture)".to_owned(),
        many => format!(" ({} captures)", numbers::count(many as f64)),
    };
    let mut details: Vec<(&'static str, String)> = Vec::new();
    for checks in kinds.iter().filter(|checks| !checks.iter().all(|check| holds(check))) {
        details.extend(faults(report, checks));
    }
    let broken = of_pass.iter().any(|check| matches!(check.outcome, Outcome::Broken(_)));
    let mark = match (broken, details.is_empty()) {
        (true, _) => "✗",
        (false, false) => "?",
        (false, true) => "✓",
    };
    let said = if said.is_empty() { "nothing holds".to_owned() } else { said };
    Point { head: format!("{mark} {pass}: {said}{captures}"), details }
}

fn holds(check: &Check) -> bool {
    check.outcome == Outcome::Holds
}

/// The checks of a pass by what is counted, in their order.
fn kinds<'a>(checks: &[&'a Check]) -> Vec<Vec<&'a Check>> {
    let mut kinds: Vec<Vec<&Check>> = Vec::new();
    for &check in checks {
        let same = |known: &&mut Vec<&Check>| {
            known.iter().any(|k| k.counted == check.counted && k.against == check.against)
        };
        match kinds.iter_mut().find(same) {
            Some(known) => known.push(check),
            None => kinds.push(vec![check]),
        }
    }
    kinds
}

/// One phrase for each kind that holds; kinds of one source, such as each system call by two
/// instruments, are one phrase.
fn sums(kinds: &[&Vec<&Check>]) -> Vec<String> {
    let mut phrases = Vec::new();
    let mut told: Vec<&str> = Vec::new();
    for checks in kinds {
        let Some(first) = checks.first() else { continue };
        let against = first.against.as_str();
        let same = kinds.iter().filter(|other| other.iter().any(|c| c.against == against));
        let many = if against.is_empty() { 1 } else { same.count() };
        if many > 2 {
            if !told.contains(&against) {
                told.push(against);
                phrases.push(format!("{many} counts agree with {against}"));
            }
            continue;
        }
        phrases.push(sum(checks));
    }
    phrases
}

fn sum(checks: &[&Check]) -> String {
    let Some(first) = checks.first() else { return String::new() };
    // What was not checked was not found to be nothing.
    let checked = |check: &&&Check| !matches!(check.outcome, Outcome::NotChecked(_));
    let checks: Vec<&&Check> = checks.iter().filter(checked).collect();
    let Some(&&first) = checks.first() else { return format!("{} not checked", first.counted) };
    let found: f64 = checks.iter().map(|check| check.found).sum();
    let expected: f64 = checks.iter().map(|check| check.expected).sum();
    let (found, expected) = (numbers::count(found), numbers::count(expected));
    if first.against.is_empty() {
        format!("{found} {}", first.counted)
    } else if found == expected {
        format!("{found} {} = {}", first.counted, first.against)
    } else {
        format!("{found} {}, {expected} {}", first.counted, first.against)
    }
}

/// What is wrong with one kind: a line for each meaning, with the places that it is true of.
fn faults(report: &Report, checks: &[&Check]) -> Vec<(&'static str, String)> {
    let mut faults: Vec<(&'static str, &str, Vec<&Check>)> = Vec::new();
    for &check in checks {
        let (mark, text) = match &check.outcome {
            Outcome::Holds => continue,
            Outcome::Broken(meaning) => ("✗ but", meaning.as_str()),
            Outcome::NotChecked(reason) => ("? not", reason.as_str()),
        };
        let same = |known: &&mut (&str, &str, Vec<&Check>)| known.0 == mark && known.1 == text;
        match faults.iter_mut().find(same) {
            Some((.., known)) => known.push(check),
            None => faults.push((mark, text, vec![check])),
        }
    }
    let more = faults.len().saturating_sub(PLACES);
    faults.truncate(PLACES);
    let mut lines: Vec<(&'static str, String)> = faults
        .into_iter()
        .map(|(mark, text, of)| {
            let counted = match mark {
                "? not" => of[0].counted.clone(),
                _ => sum(&of),
            };
            let places = places(report, &of, checks.len());
            (mark, format!("{counted}: {text} ({places})"))
        })
        .collect();
    if more > 0 {
        lines.push(("", format!("and {more} more like these in results.json")));
    }
    lines
}

/// Where something is true: `all 5 captures`, or the routes and variants.
fn places(report: &Report, checks: &[&Check], all: usize) -> String {
    if checks.len() == all && all > 1 {
        return format!("all {all} captures");
    }
    let mut places: Vec<String> = checks
        .iter()
        .take(PLACES)
        .map(|check| {
            let mut place: Vec<&str> = check.route.iter().map(String::as_str).collect();
            place.extend(check.arm.as_ref().map(|arm| report.title(arm)));
            if place.is_empty() { "the whole pass".to_owned() } else { place.join(", ") }
        })
        .collect();
    if checks.len() > PLACES {
        places.push(format!("and {} more", checks.len() - PLACES));
    }
    places.join("; ")
}
