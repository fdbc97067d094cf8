//! System calls per request, from the kernel's counters.

use std::collections::{BTreeMap, BTreeSet};

use assay_captures::bpf_counts::{Failures, RoleCounts, Sample};
use assay_captures::ids::Role;
use assay_captures::parsed::{Problem, Sink};

use crate::brackets::Brackets;
use crate::cost::{Amount, Cost, Figure, Origin, Per};
use crate::metric::{Kind, Metric};
use crate::window::Window;

/// Calls whose number does not depend on how often a service looks for work: what it decides to
/// write. Reads, waits and wake-ups depend on load, and on the instrument.
const DECIDED: [&str; 8] =
    ["sendto", "sendmsg", "sendmmsg", "write", "writev", "pwrite64", "connect", "accept4"];

/// Folds the samples of one capture over the laps that it covers.
#[derive(Clone, Debug)]
pub struct SyscallsFold {
    windows: Vec<Window>,
    brackets: Brackets<Sample>,
    problems: Vec<Problem>,
}

impl SyscallsFold {
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

    /// The subject's calls per request: the total, each name, and failures by name and class,
    /// each with the smallest and the largest lap. `recursion_misses` are calls that were not
    /// counted: with any, every figure is a lower bound.
    #[must_use]
    pub fn costs(&self, origin: &Origin, kind: Kind, recursion_misses: u64) -> Vec<Cost> {
        match self.laps() {
            Ok(laps) => per_lap(&laps, origin, kind, recursion_misses),
            Err(reason) => not_measured(origin, kind, reason),
        }
    }

    fn laps(&self) -> Result<Vec<LapCalls>, String> {
        let mut laps = Vec::new();
        for (window, pair) in self.windows.iter().zip(self.brackets.pairs()) {
            let Some((before, after)) = pair else {
                return Err("a lap has no sample before or after it".into());
            };
            let Some(counts) = after.role(Role::Subject) else {
                return Err("the subject was not watched".into());
            };
            if window.requests > 0 {
                laps.push(LapCalls::between(before.role(Role::Subject), counts, window.requests));
            }
        }
        match laps.iter().map(|lap| lap.calls.values().sum::<u64>()).sum() {
            0 if laps.is_empty() => Err("no request was answered".into()),
            // Nobody answers a request without a system call.
            0 => Err("no call was counted: the watched processes are not those that answer".into()),
            _ => Ok(laps),
        }
    }
}

impl Sink<Sample> for SyscallsFold {
    fn record(&mut self, sample: Sample) {
        self.brackets.take(sample.span(), &sample);
    }

    fn problem(&mut self, problem: Problem) {
        self.problems.push(problem);
    }
}

/// What was called during one lap.
#[derive(Clone, Debug, Default)]
pub(crate) struct LapCalls {
    pub(crate) requests: u64,
    pub(crate) calls: BTreeMap<String, u64>,
    pub(crate) failures: BTreeMap<String, Failures>,
}

impl LapCalls {
    fn between(before: Option<&RoleCounts>, after: &RoleCounts, requests: u64) -> Self {
        let mut lap = Self { requests, ..Self::default() };
        for (name, &count) in &after.calls {
            let earlier = before.and_then(|before| before.calls.get(name)).copied().unwrap_or(0);
            if count > earlier {
                lap.calls.insert(name.clone(), count - earlier);
            }
        }
        for (name, count) in &after.failures {
            let earlier = before.and_then(|before| before.failures.get(name));
            let earlier = earlier.copied().unwrap_or_default();
            let again = count.again.saturating_sub(earlier.again);
            let other = count.other.saturating_sub(earlier.other);
            if again + other > 0 {
                lap.failures.insert(name.clone(), Failures { again, other });
            }
        }
        lap
    }
}

/// The one cost of a capture that could not be used.
pub(super) fn not_measured(origin: &Origin, kind: Kind, reason: String) -> Vec<Cost> {
    let amount = Amount::NotMeasured(reason);
    vec![origin.cost(Metric::Syscalls, Per::Request, amount).of_kind(kind)]
}

