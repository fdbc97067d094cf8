//! When a figure is only a bound: the load driver or the database, and not the subject, set the
//! rate.

use assay_captures::lap::Lap;

/// The share of a lap that the load driver's thread may be running or waiting for a CPU before
/// its rate counts as a lower bound.
pub const GENERATOR_BUSY: f64 = 0.9;

/// How far from one connections ÷ (rate × mean latency) may lie.
pub const LITTLE_TOLERANCE: f64 = 0.05;

/// The share of a unit's time that must be spent on round trips for a row to count as bound by
/// the database.
const DATABASE_SHARE: f64 = 0.5;

/// Whether the load driver was the bottleneck of a lap, and in which words; `None` when it was
/// not, or when what it used is unknown.
#[must_use]
pub fn generator_bound(lap: &Lap) -> Option<String> {
    let generator = lap.generator?;
    let wait = generator.run_queue_wait.unwrap_or_default();
    let length = lap.sent_until.since(lap.span.start)?.seconds();
    let busy = (generator.cpu.seconds() + wait.seconds()) / length;
    (length > 0.0 && busy >= GENERATOR_BUSY).then(|| {
        format!("the load driver was busy or waiting for a CPU for {:.0} % of a lap", busy * 100.0)
    })
}

/// Whether at least half of a unit's time goes to round trips: `k × RTT ≥ 0.5 × c / rate`. Then
/// an overhead is a lower bound.
///
/// `trips` are awaited flights per unit, `round_trip` the seconds of one (`SELECT 1` on one
/// connection), `connections` the concurrency, `best_rate` the reference's best lap.
#[must_use]
pub fn database_bound(trips: f64, round_trip: f64, connections: f64, best_rate: f64) -> bool {
    trips * round_trip >= DATABASE_SHARE * connections / best_rate
}

/// Little's law for closed load: `rate × mean latency ÷ connections`, which is one when a tool's
/// three figures fit each other. `mean_latency` in seconds.
#[must_use]
pub fn little(connections: f64, rate: f64, mean_latency: f64) -> f64 {
    rate * mean_latency / connections
}

/// Whether three figures of a load tool fit each other.
#[must_use]
pub fn fits_little(connections: f64, rate: f64, mean_latency: f64) -> bool {
    (little(connections, rate, mean_latency) - 1.0).abs() <= LITTLE_TOLERANCE
}

#[cfg(test)]
mod tests {
    use assay_captures::lap::Generator;
    use assay_captures::units::Nanos;

    use super::*;
    use crate::laps::tests::lap;

    #[test]
    fn a_driver_that_is_always_busy_bounds_the_lap() {
        let mut bound = lap("on", 0, 0, 1000);
        assert_eq!(generator_bound(&bound), None);
        bound.generator =
            Some(Generator { cpu: Nanos(700_000_000), run_queue_wait: Some(Nanos(250_000_000)) });
        assert!(generator_bound(&bound).unwrap().contains("95 %"));
        bound.generator = Some(Generator { cpu: Nanos(700_000_000), run_queue_wait: None });
        assert_eq!(generator_bound(&bound), None);
    }
}
