//! A page that should come from the cache alone and asks Postgres all the same.

use super::{Evidence, Finding, count};
use crate::compare::ArmName;
use crate::metric::Metric;

/// Flights per request from which on a page counts as touching Postgres: more than a background
/// task in between.
const TOUCHED: f64 = 0.01;

pub(super) fn find(evidence: &Evidence<'_>, route: &str) -> Vec<Finding> {
    let allowed = evidence.route(route).and_then(|route| route.query_budget);
    if allowed != Some(0) {
        return Vec::new();
    }
    let touching: Vec<(ArmName, f64)> = evidence
        .arms()
        .filter(|arm| uses_redis(evidence, arm, route))
        .filter_map(|arm| {
            let flights = evidence.counted(&arm, route, Metric::PostgresFlights)?;
            (flights > TOUCHED).then_some((arm, flights))
        })
        .collect();
    if touching.is_empty() {
        return Vec::new();
    }
    let told: Vec<String> = touching
        .iter()
        .map(|(arm, flights)| format!("{}: {}", evidence.title(arm), count(*flights)))
        .collect();
    vec![Finding {
        rule: "cached-page",
        route: route.to_owned(),
        arms: touching.iter().map(|(arm, _)| arm.clone()).collect(),
        what: format!(
            "a page that may run no statement makes round trips to Postgres ({})",
            told.join("; ")
        ),
        why: "perhaps the cache is missed, or a connection is taken before the cache is asked"
            .to_owned(),
        shown: "flights to Postgres and commands to Redis in the packets".to_owned(),
        not_shown: Some("which of the two it is".to_owned()),
        hypothesis: true,
    }]
}

/// Whether at least every second request asks Redis.
pub(super) fn uses_redis(evidence: &Evidence<'_>, arm: &ArmName, route: &str) -> bool {
    evidence.counted(arm, route, Metric::RedisCommands).is_some_and(|commands| commands >= 0.5)
}