/// The costs of laps: the total, each name, and failures by name and class.
pub(super) fn per_lap(laps: &[LapCalls], origin: &Origin, kind: Kind, missed: u64) -> Vec<Cost> {
    let amount = |figure| match missed {
        0 => Amount::Measured(figure),
        missed => Amount::LowerBound(figure, format!("{missed} calls were not counted")),
    };
    let cost = |metric, count: &dyn Fn(&LapCalls) -> u64| {
        origin.cost(metric, Per::Request, amount(per_request(laps, count))).of_kind(kind)
    };
    let mut costs = vec![cost(Metric::Syscalls, &|lap| lap.calls.values().sum())];
    let names: BTreeSet<&String> = laps.iter().flat_map(|lap| lap.calls.keys()).collect();
    for name in names {
        let calls = |lap: &LapCalls| lap.calls.get(name).copied().unwrap_or(0);
        costs.push(cost(Metric::Syscalls, &calls).with("name", name));
    }
    let failing: BTreeSet<&String> = laps.iter().flat_map(|lap| lap.failures.keys()).collect();
    for name in failing {
        let failures = |lap: &LapCalls| lap.failures.get(name).copied().unwrap_or_default();
        for (errno, count) in [
            ("EAGAIN", &(|lap: &LapCalls| failures(lap).again) as &dyn Fn(&LapCalls) -> u64),
            ("other", &|lap: &LapCalls| failures(lap).other),
        ] {
            if laps.iter().any(|lap| count(lap) > 0) {
                let cost = cost(Metric::SyscallErrors, count);
                costs.push(cost.with("name", name).with("errno", errno));
            }
        }
    }
    costs
}

/// All laps together, with the smallest and the largest lap.
fn per_request(laps: &[LapCalls], count: &dyn Fn(&LapCalls) -> u64) -> Figure {
    let requests: u64 = laps.iter().map(|lap| lap.requests).sum();
    let counted: u64 = laps.iter().map(count).sum();
    let each = laps.iter().map(|lap| count(lap) as f64 / lap.requests as f64);
    let (low, high) = each
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), lap| (low.min(lap), high.max(lap)));
    Figure { value: counted as f64 / requests as f64, low, high, samples: requests }
}

/// One call as two instruments counted it, per request.
#[derive(Clone, Debug, PartialEq)]
pub struct Agreement {
    /// Name of the call.
    pub name: String,
    /// By the first instrument.
    pub one: f64,
    /// By the second.
    pub other: f64,
}

