//! An arm against the reference: paired by rounds where there is noise, exactly where there is
//! none.
//!
//! A machine drifts, so a lap is only ever compared with the reference's lap of the same round:
//! `ln(arm / reference)`, one value a round, then mean and t interval over rounds. The rounds of
//! a random walk do not share an increment, so these values are independent; that a round's laps
//! lie nearer or farther apart than another's gives them unequal variances, under which the t
//! interval at 95 % errs to the safe side (Bakirov & Székely 2005; Ibragimov & Müller 2010).
//! Steady drift cancels because every order is followed by its reverse: see `SIMULATION.md`.

use std::collections::BTreeMap;

use crate::cost::{Figure, Labels};
use crate::holm;
use crate::interval::{Interval, median};
use crate::metric::Metric;
use crate::spread::Spread;
use crate::verdict::{MARGIN, Verdict};

/// One subject in one variant.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ArmName {
    /// Name of the subject.
    pub subject: String,
    /// Name of its variant.
    pub variant: String,
}

/// What is compared: one metric of one route in one pass.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cell {
    /// Name of the route.
    pub route: String,
    /// What was measured.
    pub metric: Metric,
    /// Which part of it; empty for the total.
    pub labels: Labels,
    /// Name of the pass.
    pub pass: String,
}

/// The values of one arm in one cell: round → one value a lap, in the metric's unit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series(BTreeMap<u32, Vec<f64>>);

impl Series {
    /// Adds the value of a lap of `round`.
    pub fn push(&mut self, round: u32, value: f64) {
        self.0.entry(round).or_default().push(value);
    }

    /// All values, by round.
    pub fn values(&self) -> impl Iterator<Item = f64> + '_ {
        self.0.values().flatten().copied()
    }

    /// The rounds that have laps, ascending.
    pub fn rounds(&self) -> impl Iterator<Item = u32> + '_ {
        self.0.keys().copied()
    }

    /// The median over all laps; `None` without laps.
    #[must_use]
    pub fn median(&self) -> Option<f64> {
        median(&self.values().collect::<Vec<_>>())
    }

    /// `f(this round's mean, the other's)` for each round that both have.
    pub(crate) fn paired(&self, other: &Self, f: impl Fn(&[f64], &[f64]) -> f64) -> Vec<f64> {
        let both = self.0.iter().filter_map(|(round, mine)| Some((mine, other.0.get(round)?)));
        both.map(|(mine, theirs)| f(mine, theirs)).collect()
    }
}

impl FromIterator<(u32, f64)> for Series {
    fn from_iter<I: IntoIterator<Item = (u32, f64)>>(laps: I) -> Self {
        let mut series = Self::default();
        for (round, value) in laps {
            series.push(round, value);
        }
        series
    }
}

/// A relative change with its 95 % interval: 0.288 is +28.8 %.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Effect {
    /// `exp(mean log ratio) − 1`.
    pub change: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// How many rounds it rests on.
    pub rounds: u32,
    /// The chance of such a change between equals (two-sided t), after Holm's correction where
    /// the comparison is one of a table.
    pub p_value: f64,
}

impl Effect {
    /// The effect of a mean log ratio.
    #[must_use]
    pub fn of(log_ratio: &Interval) -> Self {
        Self {
            change: log_ratio.mean.exp_m1(),
            low: log_ratio.low.exp_m1(),
            high: log_ratio.high.exp_m1(),
            rounds: u32::try_from(log_ratio.count).unwrap_or(u32::MAX),
            p_value: log_ratio.p_value(),
        }
    }

    /// Half of the interval's width.
    #[must_use]
    pub fn half_width(&self) -> f64 {
        (self.high - self.low) / 2.0
    }
}

/// One arm against the reference in one cell.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// What was compared.
    pub cell: Cell,
    /// The reference.
    pub reference: ArmName,
    /// The arm that is judged.
    pub arm: ArmName,
    /// The reference's amount in the metric's unit: the median lap, or the exact count.
    pub reference_amount: f64,
    /// The arm's amount, likewise.
    pub arm_amount: f64,
    /// The relative change with its interval; `None` for exact counts and where no two laps can
    /// be paired.
    pub effect: Option<Effect>,
    /// What follows.
    pub verdict: Verdict,
    /// The documents' spread rule, for rates of at least two laps.
    pub spread: Option<Spread>,
    /// What limits its meaning, one sentence each.
    pub doubts: Vec<String>,
}

impl Comparison {
    /// The arm's amount less the reference's, in the metric's unit.
    #[must_use]
    pub fn difference(&self) -> f64 {
        self.arm_amount - self.reference_amount
    }

