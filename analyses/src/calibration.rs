//! What an instrument says of a subject whose costs are known: truth, reading, error, verdict.
//!
//! Counts must be exact. What a probe costs the service fails only where the whole interval lies
//! above the limit (METHOD, observer effect); what is too noisy to be told is told as such.

use std::collections::BTreeMap;

use crate::cost::{Amount, Cost};
use crate::metric::Metric;
use crate::observer::PassEffect;

/// CPU time may be off by this share.
pub const CPU: f64 = 0.03;
/// Context switches of threads that live through the window, likewise.
pub const SWITCHES: f64 = 0.02;
/// Of so many recordings …
pub const RUNS: u32 = 20;
/// … so many must hold the true share in their 95 % interval.
pub const INSIDE: u32 = 17;

/// What a figure truly is, by the construction of the subject.
#[derive(Clone, Debug, PartialEq)]
pub struct Truth {
    /// Name of the metric.
    pub metric: String,
    /// Labels of the figure.
    pub labels: BTreeMap<String, String>,
    /// How much, in the metric's unit.
    pub amount: f64,
}

/// How far a reading may be from the truth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Limit {
    /// Not at all, in no lap and no request.
    Exact,
    /// By this share, up or down.
    Within(f64),
    /// Not below: how long it takes to wake up is the machine's, not the instrument's.
    AtLeast,
}

/// What is said of one figure, the worst last.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// Within its limit.
    Holds,
    /// Too noisy or too incomplete, and how.
    CannotTell(String),
    /// The instrument gave no figure, and why.
    NotMeasured(String),
    /// Outside its limit.
    Broken,
}

/// Under which circumstances a figure was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Load and processes, such as `8 connections, one process`.
    pub condition: String,
    /// Name of the pass.
    pub pass: String,
    /// What measured it, such as `wire` or `strace`.
    pub instrument: String,
}

/// One reading of one figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// Under which circumstances.
    pub place: Place,
    /// The truth there.
    pub truth: f64,
    /// What was read; `None` where nothing was.
    pub amount: Option<f64>,
    /// How far off, as a share of the truth where that is not zero; the worst lap or request for
    /// exact counts.
    pub error: Option<f64>,
    /// What follows.
    pub verdict: Verdict,
}

/// One figure of one route under all circumstances.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Name of the route.
    pub route: String,
    /// Name of the metric.
    pub metric: String,
    /// Labels of the figure.
    pub labels: BTreeMap<String, String>,
    /// How far a reading may be off.
    pub limit: Limit,
    /// All readings.
    pub readings: Vec<Reading>,
}

impl Row {
    /// The worst of its readings.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        let worst = self.worst().map(|reading| reading.verdict.clone());
        worst.unwrap_or_else(|| Verdict::NotMeasured("nobody looked".to_owned()))
    }

    /// The reading with the worst verdict, and of those the one with the largest error.
    #[must_use]
    pub fn worst(&self) -> Option<&Reading> {
        let error = |reading: &Reading| reading.error.unwrap_or_default().abs();
        self.readings.iter().max_by(|one, other| {
            one.verdict.cmp(&other.verdict).then(error(one).total_cmp(&error(other)))
        })
    }
}

/// The limit of a metric.
#[must_use]
pub fn limit(metric: &str) -> Limit {
    let is = |known: Metric| known.name() == metric;
    if is(Metric::CpuTime) {
        Limit::Within(CPU)
    } else if is(Metric::ContextSwitches) {
        Limit::Within(SWITCHES)
    } else if is(Metric::Latency) {
        Limit::AtLeast
    } else {
        Limit::Exact
    }
}

/// Whether a pass is one that measures this metric.
#[must_use]
pub fn measures(pass: &str, metric: &str) -> bool {
    let family = metric.split('.').next().unwrap_or_default();
    let passes: &[&str] = match family {
        "postgres" | "redis" | "http" => &["wire", "serial"],
        "syscalls" => &["syscalls", "serial", "serial-strace"],
        "allocations" => &["allocations"],
        "context_switches" | "cpu" | "latency" => &["fair"],
        _ => &[],
    };
    passes.contains(&pass)
}

/// One reading held against the truth.
#[must_use]
pub fn judge(place: Place, truth: f64, amount: &Amount, limit: Limit) -> Reading {
    let not = |verdict| Reading { place: place.clone(), truth, amount: None, error: None, verdict };
    let (figure, partial) = match amount {
        Amount::NotMeasured(reason) => return not(Verdict::NotMeasured(reason.clone())),
        Amount::Measured(figure) => (figure, None),
        Amount::LowerBound(figure, reason) => (figure, Some(reason)),
    };
    let worst = match limit {
        Limit::Exact => {
            let off = |value: f64| (value - truth).abs();
            let values = [figure.value, figure.low, figure.high].into_iter();
            values.max_by(|one, other| off(*one).total_cmp(&off(*other))).unwrap_or(figure.value)
        }
        _ => figure.value,
    };
    let error = if truth == 0.0 { worst } else { worst / truth - 1.0 };
    let inside = match limit {
        // A count is a quotient of whole numbers; nothing smaller than this is a difference.
        Limit::Exact => (worst - truth).abs() < 1e-9,
        Limit::Within(share) => error.abs() <= share,
        Limit::AtLeast => error >= 0.0,
    };
    let verdict = match partial {
        Some(reason) => Verdict::CannotTell(format!("at least: {reason}")),
        None if inside => Verdict::Holds,
        None => Verdict::Broken,
    };
    Reading { place, truth, amount: Some(figure.value), error: Some(error), verdict }
}

