//! Counts what came back, in memory that does not grow with the number of requests.

use std::time::{Duration, Instant};

use assay_captures::lap::{Latency, Slice};
use assay_captures::units::Nanos;
use hdrhistogram::Histogram;

use super::connection::Answer;
use super::errors::{ErrorCounts, ErrorKind};
use super::timeline::Timeline;

/// Latencies above an hour are counted as an hour: no lap is that long.
const LONGEST_NS: u64 = 3_600_000_000_000;
/// Three digits: the relative width of a bucket is at most 0.1 %.
const DIGITS: u8 = 3;

/// The counts of one lap.
pub(super) struct Tally {
    pub(super) requests: u64,
    pub(super) answered: u64,
    pub(super) good: u64,
    pub(super) non_2xx: u64,
    pub(super) mismatched: u64,
    pub(super) errors: ErrorCounts,
    pub(super) body_bytes: u64,
    pub(super) last_sent: Option<Instant>,
    pub(super) answered_at_last_sent: u64,
    latencies: Latencies,
    timeline: Timeline,
}

impl Tally {
    pub(super) fn new(start: Instant) -> Self {
        Self {
            requests: 0,
            answered: 0,
            good: 0,
            non_2xx: 0,
            mismatched: 0,
            errors: ErrorCounts::default(),
            body_bytes: 0,
            last_sent: None,
            answered_at_last_sent: 0,
            latencies: Latencies::new(),
            timeline: Timeline::new(start),
        }
    }

    /// A request is about to be written.
    pub(super) fn sent(&mut self, at: Instant) {
        self.requests += 1;
        self.last_sent = Some(at);
        self.answered_at_last_sent = self.answered;
    }

    /// It was answered at `at`, `latency` after its start.
    pub(super) fn answer(&mut self, answer: Answer, at: Instant, latency: Duration) {
        self.timeline.answer(at, latency);
        self.answered += 1;
        self.body_bytes += answer.body_bytes;
        self.latencies.record(latency);
        if !answer.is_2xx() {
            self.non_2xx += 1;
        } else if answer.expected {
            self.good += 1;
        } else {
            self.mismatched += 1;
        }
    }

    /// It was not.
    pub(super) fn failed(&mut self, kind: ErrorKind) {
        self.errors.add(kind, 1);
    }

    /// The schedule asked for `number` more, which were never sent.
    pub(super) fn unsent(&mut self, number: u64) {
        self.requests += number;
        self.errors.add(ErrorKind::Unsent, number);
    }

    pub(super) fn slices(&self) -> Vec<Slice> {
        self.timeline.slices()
    }

    pub(super) fn latency(&self) -> Latency {
        self.latencies.distribution()
    }
}

/// A histogram, with the smallest, largest and mean kept exactly beside it.
struct Latencies {
    histogram: Option<Histogram<u64>>,
    min: u64,
    max: u64,
    sum: u128,
    count: u64,
}

impl Latencies {
    fn new() -> Self {
        // It refuses only bounds that make no sense; these are constants that do.
        let histogram = Histogram::new_with_bounds(1, LONGEST_NS, DIGITS).ok();
        Self { histogram, min: u64::MAX, max: 0, sum: 0, count: 0 }
    }

    fn record(&mut self, latency: Duration) {
        let latency = u64::try_from(latency.as_nanos()).unwrap_or(LONGEST_NS).min(LONGEST_NS);
        if let Some(histogram) = &mut self.histogram {
            histogram.saturating_record(latency.max(1));
        }
        self.min = self.min.min(latency);
        self.max = self.max.max(latency);
        self.sum += u128::from(latency);
        self.count += 1;
    }

    fn distribution(&self) -> Latency {
        if self.count == 0 {
            return Latency::default();
        }
        let buckets = self.histogram.iter().flat_map(|histogram| {
            histogram.iter_recorded().map(|bucket| {
                let bound = histogram.highest_equivalent(bucket.value_iterated_to());
                (bound, bucket.count_since_last_iteration())
            })
        });
        Latency {
            min: Nanos(self.min),
            max: Nanos(self.max),
            mean: self.sum as f64 / self.count as f64,
            buckets: buckets.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_within_a_thousandth_and_the_ends_and_mean_are_exact() {
        let mut latencies = Latencies::new();
        for us in 1..=1000 {
            latencies.record(Duration::from_micros(us));
        }
        let latency = latencies.distribution();
        assert_eq!((latency.min, latency.max), (Nanos(1_000), Nanos(1_000_000)));
        assert_eq!(latency.mean, 500_500.0);
        assert_eq!(latency.count(), 1000);
        for (quantile, wanted) in [(0.5, 500_000.0), (0.99, 990_000.0), (0.999, 999_000.0)] {
            let got = latency.quantile(quantile).unwrap().0 as f64;
            assert!((got / wanted - 1.0).abs() <= 0.001, "{quantile}: {got}");
        }
    }

    #[test]
    fn no_answers_make_an_empty_distribution() {
        assert_eq!(Latencies::new().distribution(), Latency::default());
    }
}
