//! A ping that goes out when a connection goes back to its pool, which nobody waits for and no
//! variant removes.

use super::evidence::SAME;
use super::{Evidence, Finding, count};
use crate::compare::ArmName;

pub(super) fn find(evidence: &Evidence<'_>, route: &str) -> Vec<Finding> {
    let known: Vec<(ArmName, f64)> = evidence
        .arms()
        .filter_map(|arm| {
            let (_, unawaited) = evidence.pings(&arm, route)?;
            Some((arm, unawaited))
        })
        .collect();
    let pinging: Vec<&(ArmName, f64)> =
        known.iter().filter(|(_, unawaited)| *unawaited > SAME).collect();
    if pinging.is_empty() {
        return Vec::new();
    }
    let everywhere = pinging.len() == known.len() && known.len() > 1;
    let told: Vec<String> = pinging
        .iter()
        .map(|(arm, pings)| format!("{}: {}", evidence.title(arm), count(*pings)))
        .collect();
    let mut what = format!(
        "pings are sent that nobody waits for, at or after the last statement ({})",
        told.join("; ")
    );
    if everywhere {
        what.push_str("; no variant is without them");
    }
    vec![Finding {
        rule: "release-ping",
        route: route.to_owned(),
        arms: pinging.iter().map(|(arm, _)| arm.clone()).collect(),
        what,
        why: "perhaps the pool checks each connection when it goes back".to_owned(),
        shown: "bare Syncs in the packets whose answer nothing waits for".to_owned(),
        not_shown: Some(if pinging.len() == known.len() {
            "no variant sends none, so the cause was not flipped".to_owned()
        } else {
            "which difference between the variants removes them".to_owned()
        }),
        hypothesis: true,
    }]
}
