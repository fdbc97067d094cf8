//! System calls per request, from a trace of strace.

use assay_captures::bpf_counts::Failures;
use assay_captures::parsed::{Problem, Sink};
use assay_captures::strace::{Call, Record};
use assay_captures::units::Moment;

use super::syscalls::{LapCalls, not_measured, per_lap};
use crate::cost::{Cost, Origin};
use crate::metric::Kind;
use crate::window::Window;

/// What every figure from a trace carries.
const DOUBT: &str = "times under strace do not hold; counts do";
/// How many problems are kept: one is enough to doubt, and a hostile file has millions.
const PROBLEMS_KEPT: usize = 100;

/// Folds the calls of a trace over the laps that it covers. A call belongs to the lap in which it
/// was entered.
#[derive(Clone, Debug)]
pub struct StraceFold {
    /// Ascending; they do not overlap.
    windows: Vec<Window>,
    laps: Vec<LapCalls>,
    outside: u64,
    seen: u64,
    undated: u64,
    problems: Vec<Problem>,
}

impl StraceFold {
    /// A fold over these laps.
    #[must_use]
    pub fn new(windows: &[Window]) -> Self {
        let mut windows = windows.to_vec();
        windows.sort_by_key(|window| window.span.start);
        let lap = |window: &Window| LapCalls { requests: window.requests, ..LapCalls::default() };
        let laps = windows.iter().map(lap).collect();
        Self { windows, laps, outside: 0, seen: 0, undated: 0, problems: Vec::new() }
    }

    /// What in the trace could not be read. A call without a beginning, and a last line that is
    /// cut off, lie outside the laps of a probe that began before them and stopped after them.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// Calls that belong to no lap.
    #[must_use]
    pub fn outside(&self) -> u64 {
        self.outside
    }

    /// Calls and failures per request, in total and by name, each with the smallest and the
    /// largest lap. Exact in the serial pass.
    #[must_use]
    pub fn costs(&self, origin: &Origin, kind: Kind) -> Vec<Cost> {
        let costs = match self.laps() {
            Ok(laps) => per_lap(&laps, origin, kind, 0),
            Err(reason) => not_measured(origin, kind, reason),
        };
        costs.into_iter().map(|cost| cost.doubted(DOUBT)).collect()
    }

    fn laps(&self) -> Result<Vec<LapCalls>, String> {
        if self.seen == 0 {
            return Err("the trace holds no system call".into());
        }
        if self.undated > 0 {
            return Err("the trace has no dates: record it with strace -ttt".into());
        }
        let laps: Vec<LapCalls> =
            self.laps.iter().filter(|lap| lap.requests > 0).cloned().collect();
        if laps.is_empty() {
            return Err("no request was answered".into());
        }
        // Nobody answers a request without a system call.
        if laps.iter().all(|lap| lap.calls.is_empty()) {
            return Err("no call was seen in a lap: the traced processes are not those that \
                        answer"
                .into());
        }
        Ok(laps)
    }

    fn lap_of(&self, moment: Moment) -> Option<usize> {
        let after = self.windows.partition_point(|window| window.span.start <= moment);
        let index = after.checked_sub(1)?;
        self.windows[index].span.contains(moment).then_some(index)
    }

    fn call(&mut self, call: &Call<'_>) {
        self.seen += 1;
        let Some(moment) = call.stamp.and_then(|stamp| stamp.moment()) else {
            self.undated += 1;
            return;
        };
        // Without its beginning it was entered before the trace began.
        let index = if call.headless { None } else { self.lap_of(moment) };
        let Some(index) = index else {
            self.outside += 1;
            return;
        };
        let lap = &mut self.laps[index];
        // An allocation for the first of a name only.
        match lap.calls.get_mut(call.name) {
            Some(count) => *count += 1,
            None => {
                lap.calls.insert(call.name.to_owned(), 1);
            }
        }
        if let Some(errno) = call.outcome.errno() {
            let failures: &mut Failures = lap.failures.entry(call.name.to_owned()).or_default();
            if errno == "EAGAIN" {
                failures.again += 1;
            } else {
                failures.other += 1;
            }
        }
    }
}

