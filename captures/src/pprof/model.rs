//! What a pprof profile adds up to.

use crate::units::{Moment, Nanos};

/// One of the values that every sample has: what, and in which unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SampleType {
    /// `samples`, `cpu`, `alloc_space`, …
    pub kind: String,
    /// `count`, `nanoseconds`, `bytes`, …
    pub unit: String,
}

/// What one function has, per sample type. Functions of one name are one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionValue {
    /// Its name; an address and its mapping where there is no symbol.
    pub name: String,
    /// Of samples whose innermost frame it is, inlined frames included.
    pub own: Vec<i64>,
    /// Of samples whose stack holds it, each counted once however often it recurs.
    pub inclusive: Vec<i64>,
}

/// A whole profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// The values that every sample has.
    pub sample_types: Vec<SampleType>,
    /// Index of the value that viewers show first, where the file says.
    pub default_type: Option<usize>,
    /// Sum over all samples, per sample type.
    pub totals: Vec<i64>,
    /// How many samples; each may stand for many events.
    pub samples: u64,
    /// How many places in the code.
    pub locations: u64,
    /// How many programs and libraries; some tools write none.
    pub mappings: u64,
    /// Whether anything has a name.
    pub symbolized: bool,
    /// When recording began.
    pub start: Option<Moment>,
    /// How long it was recorded.
    pub duration: Option<Nanos>,
    /// What the period counts, such as CPU nanoseconds or bytes of heap.
    pub period_type: Option<SampleType>,
    /// Events of `period_type` between two samples; 0 where not stated.
    pub period: i64,
    /// Keys of the labels that samples have, sorted.
    pub label_keys: Vec<String>,
    /// Per function, in order of appearance.
    pub functions: Vec<FunctionValue>,
}

impl Profile {
    /// CPU or wall time that samples stand for: their count times the period. Only where the
    /// period is a time and the samples are counts: a count is not a time.
    #[must_use]
    pub fn time_of(&self, sample_type: usize) -> Option<Nanos> {
        let sampled = self.sample_types.get(sample_type)?;
        let per = match self.period_type.as_ref()?.unit.as_str() {
            "nanoseconds" | "ns" => 1,
            "microseconds" | "us" => 1_000,
            "milliseconds" | "ms" => 1_000_000,
            "seconds" | "s" => 1_000_000_000,
            _ => return None,
        };
        (sampled.unit == "count" && sampled.kind == "samples").then_some(())?;
        let period = u64::try_from(self.period).ok().filter(|&period| period > 0)?;
        let count = u64::try_from(*self.totals.get(sample_type)?).ok()?;
        Some(Nanos(count.checked_mul(period)?.checked_mul(per)?))
    }
}