    /// The relative change: from the paired rounds where there are any, from the two amounts
    /// otherwise. `None` against a reference of zero.
    #[must_use]
    pub fn change(&self) -> Option<f64> {
        match self.effect {
            Some(effect) => Some(effect.change),
            None if self.reference_amount == 0.0 => None,
            None => Some(self.arm_amount / self.reference_amount - 1.0),
        }
    }
}

/// Mean log ratio of two series over the rounds that both have. `None` with fewer than two such
/// rounds, or when a lap has no logarithm (a rate of zero).
#[must_use]
pub fn log_ratio(reference: &Series, arm: &Series) -> Option<Interval> {
    let mean_log =
        |values: &[f64]| values.iter().map(|value| value.ln()).sum::<f64>() / values.len() as f64;
    Interval::of(&arm.paired(reference, |mine, theirs| mean_log(mine) - mean_log(theirs)))
}

/// Compares noisy laps. `None` when either side has no lap.
#[must_use]
pub fn compare(
    cell: Cell,
    (reference, reference_laps): (&ArmName, &Series),
    (arm, arm_laps): (&ArmName, &Series),
) -> Option<Comparison> {
    let ratio = log_ratio(reference_laps, arm_laps);
    let better = cell.metric.better();
    let mut doubts = Vec::new();
    let verdict = match &ratio {
        Some(ratio) => Verdict::of(ratio, better, MARGIN),
        None => {
            doubts.push("fewer than two rounds in which both have a lap with answers".to_owned());
            Verdict::CannotTell { half_width: None, rounds_needed: None }
        }
    };
    let spread = (cell.metric == Metric::Throughput)
        .then(|| {
            Spread::of(
                &reference_laps.values().collect::<Vec<_>>(),
                &arm_laps.values().collect::<Vec<_>>(),
            )
        })
        .flatten();
    Some(Comparison {
        cell,
        reference: reference.clone(),
        arm: arm.clone(),
        reference_amount: reference_laps.median()?,
        arm_amount: arm_laps.median()?,
        effect: ratio.as_ref().map(Effect::of),
        verdict,
        spread,
        doubts,
    })
}

/// Compares exact counts. Repetitions that disagree are said: then a difference smaller than
/// theirs means little.
#[must_use]
pub fn compare_exact(
    cell: Cell,
    (reference, reference_counts): (&ArmName, &[f64]),
    (arm, arm_counts): (&ArmName, &[f64]),
) -> Option<Comparison> {
    let reference_amount = median(reference_counts)?;
    let arm_amount = median(arm_counts)?;
    let doubts = [(reference, reference_counts), (arm, arm_counts)]
        .into_iter()
        .filter_map(|(name, counts)| {
            let (low, high) = range(counts)?;
            (Verdict::exact(low, high) != Verdict::Same)
                .then(|| format!("repetitions of {} disagree: {low} to {high}", name.variant))
        })
        .collect();
    Some(Comparison {
        cell,
        reference: reference.clone(),
        arm: arm.clone(),
        reference_amount,
        arm_amount,
        effect: None,
        verdict: Verdict::exact(reference_amount, arm_amount),
        spread: None,
        doubts,
    })
}

fn range(values: &[f64]) -> Option<(f64, f64)> {
    let low = values.iter().copied().min_by(f64::total_cmp)?;
    let high = values.iter().copied().max_by(f64::total_cmp)?;
    Some((low, high))
}

/// Holm's correction per metric over the cells of a table: a `faster` or `slower` that does not
/// survive it becomes `cannot tell`. Intervals stay those of the cell alone.
pub fn correct(comparisons: &mut [Comparison]) {
    let mut families: BTreeMap<(Metric, Labels), Vec<usize>> = BTreeMap::new();
    for (index, comparison) in comparisons.iter().enumerate() {
        if comparison.effect.is_some() {
            let family = (comparison.cell.metric, comparison.cell.labels.clone());
            families.entry(family).or_default().push(index);
        }
    }
    for members in families.values() {
        let p_values: Vec<f64> = members
            .iter()
            .map(|&index| comparisons[index].effect.map_or(1.0, |effect| effect.p_value))
            .collect();
        for (&index, adjusted) in members.iter().zip(holm::adjust(&p_values)) {
            demote(&mut comparisons[index], adjusted, members.len());
        }
    }
}