/// Calls that do not depend on polling, as two instruments counted them over the same requests.
/// Only calls that occur at least once in ten requests.
#[must_use]
pub fn agreement(one: &[Cost], other: &[Cost]) -> Vec<Agreement> {
    // Without a total an instrument measured nothing, which is not the same as no calls.
    let measured = |costs: &[Cost]| {
        let total = |cost: &&Cost| cost.metric == Metric::Syscalls && cost.labels.is_empty();
        costs.iter().find(total).is_some_and(|cost| cost.amount.figure().is_some())
    };
    if !measured(one) || !measured(other) {
        return Vec::new();
    }
    let count = |costs: &[Cost], name: &str| {
        let named = |cost: &&Cost| {
            cost.metric == Metric::Syscalls
                && cost.labels.get("name").is_some_and(|label| label == name)
        };
        costs.iter().find(named)?.amount.figure().map(|figure| figure.value)
    };
    DECIDED
        .iter()
        .filter_map(|&name| {
            let (one, other) = (count(one, name), count(other, name));
            (one.unwrap_or(0.0).max(other.unwrap_or(0.0)) >= 0.1).then(|| Agreement {
                name: name.to_owned(),
                one: one.unwrap_or(0.0),
                other: other.unwrap_or(0.0),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use assay_captures::units::{Moment, Nanos, Span};
    use assay_captures::usage::At;

    use super::*;

    fn sample(moment: u64, calls: &[(&str, u64)], again: u64) -> Sample {
        Sample {
            moment: Moment(moment),
            took: Nanos(0),
            at: At::Mark,
            roles: vec![RoleCounts {
                role: Role::Subject,
                calls: calls.iter().map(|&(name, count)| (name.to_owned(), count)).collect(),
                failures: BTreeMap::from([("recvfrom".to_owned(), Failures { again, other: 0 })]),
            }],
        }
    }

    fn fold(samples: Vec<Sample>, misses: u64) -> Vec<Cost> {
        let window = |start, end| Window {
            span: Span { start: Moment(start), end: Moment(end) },
            requests: 10,
        };
        let mut fold = SyscallsFold::new(&[window(10, 20), window(20, 30)]);
        samples.into_iter().for_each(|sample| fold.record(sample));
        let origin = Origin {
            subject: "shop".into(),
            variant: "on".into(),
            route: "detail".into(),
            pass: "syscalls".into(),
            capture: None,
        };
        fold.costs(&origin, Kind::Noisy, misses)
    }

    fn value(costs: &[Cost], metric: Metric, name: Option<&str>) -> f64 {
        costs
            .iter()
            .find(|cost| {
                cost.metric == metric && cost.labels.get("name").map(String::as_str) == name
            })
            .unwrap()
            .amount
            .figure()
            .unwrap()
            .value
    }

    #[test]
    fn names_sum_to_the_total_and_failures_stand_apart() {
        let costs = fold(
            vec![
                sample(10, &[("sendto", 100), ("recvfrom", 5)], 2),
                sample(20, &[("sendto", 190), ("recvfrom", 105)], 42),
                sample(30, &[("sendto", 280), ("recvfrom", 185), ("writev", 20)], 62),
            ],
            0,
        );
        assert_eq!(value(&costs, Metric::Syscalls, Some("sendto")), 9.0);
        assert_eq!(value(&costs, Metric::Syscalls, Some("recvfrom")), 9.0);
        assert_eq!(value(&costs, Metric::Syscalls, Some("writev")), 1.0);
        assert_eq!(value(&costs, Metric::Syscalls, None), 19.0);
        assert_eq!(value(&costs, Metric::SyscallErrors, Some("recvfrom")), 3.0);
    }

    #[test]
    fn missed_calls_make_a_lower_bound_and_silence_is_not_zero() {
        let samples = vec![
            sample(10, &[("read", 0)], 0),
            sample(20, &[("read", 10)], 0),
            sample(30, &[("read", 20)], 0),
        ];
        let costs = fold(samples, 3);
        assert!(
            matches!(&costs[0].amount, Amount::LowerBound(_, why) if why.starts_with("3 calls"))
        );
        let silent = fold(vec![sample(10, &[], 0), sample(20, &[], 0), sample(30, &[], 0)], 0);
        assert!(matches!(&silent[0].amount, Amount::NotMeasured(why) if why.contains("no call")));
        let missing = fold(vec![sample(10, &[("read", 1)], 0)], 0);
        assert!(
            matches!(&missing[0].amount, Amount::NotMeasured(why) if why.contains("no sample"))
        );
    }

    #[test]
    fn two_instruments_are_held_together_on_calls_that_do_not_poll() {
        let one = fold(
            vec![
                sample(10, &[("sendto", 0)], 0),
                sample(20, &[("sendto", 90), ("recvfrom", 70)], 0),
                sample(30, &[("sendto", 180), ("recvfrom", 130)], 0),
            ],
            0,
        );
        let blind = fold(
            vec![
                sample(10, &[("recvfrom", 0)], 0),
                sample(20, &[("recvfrom", 70)], 0),
                sample(30, &[("recvfrom", 130)], 0),
            ],
            0,
        );
        // One that saw no sendto disagrees; one that measured nothing has no say.
        let silent = fold(vec![], 0);
        assert_eq!(super::agreement(&one, &[]), []);
        assert_eq!(super::agreement(&silent, &one), []);
        let agreement = agreement(&one, &blind);
        assert_eq!(agreement.len(), 1);
        assert_eq!(
            (agreement[0].name.as_str(), agreement[0].one, agreement[0].other),
            ("sendto", 9.0, 0.0)
        );
    }
}
