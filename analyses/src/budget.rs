//! Limits on costs, and which of them a run keeps.
//!
//! A limit names a metric, perhaps a route, an arm and a pass, and how much there may be: an
//! amount, or what a baseline had and a step from there. Exact counts are held against it as they
//! are; figures with noise break a limit only when their interval lies beyond it, keep it only when
//! it lies within, and otherwise nobody can tell. A limit that matches nothing, or a figure that
//! was not measured, is never kept.

mod baseline;
mod cells;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

pub use baseline::{Baseline, BaselineFigure};

use crate::cost::{Cost, Figure, Origin};
use crate::metric::{Kind, Metric};
use cells::Reading;

/// How far two exact counts may lie apart and be the same: baselines are kept with nine digits.
const ROUNDING: f64 = 1e-8;

/// One limit.
#[derive(Clone, Debug, PartialEq)]
pub struct Limit {
    /// As it was written.
    pub text: String,
    /// Names of routes; all where empty.
    pub routes: Vec<String>,
    /// Arms; all where empty.
    pub arms: Vec<ArmPattern>,
    /// Name of a pass; without, the best that has the metric ([`Metric::passes`]).
    pub pass: Option<String>,
    /// What is limited.
    pub metric: Metric,
    /// Which part of it: all labels of the cost, with their value; `None` for any value.
    pub labels: BTreeMap<String, Option<String>>,
    /// On which side of the bound a figure has to be.
    pub side: Side,
    /// How much.
    pub bound: Bound,
}

/// A subject, in one variant or in all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArmPattern {
    /// Name of the subject.
    pub subject: String,
    /// Name of the variant; `None` for all.
    pub variant: Option<String>,
}

/// On which side of its bound a figure has to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// `<=`
    AtMost,
    /// `<`
    Below,
    /// `>=`
    AtLeast,
    /// `>`
    Above,
}

/// How much there may be, in the metric's unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound {
    /// This amount.
    Amount(f64),
    /// The baseline's amount, times this factor, plus this amount.
    Baseline {
        /// 1.02 for `+2 % of baseline`.
        factor: f64,
        /// In the metric's unit.
        plus: f64,
    },
}

/// What became of one limit at one figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    /// Which limit, by its place in the list.
    pub limit: usize,
    /// Where the figure belongs, with its labels; `None` when the limit matched none.
    pub place: Option<(Origin, BTreeMap<String, String>)>,
    /// What was measured.
    pub reading: Option<Figure>,
    /// What it was held against; with an interval where that was measured, too.
    pub bound: Option<Figure>,
    /// What follows.
    pub outcome: Outcome,
}

/// What follows from a limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Kept.
    Holds,
    /// Broken.
    Broken,
    /// The interval has the bound inside.
    CannotTell,
    /// There is nothing to hold against it, and why.
    NotJudged(String),
}

impl Limit {
    /// The limit on all of a metric, everywhere.
    #[must_use]
    pub fn everywhere(metric: Metric, side: Side, bound: Bound) -> Self {
        Self {
            text: String::new(),
            routes: Vec::new(),
            arms: Vec::new(),
            pass: None,
            metric,
            labels: BTreeMap::new(),
            side,
            bound,
        }
    }
}

impl Judgement {
    /// How far the reading lies beyond its bound, in the metric's unit; negative within.
    #[must_use]
    pub fn excess(&self, side: Side) -> Option<f64> {
        let difference = self.reading?.value - self.bound?.value;
        Some(if side.is_upper() { difference } else { -difference })
    }

    fn nothing(limit: usize, reason: String) -> Self {
        let outcome = Outcome::NotJudged(reason);
        Self { limit, place: None, reading: None, bound: None, outcome }
    }
}

impl Side {
    /// Whether less is within.
    #[must_use]
    pub fn is_upper(self) -> bool {
        matches!(self, Self::AtMost | Self::Below)
    }

    /// Whether the bound itself is beyond.
    #[must_use]
    pub fn is_strict(self) -> bool {
        matches!(self, Self::Below | Self::Above)
    }

    /// The sign for it.
    #[must_use]
    pub fn sign(self) -> &'static str {
        match self {
            Self::AtMost => "<=",
            Self::Below => "<",
            Self::AtLeast => ">=",
            Self::Above => ">",
        }
    }
}