fn demote(comparison: &mut Comparison, adjusted: f64, cells: usize) {
    let Some(effect) = &mut comparison.effect else { return };
    effect.p_value = adjusted;
    let alone = comparison.verdict;
    if matches!(alone, Verdict::Faster | Verdict::Slower) && adjusted >= holm::LEVEL {
        comparison.doubts.push(format!(
            "{} by itself, but not after Holm's correction over {cells} cells",
            alone.word()
        ));
        comparison.verdict =
            Verdict::CannotTell { half_width: Some(effect.half_width()), rounds_needed: None };
    }
}

/// Puts two noisy figures that no rounds pair side by side.
#[must_use]
pub fn side_by_side(
    cell: Cell,
    (reference, reference_figure): (&ArmName, Figure),
    (arm, arm_figure): (&ArmName, Figure),
) -> Comparison {
    let overlap =
        arm_figure.low <= reference_figure.high && reference_figure.low <= arm_figure.high;
    Comparison {
        cell,
        reference: reference.clone(),
        arm: arm.clone(),
        reference_amount: reference_figure.value,
        arm_amount: arm_figure.value,
        effect: None,
        verdict: Verdict::NotJudged { overlap },
        spread: None,
        doubts: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arm(variant: &str) -> ArmName {
        ArmName { subject: "shop".into(), variant: variant.into() }
    }

    fn cell(route: &str) -> Cell {
        Cell {
            route: route.into(),
            metric: Metric::Throughput,
            labels: Labels::new(),
            pass: "fair".into(),
        }
    }

    fn series(values: &[f64]) -> Series {
        (0..).zip(values.iter().copied()).collect()
    }

    fn compared(route: &str, reference: &[f64], other: &[f64]) -> Comparison {
        let (a, b) = (arm("a"), arm("b"));
        compare(cell(route), (&a, &series(reference)), (&b, &series(other))).unwrap()
    }

    // round      0     1     2     3
    // reference  1000  1200  900   1100     drifts by a third …
    // arm        1100  1320  990   1210     … and the arm with it: +10 % in each round
    #[test]
    fn drift_that_both_share_cancels() {
        let reference = [1000.0, 1200.0, 900.0, 1100.0];
        let comparison = compared("detail", &reference, &reference.map(|rate| rate * 1.1));
        let effect = comparison.effect.unwrap();
        assert!((effect.change - 0.1).abs() < 1e-9);
        assert!(effect.half_width() < 1e-9);
        assert_eq!((comparison.verdict, effect.rounds), (Verdict::Faster, 4));
        assert!(comparison.spread.unwrap().is_indistinguishable(), "the spread rule is blind here");
    }

    #[test]
    fn a_lap_without_answers_or_a_single_round_cannot_tell() {
        for (reference, other) in [(&[5.0][..], &[6.0][..]), (&[5.0, 5.0], &[6.0, 0.0])] {
            let comparison = compared("detail", reference, other);
            assert_eq!(comparison.effect, None);
            let expected = Verdict::CannotTell { half_width: None, rounds_needed: None };
            assert_eq!(comparison.verdict, expected);
        }
    }

    #[test]
    fn several_laps_of_a_round_count_once() {
        let reference: Series = [(0, 100.0), (0, 100.0), (1, 100.0)].into_iter().collect();
        let other: Series = [(0, 80.0), (0, 125.0), (1, 100.0)].into_iter().collect();
        let ratio = log_ratio(&reference, &other).unwrap();
        assert_eq!(ratio.count, 2);
        assert!(ratio.mean.abs() < 1e-12);
    }

    #[test]
    fn holm_demotes_what_only_stands_alone() {
        let barely = ([100.0, 100.0, 100.0, 100.0], [101.0, 104.0, 103.0, 105.0]);
        let alone = compared("detail", &barely.0, &barely.1);
        assert_eq!(alone.verdict, Verdict::Faster);
        let equal = ([100.0, 101.0, 99.0, 100.0], [100.0, 100.0, 100.0, 100.0]);
        let mut table = vec![alone, compared("index", &equal.0, &equal.1)];
        correct(&mut table);
        assert!(matches!(table[0].verdict, Verdict::CannotTell { .. }), "{:?}", table[0]);
        assert!(table[0].doubts[0].contains("Holm"));
        assert_eq!(table[1].verdict, Verdict::Indistinguishable);
    }

    #[test]
    fn repetitions_of_an_exact_count_that_disagree_are_said() {
        let (a, b) = (arm("a"), arm("b"));
        let counts = compare_exact(cell("detail"), (&a, &[9.0, 9.0]), (&b, &[6.0, 6.5])).unwrap();
        assert_eq!(counts.verdict, Verdict::Fewer);
        assert_eq!(counts.doubts, ["repetitions of b disagree: 6 to 6.5"]);
        assert_eq!(counts.difference(), -2.75);
    }
}