impl Sink<Record<'_>> for StraceFold {
    fn record(&mut self, record: Record<'_>) {
        if let Record::Call(call) = record {
            self.call(&call);
        }
    }

    fn problem(&mut self, problem: Problem) {
        if self.problems.len() < PROBLEMS_KEPT {
            self.problems.push(problem);
        }
    }
}

#[cfg(test)]
mod tests {
    use assay_captures::strace::Decoder;
    use assay_captures::units::Span;

    use super::*;
    use crate::cost::Amount;
    use crate::metric::Metric;

    fn window(start: u64, end: u64, requests: u64) -> Window {
        Window { span: Span { start: Moment(start), end: Moment(end) }, requests }
    }

    fn fold(text: &str, windows: &[Window]) -> StraceFold {
        let mut fold = StraceFold::new(windows);
        let mut decoder = Decoder::new();
        decoder.feed(text.as_bytes(), &mut fold);
        decoder.finish(&mut fold);
        fold
    }

    fn costs(fold: &StraceFold) -> Vec<Cost> {
        let origin = Origin {
            subject: "shop".into(),
            variant: "on".into(),
            route: "detail".into(),
            pass: "serial-strace".into(),
            capture: None,
        };
        fold.costs(&origin, Kind::Exact)
    }

    fn value(costs: &[Cost], metric: Metric, name: Option<&str>) -> Option<f64> {
        let named = |cost: &&Cost| {
            cost.metric == metric && cost.labels.get("name").map(String::as_str) == name
        };
        Some(costs.iter().find(named)?.amount.figure()?.value)
    }

    #[test]
    fn a_call_belongs_to_the_lap_that_it_was_entered_in() {
        //  microseconds  1        10 12 13 14 15   20       32
        //  lap                     |-- two requests --|
        //  epoll_wait    |------------|                          entered before: nobody's
        //  sendto                        |
        //  recvfrom                         |                    EAGAIN
        //  epoll_wait                          |-------------|   entered inside: the lap's
        let at = 1_700_000_000_000_000_000;
        let fold = fold(
            "7 1700000000.000001 epoll_wait(3, <unfinished ...>\n\
             7 1700000000.000012 <... epoll_wait resumed>[], 9, -1) = 1 <0.1>\n\
             7 1700000000.000013 sendto(3, \"\", 9, 0, NULL, 0) = 9 <0.1>\n\
             7 1700000000.000014 recvfrom(3, 0x1, 9, 0, NULL, NULL) = -1 EAGAIN (Busy) <0.1>\n\
             7 1700000000.000015 epoll_wait(3, <unfinished ...>\n\
             7 1700000000.000032 <... epoll_wait resumed>[], 9, -1) = 1 <0.1>\n",
            &[window(at + 10_000, at + 20_000, 2)],
        );
        assert_eq!((fold.outside(), fold.problems()), (1, &[][..]));
        let costs = costs(&fold);
        assert_eq!(value(&costs, Metric::Syscalls, None), Some(1.5));
        assert_eq!(value(&costs, Metric::Syscalls, Some("epoll_wait")), Some(0.5));
        assert_eq!(value(&costs, Metric::SyscallErrors, Some("recvfrom")), Some(0.5));
        assert!(costs.iter().all(|cost| cost.kind == Kind::Exact && cost.doubts == [DOUBT]));
    }

    #[test]
    fn an_empty_trace_and_one_without_dates_are_not_measured() {
        for (text, reason) in [
            ("", "no system call"),
            ("7 12:00:00 getpid() = 7\n", "-ttt"),
            ("7 1700000000.0 getpid() = 7\n", "not those that answer"),
        ] {
            let costs = costs(&fold(text, &[window(0, 10, 1)]));
            assert!(
                matches!(&costs[0].amount, Amount::NotMeasured(why) if why.contains(reason)),
                "{text}"
            );
        }
    }
}