/// Every reading of one figure among the costs of one run; one that says why where there is none.
/// `missing` is the reason that the pass gives, if it gives one.
#[must_use]
pub fn readings(
    truth: &Truth,
    costs: &[&Cost],
    condition: &str,
    pass: &str,
    missing: Option<&str>,
) -> Vec<Reading> {
    let limit = limit(&truth.metric);
    let place = |instrument: &str| Place {
        condition: condition.to_owned(),
        pass: pass.to_owned(),
        instrument: instrument.to_owned(),
    };
    let found = costs.iter().filter(|cost| is_of(cost, truth));
    let readings: Vec<Reading> = found
        .map(|cost| {
            let capture = cost.origin.capture.as_deref().unwrap_or("load driver");
            let instrument = capture.rsplit('/').next().unwrap_or(capture);
            judge(place(instrument), truth.amount, &cost.amount, limit)
        })
        .collect();
    if !readings.is_empty() {
        return readings;
    }
    let reason = missing.unwrap_or("the instrument saw none of it").to_owned();
    vec![judge(place(pass), truth.amount, &Amount::NotMeasured(reason), limit)]
}

fn is_of(cost: &Cost, truth: &Truth) -> bool {
    cost.metric.name() == truth.metric
        && cost.labels.len() == truth.labels.len()
        && cost.labels.iter().all(|(name, value)| truth.labels.get(*name) == Some(value))
}

/// What a probe cost the service.
#[derive(Clone, Debug, PartialEq)]
pub struct ProbeCost {
    /// The probe, or `together`.
    pub probe: String,
    /// What it cost: `rate` or `CPU per request`.
    pub of: &'static str,
    /// The most that it may cost, as a share.
    pub limit: f64,
    /// The cost with its interval; `None` where it was not measured.
    pub cost: Option<CostInterval>,
    /// What follows.
    pub verdict: Verdict,
}

/// A cost as a share of the service's rate or CPU time, with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CostInterval {
    /// The cost; negative where nothing was lost.
    pub value: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Pairs of laps that it rests on.
    pub pairs: u32,
}

impl CostInterval {
    /// The smallest cost that could have been seen: half of the interval's width.
    #[must_use]
    pub fn least_seen(&self) -> f64 {
        (self.high - self.low) / 2.0
    }
}

/// Passes that tell what a probe costs, and the most that each may cost.
pub const COST_LIMITS: [(&str, f64); 5] =
    [("wire", 0.06), ("syscalls", 0.03), ("usage", 0.01), ("cpu", 0.10), ("together", 0.08)];

/// The costs of all probes. `reason` is what a pass says of itself where it has no figure.
#[must_use]
pub fn probe_costs(
    effects: &[PassEffect],
    reason: impl Fn(&str) -> Option<String>,
) -> Vec<ProbeCost> {
    let mut costs = Vec::new();
    for (probe, limit) in COST_LIMITS {
        for (metric, of) in [(Metric::Throughput, "rate"), (Metric::CpuTime, "CPU per request")] {
            let effect = effects.iter().find(|e| e.pass == probe && e.of == metric);
            let cost = effect.map(|effect| interval(effect, metric));
            let verdict = match cost {
                Some(cost) => cost_verdict(&cost, limit),
                None => Verdict::NotMeasured(
                    reason(probe).unwrap_or_else(|| "fewer than two pairs of laps".to_owned()),
                ),
            };
            costs.push(ProbeCost { probe: probe.to_owned(), of, limit, cost, verdict });
        }
    }
    costs
}

fn interval(effect: &PassEffect, metric: Metric) -> CostInterval {
    let change = &effect.effect;
    let (low, high) = match metric {
        Metric::Throughput => (-change.high, -change.low),
        _ => (change.low, change.high),
    };
    CostInterval { value: effect.cost(), low, high, pairs: change.rounds }
}

/// Broken only where even the lower end lies above the limit.
fn cost_verdict(cost: &CostInterval, limit: f64) -> Verdict {
    if cost.low > limit {
        Verdict::Broken
    } else if cost.high <= limit {
        Verdict::Holds
    } else {
        let (low, high) = (cost.low * 100.0, cost.high * 100.0);
        Verdict::CannotTell(format!("between {low:.1} and {high:.1} %"))
    }
}

