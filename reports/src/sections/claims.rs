//! Causes that the experiment names, with the figures that show or contradict them.

use assay_analyses::claims::{By, Found, JudgedClaim, JudgedExpectation};
use assay_analyses::metric::Metric;
use assay_analyses::verdict::MARGIN;
use assay_captures::run_record::{Direction, Expectation};

use super::Point;
use crate::numbers::{self, Scale};
use crate::report::Report;

/// One point a claim; expectations of the routes named, or all where none is.
pub(crate) fn points(report: &Report, routes: &[String]) -> Vec<Point> {
    report.claims.iter().filter_map(|judged| point(report, judged, routes)).collect()
}

fn point(report: &Report, judged: &JudgedClaim, routes: &[String]) -> Option<Point> {
    let claim = &judged.claim;
    let title = |variant: &str| {
        let arm = (report.run.arms.iter())
            .find(|arm| arm.subject == claim.subject && arm.variant == variant);
        arm.map_or_else(|| variant.to_owned(), |arm| arm.title.clone())
    };
    let wanted = |route: &String| routes.is_empty() || routes.contains(route);
    let mut details = vec![(
        "flipped in",
        format!("“{}” against “{}”", title(&claim.flipped), title(&claim.base)),
    )];
    let shown = judged.expectations.iter().filter(|expected| wanted(&expected.expectation.route));
    details.extend(shown.map(|expected| (expected.outcome.word(), sentence(expected))));
    (details.len() > 1).then(|| Point {
        head: format!("{}: {} ({})", judged.outcome.word(), claim.cause, claim.name),
        details,
    })
}

fn sentence(judged: &JudgedExpectation) -> String {
    let expected = expected(&judged.expectation);
    match &judged.found {
        Err(reason) => format!("{expected}: {reason}"),
        Ok(found) => format!("{expected}: {}", figures(&judged.expectation, found)),
    }
}

/// `detail: postgres.flights{reason=pool ping} falls by at least 25 %`.
fn expected(expectation: &Expectation) -> String {
    let labels: Vec<String> =
        expectation.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let labels =
        if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(", ")) };
    let share = |by: f64| format!("{} %", numbers::number(by * 100.0, 0));
    let change = match (expectation.change, expectation.by) {
        (Direction::Falls, None) => "falls".to_owned(),
        (Direction::Falls, Some(by)) => format!("falls by at least {}", share(by)),
        (Direction::Rises, None) => "rises".to_owned(),
        (Direction::Rises, Some(by)) => format!("rises by at least {}", share(by)),
        (Direction::Stays, by) => format!("stays within {}", share(by.unwrap_or(MARGIN))),
    };
    format!("{}: {}{labels} {change}", expectation.route, expectation.metric)
}

/// `9 → 6 (−33 %)`, `1,020 → 1,310 req/s (+28 %; 27 % to 30 % in 6 rounds)`.
fn figures(expectation: &Expectation, found: &Found) -> String {
    let ucum = Metric::from_name(&expectation.metric).map_or("1", Metric::unit);
    // A rate of something else than requests.
    let other = ucum == "1/s" && expectation.metric != Metric::Throughput.name();
    let count = if other { "/s" } else { "" };
    let spread = |value: f64| match found.by {
        By::Counts => 0.0,
        // Four digits at most, and of noisy figures no more than three mean anything.
        By::Rounds(_) | By::Intervals => value.abs() / 300.0,
    };
    let amounts = [(found.base, spread(found.base)), (found.flipped, spread(found.flipped))];
    let scale = Scale::of(ucum, count, &amounts);
    let unit = if scale.unit.is_empty() { String::new() } else { format!(" {}", scale.unit) };
    let amounts = format!("{} → {}{unit}", scale.show(found.base), scale.show(found.flipped));
    let percent = |share: f64| {
        if share.is_finite() { numbers::percent(share, None) } else { "any rise".to_owned() }
    };
    let change = percent(found.change);
    match found.by {
        By::Counts if found.change.is_infinite() => format!("{amounts} (from none)"),
        By::Counts => format!("{amounts} ({change})"),
        By::Rounds(rounds) => format!(
            "{amounts} ({change}; {} to {} in {rounds} rounds)",
            percent(found.low),
            percent(found.high)
        ),
        By::Intervals => format!(
            "{amounts} ({change}; {} to {} by the two intervals)",
            percent(found.low),
            percent(found.high)
        ),
    }
}
