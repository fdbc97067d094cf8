//! What one saved round trip is worth in CPU time.

use crate::compare::ArmName;
use crate::cost::Figure;

/// The CPU time that one round trip costs, from two arms that differ in their number of trips:
/// Δ CPU per request ÷ Δ trips per request.
#[derive(Clone, Debug, PartialEq)]
pub struct PingPrice {
    /// Name of the route.
    pub route: String,
    /// The arm with more trips.
    pub with: ArmName,
    /// The arm with fewer.
    pub without: ArmName,
    /// Whose CPU time: `subject`, `postgres`.
    pub process: String,
    /// Trips per request that `without` saves.
    pub trips_saved: f64,
    /// Seconds of CPU a trip, with its interval over rounds.
    pub per_trip: Figure,
    /// What limits its meaning, one sentence each.
    pub doubts: Vec<String>,
}
