//! Long laps second by second: how steady rate, latency and the machine's CPU were.

use assay_captures::lap::{Lap, Slice};

use super::Point;
use crate::numbers::{self, Scale};
use crate::report::Report;

/// A lap of fewer whole seconds says nothing about time.
const LEAST: usize = 10;

/// One point for each arm and route: its first long lap without a probe.
pub(super) fn points(report: &Report, routes: &[String]) -> Vec<Point> {
    let mut seen: Vec<(&str, &str, &str)> = Vec::new();
    let mut points = Vec::new();
    for lap in report.laps.iter().filter(|lap| lap.pass == "fair") {
        let cell = (lap.subject.as_str(), lap.variant.as_str(), lap.route.as_str());
        let wanted = routes.is_empty() || routes.contains(&lap.route);
        if !wanted || lap.timeline.len() < LEAST || seen.contains(&cell) {
            continue;
        }
        seen.push(cell);
        points.push(point(report, lap));
    }
    points
}

fn point(report: &Report, lap: &Lap) -> Point {
    let title = report
        .run
        .arms
        .iter()
        .find(|arm| arm.subject == lap.subject && arm.variant == lap.variant)
        .map_or(lap.variant.as_str(), |arm| &arm.title);
    let mut point = Point::new(format!(
        "{}, {title}: {} whole seconds of a lap with {} requests, each figure as median (lowest to \
         highest second)",
        lap.route,
        lap.timeline.len(),
        numbers::count(lap.requests as f64),
    ));
    let answered: Vec<&Slice> = lap.timeline.iter().filter(|slice| slice.answers > 0).collect();
    let of = |value: &dyn Fn(&Slice) -> f64| -> Vec<f64> {
        answered.iter().map(|slice| value(slice)).collect()
    };
    let answers = lap.timeline.iter().map(|slice| slice.answers as f64).collect();
    point.details.extend(range("answers", "1/s", answers));
    point.details.extend(range("p50", "s", of(&|slice| slice.p50.seconds())));
    point.details.extend(range("p99", "s", of(&|slice| slice.p99.seconds())));
    let busy: Vec<f64> =
        lap.timeline.iter().filter_map(|slice| Some(slice.machine_busy? * 100.0)).collect();
    if let Some((median, low, high)) = spread(busy) {
        let whole = |value: f64| numbers::number(value, 0);
        let text = format!(
            "{} % ({} to {}) of the machine's CPUs, everything on it",
            whole(median),
            whole(low),
            whole(high)
        );
        point.details.push(("busy", text));
    }
    point
}

fn range(what: &'static str, ucum: &str, values: Vec<f64>) -> Option<(&'static str, String)> {
    let (median, low, high) = spread(values)?;
    // Slices are right to a hundredth.
    let hundredth = |value: f64| (value, value.abs() / 50.0);
    let scale = Scale::of(ucum, "", &[hundredth(median), hundredth(low), hundredth(high)]);
    let text = format!(
        "{} {} ({} to {})",
        scale.show(median),
        scale.unit,
        scale.show(low),
        scale.show(high)
    );
    Some((what, text))
}

/// Median, smallest and largest.
fn spread(mut values: Vec<f64>) -> Option<(f64, f64, f64)> {
    values.sort_by(f64::total_cmp);
    let (low, high) = (*values.first()?, *values.last()?);
    Some((values[values.len() / 2], low, high))
}

#[cfg(test)]
mod tests {
    use assay_captures::units::Nanos;

    use super::*;
    use crate::sample;

    #[test]
    fn a_long_lap_is_told_by_its_seconds_and_a_short_one_is_not() {
        let mut report = sample::report();
        assert!(points(&report, &[]).is_empty());
        report.laps[0].timeline = (0..12)
            .map(|second| Slice {
                answers: if second == 5 { 0 } else { 9_000 + second },
                p50: Nanos(300_000_000),
                p99: Nanos(400_000_000 + second * 10_000_000),
                max: Nanos(900_000_000),
                machine_busy: Some(0.83),
            })
            .collect();
        let told = points(&report, &[]);
        assert_eq!(told.len(), 1);
        let details: Vec<String> =
            told[0].details.iter().map(|(word, text)| format!("{word}: {text}")).collect();
        insta::assert_snapshot!(details.join("\n"), @r"
        answers: 9,006 req/s (0 to 9,011)
        p50: 300 ms (300 to 300)
        p99: 460 ms (400 to 510)
        busy: 83 % (83 to 83) of the machine's CPUs, everything on it
        ");
        assert!(points(&report, &["other".to_owned()]).is_empty());
    }
}
