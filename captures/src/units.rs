//! Quantities with their unit in the type. A bare number never leaves a parser.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A length of time, in nanoseconds.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Nanos(pub u64);

impl Nanos {
    /// One millisecond in nanoseconds.
    pub const MILLISECOND: Self = Self(1_000_000);
    /// One second in nanoseconds.
    pub const SECOND: Self = Self(1_000_000_000);

    /// The length in seconds, as results print it.
    #[must_use]
    pub fn seconds(self) -> f64 {
        self.0 as f64 / 1e9
    }
}

/// A moment: nanoseconds since the Unix epoch on CLOCK_REALTIME, the one clock that packets,
/// strace and the load driver share.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Moment(pub u64);

impl Moment {
    /// The time since `earlier`; `None` when the clock was stepped and it lies ahead.
    #[must_use]
    pub fn since(self, earlier: Self) -> Option<Nanos> {
        self.0.checked_sub(earlier.0).map(Nanos)
    }

    /// The moment `length` after this one, saturating at the end of time.
    #[must_use]
    pub fn after(self, length: Nanos) -> Self {
        Self(self.0.saturating_add(length.0))
    }
}

/// A stretch of time, `start` included and `end` excluded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// First moment inside.
    pub start: Moment,
    /// First moment after.
    pub end: Moment,
}

impl Span {
    /// Whether `moment` lies inside.
    #[must_use]
    pub fn contains(&self, moment: Moment) -> bool {
        self.start <= moment && moment < self.end
    }

    /// How long it is; zero when the clock was stepped back inside.
    #[must_use]
    pub fn length(&self) -> Nanos {
        self.end.since(self.start).unwrap_or_default()
    }
}

impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}ns", self.0)
    }
}
