//! A second copy of the reference: what is called different there is the method's own error.

use statrs::distribution::{ChiSquared, ContinuousCDF};

use crate::compare::{ArmName, Series};
use crate::comparisons::FairLaps;
use crate::interval::Interval;
use crate::metric::Metric;

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

/// The self-tests of the metrics that verdicts are about: rate, and the subject's CPU time.
#[must_use]
pub fn self_tests(
    fair: FairLaps<'_>,
    reference: &ArmName,
    copy: &ArmName,
) -> Vec<(Metric, SelfTest)> {
    let series = fair.series();
    let of = |metric: Metric, process: Option<&str>| {
        let cells = series.iter().filter(move |(cell, _)| {
            cell.metric == metric && cell.labels.get("process").map(String::as_str) == process
        });
        pooled(cells.filter_map(|(_, arms)| Some((arms.get(reference)?, arms.get(copy)?))))
    };
    [(Metric::Throughput, None), (Metric::CpuTime, Some("subject"))]
        .into_iter()
        .filter_map(|(metric, process)| Some((metric, of(metric, process)?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparisons::LapCpu;
    use crate::laps::tests::lap;

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
    fn rate_and_cpu_time_have_a_test_each() {
        let laps: Vec<_> = (0..4)
            .flat_map(|round| {
                [
                    lap("on", round, 2 * round, 1000 + u64::from(round)),
                    lap("again", round, 2 * round + 1, 1001),
                ]
            })
            .collect();
        let of_lap = |order: u32| {
            let both = [
                ("subject", 100e-6),
                ("postgres", if order.is_multiple_of(2) { 1.0 } else { 9.0 }),
            ];
            both.map(|(process, cpu)| (process.to_owned(), cpu)).into()
        };
        let cpu: LapCpu = (0..8).map(|order| (order, of_lap(order))).collect();
        let arm = |variant: &str| ArmName { subject: "shop".into(), variant: variant.into() };
        let fair = FairLaps { laps: &laps, cpu: &cpu };
        let tests = self_tests(fair, &arm("on"), &arm("again"));
        let [(Metric::Throughput, rate), (Metric::CpuTime, cpu)] = &tests[..] else {
            panic!("{tests:?}")
        };
        assert!(!rate.rejects() && !cpu.rejects(), "{tests:?}");
        assert_eq!(self_tests(fair, &arm("on"), &arm("gone")), []);
    }

    #[test]
    fn no_cell_is_no_test() {
        assert_eq!(pooled([]), None);
        assert_eq!(pooled([(&Series::default(), &Series::default())]), None);
    }
}
