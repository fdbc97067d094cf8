//! Costs of files of which no laps are known: everything between the first record and the last.

use std::collections::BTreeMap;

use assay_captures::lap::Lap;
use assay_captures::parsed::{Problem, Sink};
use assay_captures::request_log::{Slot, SlotKind};
use assay_captures::units::Nanos;
use assay_captures::{allocation_counts, bpf_counts, usage};

use super::foreign::View;
use crate::cost::{Amount, Cost, Figure, Origin, Per};
use crate::metric::{Kind, Metric};

/// How many problems are kept: one is enough to doubt, and a hostile file has millions.
const PROBLEMS_KEPT: usize = 100;
/// Why a file of counters with one sample says nothing.
const ONE_SAMPLE: &str = "counters only grow: a figure needs two samples";

/// The first and the last record of a file of counters, and how many there are.
#[derive(Clone, Debug)]
pub struct Ends<R> {
    first: Option<R>,
    last: Option<R>,
    /// Records.
    pub records: u64,
    /// The first problems.
    pub problems: Vec<Problem>,
}

impl<R> Default for Ends<R> {
    fn default() -> Self {
        Self { first: None, last: None, records: 0, problems: Vec::new() }
    }
}

impl<R> Ends<R> {
    fn pair(&self) -> Option<(&R, &R)> {
        Some((self.first.as_ref()?, self.last.as_ref()?))
    }
}

impl<R> Sink<R> for Ends<R> {
    fn record(&mut self, record: R) {
        self.records += 1;
        if self.first.is_none() {
            self.first = Some(record);
        } else {
            self.last = Some(record);
        }
    }

    fn problem(&mut self, problem: Problem) {
        if self.problems.len() < PROBLEMS_KEPT {
            self.problems.push(problem);
        }
    }
}

/// How much a counter has grown, or why that cannot be said.
fn growth(view: &View, metric: Metric, first: u64, last: u64, scale: f64) -> Cost {
    let amount = match last.checked_sub(first) {
        Some(grown) => Amount::Measured(view.figure(grown as f64 * scale)),
        None => Amount::NotMeasured("the counters went backwards: something restarted".into()),
    };
    view.cost(metric, amount)
}

/// CPU time and context switches by role, and the largest resident memory.
#[must_use]
pub fn usage(ends: &Ends<usage::Sample>, view: &View) -> Vec<Cost> {
    let Some((first, last)) = ends.pair() else {
        return vec![view.cost(Metric::CpuTime, Amount::NotMeasured(ONE_SAMPLE.into()))];
    };
    let mut costs = Vec::new();
    for group in &last.groups {
        let Some(before) = first.group(group.role) else { continue };
        let process = group.role.word();
        let switches = [
            ("voluntary", before.voluntary, group.voluntary),
            ("involuntary", before.involuntary, group.involuntary),
        ];
        let cpu = growth(view, Metric::CpuTime, before.cpu.0, group.cpu.0, 1e-9);
        costs.push(cpu.with("process", process));
        for (kind, before, after) in switches {
            let mut cost = growth(view, Metric::ContextSwitches, before, after, 1.0);
            if let (true, Amount::Measured(figure)) =
                (group.exits > before_exits(first, group), &cost.amount)
            {
                cost.amount =
                    Amount::LowerBound(*figure, "threads that have exited are missing".into());
            }
            costs.push(cost.with("process", process).with("kind", kind));
        }
        let peak = Amount::Measured(Figure::exact(group.peak as f64, group.processes));
        let memory = view.origin.cost(Metric::MemoryResident, Per::Nothing, peak);
        costs.push(memory.with("process", process).with("rule", "peak"));
    }
    costs
}

fn before_exits(first: &usage::Sample, group: &usage::Group) -> u64 {
    first.group(group.role).map_or(0, |before| before.exits)
}

