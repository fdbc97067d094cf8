//! Samples of clocks and of /proc → CPU time, context switches and memory per request.

use std::collections::BTreeMap;

use assay_captures::ids::Role;
use assay_captures::parsed::{Problem, Sink};
use assay_captures::units::Nanos;
use assay_captures::usage::{At, Group, Sample};

use crate::bootstrap;
use crate::cost::{Amount, Cost, Figure, Origin, Per};
use crate::laps::median_figure;
use crate::metric::Metric;
use crate::window::Window;

/// How far outside a window its two samples may lie together: two ticks, or a tenth of it.
const SLACK: u64 = 600_000_000;
/// Memory is looked at so many times in the first window.
const LOOKS: usize = 6;
/// More samples inside windows than this are thinned out.
const SERIES_MAX: usize = 4096;

/// Folds the samples of one capture into the windows of one arm on one route.
///
/// A window's counts are the difference of the last sample that was read before its start and
/// the first that was read after its end.
#[derive(Debug)]
pub struct UsageFold {
    windows: Vec<Reading>,
    next_start: usize,
    next_end: usize,
    before: Option<Sample>,
    memory: Vec<Look>,
    stride: usize,
    skipped: usize,
    proportional: BTreeMap<Role, Vec<f64>>,
    problems: u64,
}

/// One window and its two samples.
#[derive(Debug)]
struct Reading {
    index: usize,
    window: Window,
    first: Option<Sample>,
    last: Option<Sample>,
}

/// Memory at one moment inside a window.
#[derive(Debug)]
struct Look {
    window: usize,
    memory: BTreeMap<Role, u64>,
    /// CPU time since the sample before, as a share of one CPU.
    load: BTreeMap<Role, f64>,
}

impl UsageFold {
    /// A fold over windows that do not overlap, in any order.
    #[must_use]
    pub fn new(windows: &[Window]) -> Self {
        let mut windows: Vec<Reading> = windows
            .iter()
            .enumerate()
            .map(|(index, &window)| Reading { index, window, first: None, last: None })
            .collect();
        windows.sort_by_key(|reading| reading.window.span.start);
        Self {
            windows,
            next_start: 0,
            next_end: 0,
            before: None,
            memory: Vec::new(),
            stride: 1,
            skipped: 0,
            proportional: BTreeMap::new(),
            problems: 0,
        }
    }

    /// What the windows have used.
    #[must_use]
    pub fn finish(self) -> Usage {
        let mut windows: Vec<Option<WindowUsage>> = self.windows.iter().map(|_| None).collect();
        for reading in &self.windows {
            windows[reading.index] = reading.difference();
        }
        let peak =
            self.windows.iter().filter_map(|reading| reading.last.as_ref()).flat_map(|sample| {
                sample.groups.iter().map(|group| (group.role, (group.peak, group.processes)))
            });
        let mut peaks: BTreeMap<Role, (u64, u64)> = BTreeMap::new();
        for (role, (bytes, processes)) in peak {
            let known = peaks.entry(role).or_default();
            *known = (known.0.max(bytes), known.1.max(processes));
        }
        Usage {
            windows,
            memory: self.memory,
            peaks,
            proportional: self.proportional,
            problems: self.problems,
        }
    }

    fn look(&mut self, sample: &Sample) {
        let Some(inside) = self.windows[..self.next_start]
            .iter()
            .rev()
            .find(|reading| reading.window.span.contains(sample.moment))
        else {
            return;
        };
        let window = inside.index;
        self.skipped += 1;
        if self.skipped < self.stride {
            return;
        }
        self.skipped = 0;
        let mut look = Look { window, memory: BTreeMap::new(), load: BTreeMap::new() };
        for group in &sample.groups {
            look.memory.insert(group.role, group.resident);
            if let Some(before) = &self.before
                && let Some(earlier) = before.group(group.role)
                && let Some(passed) = sample.moment.since(before.moment)
                && passed > Nanos(0)
            {
                let used = group.cpu.0.saturating_sub(earlier.cpu.0);
                look.load.insert(group.role, used as f64 / passed.0 as f64);
            }
        }
        self.memory.push(look);
        if self.memory.len() >= SERIES_MAX {
            let mut keep = false;
            self.memory.retain(|_| {
                keep = !keep;
                keep
            });
            self.stride *= 2;
        }
    }
}

