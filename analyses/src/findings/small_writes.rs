//! A response that is written in more than one piece: two system calls, and often two packets.

use super::{Evidence, Finding, count};
use crate::compare::ArmName;
use crate::metric::Metric;

/// System calls that send on a socket. `write` is among them because some run-times use it, and
/// is the reason why this is worded as a guess.
const SENDS: [&str; 5] = ["sendto", "sendmsg", "sendmmsg", "writev", "write"];

/// Passes that count system calls.
const PASSES: [&str; 2] = ["syscalls", "serial"];

/// Writes per response from which on there are two.
const TWO: f64 = 1.9;

pub(super) fn find(evidence: &Evidence<'_>, route: &str) -> Vec<Finding> {
    let writing: Vec<(ArmName, f64)> = evidence
        .arms()
        .filter_map(|arm| Some((arm.clone(), writes(evidence, &arm, route)?)))
        .filter(|(_, writes)| *writes >= TWO)
        .collect();
    if writing.is_empty() {
        return Vec::new();
    }
    let told: Vec<String> = writing
        .iter()
        .map(|(arm, writes)| format!("{}: {}", evidence.title(arm), count(*writes)))
        .collect();
    vec![Finding {
        rule: "small-writes",
        route: route.to_owned(),
        arms: writing.iter().map(|(arm, _)| arm.clone()).collect(),
        what: format!("about two writes for each response ({})", told.join("; ")),
        why: "perhaps head and body of the response are sent apart".to_owned(),
        shown: "sending system calls, less one for each round trip to Postgres and Redis"
            .to_owned(),
        not_shown: Some("which socket each write went to".to_owned()),
        hypothesis: true,
    }]
}

/// Sends per request that belong to no round trip: those of the response.
fn writes(evidence: &Evidence<'_>, arm: &ArmName, route: &str) -> Option<f64> {
    let sent: Vec<f64> = SENDS
        .iter()
        .filter_map(|&name| {
            evidence.figure((arm, route), Metric::Syscalls, &[("name", name)], &PASSES)
        })
        .collect();
    if sent.is_empty() {
        return None;
    }
    // Without the wire it is not known which sends were questions to a service.
    let postgres = evidence.counted(arm, route, Metric::PostgresFlights)?;
    let redis = evidence.counted(arm, route, Metric::RedisFlights)?;
    Some(sent.iter().sum::<f64>() - postgres - redis)
}
