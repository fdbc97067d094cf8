//! `run.json`: what was run, on what, and whether it reached its end.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::manifest::Status;
use crate::units::{Moment, Nanos};
use crate::version::FormatVersion;

/// The record of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// Version of the run directory's format.
    pub version: FormatVersion,
    /// Version of the assay that wrote it.
    pub assay: String,
    /// `recording` until the last step; then `complete` or `incomplete`.
    pub status: Status,
    /// Why it is incomplete, in one line.
    pub reason: Option<String>,
    /// Name of the experiment.
    pub experiment: String,
    /// The command that repeats the run.
    pub command: Vec<String>,
    /// When it began.
    pub started: Moment,
    /// When it ended.
    pub ended: Option<Moment>,
    /// The arms of the comparison, the reference first.
    pub arms: Vec<Arm>,
    /// The variant of the reference's subject that is a second copy of the reference, where one
    /// was measured: what differs there is the method's own error.
    #[serde(default)]
    pub copy: Option<String>,
    /// The routes, in the experiment's order.
    pub routes: Vec<Route>,
    /// The services that subjects talked to.
    pub services: Vec<Service>,
    /// Connections of the closed load.
    pub connections: u32,
    /// CPU sets: `app`, `services`, `load` → list of CPUs, such as `0` or `0-3`.
    pub pinning: BTreeMap<String, String>,
    /// Facts about the machine: `cpu`, `cores`, `memory`, `kernel`, `distribution`, …
    pub machine: BTreeMap<String, String>,
    /// Versions of tools: `rustc`, `postgres`, `redis`, `strace`, `perf`, …
    pub versions: BTreeMap<String, String>,
    /// Causes that the experiment names, of arms of this run.
    #[serde(default)]
    pub claims: Vec<Claim>,
    /// What happened to each pass.
    pub passes: Vec<Pass>,
    /// Median of 2,000 `SELECT 1` on one connection.
    pub select_1: Option<Nanos>,
    /// How the instruments did on this machine when they were last held against known costs;
    /// `None` where they never were.
    #[serde(default)]
    pub calibration: Option<Calibration>,
    /// What a reader must know about the whole run, one sentence each.
    pub notes: Vec<String>,
}

/// What a calibration came to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Calibration {
    /// When it was made, such as `2026-12-01 10:02 UTC`.
    pub made: String,
    /// Version of the assay that was calibrated.
    pub assay: String,
    /// Facts and versions that make it this machine's; those of another machine differ.
    pub machine: BTreeMap<String, String>,
    /// Whether it was the short one.
    pub quick: bool,
    /// How many figures were within their limits.
    pub hold: usize,
    /// Figures that were too noisy to tell.
    pub cannot_tell: Vec<String>,
    /// Figures that were not measured.
    pub not_measured: Vec<String>,
    /// Figures outside their limits.
    pub broken: Vec<String>,
}

impl Calibration {
    /// How many figures there were.
    #[must_use]
    pub fn figures(&self) -> usize {
        self.hold + self.cannot_tell.len() + self.not_measured.len() + self.broken.len()
    }
}

/// One subject in one variant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Arm {
    /// Name of the subject.
    pub subject: String,
    /// Name of the variant.
    pub variant: String,
    /// What tables print above its column.
    pub title: String,
    /// Environment of the variant, as the experiment gives it (no secrets: templates unexpanded).
    pub environment: BTreeMap<String, String>,
}

/// One route.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Route {
    /// Its name.
    pub name: String,
    /// HTTP method.
    pub method: String,
    /// Path template, such as `/post/{slug}`.
    pub path: String,
    /// SQL statements that the page may use.
    pub query_budget: Option<u32>,
}

/// A cause that the experiment names, and the variant that flips only it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Claim {
    /// Its name.
    pub name: String,
    /// The cause, one sentence.
    pub cause: String,
    /// Name of the subject.
    pub subject: String,
    /// The variant that has the cause.
    pub base: String,
    /// The variant that differs from it in the cause alone.
    pub flipped: String,
    /// What must be so from the base to the flipped variant if the cause is real.
    pub expectations: Vec<Expectation>,
}

/// What one figure does when a cause is flipped.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Expectation {
    /// Name of the route.
    pub route: String,
    /// Name of the metric.
    pub metric: String,
    /// Which part of it; empty for the total.
    pub labels: BTreeMap<String, String>,
    /// Which way it goes.
    pub change: Direction,
    /// By how much at least, relative (0.25 is 25 %); at most, for what stays.
    pub by: Option<f64>,
}

/// Which way a figure goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// It becomes less.
    Falls,
    /// It becomes more.
    Rises,
    /// It stays as it is.
    Stays,
}

/// One service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Service {
    /// `postgres` or `redis`.
    pub kind: String,
    /// What it says its version is.
    pub version: String,
    /// TCP port.
    pub port: u16,
    /// Whether Assay started it for this run.
    pub private: bool,
    /// Settings that were asked for.
    pub settings: BTreeMap<String, String>,
}

/// One pass.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pass {
    /// Its name.
    pub name: String,
    /// Whether it reached its end.
    pub status: Status,
    /// Why it failed or was left out, in one line.
    pub reason: Option<String>,
}
