//! `manifest.json`: what a probe says about its capture.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::ids::{Pid, Port, Role};
use crate::units::{Moment, Nanos, Span};
use crate::version::FormatVersion;

/// The manifest beside a capture. Written with status `recording` first and rewritten last, so
/// that a missing end is visible.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of this format.
    pub version: FormatVersion,
    /// The question that the probe answers: `wire`, `syscalls`, `usage`, `cpu`, `allocations`.
    pub probe: String,
    /// How it was answered, where a probe has several ways: `bpf`, `strace`, `perf`.
    pub backend: Option<String>,
    /// Version of the probe.
    pub probe_version: String,
    /// Whether the capture has an end.
    pub status: Status,
    /// Why it failed, in one line.
    pub reason: Option<String>,
    /// The outside tool that recorded, if any.
    pub tool: Option<Tool>,
    /// The exact command of the outside tool, or of the probe where there is none.
    pub command: Vec<String>,
    /// Both clocks, read together when recording began.
    pub clock: ClockAnchor,
    /// From the first moment recorded to the last; `None` while recording.
    pub window: Option<Span>,
    /// Who was watched.
    pub targets: Vec<Target>,
    /// The native files in the folder, by name.
    pub files: Vec<String>,
    /// Counts that say whether the capture is whole (`drops`, `gaps`, `lost_events`,
    /// `recursion_misses`) and how much it holds (`packets`, `samples`, `calls`).
    pub integrity: BTreeMap<String, u64>,
    /// What a reader must know, one sentence each.
    pub notes: Vec<String>,
}

/// Whether a recording has reached its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Still running, or killed.
    Recording,
    /// Everything that was to be recorded is there.
    Complete,
    /// Ended early: what was recorded until then is there. Runs only.
    Incomplete,
    /// Ended by an error; what was recorded until then is there.
    Failed,
}

/// An outside tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tool {
    /// Its command, such as `strace`.
    pub name: String,
    /// The version that it prints.
    pub version: String,
}

/// CLOCK_REALTIME and CLOCK_MONOTONIC, read together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockAnchor {
    /// CLOCK_REALTIME.
    pub realtime: Moment,
    /// CLOCK_MONOTONIC, since boot.
    pub monotonic: Nanos,
}

/// A set of processes under watch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    /// The part it plays.
    pub role: Role,
    /// The roots: each stands for itself and all its descendants.
    pub pids: Vec<Pid>,
    /// The TCP port that it listens on; of one that listens on a Unix socket, the port that stands
    /// for it in packet captures.
    pub port: Option<Port>,
    /// The Unix socket that it listens on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}
