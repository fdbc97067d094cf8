//! `laps.jsonl`: one record for each timed interval of one subject on one route.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::units::{Moment, Nanos, Span};

/// One lap, as the load driver saw it. All of its requests were answered, and the service's
/// connections were quiet again, before it ended: so what a capture holds between `span.start`
/// and `span.end` was caused by these requests or by nobody.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Lap {
    /// The pass: `fair`, `wire`, `serial`, `syscalls`, `cpu`, `allocations`.
    pub pass: String,
    /// Name of the subject.
    pub subject: String,
    /// Name of its variant.
    pub variant: String,
    /// Name of the route.
    pub route: String,
    /// The round that it belongs to, 0-based.
    pub round: u32,
    /// Its place in the order of the pass, 0-based, over all subjects and routes.
    pub order: u32,
    /// Whether the probe of the pass was recording.
    pub probe: ProbeState,
    /// How requests were sent.
    pub load: Load,
    /// From before the first request until everything was quiet.
    pub span: Span,
    /// When the last request had been sent: rates count answers up to here.
    pub sent_until: Moment,
    /// Answers up to `sent_until`, whatever their status.
    pub answered_in_time: u64,
    /// All requests sent; each was answered or is among `errors`.
    pub requests: u64,
    /// Answers with a 2xx status and the expected body.
    pub good: u64,
    /// Answers with another status.
    pub non_2xx: u64,
    /// 2xx answers whose body was not the expected one.
    pub mismatched: u64,
    /// Requests without an answer, by kind of error (`connect`, `reset`, `timeout`, `closed`,
    /// `protocol`, and `unsent` where a fixed rate was too high to send them all).
    pub errors: BTreeMap<String, u64>,
    /// Bytes of response bodies.
    pub body_bytes: u64,
    /// Latency of all answers, from the send (closed) or the intended start (fixed rate).
    pub latency: Latency,
    /// Second by second, the whole seconds of its first hour; empty in laps under a second.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub timeline: Vec<Slice>,
    /// Statements that `pg_stat_statements` counted for the subject during the lap.
    pub postgres_calls: Option<u64>,
    /// What the load driver itself used: a driver short of CPU makes every rate a lower bound.
    #[serde(default)]
    pub generator: Option<Generator>,
    /// Why no figure may be made of it, in one line: its subject or a service ended, or the clock
    /// was set. What is here is as far as it came.
    #[serde(default)]
    pub spoiled: Option<String>,
    /// The captures that cover this lap: probe name → folder, relative to the run directory.
    pub captures: BTreeMap<String, String>,
}

impl Lap {
    /// Answers per second up to `sent_until`.
    #[must_use]
    pub fn rate(&self) -> f64 {
        let length = self.sent_until.since(self.span.start).unwrap_or_default();
        if length == Nanos(0) { 0.0 } else { self.answered_in_time as f64 / length.seconds() }
    }

    /// Whether every request got a good answer.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.good == self.requests
    }
}

/// One second of a lap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Slice {
    /// Answers that came in it, whatever their status.
    pub answers: u64,
    /// Half of them came within this time; 0 without any. Right to a hundredth.
    pub p50: Nanos,
    /// 99 in 100 of them, likewise.
    pub p99: Nanos,
    /// The longest, likewise.
    pub max: Nanos,
    /// Share of the machine's CPUs that was busy; `None` where the kernel does not say.
    pub machine_busy: Option<f64>,
}

/// What the load driver's thread used during a lap, from the kernel's clocks of that thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Generator {
    /// CPU time.
    pub cpu: Nanos,
    /// Time in which it could have run but waited for a CPU; `None` where the kernel does not say.
    pub run_queue_wait: Option<Nanos>,
}

/// Whether a pass's probe was recording during a lap; passes alternate to learn its cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProbeState {
    /// The pass has no probe but the reading of process clocks.
    None,
    /// Recording.
    On,
    /// Started, but switched off for this lap.
    Off,
}

/// How requests are sent.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "mode")]
pub enum Load {
    /// Each connection sends its next request when it has its answer.
    Closed {
        /// Connections kept open.
        connections: u32,
    },
    /// Requests start on a schedule, whether earlier ones were answered or not.
    FixedRate {
        /// Connections kept open.
        connections: u32,
        /// Requests per second.
        rate: f64,
    },
    /// One request at a time, the next when the service's connections have been quiet for `gap`.
    Serial {
        /// The quiet time.
        gap: Nanos,
    },
    /// Somebody else sends them: the lap is a stretch of time in which it was watched, and its
    /// requests are counted on the wire.
    Foreign,
}

/// A latency distribution.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Exact smallest.
    pub min: Nanos,
    /// Exact largest.
    pub max: Nanos,
    /// Exact mean, ns.
    pub mean: f64,
    /// `(highest equivalent value in ns, count)` of each non-empty bucket, ascending; relative
    /// width at most 0.1 %.
    pub buckets: Vec<(u64, u64)>,
}

impl Latency {
    /// How many values it holds.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.buckets.iter().map(|(_, count)| count).sum()
    }

    /// Several distributions as one; `None` without any value.
    pub fn together<'a>(all: impl IntoIterator<Item = &'a Self>) -> Option<Self> {
        let mut together: Option<Self> = None;
        let mut sum = 0.0;
        for one in all.into_iter().filter(|one| one.count() > 0) {
            sum += one.mean * one.count() as f64;
            let whole = together.get_or_insert_with(|| Self { min: one.min, ..Self::default() });
            whole.min = whole.min.min(one.min);
            whole.max = whole.max.max(one.max);
            whole.buckets.extend_from_slice(&one.buckets);
        }
        let mut whole = together?;
        whole.buckets.sort_unstable();
        whole.buckets.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            kept.1 += if same { next.1 } else { 0 };
            same
        });
        whole.mean = sum / whole.count() as f64;
        Some(whole)
    }

    /// The smallest bucket bound with at least the share `quantile` (0..=1) of all values at or
    /// below it; `None` when empty.
    #[must_use]
    pub fn quantile(&self, quantile: f64) -> Option<Nanos> {
        let wanted = ((quantile * self.count() as f64).ceil() as u64).max(1);
        let mut seen = 0;
        for &(bound, count) in &self.buckets {
            seen += count;
            if seen >= wanted {
                return Some(Nanos(bound.min(self.max.0)));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_is_the_bound_of_the_bucket_that_reaches_it() {
        let latency = Latency {
            min: Nanos(10),
            max: Nanos(95),
            mean: 30.0,
            buckets: vec![(10, 50), (20, 40), (100, 10)],
        };
        assert_eq!(latency.quantile(0.5), Some(Nanos(10)));
        assert_eq!(latency.quantile(0.51), Some(Nanos(20)));
        assert_eq!(latency.quantile(0.9), Some(Nanos(20)));
        assert_eq!(latency.quantile(0.99), Some(Nanos(95)));
        assert_eq!(Latency::default().quantile(0.5), None);
    }

    #[test]
    fn distributions_add_up() {
        let one = |bound, count| Latency {
            min: Nanos(bound),
            max: Nanos(bound),
            mean: bound as f64,
            buckets: vec![(bound, count)],
        };
        let both = Latency::together([&one(30, 1), &one(10, 2), &one(30, 1)]).unwrap();
        assert_eq!((both.min, both.max, both.mean), (Nanos(10), Nanos(30), 20.0));
        assert_eq!(both.buckets, [(10, 2), (30, 2)]);
        assert_eq!(Latency::together([&Latency::default()]), None);
    }
}