/// System calls by name, and failures by name and class. Where several roles were watched, each
/// figure names its own.
#[must_use]
pub fn syscall_counts(ends: &Ends<bpf_counts::Sample>, view: &View) -> Vec<Cost> {
    let Some((first, last)) = ends.pair() else {
        return vec![view.cost(Metric::Syscalls, Amount::NotMeasured(ONE_SAMPLE.into()))];
    };
    let mut costs = Vec::new();
    for role in &last.roles {
        let before = first.role(role.role);
        let earlier =
            |name: &String| before.and_then(|before| before.calls.get(name)).copied().unwrap_or(0);
        let failed = |name: &String| {
            before.and_then(|before| before.failures.get(name)).copied().unwrap_or_default()
        };
        let mut of_role =
            vec![growth(view, Metric::Syscalls, before.map_or(0, all), all(role), 1.0)];
        for (name, &count) in &role.calls {
            let cost = growth(view, Metric::Syscalls, earlier(name), count, 1.0);
            of_role.push(cost.with("name", name));
        }
        for (name, failures) in &role.failures {
            let pairs = [
                ("EAGAIN", failed(name).again, failures.again),
                ("other", failed(name).other, failures.other),
            ];
            for (errno, before, after) in pairs.into_iter().filter(|(_, a, b)| a != b) {
                let cost = growth(view, Metric::SyscallErrors, before, after, 1.0);
                of_role.push(cost.with("name", name).with("errno", errno));
            }
        }
        let several = last.roles.len() > 1;
        costs.extend(of_role.into_iter().map(|cost| {
            let cost = cost.of_kind(Kind::Noisy);
            if several { cost.with("process", role.role.word()) } else { cost }
        }));
    }
    costs
}

fn all(role: &bpf_counts::RoleCounts) -> u64 {
    role.calls.values().sum()
}

/// Blocks and bytes.
#[must_use]
pub fn allocation_counts(ends: &Ends<allocation_counts::Sample>, view: &View) -> Vec<Cost> {
    let Some((first, last)) = ends.pair() else {
        return vec![view.cost(Metric::AllocationsBlocks, Amount::NotMeasured(ONE_SAMPLE.into()))];
    };
    let costs = [
        growth(view, Metric::AllocationsBlocks, first.blocks, last.blocks, 1.0),
        growth(view, Metric::AllocationsBytes, first.bytes, last.bytes, 1.0),
    ];
    costs.into_iter().map(|cost| cost.of_kind(Kind::Noisy)).collect()
}

/// What a serial lap's log of requests adds up to.
#[derive(Clone, Debug, Default)]
pub struct RequestTotals {
    good: u64,
    other_status: u64,
    unanswered: u64,
    /// Slots in which nothing was sent.
    pub empty: u64,
    latencies: Vec<u64>,
    /// The first problems.
    pub problems: Vec<Problem>,
}

impl RequestTotals {
    /// Requests, good answers, errors, and latency.
    #[must_use]
    pub fn costs(mut self, view: &View) -> Vec<Cost> {
        let requests = self.good + self.other_status + self.unanswered;
        let errors = [("non-2xx", self.other_status), ("no answer", self.unanswered)];
        let mut costs = load(&view.origin, requests, self.good, &errors);
        self.latencies.sort_unstable();
        let count = self.latencies.len();
        for (quantile, share) in QUANTILES {
            let rank = ((share * count as f64).ceil() as usize).max(1);
            if let Some(&nanos) = self.latencies.get(rank - 1) {
                costs.push(latency(&view.origin, quantile, Nanos(nanos), count as u64));
            }
        }
        costs
    }
}

impl Sink<Slot> for RequestTotals {
    fn record(&mut self, slot: Slot) {
        if slot.kind == SlotKind::Empty {
            self.empty += 1;
            return;
        }
        match (slot.answered, slot.status) {
            (Some(_), Some(200..=299)) => self.good += 1,
            (Some(_), _) => self.other_status += 1,
            (None, _) => self.unanswered += 1,
        }
        let passed = slot.answered.and_then(|answered| answered.since(slot.start));
        self.latencies.extend(passed.map(|passed| passed.0));
    }

    fn problem(&mut self, problem: Problem) {
        if self.problems.len() < PROBLEMS_KEPT {
            self.problems.push(problem);
        }
    }
}

const QUANTILES: [(&str, f64); 4] = [("0.5", 0.5), ("0.9", 0.9), ("0.99", 0.99), ("max", 1.0)];

/// What laps add up to, those of one pass, arm and route together.
#[derive(Clone, Debug, Default)]
pub struct LapTotals {
    groups: BTreeMap<Origin, LapGroup>,
    /// The first problems.
    pub problems: Vec<Problem>,
}

