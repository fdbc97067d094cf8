//! Fair laps → throughput and latency. All laps are kept: the median is the figure, and the best
//! and the worst stand beside it.

use std::collections::BTreeMap;

use assay_captures::lap::{Lap, Load, ProbeState};

use crate::bounds;
use crate::compare::{ArmName, Series};
use crate::cost::{Amount, Cost, Figure, Origin, Per};
use crate::interval::{CONFIDENCE, median};
use crate::metric::Metric;

/// The quantiles that are shown, by their label.
pub const QUANTILES: [(&str, f64); 4] =
    [("0.5", 0.5), ("0.9", 0.9), ("0.99", 0.99), ("0.999", 0.999)];

/// Throughput and latency of each arm on each route, from the laps of one pass in which no probe
/// recorded.
///
/// Throughput without label is the median lap, with its distribution-free interval; label `lap`
/// has the `best` and the `worst`. Where an answer was not good, label `answers` = `good` has the
/// rate of the others. Latency has label `quantile`, each the median over laps, but `max`, which
/// is the largest.
#[must_use]
pub fn costs(laps: &[Lap]) -> Vec<Cost> {
    let mut groups: BTreeMap<Origin, Vec<&Lap>> = BTreeMap::new();
    for lap in laps.iter().filter(|lap| lap.probe != ProbeState::On) {
        groups.entry(origin(lap)).or_default().push(lap);
    }
    groups.iter().flat_map(|(origin, laps)| arm_costs(origin, laps)).collect()
}

/// The arm of a lap.
#[must_use]
pub fn arm(lap: &Lap) -> ArmName {
    ArmName { subject: lap.subject.clone(), variant: lap.variant.clone() }
}

/// Rates of good answers, by round, for comparisons.
#[must_use]
pub fn rates<'a>(laps: impl IntoIterator<Item = &'a Lap>) -> Series {
    laps.into_iter().map(|lap| (lap.round, good_rate(lap))).collect()
}

/// Good answers per second up to the last send.
#[must_use]
pub fn good_rate(lap: &Lap) -> f64 {
    let answers = lap.good + lap.non_2xx + lap.mismatched;
    if answers == 0 { 0.0 } else { lap.rate() * lap.good as f64 / answers as f64 }
}

/// The median with its distribution-free 95 % interval; with fewer than six values, which no such
/// interval fits into, the whole range. `None` when empty.
#[must_use]
pub fn median_figure(values: &[f64]) -> Option<Figure> {
    let value = median(values)?;
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let cut = outside(sorted.len());
    let (low, high) = (sorted[cut], sorted[sorted.len() - 1 - cut]);
    Some(Figure { value, low, high, samples: values.len() as u64 })
}

/// How many of the smallest and of the largest of `count` values lie outside the interval of the
/// median: the largest k with 1 − 2 · P(Binomial(count, ½) ≤ k − 1) ≥ 95 %.
fn outside(count: usize) -> usize {
    let mut term = 0.5f64.powi(i32::try_from(count).unwrap_or(i32::MAX));
    let mut tail = term;
    let mut cut = 0;
    while 2 * cut + 1 < count && 1.0 - 2.0 * tail >= CONFIDENCE {
        cut += 1;
        term *= (count + 1 - cut) as f64 / cut as f64;
        tail += term;
    }
    cut.saturating_sub(1)
}

fn origin(lap: &Lap) -> Origin {
    Origin {
        subject: lap.subject.clone(),
        variant: lap.variant.clone(),
        route: lap.route.clone(),
        pass: lap.pass.clone(),
        capture: None,
    }
}

fn arm_costs(origin: &Origin, laps: &[&Lap]) -> Vec<Cost> {
    let mut costs = throughput(origin, laps);
    let latencies: Vec<&&Lap> = laps.iter().filter(|lap| lap.latency.count() > 0).collect();
    for (label, quantile) in QUANTILES {
        let values: Vec<f64> = latencies
            .iter()
            .filter_map(|lap| lap.latency.quantile(quantile))
            .map(|latency| latency.seconds())
            .collect();
        costs.extend(latency(origin, label, median_figure(&values)));
    }
    let means: Vec<f64> = latencies.iter().map(|lap| lap.latency.mean / 1e9).collect();
    costs.extend(latency(origin, "mean", median_figure(&means)));
    let largest: Vec<f64> = latencies.iter().map(|lap| lap.latency.max.seconds()).collect();
    let largest = median_figure(&largest).map(|figure| {
        let high = largest.iter().copied().fold(figure.high, f64::max);
        Figure { value: high, high, ..figure }
    });
    costs.extend(latency(origin, "max", largest));
    for cost in &mut costs {
        if cost.metric == Metric::Latency && laps.iter().any(|lap| !is_fixed_rate(lap)) {
            cost.doubts.push(
                "closed load: latency follows from throughput (connections ÷ rate)".to_owned(),
            );
        }
    }
    costs
}

/// Whether requests started on a schedule.
#[must_use]
pub fn is_fixed_rate(lap: &Lap) -> bool {
    matches!(lap.load, Load::FixedRate { .. })
}

fn latency(origin: &Origin, quantile: &str, figure: Option<Figure>) -> Option<Cost> {
    let amount = Amount::Measured(figure?);
    Some(origin.cost(Metric::Latency, Per::Nothing, amount).with("quantile", quantile))
}