impl Sink<Sample> for UsageFold {
    fn record(&mut self, sample: Sample) {
        let span = sample.span();
        while let Some(reading) = self.windows.get_mut(self.next_start)
            && reading.window.span.start < span.end
        {
            reading.first = self.before.clone();
            self.next_start += 1;
        }
        while let Some(reading) = self.windows.get_mut(self.next_end)
            && self.next_end < self.next_start
            && reading.window.span.end <= span.start
        {
            reading.last = Some(sample.clone());
            self.next_end += 1;
        }
        if sample.at == At::Tick {
            self.look(&sample);
        }
        for group in &sample.groups {
            if let Some(bytes) = group.proportional {
                let values = self.proportional.entry(group.role).or_default();
                if values.len() < SERIES_MAX {
                    values.push(bytes as f64);
                }
            }
        }
        self.before = Some(sample);
    }

    fn problem(&mut self, _: Problem) {
        self.problems += 1;
    }
}

impl Reading {
    fn difference(&self) -> Option<WindowUsage> {
        let (first, last) = (self.first.as_ref()?, self.last.as_ref()?);
        let span = self.window.span;
        let early = span.start.since(first.moment)?.0;
        let late = last.span().end.since(span.end)?.0;
        if early + late > SLACK.max(span.length().0 / 10) {
            return None;
        }
        let groups = last.groups.iter().filter_map(|after| {
            Some((after.role, GroupUsage::between(first.group(after.role)?, after)))
        });
        let ticks = |after: Nanos, before: Nanos| Nanos(after.0.saturating_sub(before.0));
        Some(WindowUsage {
            requests: self.window.requests,
            groups: groups.collect(),
            softirq: ticks(last.machine.softirq, first.machine.softirq),
            steal: ticks(last.machine.steal, first.machine.steal),
        })
    }
}

/// What was used in each window.
#[derive(Debug)]
pub struct Usage {
    windows: Vec<Option<WindowUsage>>,
    memory: Vec<Look>,
    peaks: BTreeMap<Role, (u64, u64)>,
    proportional: BTreeMap<Role, Vec<f64>>,
    problems: u64,
}

/// What was used in one window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WindowUsage {
    /// Requests of the window.
    pub requests: u64,
    /// By role.
    pub groups: BTreeMap<Role, GroupUsage>,
    /// Time in soft interrupts of the whole machine, to the tick.
    pub softirq: Nanos,
    /// Time that the hypervisor gave to others, to the tick.
    pub steal: Nanos,
}

/// What the processes of one role used in one window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupUsage {
    /// CPU time.
    pub cpu: Nanos,
    /// Voluntary context switches.
    pub voluntary: u64,
    /// Involuntary context switches.
    pub involuntary: u64,
    /// Time spent runnable but waiting for a CPU.
    pub run_queue_wait: Nanos,
    /// Threads and processes that ended.
    pub exits: u64,
}

impl GroupUsage {
    fn between(before: &Group, after: &Group) -> Self {
        let nanos = |after: Nanos, before: Nanos| Nanos(after.0.saturating_sub(before.0));
        Self {
            cpu: nanos(after.cpu, before.cpu),
            voluntary: after.voluntary.saturating_sub(before.voluntary),
            involuntary: after.involuntary.saturating_sub(before.involuntary),
            run_queue_wait: nanos(after.run_queue_wait, before.run_queue_wait),
            exits: after.exits.saturating_sub(before.exits),
        }
    }
}

impl Usage {
    /// The use of each window, in the order in which they were given; `None` where no sample lies
    /// close enough on both sides.
    #[must_use]
    pub fn windows(&self) -> &[Option<WindowUsage>] {
        &self.windows
    }

