//! What a probe costs the service while it records.

use crate::compare::{ArmName, Effect};
use crate::metric::Metric;

/// The cost of one probe, from laps of one pass in which it was switched on and off by turns.
#[derive(Clone, Debug, PartialEq)]
pub struct ObserverEffect {
    /// Name of the pass.
    pub pass: String,
    /// The arm.
    pub arm: ArmName,
    /// Name of the route.
    pub route: String,
    /// What changed: [`Metric::Throughput`] or [`Metric::CpuTime`] of the subject.
    pub of: Metric,
    /// Relative change from off to on, over neighbouring pairs of laps.
    pub effect: Effect,
}
