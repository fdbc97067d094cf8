//! Ablations: causes that an experiment names, checked when it is read.

use assay_analyses::metric::Metric;
use assay_captures::run_record::{Claim, Direction, Expectation};

use super::build::check_name;
use super::file::{AblationFile, ChangeFile, ExpectationFile};
use super::plan::Plan;
use super::read::Fault;
use super::{Arm, Experiment, Route, Subject, nearest};

/// What the rules look names up in.
#[derive(Clone, Copy)]
pub(super) struct Known<'a> {
    pub(super) subjects: &'a [Subject],
    pub(super) arms: &'a [Arm],
    pub(super) routes: &'a [Route],
}

pub(super) fn claims(typed: &[AblationFile], known: Known<'_>) -> Result<Vec<Claim>, Fault> {
    let mut claims: Vec<Claim> = Vec::new();
    for (index, typed) in typed.iter().enumerate() {
        let place = format!("ablation.{index}");
        if claims.iter().any(|claim| claim.name == typed.name) {
            let message = format!("there are two ablations named {:?}", typed.name);
            return Err(Fault::at(&format!("{place}.name"), message));
        }
        claims.push(claim(&place, typed, known)?);
    }
    Ok(claims)
}

fn claim(place: &str, typed: &AblationFile, known: Known<'_>) -> Result<Claim, Fault> {
    check_name(&format!("{place}.name"), &typed.name)?;
    let subjects: Vec<&str> = known.subjects.iter().map(|subject| subject.name.as_str()).collect();
    let at = format!("{place}.subject");
    let subject = find(&at, "subject", &typed.subject, &subjects)?;
    let variants: Vec<&str> = (known.arms.iter().filter(|arm| arm.subject == subject))
        .map(|arm| arm.variant.name.as_str())
        .collect();
    find(&format!("{place}.base"), "variant", &typed.base, &variants)?;
    find(&format!("{place}.flipped"), "variant", &typed.flipped, &variants)?;
    if typed.base == typed.flipped {
        let message = "the base is the flipped variant itself: nothing differs";
        return Err(Fault::at(&format!("{place}.flipped"), message));
    }
    if typed.expect.is_empty() {
        let message = "nothing is expected: nothing could be shown";
        return Err(Fault::at(&format!("{place}.expect"), message));
    }
    let expectations = (typed.expect.iter().enumerate())
        .map(|(index, typed)| expectation(&format!("{place}.expect.{index}"), typed, known))
        .collect::<Result<_, _>>()?;
    Ok(Claim {
        name: typed.name.clone(),
        cause: typed.cause.clone(),
        subject: typed.subject.clone(),
        base: typed.base.clone(),
        flipped: typed.flipped.clone(),
        expectations,
    })
}

fn expectation(
    place: &str,
    typed: &ExpectationFile,
    known: Known<'_>,
) -> Result<Expectation, Fault> {
    let routes: Vec<&str> = known.routes.iter().map(|route| route.name.as_str()).collect();
    find(&format!("{place}.route"), "route", &typed.route, &routes)?;
    let metrics: Vec<&str> = Metric::ALL.into_iter().map(Metric::name).collect();
    let at = format!("{place}.metric");
    if !metrics.contains(&typed.metric.as_str()) {
        let hint = nearest(&typed.metric, metrics)
            .map_or(String::new(), |near| format!("; did you mean {near:?}?"));
        return Err(Fault::at(&at, format!("there is no metric {:?}{hint}", typed.metric)));
    }
    if typed.by.is_some_and(|by| !by.is_finite() || by <= 0.0) {
        let message = "not a share above 0: 0.25 is a quarter";
        return Err(Fault::at(&format!("{place}.by"), message));
    }
    Ok(Expectation {
        route: typed.route.clone(),
        metric: typed.metric.clone(),
        labels: typed.labels.clone(),
        change: match typed.change {
            ChangeFile::Falls => Direction::Falls,
            ChangeFile::Rises => Direction::Rises,
            ChangeFile::Stays => Direction::Stays,
        },
        by: typed.by,
    })
}

fn find(place: &str, what: &str, name: &str, known: &[&str]) -> Result<usize, Fault> {
    known.iter().position(|known| *known == name).ok_or_else(|| {
        let hint = nearest(name, known.iter().copied())
            .map_or(String::new(), |near| format!("; did you mean {near:?}?"));
        Fault::at(place, format!("there is no {what} {name:?}{hint}"))
    })
}

/// The claims that a run can say something to: both of their variants are measured, and the routes
/// that are measured are kept.
#[must_use]
pub fn of_plan(experiment: &Experiment, plan: &Plan) -> Vec<Claim> {
    let arms = plan.arms();
    let measured = |claim: &Claim, variant: &str| {
        arms.iter().any(|&arm| {
            let arm = &experiment.arms[arm];
            experiment.subjects[arm.subject].name == claim.subject && arm.variant.name == variant
        })
    };
    let routes: Vec<&str> =
        plan.routes().into_iter().map(|route| experiment.routes[route].name.as_str()).collect();
    (experiment.claims.iter())
        .filter(|claim| measured(claim, &claim.base) && measured(claim, &claim.flipped))
        .map(|claim| {
            let mut claim = claim.clone();
            claim.expectations.retain(|expected| routes.contains(&expected.route.as_str()));
            claim
        })
        .filter(|claim| !claim.expectations.is_empty())
        .collect()
}
