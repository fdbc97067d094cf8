//! Fair laps: their rate, and how far they lie apart.

use assay_analyses::compare::Comparison;
use assay_analyses::interval::median;
use assay_analyses::laps;
use assay_analyses::metric::Metric;
use assay_captures::run_record::Arm;

use super::{Chart, CurveLine, Curves, Drawing, Numbers, Stacked, StackedRow, Strip, StripRow};
use crate::cost_table::{Finder, mark};
use crate::numbers::{self, Scale};

/// The rates of an arm's laps, fastest first.
fn rates(finder: &Finder<'_>, arm: &Arm) -> Vec<f64> {
    let mut rates: Vec<f64> = finder.fair_laps(arm).map(laps::good_rate).collect();
    rates.sort_by(|a, b| b.total_cmp(a));
    rates
}

fn comparison<'a>(finder: &Finder<'a>, arm: &Arm) -> Option<&'a Comparison> {
    finder.report.comparisons.iter().find(|comparison| {
        comparison.cell.metric == Metric::Throughput
            && comparison.cell.route == finder.route
            && comparison.cell.labels.is_empty()
            && comparison.arm.subject == arm.subject
            && comparison.arm.variant == arm.variant
    })
}

/// The median rate of each arm with the range of its laps.
pub(super) fn throughput(finder: &Finder<'_>) -> Option<Chart> {
    let arms: Vec<(&Arm, Vec<f64>)> =
        finder.arms.iter().map(|arm| (*arm, rates(finder, arm))).collect();
    let amounts: Vec<(f64, f64)> = arms.iter().filter_map(|(_, rates)| middle(rates)).collect();
    if amounts.is_empty() {
        return None;
    }
    let scale = Scale::of("1/s", "", &amounts);
    let show = |value: Option<f64>| value.map_or("not measured".to_owned(), |v| scale.show(v));
    let mut rows = Vec::new();
    let mut numbers = Vec::new();
    for (arm, rates) in &arms {
        let middle = median(rates);
        let judged = comparison(finder, arm);
        let change = judged.map_or_else(String::new, |judged| {
            let half = judged.effect.map(|effect| effect.half_width());
            let change = judged.change().map_or_else(String::new, |c| numbers::percent(c, half));
            format!("{change} {}", mark(judged.verdict)).trim().to_owned()
        });
        let (best, worst) = (rates.first().copied(), rates.last().copied());
        numbers.push(vec![
            arm.title.clone(),
            show(middle),
            show(worst),
            show(best),
            change.trim().to_owned(),
        ]);
        rows.push(StackedRow {
            name: arm.title.clone(),
            sizes: vec![middle],
            interval: worst.zip(best),
            text: beside(&show(middle), change.trim()),
        });
    }
    Some(Chart {
        title: "Throughput, requests per second".into(),
        says: "Bars are median laps; whiskers reach from the slowest lap to the fastest.".into(),
        drawing: Drawing::Stacked(Stacked { parts: vec!["throughput".into()], rest: false, rows }),
        numbers: Numbers {
            head: ["variant", "median, req/s", "slowest lap", "fastest lap", "change"]
                .map(str::to_owned)
                .into(),
            rows: numbers,
        },
    })
}

fn middle(rates: &[f64]) -> Option<(f64, f64)> {
    let (best, worst) = (rates.first()?, rates.last()?);
    Some((median(rates)?, (best - worst) / 2.0))
}

