//! Allocations per request, from the preloaded counter.

use assay_captures::allocation_counts::Sample;
use assay_captures::parsed::{Problem, Sink};
use assay_captures::units::Span;

use crate::brackets::Brackets;
use crate::cost::{Amount, Cost, Figure, Origin, Per};
use crate::metric::{Kind, Metric};
use crate::window::Window;

/// Folds the samples of one capture over the laps that it covers.
#[derive(Clone, Debug)]
pub struct AllocationsFold {
    windows: Vec<Window>,
    brackets: Brackets<Sample>,
    problems: Vec<Problem>,
}

impl AllocationsFold {
    /// A fold over these laps.
    #[must_use]
    pub fn new(windows: &[Window]) -> Self {
        let brackets = Brackets::new(windows.iter().map(|window| window.span));
        Self { windows: windows.to_vec(), brackets, problems: Vec::new() }
    }

    /// What in the file could not be read.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// Blocks and bytes per request: all laps together, with the smallest and the largest lap.
    /// `connections` of the load are said with the figure, since it depends on them.
    #[must_use]
    pub fn costs(&self, origin: &Origin, connections: u32) -> Vec<Cost> {
        let blocks = self.figure(|sample| sample.blocks);
        let bytes = self.figure(|sample| sample.bytes);
        [(Metric::AllocationsBlocks, blocks), (Metric::AllocationsBytes, bytes)]
            .into_iter()
            .map(|(metric, figure)| {
                let amount = figure.map_or_else(Amount::NotMeasured, Amount::Measured);
                origin
                    .cost(metric, Per::Request, amount)
                    .of_kind(Kind::Noisy)
                    .doubted(format!("under load with {connections} connections"))
            })
            .collect()
    }

    fn figure(&self, counter: impl Fn(&Sample) -> u64) -> Result<Figure, String> {
        let mut counted = 0;
        let mut requests = 0;
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for (window, pair) in self.windows.iter().zip(self.brackets.pairs()) {
            let Some((before, after)) = pair else {
                return Err("a lap has no sample before or after it".into());
            };
            let Some(grown) = counter(after).checked_sub(counter(before)) else {
                return Err("the counters went backwards: the subject was restarted".into());
            };
            if window.requests == 0 {
                continue;
            }
            let per_request = grown as f64 / window.requests as f64;
            (low, high) = (low.min(per_request), high.max(per_request));
            counted += grown;
            requests += window.requests;
        }
        if requests == 0 {
            return Err("no request was answered".into());
        }
        // A server that answers without allocating at all is one whose heap is not counted.
        if counted == 0 {
            return Err("the counters stood still: the subject has a heap of its own".into());
        }
        Ok(Figure { value: counted as f64 / requests as f64, low, high, samples: requests })
    }
}

impl Sink<Sample> for AllocationsFold {
    fn record(&mut self, sample: Sample) {
        let read = Span { start: sample.moment, end: sample.moment };
        self.brackets.take(read, &sample);
    }

    fn problem(&mut self, problem: Problem) {
        self.problems.push(problem);
    }
}

#[cfg(test)]
mod tests {
    use assay_captures::units::Moment;
    use assay_captures::usage::At;

    use super::*;

    fn fold(samples: &[(u64, u64)], windows: &[(u64, u64, u64)]) -> Vec<Cost> {
        let windows: Vec<Window> = (windows.iter())
            .map(|&(start, end, requests)| Window {
                span: Span { start: Moment(start), end: Moment(end) },
                requests,
            })
            .collect();
        let mut fold = AllocationsFold::new(&windows);
        for &(moment, blocks) in samples {
            let moment = Moment(moment);
            let bytes = blocks * 100;
            fold.record(Sample { moment, at: At::Mark, blocks, bytes, frees: 0 });
        }
        let origin = Origin {
            subject: "shop".into(),
            variant: "on".into(),
            route: "detail".into(),
            pass: "allocations".into(),
            capture: None,
        };
        fold.costs(&origin, 50)
    }

    #[test]
    fn all_laps_together_are_the_figure_and_single_laps_the_range() {
        let costs = fold(&[(10, 1000), (20, 1300), (30, 1500)], &[(10, 20, 10), (20, 30, 10)]);
        let blocks = costs[0].amount.figure().unwrap();
        assert_eq!((blocks.value, blocks.low, blocks.high, blocks.samples), (25.0, 20.0, 30.0, 20));
        assert_eq!(costs[1].amount.figure().unwrap().value, 2500.0);
    }

    #[test]
    fn counters_that_stand_still_or_are_missing_are_not_zero() {
        let still = fold(&[(10, 7), (20, 7)], &[(10, 20, 10)]);
        assert!(
            matches!(&still[0].amount, Amount::NotMeasured(why) if why.contains("stood still"))
        );
        let missing = fold(&[(10, 7)], &[(10, 20, 10)]);
        assert!(
            matches!(&missing[0].amount, Amount::NotMeasured(why) if why.contains("no sample"))
        );
        let restarted = fold(&[(10, 7), (20, 3)], &[(10, 20, 10)]);
        assert!(
            matches!(&restarted[0].amount, Amount::NotMeasured(why) if why.contains("restarted"))
        );
    }
}