    /// CPU seconds per request of each role in one window.
    #[must_use]
    pub fn cpu_per_request(&self, window: usize) -> BTreeMap<Role, f64> {
        let Some(Some(used)) = self.windows.get(window) else { return BTreeMap::new() };
        let requests = used.requests.max(1) as f64;
        used.groups.iter().map(|(&role, group)| (role, group.cpu.seconds() / requests)).collect()
    }

    /// CPU time, context switches and memory, of each role that was watched.
    #[must_use]
    pub fn costs(&self, origin: &Origin) -> Vec<Cost> {
        let measured: Vec<&WindowUsage> = self.windows.iter().flatten().collect();
        let mut roles: Vec<Role> =
            measured.iter().flat_map(|window| window.groups.keys().copied()).collect();
        roles.sort_unstable();
        roles.dedup();
        if roles.is_empty() {
            let reason = "no sample of the clocks on both sides of any lap";
            return [Metric::CpuTime, Metric::ContextSwitches]
                .map(|metric| {
                    origin.cost(metric, Per::Request, Amount::NotMeasured(reason.to_owned()))
                })
                .into();
        }
        let mut costs = Vec::new();
        for role in roles {
            let groups: Vec<(GroupUsage, u64)> = measured
                .iter()
                .filter_map(|window| Some((*window.groups.get(&role)?, window.requests)))
                .collect();
            costs.extend(cpu_and_switches(origin, role, &groups, self.windows.len()));
            costs.extend(self.memory(origin, role));
        }
        if self.problems > 0 {
            for cost in &mut costs {
                cost.doubts.push(format!("{} samples could not be read", self.problems));
            }
        }
        costs
    }

    fn memory(&self, origin: &Origin, role: Role) -> Vec<Cost> {
        let resident = |figure, rule: &str| {
            origin
                .cost(Metric::MemoryResident, Per::Nothing, Amount::Measured(figure))
                .with("process", role.word())
                .with("rule", rule)
        };
        let (peak, processes) = self.peaks.get(&role).copied().unwrap_or_default();
        let mut costs = Vec::new();
        if let Some(bytes) = self.busiest_of_six(role) {
            costs.push(resident(Figure::exact(bytes, LOOKS as u64), "highest CPU of six"));
        }
        let all: Vec<f64> =
            self.memory.iter().filter_map(|look| Some(*look.memory.get(&role)? as f64)).collect();
        costs.extend(median_figure(&all).map(|figure| resident(figure, "median")));
        if peak > 0 {
            costs.push(resident(Figure::exact(peak as f64, 1), "peak"));
        }
        if processes > 1 {
            for cost in &mut costs {
                let text = format!("shared pages count in each of {processes} processes");
                cost.doubts.push(text);
            }
        }
        let proportional = self.proportional.get(&role).map_or(&[][..], Vec::as_slice);
        costs.extend(median_figure(proportional).map(|figure| {
            origin
                .cost(Metric::MemoryProportional, Per::Nothing, Amount::Measured(figure))
                .with("process", role.word())
        }));
        costs
    }

    /// Six looks spread over the first window that has as many; the one in which the processes
    /// used most CPU tells the memory.
    fn busiest_of_six(&self, role: Role) -> Option<f64> {
        let first = self.memory.first()?.window;
        let looks: Vec<&Look> =
            self.memory.iter().take_while(|look| look.window == first).collect();
        if looks.len() < LOOKS {
            return None;
        }
        (0..LOOKS)
            .map(|index| looks[index * (looks.len() - 1) / (LOOKS - 1)])
            .max_by(|a, b| {
                let load = |look: &Look| look.load.get(&role).copied().unwrap_or(0.0);
                load(a).total_cmp(&load(b))
            })
            .and_then(|look| look.memory.get(&role))
            .map(|&bytes| bytes as f64)
    }
}