/// How far the laps of each arm lie from the reference's best one.
pub(super) fn strip(finder: &Finder<'_>) -> Option<Chart> {
    let arms: Vec<(&Arm, Vec<f64>)> =
        finder.arms.iter().map(|arm| (*arm, rates(finder, arm))).collect();
    let base = *arms.first()?.1.first()?;
    if base <= 0.0 || arms.len() < 2 {
        return None;
    }
    let percent = |rate: f64| (rate / base - 1.0) * 100.0;
    let shown = |value: f64| format!("{}{} %", plus(value), numbers::number(value, 1));
    let mut rows = Vec::new();
    let mut table = Vec::new();
    for (index, (arm, rates)) in arms.iter().enumerate() {
        let (Some(best), Some(slowest), Some(middle)) =
            (rates.first(), rates.last(), median(rates))
        else {
            continue;
        };
        let spread = comparison(finder, arm).and_then(|judged| judged.spread);
        let hollow = spread.is_some_and(|spread| spread.is_indistinguishable());
        let text = match (index, spread) {
            (0, _) => "reference".to_owned(),
            (_, Some(spread)) => {
                let behind = -spread.overhead() * 100.0;
                format!("{}{}", shown(behind), if hollow { "  within the spread" } else { "" })
            }
            (_, None) => shown(percent(*best)),
        };
        let row = StripRow {
            name: arm.title.clone(),
            best: percent(*best),
            median: percent(middle),
            slowest: percent(*slowest),
            hollow,
            text,
        };
        table.push(vec![
            arm.title.clone(),
            shown(row.best),
            shown(row.median),
            shown(row.slowest),
            if hollow { "indistinguishable" } else { "" }.to_owned(),
        ]);
        rows.push(row);
    }
    Some(Chart {
        title: "Laps against the reference's best, %".into(),
        says: "A bar reaches from the slowest lap to the best (dot), with a tick at the median. A \
               hollow dot lies within the spread of the laps; this published rule stands beside \
               the verdicts and does not replace them."
            .into(),
        drawing: Drawing::Strip(Strip { rows }),
        numbers: Numbers {
            head: ["variant", "best lap", "median lap", "slowest lap", "spread rule"]
                .map(str::to_owned)
                .into(),
            rows: table,
        },
    })
}

/// A figure with its change in brackets.
pub(super) fn beside(figure: &str, change: &str) -> String {
    if change.is_empty() { figure.to_owned() } else { format!("{figure} ({change})") }
}

/// The rate of each lap at its time: what drifted, and whether all drifted alike.
pub(super) fn over_time(finder: &Finder<'_>) -> Option<Chart> {
    let all = || finder.arms.iter().flat_map(|arm| finder.fair_laps(arm));
    let first = all().map(|lap| lap.span.start).min()?;
    let last = all().map(|lap| lap.span.start).max()?;
    let length = last.since(first)?.seconds();
    if length <= 0.0 {
        return None;
    }
    let mut lines = Vec::new();
    let mut rows = Vec::new();
    for arm in &finder.arms {
        let mut points: Vec<(f64, f64)> = finder
            .fair_laps(arm)
            .filter_map(|lap| Some((lap.span.start.since(first)?.seconds(), laps::good_rate(lap))))
            .collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        rows.extend(points.iter().map(|(at, rate)| {
            vec![arm.title.clone(), numbers::number(*at, 1), numbers::number(*rate, 0)]
        }));
        let points = points.into_iter().map(|(at, rate)| (at / length, rate)).collect();
        lines.push(CurveLine { name: arm.title.clone(), points });
    }
    let ticks = (0..=4).map(|quarter| {
        let place = f64::from(quarter) / 4.0;
        (place, format!("{} s", numbers::number(place * length, 0)))
    });
    Some(Chart {
        title: "Rate of each lap over time, good answers per second".into(),
        says: "Laps of all variants take turns; what moves all lines alike is the machine.".into(),
        drawing: Drawing::Curves(Curves {
            x_title: "since the first lap".into(),
            x_ticks: ticks.collect(),
            y_title: "answers/s".into(),
            y_logarithmic: false,
            lines,
        }),
        numbers: Numbers {
            head: ["variant", "since the first lap, s", "good answers/s"].map(str::to_owned).into(),
            rows,
        },
    })
}

fn plus(value: f64) -> &'static str {
    if value > 0.0 { "+" } else { "" }
}
