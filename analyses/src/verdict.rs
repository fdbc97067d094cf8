//! When a difference is real: the four answers to a noisy comparison, and the three to an exact
//! one.

use crate::interval::{Interval, t_quantile};
use crate::metric::Better;

/// The difference that is worth knowing: 3 %.
pub const MARGIN: f64 = 0.03;

/// The most rounds that are ever asked for; beyond that, quieten the machine instead.
const ROUNDS_MOST: u32 = 10_000;

/// What a comparison says of the arm against the reference.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Verdict {
    /// Better, and the interval excludes zero: a higher rate, or a smaller cost.
    Faster,
    /// Worse, and the interval excludes zero.
    Slower,
    /// The whole interval lies within ± the margin: a difference that large would have been seen.
    Indistinguishable,
    /// Too few rounds or too much noise to say.
    CannotTell {
        /// Half of the interval's width, relative: 0.05 is ±5 %. `None` when there is no
        /// interval at all.
        half_width: Option<f64>,
        /// Rounds after which a run as noisy as this one is sure of one of the other answers.
        rounds_needed: Option<u32>,
    },
    /// An exact count, and the arm has less of it.
    Fewer,
    /// An exact count, and the arm has more of it.
    More,
    /// An exact count, and both have the same.
    Same,
    /// A noisy figure that was not measured in paired rounds: shown side by side, no more.
    NotJudged {
        /// Whether the two intervals overlap, so that not even the sign of a change is known.
        overlap: bool,
    },
}

impl Verdict {
    /// The word for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Faster => "faster",
            Self::Slower => "slower",
            Self::Indistinguishable => "indistinguishable",
            Self::CannotTell { .. } => "cannot tell",
            Self::Fewer => "fewer",
            Self::More => "more",
            Self::Same => "same",
            Self::NotJudged { .. } => "not judged",
        }
    }

    /// The verdict on a mean log ratio (arm over reference) with margin `margin` (0.03 is 3 %).
    #[must_use]
    pub fn of(log_ratio: &Interval, better: Better, margin: f64) -> Self {
        let bound = margin.ln_1p();
        if log_ratio.low > 0.0 || log_ratio.high < 0.0 {
            let larger = log_ratio.mean > 0.0;
            return if larger == (better == Better::Larger) { Self::Faster } else { Self::Slower };
        }
        if -bound < log_ratio.low && log_ratio.high < bound {
            return Self::Indistinguishable;
        }
        Self::cannot_tell(log_ratio, margin)
    }

    /// The fourth answer, with what it would take.
    #[must_use]
    pub fn cannot_tell(log_ratio: &Interval, margin: f64) -> Self {
        Self::CannotTell {
            half_width: Some(log_ratio.half_width().exp_m1()),
            rounds_needed: rounds_needed(log_ratio.deviation, margin),
        }
    }

    /// The verdict on two exact counts.
    #[must_use]
    pub fn exact(reference: f64, arm: f64) -> Self {
        // Totals divided by requests: equal totals may differ in the last bits.
        if (arm - reference).abs() <= 1e-9 * reference.abs().max(arm.abs()) {
            Self::Same
        } else if arm < reference {
            Self::Fewer
        } else {
            Self::More
        }
    }
}

/// The smallest even number of rounds whose half-width is at most half of the margin. Then any
/// effect gets a verdict: one larger than the half-width excludes zero, and a smaller one leaves
/// the whole interval within the margin. Even, because orders are balanced in pairs of rounds.
fn rounds_needed(deviation: f64, margin: f64) -> Option<u32> {
    let wanted = margin.ln_1p() / 2.0;
    let reached =
        |rounds: u32| t_quantile(rounds as usize - 1) * deviation / f64::from(rounds).sqrt();
    // The half-width shrinks with every round, so the pairs can be searched by halving.
    let (mut low, mut high) = (1, ROUNDS_MOST / 2);
    if reached(high * 2) > wanted {
        return None;
    }
    while low < high {
        let middle = u32::midpoint(low, high);
        if reached(middle * 2) <= wanted { high = middle } else { low = middle + 1 }
    }
    Some(low * 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(low: f64, high: f64) -> Interval {
        Interval { mean: f64::midpoint(low, high), low, high, deviation: 0.02, count: 6 }
    }

    #[test]
    fn an_interval_without_zero_is_faster_or_slower_by_what_is_better() {
        assert_eq!(Verdict::of(&interval(0.01, 0.05), Better::Larger, MARGIN), Verdict::Faster);
        assert_eq!(Verdict::of(&interval(-0.05, -0.01), Better::Larger, MARGIN), Verdict::Slower);
        assert_eq!(Verdict::of(&interval(-0.05, -0.01), Better::Smaller, MARGIN), Verdict::Faster);
        assert_eq!(Verdict::of(&interval(0.01, 0.05), Better::Smaller, MARGIN), Verdict::Slower);
    }

    #[test]
    fn an_interval_within_the_margin_is_indistinguishable() {
        let verdict = Verdict::of(&interval(-0.02, 0.01), Better::Larger, MARGIN);
        assert_eq!(verdict, Verdict::Indistinguishable);
    }

    #[test]
    fn a_wide_interval_cannot_tell_and_says_what_it_would_take() {
        let verdict = Verdict::of(&interval(-0.02, 0.05), Better::Larger, MARGIN);
        let Verdict::CannotTell { half_width: Some(half), rounds_needed: Some(rounds) } = verdict
        else {
            panic!("{verdict:?}")
        };
        assert!((half - 0.035_6).abs() < 1e-3, "{half}");
        // t(9) · 0.02 / √10 = 1.43 % ≤ 1.48 %, and with 8 rounds it is 1.67 %.
        assert_eq!(rounds, 10);
    }

    #[test]
    fn hopeless_noise_asks_for_no_number_of_rounds() {
        assert_eq!(rounds_needed(2.0, MARGIN), None);
        assert_eq!(rounds_needed(0.0, MARGIN), Some(2));
    }

    #[test]
    fn exact_counts_are_compared_exactly() {
        assert_eq!(Verdict::exact(9.0, 6.0), Verdict::Fewer);
        assert_eq!(Verdict::exact(9.0, 9.002), Verdict::More);
        assert_eq!(Verdict::exact(0.0, 0.0), Verdict::Same);
        assert_eq!(Verdict::exact(0.1 + 0.2, 0.3), Verdict::Same);
    }
}