fn cpu_and_switches(
    origin: &Origin,
    role: Role,
    groups: &[(GroupUsage, u64)],
    windows: usize,
) -> Vec<Cost> {
    let exits: u64 = groups.iter().map(|(group, _)| group.exits).sum();
    let per_request = |value: &dyn Fn(&GroupUsage) -> f64| {
        let blocks: Vec<(f64, f64)> =
            groups.iter().map(|(group, requests)| (value(group), *requests as f64)).collect();
        figure(&blocks)
    };
    let doubted = |mut cost: Cost| {
        if groups.len() < windows {
            let text = format!("measured in {} of {windows} laps", groups.len());
            cost.doubts.push(text);
        }
        if groups.len() == 1 {
            cost.doubts.push("one lap: no interval".to_owned());
        }
        cost.with("process", role.word())
    };
    let no_requests = || Amount::NotMeasured("no requests in the laps".to_owned());

    let cpu = per_request(&|group| group.cpu.seconds());
    let mut cpu = doubted(origin.cost(
        Metric::CpuTime,
        Per::Request,
        cpu.map_or_else(no_requests, Amount::Measured),
    ));
    if exits > 0 {
        cpu = cpu.doubted(format!(
            "{exits} threads or processes ended: a process's time is then known to 10 ms"
        ));
    }
    let mut costs = vec![cpu];
    let voluntary: &dyn Fn(&GroupUsage) -> f64 = &|group| group.voluntary as f64;
    let involuntary: &dyn Fn(&GroupUsage) -> f64 = &|group| group.involuntary as f64;
    for (kind, value) in [("voluntary", voluntary), ("involuntary", involuntary)] {
        let amount = match per_request(value) {
            None => no_requests(),
            Some(figure) if exits > 0 => Amount::LowerBound(
                figure,
                format!("{exits} threads or processes ended, and took their last counts along"),
            ),
            Some(figure) => Amount::Measured(figure),
        };
        let cost = origin.cost(Metric::ContextSwitches, Per::Request, amount);
        costs.push(doubted(cost).with("kind", kind));
    }
    costs
}

fn figure(blocks: &[(f64, f64)]) -> Option<Figure> {
    let samples = blocks.len() as u64;
    if let Some((value, low, high)) = bootstrap::ratio(blocks) {
        return Some(Figure { value, low, high, samples });
    }
    let &[(used, requests)] = blocks else { return None };
    (requests > 0.0).then(|| Figure::exact(used / requests, samples))
}

#[cfg(test)]
mod tests {
    use assay_captures::units::{Moment, Span};
    use assay_captures::usage::Machine;

    use super::*;

    const MS: u64 = 1_000_000;

    fn origin() -> Origin {
        Origin {
            subject: "shop".into(),
            variant: "on".into(),
            route: "detail".into(),
            pass: "fair".into(),
            capture: None,
        }
    }

    fn sample(at: At, ms: u64, cpu_ms: u64) -> Sample {
        let group = Group {
            role: Role::Subject,
            cpu: Nanos(cpu_ms * MS),
            voluntary: cpu_ms * 2,
            involuntary: cpu_ms * 3,
            run_queue_wait: Nanos(0),
            processes: 1,
            threads: 1,
            exits: 0,
            resident: 1000 + cpu_ms,
            peak: 5000,
            proportional: None,
        };
        Sample {
            moment: Moment(ms * MS),
            took: Nanos(MS / 2),
            at,
            groups: vec![group],
            machine: Machine { softirq: Nanos(0), steal: Nanos(0), load_average: 0.0 },
        }
    }

    fn window(start: u64, end: u64, requests: u64) -> Window {
        Window { span: Span { start: Moment(start * MS), end: Moment(end * MS) }, requests }
    }

    fn fold(windows: &[Window], samples: Vec<Sample>) -> Usage {
        let mut fold = UsageFold::new(windows);
        for sample in samples {
            fold.record(sample);
        }
        fold.finish()
    }