#[derive(Clone, Debug, Default)]
struct LapGroup {
    requests: u64,
    good: u64,
    errors: BTreeMap<String, u64>,
    /// Good answers per second, of each lap that had no other answers.
    rates: Vec<f64>,
    spoilt: u64,
    buckets: BTreeMap<u64, u64>,
}

impl LapTotals {
    /// Requests, good answers, errors, rate and latency of each pass, arm and route.
    #[must_use]
    pub fn costs(&self, view: &View) -> Vec<Cost> {
        let mut costs = Vec::new();
        for (origin, group) in &self.groups {
            let origin = Origin { capture: view.origin.capture.clone(), ..origin.clone() };
            let errors: Vec<(&str, u64)> =
                group.errors.iter().map(|(kind, &count)| (kind.as_str(), count)).collect();
            costs.extend(load(&origin, group.requests, group.good, &errors));
            costs.push(origin.cost(Metric::Throughput, Per::Nothing, group.rate()));
            let count: u64 = group.buckets.values().sum();
            for (quantile, share) in QUANTILES {
                let rank = ((share * count as f64).ceil() as u64).max(1);
                let mut seen = 0;
                let bound = group.buckets.iter().find(|&(_, &count)| {
                    seen += count;
                    seen >= rank
                });
                if let Some((&bound, _)) = bound {
                    costs.push(latency(&origin, quantile, Nanos(bound), count));
                }
            }
        }
        costs
    }
}

impl LapGroup {
    fn rate(&self) -> Amount {
        if self.spoilt > 0 {
            let (spoilt, laps) = (self.spoilt, self.spoilt + self.rates.len() as u64);
            return Amount::NotMeasured(format!("{spoilt} of {laps} laps had answers not good"));
        }
        let mut rates = self.rates.clone();
        rates.sort_by(f64::total_cmp);
        let (Some(&low), Some(&high)) = (rates.first(), rates.last()) else {
            return Amount::NotMeasured("no lap".into());
        };
        let half = rates.len() / 2;
        let value =
            if rates.len() % 2 == 1 { rates[half] } else { (rates[half - 1] + rates[half]) / 2.0 };
        Amount::Measured(Figure { value, low, high, samples: rates.len() as u64 })
    }
}

impl Sink<Lap> for LapTotals {
    fn record(&mut self, lap: Lap) {
        let origin = Origin {
            subject: lap.subject.clone(),
            variant: lap.variant.clone(),
            route: lap.route.clone(),
            pass: lap.pass.clone(),
            capture: None,
        };
        let group = self.groups.entry(origin).or_default();
        group.requests += lap.requests;
        group.good += lap.good;
        let answers = [("non-2xx", lap.non_2xx), ("mismatched", lap.mismatched)];
        let errors = lap.errors.iter().map(|(kind, &count)| (kind.as_str(), count));
        for (kind, count) in answers.into_iter().chain(errors).filter(|&(_, count)| count > 0) {
            *group.errors.entry(kind.to_owned()).or_default() += count;
        }
        if lap.is_clean() {
            group.rates.push(lap.rate())
        } else {
            group.spoilt += 1
        }
        for (bound, count) in lap.latency.buckets {
            *group.buckets.entry(bound).or_default() += count;
        }
    }

    fn problem(&mut self, problem: Problem) {
        if self.problems.len() < PROBLEMS_KEPT {
            self.problems.push(problem);
        }
    }
}

fn load(origin: &Origin, requests: u64, good: u64, errors: &[(&str, u64)]) -> Vec<Cost> {
    let count = |metric, value: u64| {
        let figure = Figure::exact(value as f64, requests);
        origin.cost(metric, Per::Capture, Amount::Measured(figure))
    };
    let all = errors.iter().map(|&(_, count)| count).sum();
    let mut costs = vec![
        count(Metric::LoadRequests, requests),
        count(Metric::LoadGood, good),
        count(Metric::LoadErrors, all),
    ];
    let seen = errors.iter().filter(|&&(_, count)| count > 0);
    costs.extend(seen.map(|&(kind, each)| count(Metric::LoadErrors, each).with("kind", kind)));
    costs
}

fn latency(origin: &Origin, quantile: &str, time: Nanos, count: u64) -> Cost {
    let amount = Amount::Measured(Figure::exact(time.seconds(), count));
    origin.cost(Metric::LoadLatency, Per::Nothing, amount).with("quantile", quantile)
}
