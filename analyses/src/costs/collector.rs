//! What a garbage collector costs: how often it ran, how long it stopped the program, and the CPU
//! time it used, of each lap, from lines that were printed during it.

use assay_captures::gctrace::Collection;
use assay_captures::parsed::{Problem, Sink};
use assay_captures::units::Nanos;

use crate::cost::{Amount, Cost, Figure, Origin, Per};
use crate::interval::Interval;
use crate::metric::Metric;

/// What one lap's lines add up to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Collections {
    /// How many there were.
    pub number: u64,
    /// Stop-the-world time of both phases, wall clock.
    pub stopped: Nanos,
    /// CPU time of all phases: stops, assists, background and idle marking.
    pub cpu: Nanos,
    /// Lines that were no whole collection.
    pub problems: u64,
}

impl Sink<Collection> for Collections {
    fn record(&mut self, collection: Collection) {
        self.number += 1;
        self.stopped.0 = self.stopped.0.saturating_add(collection.stopped().0);
        self.cpu.0 = self.cpu.0.saturating_add(collection.cpu.0);
    }

    fn problem(&mut self, _: Problem) {
        self.problems += 1;
    }
}

/// The costs of a cell from its laps, each with the time that it took: means over laps with their
/// t intervals. A collection belongs to the lap in which it ended.
#[must_use]
pub fn costs(origin: &Origin, laps: &[(Nanos, Collections)]) -> Vec<Cost> {
    let of = |metric: Metric, value: &dyn Fn(&Collections) -> f64| {
        let values: Vec<f64> = (laps.iter())
            .filter(|(wall, _)| *wall > Nanos(0))
            .map(|(wall, collections)| value(collections) / wall.seconds())
            .collect();
        let samples = values.len() as u64;
        let (amount, doubt) = match (Interval::of(&values), values.first()) {
            (Some(Interval { mean, low, high, .. }), _) => {
                let figure = Figure { value: mean, low: low.max(0.0), high, samples };
                (Amount::Measured(figure), None)
            }
            (None, Some(&value)) => {
                (Amount::Measured(Figure::exact(value, samples)), Some("one lap: no interval"))
            }
            (None, None) => (Amount::NotMeasured("there is no lap".to_owned()), None),
        };
        let cost = origin.cost(metric, Per::Nothing, amount);
        let problems: u64 = laps.iter().map(|(_, collections)| collections.problems).sum();
        let cost = match doubt {
            Some(doubt) => cost.doubted(doubt),
            None => cost,
        };
        if problems > 0 {
            cost.doubted(format!("{problems} lines of the trace were not understood"))
        } else {
            cost
        }
    };
    vec![
        of(Metric::GcCollectionsPerSecond, &|lap| lap.number as f64),
        of(Metric::GcStopTheWorldShare, &|lap| lap.stopped.seconds()),
        of(Metric::GcCpuShare, &|lap| lap.cpu.seconds()),
    ]
}

#[cfg(test)]
mod tests {
    use assay_captures::gctrace::Decoder;

    use super::*;

    fn origin() -> Origin {
        Origin {
            subject: "shop".into(),
            variant: "go".into(),
            route: "cached".into(),
            pass: "fair".into(),
            capture: Some("captures/fair/shop.go/cached/gctrace".into()),
        }
    }

    fn lap(lines: &str) -> (Nanos, Collections) {
        let mut collections = Collections::default();
        let mut decoder = Decoder::default();
        decoder.feed(lines.as_bytes(), &mut collections);
        decoder.finish(&mut collections);
        (Nanos(2_000_000_000), collections)
    }

    const LINE: &str = "@0.5s 2%: 0.10+0.39+0.10 ms clock, 0.21+0.88/0.52/0+0.84 ms cpu, \
                        4->4->0 MB, 5 MB goal, 0 MB stacks, 0 MB globals, 1 P\n";

    #[test]
    fn collections_are_divided_by_the_laps_time() {
        let lines = |numbers: std::ops::Range<u32>| -> String {
            numbers.map(|number| format!("gc {number} {LINE}listening\n")).collect()
        };
        let laps = [lap(&lines(10..14)), lap(&lines(20..26))];
        let costs = costs(&origin(), &laps);
        let value = |index: usize| costs[index].amount.figure().unwrap();
        assert!((value(0).value - 2.5).abs() < 1e-9, "{:?}", value(0));
        assert!(value(0).low < 2.0 && value(0).high > 3.0, "2 and 3 a second");
        // Five collections a lap on average stop the world for 0.2 ms each.
        assert!((value(1).value - 5e-4).abs() < 1e-9, "{:?}", value(1));
        assert!((value(2).value - 5.0 * 2.45e-3 / 2.0).abs() < 1e-9, "{:?}", value(2));
        assert!(costs.iter().all(|cost| cost.doubts.is_empty()));
    }

    #[test]
    fn a_lap_without_collections_has_none_and_broken_lines_are_told() {
        let none = costs(&origin(), &[lap("")]);
        assert_eq!(none[0].amount.figure().unwrap().value, 0.0);
        assert_eq!(none[0].doubts, ["one lap: no interval"]);
        let broken = costs(&origin(), &[lap("gc 3 @0.5s 2%: 0.1"), lap("")]);
        assert_eq!(broken[0].doubts, ["1 lines of the trace were not understood"]);
        assert!(matches!(costs(&origin(), &[])[0].amount, Amount::NotMeasured(_)));
    }
}
