//! Causes that an experiment names, held against the variant that flips only them.
//!
//! A claim expects of some figures that they fall, rise or stay when the cause is flipped. For
//! each, the change of the flipped arm against the base has a range:
//! - laps under load, paired by rounds: the 95 % t interval of the mean log ratio;
//! - exact counts: the change itself;
//! - other noisy figures: from the lowest ratio that their two 95 % intervals allow to the
//!   highest, which is wider than the interval of the ratio.
//!
//! An expectation is *shown* when its whole range fulfils it, *contradicted* when no part of the
//! range does, and otherwise *not shown*. A claim is shown when all of its expectations are: since
//! each is tested by itself and all must pass, the chance of a false *shown* stays that of one
//! (intersection-union test; Berger 1982). It is contradicted when one of its expectations is, and
//! for that each interval is widened to 1 − 0.05 / k over its k expectations (Bonferroni), where
//! there are rounds to widen it by.

use std::collections::BTreeMap;

use assay_captures::run_record::{Claim, Direction, Expectation};

use crate::compare::{self, ArmName, Cell, Series};
use crate::comparisons::FairLaps;
use crate::cost::{Amount, Cost, Figure, Labels};
use crate::metric::{Kind, Metric};
use crate::verdict::MARGIN;

#[cfg(test)]
mod tests;

/// What became of a claim or of one of its expectations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The figures are as they must be if the cause is real.
    Shown,
    /// They leave it open.
    NotShown,
    /// They cannot be so if the cause is real.
    Contradicted,
}

impl Outcome {
    /// The words for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Shown => "shown",
            Self::NotShown => "not shown",
            Self::Contradicted => "contradicted",
        }
    }
}

/// A claim with what the run says to it.
#[derive(Clone, Debug, PartialEq)]
pub struct JudgedClaim {
    /// What was claimed.
    pub claim: Claim,
    /// Its expectations, in order.
    pub expectations: Vec<JudgedExpectation>,
    /// What follows for the claim.
    pub outcome: Outcome,
}

/// An expectation with its figures.
#[derive(Clone, Debug, PartialEq)]
pub struct JudgedExpectation {
    /// What was expected.
    pub expectation: Expectation,
    /// The figures, or why there are none.
    pub found: Result<Found, String>,
    /// What follows.
    pub outcome: Outcome,
}

/// The two figures and the range of the change between them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Found {
    /// The base's amount in the metric's unit.
    pub base: f64,
    /// The flipped arm's.
    pub flipped: f64,
    /// The change, relative: −0.25 is 25 % less.
    pub change: f64,
    /// Its smallest credible value.
    pub low: f64,
    /// Its largest credible value; infinite where the base may be zero.
    pub high: f64,
    /// How the range was made.
    pub by: By,
}

/// How the range of a change was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// Laps paired by this many rounds.
    Rounds(usize),
    /// Exact counts.
    Counts,
    /// Two intervals beside each other.
    Intervals,
}

/// Judges every claim of the run. Figures come from the passes that the metric is taken from, the
/// best first.
#[must_use]
pub fn judge(claims: &[Claim], fair: FairLaps<'_>, costs: &[Cost]) -> Vec<JudgedClaim> {
    let series = fair.series();
    claims.iter().map(|claim| judged(claim, &series, costs)).collect()
}

fn judged(
    claim: &Claim,
    series: &BTreeMap<Cell, BTreeMap<ArmName, Series>>,
    costs: &[Cost],
) -> JudgedClaim {
    let base = ArmName { subject: claim.subject.clone(), variant: claim.base.clone() };
    let flipped = ArmName { subject: claim.subject.clone(), variant: claim.flipped.clone() };
    let tests = claim.expectations.len();
    let expectations: Vec<JudgedExpectation> = (claim.expectations.iter())
        .map(|expectation| {
            let pair = (&base, &flipped);
            let (found, outcome) = match paired(expectation, series, pair) {
                Some(ratio) => ratio.judged(expectation, tests),
                None => match unpaired(expectation, costs, pair) {
                    Ok(found) => (Ok(found), outcome(expectation, found.low, found.high)),
                    Err(reason) => (Err(reason), Outcome::NotShown),
                },
            };
            JudgedExpectation { expectation: expectation.clone(), found, outcome }
        })
        .collect();
    let any = |outcome| expectations.iter().any(|judged| judged.outcome == outcome);
    let outcome = if any(Outcome::Contradicted) {
        Outcome::Contradicted
    } else if any(Outcome::NotShown) || expectations.is_empty() {
        Outcome::NotShown
    } else {
        Outcome::Shown
    };
    JudgedClaim { claim: claim.clone(), expectations, outcome }
}

/// What a range of the relative change says to an expectation.
fn outcome(expectation: &Expectation, low: f64, high: f64) -> Outcome {
    let by = expectation.by;
    let (fulfilled, refuted) = match expectation.change {
        Direction::Falls => {
            let bound = -by.unwrap_or(0.0);
            (high < 0.0 && high <= bound, low >= 0.0 || low > bound)
        }
        Direction::Rises => {
            let bound = by.unwrap_or(0.0);
            (low > 0.0 && low >= bound, high <= 0.0 || high < bound)
        }
        Direction::Stays => {
            let bound = by.unwrap_or(MARGIN);
            (-bound <= low && high <= bound, high < -bound || low > bound)
        }
    };
    match (fulfilled, refuted) {
        (true, _) => Outcome::Shown,
        (false, true) => Outcome::Contradicted,
        (false, false) => Outcome::NotShown,
    }
}