fn throughput(origin: &Origin, laps: &[&Lap]) -> Vec<Cost> {
    let rates: Vec<f64> = laps.iter().map(|lap| lap.rate()).collect();
    let Some(figure) = median_figure(&rates) else { return Vec::new() };
    let best = rates.iter().copied().fold(figure.high, f64::max);
    let worst = rates.iter().copied().fold(figure.low, f64::min);
    let bound: Vec<String> = laps.iter().filter_map(|lap| bounds::generator_bound(lap)).collect();
    let amount = |figure| match bound.first() {
        None => Amount::Measured(figure),
        Some(reason) => Amount::LowerBound(figure, reason.clone()),
    };
    let rate = |value| Figure::exact(value, 1);
    let mut total = origin.cost(Metric::Throughput, Per::Nothing, amount(figure));
    let mut costs = Vec::new();
    if rates.len() < 6 {
        total = total.doubted(format!("interval is the range of {} laps", rates.len()));
    }
    let bad = laps.iter().filter(|lap| !lap.is_clean()).count();
    if bad > 0 {
        let requests: u64 = laps.iter().map(|lap| lap.requests).sum();
        let good: u64 = laps.iter().map(|lap| lap.good).sum();
        total = total.doubted(format!(
            "{} of {requests} answers were not good, in {bad} of {} laps",
            requests.saturating_sub(good),
            laps.len()
        ));
        let good_rates: Vec<f64> = laps.iter().map(|lap| good_rate(lap)).collect();
        if let Some(good) = median_figure(&good_rates) {
            costs.push(
                origin.cost(Metric::Throughput, Per::Nothing, amount(good)).with("answers", "good"),
            );
        }
    }
    for (label, value) in [("best", best), ("worst", worst)] {
        let cost = origin.cost(Metric::Throughput, Per::Nothing, amount(rate(value)));
        costs.push(cost.with("lap", label));
    }
    costs.insert(0, total);
    costs
}

#[cfg(test)]
pub(crate) mod tests {
    use assay_captures::lap::Latency;
    use assay_captures::units::{Moment, Nanos, Span};

    use super::*;

    /// A clean lap of one second with `rate` answers, each after 2 ms.
    pub(crate) fn lap(variant: &str, round: u32, order: u32, rate: u64) -> Lap {
        let start = Moment(u64::from(order) * 2_000_000_000);
        Lap {
            pass: "fair".into(),
            subject: "shop".into(),
            variant: variant.into(),
            route: "detail".into(),
            round,
            order,
            probe: ProbeState::None,
            load: Load::Closed { connections: 50 },
            span: Span { start, end: start.after(Nanos(1_100_000_000)) },
            sent_until: start.after(Nanos::SECOND),
            answered_in_time: rate,
            requests: rate,
            good: rate,
            non_2xx: 0,
            mismatched: 0,
            errors: BTreeMap::new(),
            body_bytes: 0,
            latency: Latency {
                min: Nanos(1_000_000),
                max: Nanos(9_000_000),
                mean: 2_500_000.0,
                buckets: vec![(2_000_000, rate - 1), (9_000_000, 1)],
            },
            postgres_calls: None,
            spoiled: None,
            generator: None,
            timeline: Vec::new(),
            captures: BTreeMap::new(),
        }
    }

    fn find<'a>(costs: &'a [Cost], metric: Metric, label: &str) -> &'a Cost {
        costs
            .iter()
            .find(|cost| {
                cost.metric == metric
                    && cost.labels.values().next().map_or("", String::as_str) == label
            })
            .unwrap()
    }

    #[test]
    fn the_median_lap_is_the_figure_and_best_and_worst_stand_beside_it() {
        let laps: Vec<Lap> = [900, 1000, 1200]
            .into_iter()
            .zip(0..)
            .map(|(rate, round)| lap("on", round, round, rate))
            .collect();
        let costs = costs(&laps);
        let total = find(&costs, Metric::Throughput, "");
        let figure = total.amount.figure().unwrap();
        assert_eq!((figure.value, figure.low, figure.high), (1000.0, 900.0, 1200.0));
        assert_eq!(total.doubts, ["interval is the range of 3 laps"]);
        let best = find(&costs, Metric::Throughput, "best");
        assert_eq!(best.amount.figure().unwrap().value, 1200.0);
        let worst = find(&costs, Metric::Throughput, "worst");
        assert_eq!(worst.amount.figure().unwrap().value, 900.0);
        let p50 = find(&costs, Metric::Latency, "0.5");
        assert_eq!(p50.amount.figure().unwrap().value, 0.002);
        assert_eq!(find(&costs, Metric::Latency, "max").amount.figure().unwrap().value, 0.009);
    }

    #[test]
    fn bad_answers_are_said_and_the_rate_of_good_ones_is_given_apart() {
        let mut bad = lap("on", 0, 0, 1000);
        bad.good = 900;
        bad.non_2xx = 100;
        let costs = costs(&[bad]);
        let total = find(&costs, Metric::Throughput, "");
        assert_eq!(total.amount.figure().unwrap().value, 1000.0);
        assert!(total.doubts.contains(&"100 of 1000 answers were not good, in 1 of 1 laps".into()));
        let good = find(&costs, Metric::Throughput, "good");
        assert!((good.amount.figure().unwrap().value - 900.0).abs() < 1e-9);
    }

    #[test]
    fn the_median_interval_leaves_out_as_many_as_the_binomial_allows() {
        // n = 5: the whole range covers only 93.75 %. n = 8: 99.2 % with all, 93.0 % without the
        // ends. n = 9: 96.1 % without the ends. n = 20: x(6) to x(15), 95.9 %.
        assert_eq!([5, 6, 8, 9, 20].map(outside), [0, 0, 0, 1, 5]);
        assert_eq!(outside(0), 0);
        assert_eq!(outside(1), 0);
    }
}
