//! Causes that the experiment names, from the report to the shape of `results.json`.

use assay_analyses::claims::{By, JudgedClaim, JudgedExpectation};
use assay_analyses::compare::ArmName;
use assay_captures::run_record::Direction;

use super::convert::arm_name;
use super::model;

pub(super) fn ablation(judged: &JudgedClaim) -> model::Ablation {
    let claim = &judged.claim;
    let arm = |variant: &str| {
        arm_name(&ArmName { subject: claim.subject.clone(), variant: variant.to_owned() })
    };
    model::Ablation {
        name: claim.name.clone(),
        cause: claim.cause.clone(),
        base: arm(&claim.base),
        flipped: arm(&claim.flipped),
        outcome: judged.outcome.word().to_owned(),
        expectations: judged.expectations.iter().map(expectation).collect(),
    }
}

fn expectation(judged: &JudgedExpectation) -> model::Expectation {
    let expected = &judged.expectation;
    let found = judged.found.as_ref().ok();
    let finite = |value: f64| value.is_finite().then_some(value);
    let (range_by, rounds) = match found.map(|found| found.by) {
        None => (None, None),
        Some(By::Rounds(rounds)) => (Some("rounds"), Some(rounds)),
        Some(By::Counts) => (Some("counts"), None),
        Some(By::Intervals) => (Some("intervals"), None),
    };
    model::Expectation {
        route: expected.route.clone(),
        metric: expected.metric.clone(),
        labels: expected.labels.clone(),
        expected: match expected.change {
            Direction::Falls => "falls",
            Direction::Rises => "rises",
            Direction::Stays => "stays",
        }
        .to_owned(),
        by: expected.by,
        outcome: judged.outcome.word().to_owned(),
        base_amount: found.map(|found| found.base),
        flipped_amount: found.map(|found| found.flipped),
        change: found.and_then(|found| finite(found.change)),
        low: found.and_then(|found| finite(found.low)),
        high: found.and_then(|found| finite(found.high)),
        range_by: range_by.map(str::to_owned),
        rounds,
        reason: judged.found.as_ref().err().cloned(),
    }
}
