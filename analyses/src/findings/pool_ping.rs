//! The pool asks whether a connection works each time that one is taken, and the request waits.

use super::evidence::SAME;
use super::{Evidence, Finding, count};
use crate::ablation::Ablation;
use crate::compare::ArmName;
use crate::metric::Metric;

pub(super) fn find(evidence: &Evidence<'_>, route: &str) -> Vec<Finding> {
    let pinging: Vec<(ArmName, f64)> = evidence
        .arms()
        .filter_map(|arm| {
            let (awaited, _) = evidence.pings(&arm, route)?;
            (awaited > SAME).then_some((arm, awaited))
        })
        .collect();
    if pinging.is_empty() {
        return Vec::new();
    }
    let told: Vec<String> = pinging
        .iter()
        .map(|(arm, pings)| {
            let all = evidence.counted(arm, route, Metric::PostgresFlights).unwrap_or(*pings);
            format!("{}: {} of {}", evidence.title(arm), count(*pings), count(all))
        })
        .collect();
    let flips: Vec<String> = evidence
        .ablations()
        .iter()
        .filter_map(|ablation| flip(evidence, ablation, route))
        .collect();
    let hypothesis = flips.is_empty();
    let (why, shown) = if hypothesis {
        (
            "perhaps the pool checks each connection when it is taken".to_owned(),
            "bare Syncs without a statement in the packets".to_owned(),
        )
    } else {
        (
            "the pool checks each connection when it is taken, before the first statement"
                .to_owned(),
            format!("bare Syncs in the packets; {}", flips.join("; ")),
        )
    };
    vec![Finding {
        rule: "pool-ping",
        route: route.to_owned(),
        arms: pinging.iter().map(|(arm, _)| arm.clone()).collect(),
        what: format!(
            "the request waits for round trips that only ask whether a connection works ({})",
            told.join("; ")
        ),
        why,
        shown,
        not_shown: hypothesis.then(|| "no variant flips this alone".to_owned()),
        hypothesis,
    }]
}

/// The sentence of two arms that differ in one variable and in awaited pings alone.
fn flip(evidence: &Evidence<'_>, ablation: &Ablation, route: &str) -> Option<String> {
    let (one, one_unawaited) = evidence.pings(&ablation.one, route)?;
    let (other, other_unawaited) = evidence.pings(&ablation.other, route)?;
    let user = |arm| evidence.flights(arm, route, "user");
    let same_work = (user(&ablation.one)? - user(&ablation.other)?).abs() < SAME;
    // Were fewer connections taken, fewer would go back as well.
    let same_use = (one_unawaited - other_unawaited).abs() < SAME;
    if !same_work || !same_use || (one - other).abs() < SAME {
        return None;
    }
    let (with, without) = if one > other {
        (&ablation.one, &ablation.other)
    } else {
        (&ablation.other, &ablation.one)
    };
    Some(format!(
        "“{}” differs from “{}” in {} alone and has {} fewer",
        evidence.title(without),
        evidence.title(with),
        ablation.variable,
        count((one - other).abs())
    ))
}
