//! `counts.jsonl`: system calls counted in the kernel so far, one sample a line.
//!
//! ```text
//! {"moment":1796080364776693000,"at":"mark","roles":[{"role":"subject",
//!  "calls":{"epoll_wait":16411,"recvfrom":120077,"sendto":73719,"writev":8191},
//!  "failures":{"recvfrom":{"EAGAIN":46358,"other":0}}}]}
//! ```
//! (one line in the file). Counters only grow, so a window's cost is a difference of two samples.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::ids::Role;
use crate::units::{Moment, Nanos, Span};
use crate::usage::At;

/// File name in the capture's folder.
pub const FILE: &str = "counts.jsonl";

/// Reads the samples as the file streams by.
pub type Decoder = crate::json_lines::Decoder<Sample>;

/// One reading of the counters, summed over CPUs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sample {
    /// When reading began.
    pub moment: Moment,
    /// How long reading took: counters were read at some time within.
    pub took: Nanos,
    /// What it was read for.
    pub at: At,
    /// One for each role that is watched.
    pub roles: Vec<RoleCounts>,
}

/// What the processes of one role have called.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoleCounts {
    /// The part they play.
    pub role: Role,
    /// Calls begun, by name; `#N` for a number without name. Only those that occurred.
    pub calls: BTreeMap<String, u64>,
    /// Calls that failed, by name. Only those that occurred.
    pub failures: BTreeMap<String, Failures>,
}

/// Failed calls of one name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failures {
    /// Those that would have had to wait.
    #[serde(rename = "EAGAIN")]
    pub again: u64,
    /// All others.
    pub other: u64,
}

impl Sample {
    /// From the first reading to the last.
    #[must_use]
    pub fn span(&self) -> Span {
        Span { start: self.moment, end: self.moment.after(self.took) }
    }

    /// The counts of this role.
    #[must_use]
    pub fn role(&self, role: Role) -> Option<&RoleCounts> {
        self.roles.iter().find(|counts| counts.role == role)
    }
}
