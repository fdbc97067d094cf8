//! A response that leaves in more than one piece: two writes, and two packets.

use super::{Evidence, Finding, count};
use crate::compare::ArmName;
use crate::metric::Metric;

/// Pieces of a response from which on there are two.
const TWO: f64 = 1.9;
/// A longer response is sent in pieces, however it was written.
const SHORT: f64 = 16_384.0;

pub(super) fn find(evidence: &Evidence<'_>, route: &str) -> Vec<Finding> {
    let torn: Vec<(ArmName, f64)> = evidence
        .arms()
        .filter_map(|arm| Some((arm.clone(), pieces(evidence, &arm, route)?)))
        .filter(|(_, pieces)| *pieces >= TWO)
        .collect();
    if torn.is_empty() {
        return Vec::new();
    }
    let told: Vec<String> = torn
        .iter()
        .map(|(arm, pieces)| format!("{}: {}", evidence.title(arm), count(*pieces)))
        .collect();
    vec![Finding {
        rule: "small-writes",
        route: route.to_owned(),
        arms: torn.iter().map(|(arm, _)| arm.clone()).collect(),
        what: format!("about two packets for each short response ({})", told.join("; ")),
        why: "perhaps head and body of the response are written apart".to_owned(),
        shown: "packets with bytes of the service's responses".to_owned(),
        not_shown: Some("which writes they came from".to_owned()),
        hypothesis: true,
    }]
}

/// Packets of one response, where responses are short. System calls would not tell: run-times wake
/// themselves by `write`, too.
fn pieces(evidence: &Evidence<'_>, arm: &ArmName, route: &str) -> Option<f64> {
    let counted = |metric| evidence.counted(arm, route, metric);
    let responses = counted(Metric::HttpResponses).filter(|&responses| responses > 0.0)?;
    let length = counted(Metric::HttpBytesReceived)? / responses;
    (length <= SHORT).then_some(counted(Metric::HttpPieces)? / responses)
}