    fn find<'a>(costs: &'a [Cost], metric: Metric, label: &str) -> &'a Cost {
        let hit = |cost: &&Cost| {
            cost.metric == metric && (label.is_empty() || cost.labels.values().any(|l| l == label))
        };
        costs.iter().find(hit).unwrap()
    }

    #[test]
    fn a_window_has_the_last_sample_before_and_the_first_after() {
        // ms 0    100          1100 1200          2200 2300
        //    r     m[--- lap 0 ---]m  m[-- lap 1 ---]m   e
        // cpu 0    10             110 115          235  240
        //
        // lap 0 has 100 ms for 100 requests, lap 1 has 120 ms for 100.
        let samples = vec![
            sample(At::Ready, 0, 0),
            sample(At::Mark, 98, 10),
            sample(At::Tick, 600, 50),
            sample(At::Mark, 1100, 110),
            sample(At::Mark, 1190, 115),
            sample(At::Mark, 2201, 235),
            sample(At::End, 2300, 240),
        ];
        // In the file's order the second lap comes first: the order of the answer is the caller's.
        let usage = fold(&[window(1200, 2200, 100), window(100, 1100, 100)], samples);
        assert_eq!(usage.cpu_per_request(0)[&Role::Subject], 0.0012);
        assert_eq!(usage.cpu_per_request(1)[&Role::Subject], 0.001);
        let costs = usage.costs(&origin());
        let cpu = find(&costs, Metric::CpuTime, "").amount.figure().unwrap();
        assert!((cpu.value - 0.0011).abs() < 1e-12);
        assert!(cpu.low <= 0.0010 + 1e-12 && cpu.high >= 0.0012 - 1e-12, "{cpu:?}");
        assert_eq!(cpu.samples, 2);
        let switches = find(&costs, Metric::ContextSwitches, "involuntary");
        assert!((switches.amount.figure().unwrap().value - 3.3).abs() < 1e-9);
    }

    #[test]
    fn a_sample_that_is_still_being_read_when_the_lap_begins_does_not_count_as_before() {
        // The sample at 99.9 ms takes until 100.4 ms; the one at 50 ms is before.
        let mut late = sample(At::Tick, 99, 500);
        late.moment = Moment(99_900_000);
        let samples = vec![sample(At::Tick, 50, 10), late, sample(At::Mark, 300, 600)];
        let usage = fold(&[window(100, 300, 1)], samples);
        assert_eq!(usage.windows()[0].as_ref().unwrap().groups[&Role::Subject].cpu.0, 590 * MS);
    }

    #[test]
    fn samples_far_outside_the_lap_measure_nothing() {
        let samples = vec![sample(At::Ready, 0, 0), sample(At::End, 9000, 100)];
        let usage = fold(&[window(4000, 4500, 10), window(8000, 8990, 10)], samples);
        assert_eq!(usage.windows(), [None, None]);
        let costs = usage.costs(&origin());
        assert!(costs.iter().all(|cost| matches!(cost.amount, Amount::NotMeasured(_))));
        assert_eq!(costs.len(), 2);
    }

    #[test]
    fn switches_are_a_lower_bound_when_threads_have_ended() {
        let mut last = sample(At::Mark, 201, 30);
        last.groups[0].exits = 2;
        let usage = fold(&[window(100, 200, 10)], vec![sample(At::Mark, 90, 10), last]);
        let costs = usage.costs(&origin());
        let switches = find(&costs, Metric::ContextSwitches, "voluntary");
        assert!(matches!(switches.amount, Amount::LowerBound(figure, _) if figure.value == 4.0));
        assert!(switches.doubts.contains(&"one lap: no interval".to_owned()));
        let cpu = find(&costs, Metric::CpuTime, "");
        assert!(matches!(cpu.amount, Amount::Measured(_)));
        assert!(cpu.doubts[1].starts_with("2 threads or processes ended"));
    }

    #[test]
    fn memory_is_that_of_the_busiest_of_six_looks() {
        let mut samples = vec![sample(At::Mark, 0, 0)];
        // Each tick uses 10 ms more than the one before; the fourth uses 50.
        let cpu = [10, 20, 30, 80, 90, 100];
        samples.extend((1..).zip(cpu).map(|(tick, cpu)| sample(At::Tick, tick * 100, cpu)));
        samples.push(sample(At::Mark, 701, 110));
        let usage = fold(&[window(10, 700, 10)], samples);
        let costs = usage.costs(&origin());
        let of = |rule| find(&costs, Metric::MemoryResident, rule).amount.figure().unwrap().value;
        assert_eq!(of("highest CPU of six"), 1080.0);
        assert_eq!(of("median"), 1055.0);
        assert_eq!(of("peak"), 5000.0);
    }
}
