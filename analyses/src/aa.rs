//! A second copy of the reference: what is called different there is the method's own error.

use statrs::distribution::{ChiSquared, ContinuousCDF};

use crate::compare::Series;
use crate::interval::Interval;

/// The pooled test rejects below this.
pub const LEVEL: f64 = 0.001;

/// The reference against its copy, over all cells of one metric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SelfTest {
    /// How many cells could be compared.
    pub cells: usize,
    /// The chance of p-values as small as these between equals (Fisher's method).
    pub p_value: f64,
    /// The noise floor: root mean square of the rounds' standard deviations, relative.
    pub noise: f64,
}

impl SelfTest {
    /// Whether the method finds a difference between equals, so that no verdict can be trusted.
    #[must_use]
    pub fn rejects(&self) -> bool {
        self.p_value < LEVEL
    }
}

/// Pools the cells of one metric; each is the reference's and the copy's series of one route.
/// Cells of one metric are independent, since routes have laps of their own; metrics of the same
/// laps are not, so pool one at a time. `None` when no cell can be compared.
#[must_use]
pub fn pooled<'a>(cells: impl IntoIterator<Item = (&'a Series, &'a Series)>) -> Option<SelfTest> {
    let intervals: Vec<Interval> = cells
        .into_iter()
        .filter_map(|(reference, copy)| crate::compare::log_ratio(reference, copy))
        .collect();
    let count = intervals.len();
    let p_values = intervals.iter().map(Interval::p_value);
    // −2 Σ ln p is χ² with 2 degrees of freedom a cell (Fisher 1925). The floor keeps a single
    // p of zero from being infinitely convincing.
    let statistic: f64 = p_values.map(|p| -2.0 * p.max(1e-300).ln()).sum();
    let squares: f64 = intervals.iter().map(|interval| interval.deviation.powi(2)).sum();
    let chi_squared = ChiSquared::new(2.0 * count as f64).ok()?;
    Some(SelfTest {
        cells: count,
        p_value: chi_squared.sf(statistic),
        // A ratio of two laps has the noise of both.
        noise: (squares / count as f64 / 2.0).sqrt(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(values: [f64; 4]) -> Series {
        (0..).zip(values).collect()
    }

    #[test]
    fn equals_with_noise_are_not_rejected() {
        let one = series([100.0, 102.0, 99.0, 101.0]);
        let two = series([101.0, 100.0, 100.0, 101.0]);
        let test = pooled([(&one, &two), (&two, &one)]).unwrap();
        assert_eq!(test.cells, 2);
        assert!(!test.rejects(), "{test:?}");
        assert!((0.005..0.02).contains(&test.noise), "{test:?}");
    }

    #[test]
    fn a_copy_that_is_always_slower_is_rejected() {
        let one = series([100.0, 102.0, 99.0, 101.0]);
        let two = series([90.0, 92.0, 89.0, 91.0]);
        assert!(pooled([(&one, &two), (&one, &two)]).unwrap().rejects());
    }

    #[test]
    fn no_cell_is_no_test() {
        assert_eq!(pooled([]), None);
        assert_eq!(pooled([(&Series::default(), &Series::default())]), None);
    }
}