/// How often the interval of a function's share of samples held its true share.
#[derive(Clone, Debug, PartialEq)]
pub struct Share {
    /// The function.
    pub function: String,
    /// Its true share, over all recordings.
    pub truth: f64,
    /// Its share of all samples.
    pub reading: f64,
    /// Recordings whose interval holds the share that was true in them.
    pub inside: u32,
    /// All recordings.
    pub runs: u32,
    /// What follows.
    pub verdict: Verdict,
}

/// One recording of one function: its true share, and the share of samples with its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SampledShare {
    /// By the subject's own clock.
    pub truth: f64,
    /// By samples.
    pub value: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// What many recordings of one function say together.
#[must_use]
pub fn share(function: &str, recordings: &[SampledShare]) -> Share {
    let runs = u32::try_from(recordings.len()).unwrap_or(u32::MAX);
    let holds = |one: &&SampledShare| one.low <= one.truth && one.truth <= one.high;
    let inside = u32::try_from(recordings.iter().filter(holds).count()).unwrap_or(u32::MAX);
    let mean = |of: fn(&SampledShare) -> f64| {
        recordings.iter().map(of).sum::<f64>() / f64::from(runs.max(1))
    };
    let verdict = if runs < RUNS {
        Verdict::NotMeasured(format!("{runs} of {RUNS} recordings have enough samples"))
    } else if inside * RUNS >= INSIDE * runs {
        Verdict::Holds
    } else {
        Verdict::Broken
    };
    let (truth, reading) = (mean(|one| one.truth), mean(|one| one.value));
    Share { function: function.to_owned(), truth, reading, inside, runs, verdict }
}

/// The highest rate at which the wire was recorded without a drop.
#[derive(Clone, Debug, PartialEq)]
pub struct WireRate {
    /// Requests a second.
    pub requests: f64,
    /// Packets a second.
    pub packets: f64,
    /// Under which load.
    pub condition: String,
    /// Rates at which packets were dropped, lowest first, with the packets that were.
    pub dropped: Vec<(f64, u64)>,
}

/// Everything that was found out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Certificate {
    /// Figures against the truth.
    pub rows: Vec<Row>,
    /// Shares of CPU samples.
    pub shares: Vec<Share>,
    /// What probes cost.
    pub costs: Vec<ProbeCost>,
    /// How fast the wire could be; `None` where it was not recorded.
    pub wire: Option<WireRate>,
}

/// How many figures got which verdict.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Within their limits.
    pub hold: usize,
    /// Too noisy to tell, by name.
    pub cannot_tell: Vec<String>,
    /// Without a figure, by name.
    pub not_measured: Vec<String>,
    /// Outside their limits, by name.
    pub broken: Vec<String>,
}

impl Certificate {
    /// Every figure with a verdict, by name.
    #[must_use]
    pub fn summary(&self) -> Summary {
        let rows = self.rows.iter().map(|row| (name(row), row.verdict()));
        let shares = self.shares.iter().map(|share| {
            (format!("share of {} in CPU samples", share.function), share.verdict.clone())
        });
        let costs = self
            .costs
            .iter()
            .map(|cost| (format!("cost of {} in {}", cost.probe, cost.of), cost.verdict.clone()));
        let mut summary = Summary::default();
        for (name, verdict) in rows.chain(shares).chain(costs) {
            match verdict {
                Verdict::Holds => summary.hold += 1,
                Verdict::CannotTell(_) => summary.cannot_tell.push(name),
                Verdict::NotMeasured(_) => summary.not_measured.push(name),
                Verdict::Broken => summary.broken.push(name),
            }
        }
        summary
    }

    /// Adds readings to the row of their figure, which is made where there is none yet.
    pub fn add(&mut self, route: &str, truth: &Truth, readings: Vec<Reading>) {
        let same = |row: &&mut Row| {
            row.route == route && row.metric == truth.metric && row.labels == truth.labels
        };
        if let Some(row) = self.rows.iter_mut().find(same) {
            return row.readings.extend(readings);
        }
        let row = Row {
            route: route.to_owned(),
            metric: truth.metric.clone(),
            labels: truth.labels.clone(),
            limit: limit(&truth.metric),
            readings,
        };
        // Figures of a route stay together.
        let last = self.rows.iter().rposition(|known| known.route == route);
        self.rows.insert(last.map_or(self.rows.len(), |last| last + 1), row);
    }
}

/// A figure as it is named in one line: `postgres.flights (prepare) of prepares`.
fn name(row: &Row) -> String {
    let labels: Vec<&str> = row.labels.values().map(String::as_str).collect();
    let labels =
        if labels.is_empty() { String::new() } else { format!(" ({})", labels.join(", ")) };
    format!("{}{labels} of {}", row.metric, row.route)
}

#[cfg(test)]
mod tests;
