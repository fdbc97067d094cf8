//! What one saved round trip is worth in CPU time.

use crate::compare::{ArmName, Series};
use crate::cost::Figure;
use crate::interval::Interval;

/// The CPU time that one round trip costs, from two arms that differ in their number of trips:
/// Δ CPU per request ÷ Δ trips per request.
#[derive(Clone, Debug, PartialEq)]
pub struct PingPrice {
    /// Name of the route.
    pub route: String,
    /// The arm with more trips.
    pub with: ArmName,
    /// The arm with fewer.
    pub without: ArmName,
    /// Whose CPU time: `subject`, `postgres`.
    pub process: String,
    /// Trips per request that `without` saves.
    pub trips_saved: f64,
    /// Seconds of CPU a trip, with its interval over rounds.
    pub per_trip: Figure,
    /// What limits its meaning, one sentence each.
    pub doubts: Vec<String>,
}

/// The price, from CPU seconds per request by round and trips per request of two arms; each round
/// gives one difference, so that drift between rounds cancels. `None` when both make equally many
/// trips, or when fewer than two rounds have both.
#[must_use]
pub fn of(
    route: &str,
    process: &str,
    one: (&ArmName, &Series, f64),
    other: (&ArmName, &Series, f64),
) -> Option<PingPrice> {
    let ((with, with_cpu, more), (without, without_cpu, fewer)) =
        if one.2 >= other.2 { (one, other) } else { (other, one) };
    let trips_saved = more - fewer;
    if trips_saved <= 0.0 {
        return None;
    }
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let saved =
        with_cpu.paired(without_cpu, |with, without| (mean(with) - mean(without)) / trips_saved);
    let interval = Interval::of(&saved)?;
    Some(PingPrice {
        route: route.to_owned(),
        with: with.clone(),
        without: without.clone(),
        process: process.to_owned(),
        trips_saved,
        per_trip: Figure {
            value: interval.mean,
            low: interval.low,
            high: interval.high,
            samples: interval.count as u64,
        },
        doubts: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arm(variant: &str) -> ArmName {
        ArmName { subject: "shop".into(), variant: variant.into() }
    }

    #[test]
    fn each_round_gives_one_difference_whichever_arm_comes_first() {
        let on: Series = [(0, 160e-6), (1, 176e-6), (2, 200e-6)].into_iter().collect();
        let off: Series = [(0, 130e-6), (1, 140e-6), (3, 1.0)].into_iter().collect();
        let price = of("detail", "postgres", (&arm("off"), &off, 6.0), (&arm("on"), &on, 9.0));
        let price = price.unwrap();
        assert_eq!((price.with.variant.as_str(), price.trips_saved), ("on", 3.0));
        // 30 and 36 µs saved in the two rounds that both have: 10 and 12 a trip.
        assert!((price.per_trip.value - 11e-6).abs() < 1e-12);
        assert_eq!(price.per_trip.samples, 2);
    }

    #[test]
    fn equal_trips_have_no_price() {
        let cpu: Series = [(0, 1.0), (1, 1.0)].into_iter().collect();
        assert_eq!(of("a", "postgres", (&arm("x"), &cpu, 4.0), (&arm("y"), &cpu, 4.0)), None);
    }
}
