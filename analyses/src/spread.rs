//! The spread rule of published benchmarks, shown beside the verdict and never instead of it: it
//! loses power as rounds grow and cries wolf at three.

/// What the rule says of two sets of rates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The reference's best lap.
    pub reference_best: f64,
    /// The arm's best lap.
    pub arm_best: f64,
    /// The larger of both `best − worst`.
    pub spread: f64,
}

impl Spread {
    /// Of two sets of rates (larger is better); `None` when one is empty.
    #[must_use]
    pub fn of(reference: &[f64], arm: &[f64]) -> Option<Self> {
        let (reference_best, reference_worst) = extremes(reference)?;
        let (arm_best, arm_worst) = extremes(arm)?;
        let spread = (reference_best - reference_worst).max(arm_best - arm_worst);
        Some(Self { reference_best, arm_best, spread })
    }

    /// `|best − best| < max(best − worst of either)`.
    #[must_use]
    pub fn is_indistinguishable(&self) -> bool {
        (self.reference_best - self.arm_best).abs() < self.spread
    }

    /// How far the arm lags behind: `(reference.best − arm.best) / reference.best`. Negative when
    /// it leads.
    #[must_use]
    pub fn overhead(&self) -> f64 {
        overhead(self.reference_best, self.arm_best)
    }
}

/// `(reference − arm) / reference`: the overhead as published tables print it, to one decimal of
/// a percent.
#[must_use]
pub fn overhead(reference_best: f64, arm_best: f64) -> f64 {
    (reference_best - arm_best) / reference_best
}

fn extremes(values: &[f64]) -> Option<(f64, f64)> {
    let best = values.iter().copied().max_by(f64::total_cmp)?;
    let worst = values.iter().copied().min_by(f64::total_cmp)?;
    Some((best, worst))
}