/// Laps of both arms, paired by rounds.
struct Paired<'a> {
    base: &'a Series,
    flipped: &'a Series,
}

fn paired<'a>(
    expectation: &Expectation,
    series: &'a BTreeMap<Cell, BTreeMap<ArmName, Series>>,
    (base, flipped): (&ArmName, &ArmName),
) -> Option<Paired<'a>> {
    let metric = Metric::from_name(&expectation.metric)?;
    let (_, arms) = series.iter().find(|(cell, _)| {
        cell.metric == metric
            && cell.route == expectation.route
            && same(&cell.labels, &expectation.labels)
    })?;
    Some(Paired { base: arms.get(base)?, flipped: arms.get(flipped)? })
}

impl Paired<'_> {
    fn judged(&self, expectation: &Expectation, tests: usize) -> (Result<Found, String>, Outcome) {
        let ratio = compare::log_ratio(self.base, self.flipped);
        let (Some(ratio), Some(base), Some(flipped)) =
            (ratio, self.base.median(), self.flipped.median())
        else {
            let reason = "fewer than two rounds in which both have a lap with answers";
            return (Err(reason.to_owned()), Outcome::NotShown);
        };
        let (low, high) = (ratio.low.exp_m1(), ratio.high.exp_m1());
        let found = Found {
            base,
            flipped,
            change: ratio.mean.exp_m1(),
            low,
            high,
            by: By::Rounds(ratio.count),
        };
        let mut follows = outcome(expectation, low, high);
        let wider = ratio.over(tests);
        let still = outcome(expectation, wider.low.exp_m1(), wider.high.exp_m1());
        if follows == Outcome::Contradicted && still != Outcome::Contradicted {
            follows = Outcome::NotShown;
        }
        (Ok(found), follows)
    }
}

fn same(labels: &Labels, wanted: &BTreeMap<String, String>) -> bool {
    labels.len() == wanted.len()
        && labels.iter().all(|(key, value)| wanted.get(*key) == Some(value))
}

/// Figures of both arms from the same pass and instrument.
fn unpaired(
    expectation: &Expectation,
    costs: &[Cost],
    (base, flipped): (&ArmName, &ArmName),
) -> Result<Found, String> {
    let metric = Metric::from_name(&expectation.metric)
        .ok_or_else(|| format!("there is no metric {:?}", expectation.metric))?;
    let mut why = None;
    for pass in metric.passes() {
        for (instrument, cost) in of_arm(expectation, metric, costs, base, pass) {
            let other = of_arm(expectation, metric, costs, flipped, pass)
                .into_iter()
                .find(|(name, _)| *name == instrument);
            let Some((_, other)) = other else { continue };
            match (cost, other) {
                (Ok(base), Ok(flipped)) => return Ok(between(base, flipped)),
                (Err(reason), _) | (_, Err(reason)) => why = Some(reason),
            }
        }
    }
    Err(why.unwrap_or_else(|| "not measured in this run for both".to_owned()))
}

type Known = Result<(Figure, Kind), String>;

/// Instrument → figure of one arm. A part that never happened is 0 where its whole was measured.
fn of_arm<'a>(
    expectation: &Expectation,
    metric: Metric,
    costs: &'a [Cost],
    arm: &ArmName,
    pass: &str,
) -> BTreeMap<&'a str, Known> {
    let mut found: BTreeMap<&str, Known> = BTreeMap::new();
    let here = costs.iter().filter(|cost| {
        let origin = &cost.origin;
        cost.metric == metric
            && origin.pass == pass
            && origin.route == expectation.route
            && origin.subject == arm.subject
            && origin.variant == arm.variant
    });
    for cost in here {
        let capture = cost.origin.capture.as_deref().unwrap_or_default();
        let instrument = capture.rsplit('/').next().unwrap_or_default();
        if same(&cost.labels, &expectation.labels) {
            let known = match &cost.amount {
                Amount::Measured(figure) => Ok((*figure, cost.kind)),
                Amount::LowerBound(_, reason) => Err(format!("only a lower bound: {reason}")),
                Amount::NotMeasured(reason) => Err(reason.clone()),
            };
            found.insert(instrument, known);
        } else if cost.labels.is_empty()
            && let Amount::Measured(whole) = &cost.amount
        {
            let none = Figure::exact(0.0, whole.samples);
            found.entry(instrument).or_insert(Ok((none, cost.kind)));
        }
    }
    found
}

fn between((base, base_kind): (Figure, Kind), (flipped, kind): (Figure, Kind)) -> Found {
    let exact = base_kind == Kind::Exact && kind == Kind::Exact;
    let change = |flipped: f64, base: f64| match (flipped == base, base == 0.0) {
        (true, _) => 0.0,
        (false, true) => f64::INFINITY,
        (false, false) => flipped / base - 1.0,
    };
    let whole = change(flipped.value, base.value);
    let (low, high) = if exact {
        (whole, whole)
    } else {
        (change(flipped.low, base.high), change(flipped.high, base.low.max(0.0)))
    };
    let by = if exact { By::Counts } else { By::Intervals };
    Found { base: base.value, flipped: flipped.value, change: whole, low, high, by }
}
