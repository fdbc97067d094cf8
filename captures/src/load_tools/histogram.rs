//! Latencies of a stream of results in bounded memory: counts in buckets that grow with the value.

use crate::load_tools::model::Latency;
use crate::load_tools::quantities::latency;
use crate::units::Nanos;

/// Buckets per doubling: a quantile is off by at most 1/256.
const FINE: u64 = 256;

/// Counts of latencies.
#[derive(Debug, Default)]
pub(super) struct Histogram {
    buckets: Vec<u64>,
    count: u64,
    sum: f64,
    least: Option<Nanos>,
    most: Nanos,
}

impl Histogram {
    /// Counts one latency.
    pub(super) fn add(&mut self, time: Nanos) {
        let bucket = bucket(time.0);
        if self.buckets.len() <= bucket {
            self.buckets.resize(bucket + 1, 0);
        }
        self.buckets[bucket] += 1;
        self.count += 1;
        self.sum += time.seconds();
        self.least = Some(self.least.map_or(time, |least| least.min(time)));
        self.most = self.most.max(time);
    }

    /// Usual quantiles, mean and extremes; `None` where nothing was counted.
    pub(super) fn latencies(&self) -> Option<Vec<Latency>> {
        let least = self.least?;
        let mut latencies: Vec<Latency> = [0.5, 0.9, 0.95, 0.99, 0.999]
            .into_iter()
            .map(|quantile| latency(quantile.to_string(), self.quantile(quantile)))
            .collect();
        let mean = Nanos((self.sum / self.count as f64 * 1e9).round() as u64);
        latencies.push(latency("mean", mean));
        latencies.push(latency("min", least));
        latencies.push(latency("max", self.most));
        Some(latencies)
    }

    /// The smallest latency that at least this share of all does not exceed.
    fn quantile(&self, quantile: f64) -> Nanos {
        let rank = ((quantile * self.count as f64).ceil() as u64).max(1);
        let mut below = 0;
        for (index, count) in self.buckets.iter().enumerate() {
            below += count;
            if below >= rank {
                return Nanos(middle(index)).clamp(self.least.unwrap_or_default(), self.most);
            }
        }
        self.most
    }
}

/// Values under 512 have a bucket each; above, 256 buckets per doubling.
fn bucket(value: u64) -> usize {
    let doublings = u64::from(64 - value.leading_zeros()).saturating_sub(9);
    let bucket = doublings * FINE + (value >> doublings);
    bucket as usize
}

fn middle(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    let doublings = (bucket / FINE).saturating_sub(1);
    let low = (bucket - doublings * FINE) << doublings;
    low + ((1 << doublings) >> 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_of_a_bucket_is_within_a_256th() {
        for value in (0..63).flat_map(|shift| [1_u64 << shift, (1 << shift) + 1, 3 << shift]) {
            let off = middle(bucket(value)).abs_diff(value) as f64;
            assert!(off <= value as f64 / 256.0 + 0.5, "{value} → {}", middle(bucket(value)));
        }
        assert!(bucket(u64::MAX) < 64 * FINE as usize);
    }
}