/// Holds every limit against every figure that it matches. Each limit gives at least one
/// judgement; those of one limit stand together, in the order of the limits.
#[must_use]
pub fn judge(limits: &[Limit], costs: &[Cost], baseline: Option<&Baseline>) -> Vec<Judgement> {
    let mut judgements = Vec::new();
    for (index, limit) in limits.iter().enumerate() {
        let readings = cells::readings(limit, costs);
        for nothing in cells::unmatched(limit, costs, &readings) {
            judgements.push(Judgement::nothing(index, nothing));
        }
        judgements.extend(readings.into_iter().map(|reading| {
            let (bound, outcome) = judge_one(limit, &reading, baseline);
            Judgement {
                limit: index,
                reading: reading.held(),
                place: Some((reading.origin, reading.labels)),
                bound,
                outcome,
            }
        }));
    }
    judgements
}

/// The figures that the limits are about, to be kept as a baseline; all, when there is no limit.
/// What was not measured is no baseline and is left out.
#[must_use]
pub fn save_baseline(limits: &[Limit], costs: &[Cost]) -> Baseline {
    if limits.is_empty() {
        return Baseline::of(costs);
    }
    let readings = limits.iter().flat_map(|limit| cells::readings(limit, costs));
    Baseline { figures: baseline::sorted(readings.filter_map(Reading::into_baseline).collect()) }
}

fn judge_one(
    limit: &Limit,
    reading: &Reading,
    baseline: Option<&Baseline>,
) -> (Option<Figure>, Outcome) {
    use crate::cost::Amount::{LowerBound, Measured, NotMeasured};
    let (bound, bound_is_exact) = match bound(limit, reading, baseline) {
        Ok(bound) => bound,
        Err(reason) => return (None, Outcome::NotJudged(reason)),
    };
    let exact = reading.kind == Kind::Exact && bound_is_exact;
    let outcome = match &reading.amount {
        NotMeasured(reason) => Outcome::NotJudged(format!("not measured: {reason}")),
        Measured(figure) => outcome(limit.side, *figure, bound, exact),
        LowerBound(figure, reason) => {
            // More can only add to it: what is beyond an upper bound stays there, and what has
            // reached a lower one has.
            let known = outcome(limit.side, *figure, bound, exact);
            match (limit.side.is_upper(), known) {
                (true, Outcome::Broken) => Outcome::Broken,
                (false, Outcome::Holds) => Outcome::Holds,
                _ => Outcome::NotJudged(format!("known only as a lower bound: {reason}")),
            }
        }
    };
    (Some(bound), outcome)
}

/// What a reading is held against, and whether that is known exactly.
fn bound(
    limit: &Limit,
    reading: &Reading,
    baseline: Option<&Baseline>,
) -> Result<(Figure, bool), String> {
    let (factor, plus) = match limit.bound {
        // What was typed rests on no sample that could have come out otherwise.
        Bound::Amount(amount) => return Ok((Figure::exact(amount, u64::MAX), true)),
        Bound::Baseline { factor, plus } => (factor, plus),
    };
    let baseline = baseline.ok_or("no baseline was given")?;
    let known = baseline
        .find(&reading.origin, limit.metric, &reading.labels)
        .ok_or("the baseline has no figure for this")?;
    let step = |value: f64| value * factor + plus;
    let figure = Figure {
        value: step(known.figure.value),
        low: step(known.figure.low),
        high: step(known.figure.high),
        samples: known.figure.samples,
    };
    Ok((figure, known.kind == Kind::Exact))
}

fn outcome(side: Side, reading: Figure, bound: Figure, exact: bool) -> Outcome {
    let all = [reading, bound];
    if all.iter().any(|f| ![f.value, f.low, f.high].iter().all(|value| value.is_finite())) {
        return Outcome::NotJudged("not a finite number".to_owned());
    }
    let beyond = reading.value - bound.value;
    if exact {
        let rounding = ROUNDING * reading.value.abs().max(bound.value.abs());
        let beyond = if side.is_upper() { beyond } else { -beyond };
        let broken = if side.is_strict() { beyond >= -rounding } else { beyond > rounding };
        return if broken { Outcome::Broken } else { Outcome::Holds };
    }
    // One lap of something noisy has no spread, which does not make it exact.
    if all.iter().any(|f| f.samples <= 1 && f.low == f.high) && !exact {
        return Outcome::CannotTell;
    }
    // Half-widths of two independent measurements add in quadrature.
    let apart = |one: f64, other: f64| one.hypot(other);
    let if_more = apart(reading.value - reading.low, bound.high - bound.value);
    let if_less = apart(reading.high - reading.value, bound.value - bound.low);
    let (beyond, if_beyond, if_within) =
        if side.is_upper() { (beyond, if_more, if_less) } else { (-beyond, if_less, if_more) };
    if beyond > if_beyond {
        Outcome::Broken
    } else if -beyond >= if_within && !(side.is_strict() && beyond == 0.0) {
        Outcome::Holds
    } else {
        Outcome::CannotTell
    }
}
