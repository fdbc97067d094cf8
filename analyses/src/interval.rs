//! A mean with its 95 % interval by Student's t.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// How sure every interval of this crate is.
pub const CONFIDENCE: f64 = 0.95;

/// A mean of independent values with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The mean.
    pub mean: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Standard deviation of one value (n − 1 in the divisor).
    pub deviation: f64,
    /// How many values.
    pub count: usize,
}

impl Interval {
    /// The interval of the mean of `values`: mean ± t(0.975, n − 1) · s / √n. `None` with fewer
    /// than two values, or when one is not finite.
    #[must_use]
    pub fn of(values: &[f64]) -> Option<Self> {
        if values.len() < 2 || values.iter().any(|value| !value.is_finite()) {
            return None;
        }
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let deviation = (squares / (count - 1.0)).sqrt();
        let half = t_quantile(values.len() - 1) * deviation / count.sqrt();
        Some(Self { mean, low: mean - half, high: mean + half, deviation, count: values.len() })
    }

    /// The same mean as one of `tests`, all of which are to be right at once with 95 %
    /// (Bonferroni: each interval at 1 − 0.05 / `tests`).
    #[must_use]
    pub fn over(&self, tests: usize) -> Self {
        let error = self.deviation / (self.count as f64).sqrt();
        let share = (1.0 - CONFIDENCE) / tests.max(1) as f64;
        let Some(student) = self.count.checked_sub(1).and_then(student) else { return *self };
        let half = student.inverse_cdf(1.0 - share / 2.0) * error;
        Self { low: self.mean - half, high: self.mean + half, ..*self }
    }

    /// Half of its width.
    #[must_use]
    pub fn half_width(&self) -> f64 {
        (self.high - self.low) / 2.0
    }

    /// The chance of a mean at least as far from zero when the true one is zero (two-sided t).
    #[must_use]
    pub fn p_value(&self) -> f64 {
        let error = self.deviation / (self.count as f64).sqrt();
        if error == 0.0 {
            return if self.mean == 0.0 { 1.0 } else { 0.0 };
        }
        match student(self.count - 1) {
            Some(student) => 2.0 * student.cdf(-(self.mean / error).abs()),
            None => 1.0,
        }
    }
}

/// The 0.975 quantile of Student's t with `freedom` degrees of freedom.
#[must_use]
pub fn t_quantile(freedom: usize) -> f64 {
    // The small ones are needed by the thousand in simulations, and inverting is slow.
    const SMALL: [f64; 12] = [
        12.706_204_736_432_095,
        4.302_652_729_696_142,
        3.182_446_305_284_263_4,
        2.776_445_105_197_793,
        2.570_581_835_636_314,
        2.446_911_851_144_979,
        2.364_624_251_592_785,
        2.306_004_135_033_371,
        2.262_157_162_740_992,
        2.228_138_851_964_938_5,
        2.200_985_160_082_949,
        2.178_812_829_663_418,
    ];
    match freedom.checked_sub(1) {
        None => f64::INFINITY,
        Some(index) => SMALL.get(index).copied().unwrap_or_else(|| large(freedom as f64)),
    }
}

/// The 0.975 quantile from the normal one by the expansion in 1/ν (Abramowitz & Stegun 26.7.5);
/// right to 3e-6 from 13 degrees of freedom on, and a hundred times faster than inverting.
fn large(freedom: f64) -> f64 {
    const Z: f64 = 1.959_963_984_540_054;
    let g1 = (Z.powi(3) + Z) / 4.0;
    let g2 = (5.0 * Z.powi(5) + 16.0 * Z.powi(3) + 3.0 * Z) / 96.0;
    let g3 = (3.0 * Z.powi(7) + 19.0 * Z.powi(5) + 17.0 * Z.powi(3) - 15.0 * Z) / 384.0;
    let g4 = (79.0 * Z.powi(9) + 776.0 * Z.powi(7) + 1482.0 * Z.powi(5)
        - 1920.0 * Z.powi(3)
        - 945.0 * Z)
        / 92_160.0;
    Z + g1 / freedom + g2 / freedom.powi(2) + g3 / freedom.powi(3) + g4 / freedom.powi(4)
}

fn student(freedom: usize) -> Option<StudentsT> {
    StudentsT::new(0.0, 1.0, freedom as f64).ok()
}

/// The median; the mean of the middle two for an even count. `None` when empty.
#[must_use]
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        length if length % 2 == 1 => Some(sorted[middle]),
        _ => Some((sorted[middle - 1] + sorted[middle]) / 2.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quantiles_are_those_of_the_distribution() {
        for freedom in (1..=40).chain([100, 1000, 9999]) {
            let computed = student(freedom).unwrap().inverse_cdf(0.975);
            let error = (t_quantile(freedom) - computed).abs();
            assert!(error < 3e-6, "{freedom}: {computed} is {error} off");
        }
        assert_eq!(t_quantile(0), f64::INFINITY);
    }

    #[test]
    fn an_interval_is_the_textbook_one() {
        // s = 1, n = 3: 2 ± 4.3027 / √3
        let interval = Interval::of(&[1.0, 2.0, 3.0]).unwrap();
        assert!((interval.mean - 2.0).abs() < 1e-12);
        assert!((interval.half_width() - 4.302_652_73 / 3f64.sqrt()).abs() < 1e-6);
        // t = 2 / (1 / √3) = 3.4641 with 2 degrees of freedom: p = 0.0742
        assert!((interval.p_value() - 0.0742).abs() < 1e-4);
    }

    #[test]
    fn one_of_many_intervals_is_wider() {
        let alone = Interval::of(&[1.0, 2.0, 3.0, 4.0]).unwrap();
        assert!((alone.over(1).high - alone.high).abs() < 1e-6);
        // t(1 − 0.025 / 5, 3 degrees of freedom) = 5.8409
        let error = alone.deviation / 2.0;
        assert!((alone.over(5).half_width() - 5.840_9 * error).abs() < 1e-3);
    }

    #[test]
    fn one_value_or_an_infinite_one_has_no_interval() {
        assert_eq!(Interval::of(&[]), None);
        assert_eq!(Interval::of(&[1.0]), None);
        assert_eq!(Interval::of(&[1.0, f64::NEG_INFINITY]), None);
        assert_eq!(Interval::of(&[1.0, f64::NAN]), None);
    }

    #[test]
    fn values_that_agree_differ_from_zero_for_certain_or_not_at_all() {
        assert_eq!(Interval::of(&[0.5, 0.5]).unwrap().p_value(), 0.0);
        assert_eq!(Interval::of(&[0.0, 0.0]).unwrap().p_value(), 1.0);
    }

    #[test]
    fn the_median_of_an_even_count_lies_between() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(&[]), None);
    }
}
