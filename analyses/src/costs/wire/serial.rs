//! Costs of single requests: exact figures with their distribution, and the phases of a request.

use std::collections::BTreeMap;

use assay_captures::request_log::{Slot, SlotKind};
use assay_captures::tcp::Connection;
use assay_captures::units::{Nanos, Span};

use super::books::SlotTrace;
use super::counts::{Count, Counts};
use super::fold::Parts;
use super::integrity::{Integrity, Protocol};
use super::loaded::{METRICS, doubts};
use super::request::{RequestRecord, record, span};
use super::statements::{StatementCost, StatementId};
use crate::cost::{Amount, Cost, Figure, Origin, Per};
use crate::metric::Metric;
use crate::timeline::{clip, phases, union};
use crate::trips::{Reason, Service, What};

/// What came of a serial capture.
#[derive(Clone, Debug, PartialEq)]
pub struct SerialOutcome {
    /// One for each metric and label, per request. The value is the mean over the requests that
    /// prepare nothing, the interval their smallest and largest.
    pub costs: Vec<Cost>,
    /// Whether the capture is whole.
    pub integrity: Integrity,
    /// The statements that were run in requests, the most frequent first.
    pub statements: Vec<StatementCost>,
    /// How requests are distributed over counts, for flights and commands.
    pub distributions: Vec<Distribution>,
    /// The request of median length among those that prepare nothing.
    pub median: Option<RequestRecord>,
    /// The longest request.
    pub slowest: Option<RequestRecord>,
    /// Responses seen inside request slots.
    pub responses_on_wire: u64,
    /// Requests of the log that were answered.
    pub requests: u64,
    /// Requests that prepared a statement or opened a connection.
    pub preparing: u64,
    /// Mean count per empty slot, where it is not 0.
    pub nobody: Vec<(Metric, f64)>,
}

/// How requests are distributed over the values of one count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Distribution {
    /// What is counted.
    pub metric: Metric,
    /// Value → requests that prepare nothing.
    pub steady: BTreeMap<u64, u64>,
    /// Value → requests that prepare.
    pub preparing: BTreeMap<u64, u64>,
}

/// The answered requests, and the empty slots.
struct Sample<'a> {
    /// Requests that prepare nothing; all of them where most prepare.
    steady: Vec<usize>,
    preparing: Vec<usize>,
    empty: Vec<usize>,
    accounts: &'a [Counts],
    traces: &'a [SlotTrace],
}

pub(super) fn serial(
    origin: &Origin,
    slots: &[Slot],
    parts: &Parts<'_>,
    integrity: Integrity,
) -> SerialOutcome {
    let traces = parts.books.slots.as_deref().unwrap_or(&[]);
    let sample = Sample::new(slots, parts.books.ledger.windows(), traces);
    let mut costs = counted(origin, parts, &integrity, &sample);
    costs.extend(timed(origin, parts, &integrity, &sample));
    let mut by_length: Vec<_> = sample
        .steady
        .iter()
        .filter_map(|&slot| Some((span(traces.get(slot)?)?.length(), slot)))
        .collect();
    by_length.sort_unstable();
    let at = |place: Option<&(Nanos, usize)>| {
        let &(_, slot) = place?;
        record(slot, traces.get(slot)?, parts.statements)
    };
    let requests = sample.requests();
    let per = (requests > 0).then_some(requests);
    let responses_on_wire = sample
        .steady
        .iter()
        .chain(&sample.preparing)
        .map(|&slot| sample.accounts[slot].get(Count::HttpResponses))
        .sum();
    SerialOutcome {
        costs,
        integrity,
        statements: statements(parts, &sample, per),
        distributions: sample.distributions(parts),
        median: at(by_length.get(by_length.len() / 2)),
        slowest: at(by_length.last()),
        responses_on_wire,
        requests,
        preparing: sample.preparing.len() as u64,
        nobody: sample.nobody(parts),
    }
}

/// The statements of the requests. One that is known by its name alone counts as one statement
/// where it ran several times on one connection within one request.
fn statements(parts: &Parts<'_>, sample: &Sample<'_>, per: Option<u64>) -> Vec<StatementCost> {
    let mut costs = parts.statements.costs(&parts.books.tallies, per);
    let repeated = sample.steady.iter().filter_map(|&slot| repeated(parts, &sample.traces[slot]));
    let mut times = 0;
    let mut most: BTreeMap<StatementId, u64> = BTreeMap::new();
    for (statement, count) in repeated {
        times += count;
        *most.entry(statement).or_default() += 1;
    }
    let Some((statement, _)) = most.into_iter().max_by_key(|&(_, requests)| requests) else {
        return costs;
    };
    let text = parts.statements.sql(statement);
    if let Some(cost) = costs.iter_mut().find(|cost| cost.sql == text) {
        cost.told_apart = true;
        cost.per_request = Some(times as f64 / sample.steady.len() as f64);
    }
    costs
}

/// The nameless statement that a request ran most often on one connection, if more than once.
fn repeated(parts: &Parts<'_>, trace: &SlotTrace) -> Option<(StatementId, u64)> {
    let mut counts: BTreeMap<(Connection, StatementId), u64> = BTreeMap::new();
    for trip in &trace.trips {
        if let What::Statement(statement) = trip.what
            && trip.reason == Some(Reason::User)
            && parts.statements.is_by_name(statement)
        {
            *counts.entry((trip.connection, statement)).or_default() += 1;
        }
    }
    let most = counts.into_iter().max_by_key(|&(_, count)| count);
    most.filter(|&(_, count)| count > 1).map(|((_, statement), count)| (statement, count))
}

fn counted(
    origin: &Origin,
    parts: &Parts<'_>,
    integrity: &Integrity,
    sample: &Sample<'_>,
) -> Vec<Cost> {
    let totals = sample.totals();
    let mut costs = Vec::new();
    for (protocol, metric, count, by_reason) in METRICS {
        if !parts.protocols.contains(&protocol) {
            continue;
        }
        let amount = |value: &dyn Fn(&Counts) -> u64| match sample.figure(value) {
            Some(figure) => integrity.guard(protocol, Amount::Measured(figure)),
            None => Amount::NotMeasured("no request was answered".to_owned()),
        };
        let mut cost = origin.cost(metric, Per::Request, amount(&|counts| counts.get(count)));
        cost.doubts = doubts(metric, &totals);
        if let Some(doubt) = sample.preparing_doubt(&|counts| counts.get(count)) {
            cost = cost.doubted(doubt);
        }
        let nobody = sample.mean_empty(&|counts| counts.get(count));
        if nobody > 0.0 {
            cost = cost.doubted(format!("{nobody:.3} in an empty slot of the same length"));
        }
        costs.push(cost);
        if by_reason {
            for reason in Reason::ALL {
                let amount = amount(&|counts| counts.by_reason(count, reason));
                let cost = origin.cost(metric, Per::Request, amount);
                costs.push(cost.with("reason", reason.word()));
            }
        }
    }
    costs
}

/// The phases of requests: medians with their 95 % intervals.
fn timed(
    origin: &Origin,
    parts: &Parts<'_>,
    integrity: &Integrity,
    sample: &Sample<'_>,
) -> Vec<Cost> {
    let mut waits: BTreeMap<Service, Vec<u64>> = BTreeMap::new();
    let (mut before, mut between, mut after) = (Vec::new(), Vec::new(), Vec::new());
    for &slot in &sample.steady {
        let trace = &sample.traces[slot];
        let Some(request) = span(trace) else { continue };
        let awaited = |service: Option<Service>| -> Vec<Span> {
            let trips = trace.trips.iter().filter(|trip| {
                trip.awaited && service.is_none_or(|service| service == trip.service)
            });
            let spans: Vec<_> =
                trips.map(|trip| Span { start: trip.start, end: trip.end }).collect();
            clip(&spans, request)
        };
        for service in [Service::Postgres, Service::Redis] {
            waits.entry(service).or_default().push(union(&awaited(Some(service))).0);
        }
        if let Some(phases) = phases(request, &awaited(None)) {
            before.push(phases.before.0);
            between.push(phases.between.0);
            after.push(phases.after.0);
        }
    }
    let mut costs = Vec::new();
    for (service, mut nanos) in waits {
        let protocol = match service {
            Service::Postgres => Protocol::Postgres,
            Service::Redis => Protocol::Redis,
        };
        if parts.protocols.contains(&protocol) {
            let amount = integrity.guard(protocol, median(&mut nanos, "no response on the wire"));
            costs.push(origin.cost(Metric::Wait, Per::Request, amount).with("on", service.word()));
        }
    }
    let phases = [
        (Metric::PhaseBefore, before),
        (Metric::PhaseBetween, between),
        (Metric::PhaseAfter, after),
    ];
    for (metric, mut nanos) in phases {
        let mut amount = median(&mut nanos, "no awaited trip within a request");
        for &protocol in &parts.protocols {
            amount = integrity.guard(protocol, amount);
        }
        costs.push(origin.cost(metric, Per::Request, amount).doubted("idle machine"));
    }
    costs
}

/// Median in seconds, with the order statistics that hold it with 95 %.
fn median(nanos: &mut [u64], otherwise: &str) -> Amount {
    nanos.sort_unstable();
    let count = nanos.len();
    if count == 0 {
        return Amount::NotMeasured(otherwise.to_owned());
    }
    let half = count as f64 / 2.0;
    let reach = 0.98 * (count as f64).sqrt();
    let seconds = |place: f64| {
        let place = place.clamp(0.0, (count - 1) as f64) as usize;
        Nanos(nanos[place]).seconds()
    };
    let middle = if count % 2 == 1 {
        seconds(half)
    } else {
        f64::midpoint(seconds(half - 1.0), seconds(half))
    };
    Amount::Measured(Figure {
        value: middle,
        low: seconds((half - reach).floor()).min(middle),
        high: seconds((half + reach).ceil()).max(middle),
        samples: count as u64,
    })
}

impl<'a> Sample<'a> {
    fn new(slots: &[Slot], accounts: &'a [Counts], traces: &'a [SlotTrace]) -> Self {
        let (mut steady, mut preparing, mut empty) = (Vec::new(), Vec::new(), Vec::new());
        for (index, (slot, account)) in slots.iter().zip(accounts).enumerate() {
            let prepares = account.get(Count::Parses) + account.get(Count::Connects) > 0;
            match (slot.kind, slot.answered, prepares) {
                (SlotKind::Empty, ..) => empty.push(index),
                (SlotKind::Request, None, _) => {}
                (SlotKind::Request, Some(_), true) => preparing.push(index),
                (SlotKind::Request, Some(_), false) => steady.push(index),
            }
        }
        if preparing.len() > steady.len() {
            // Preparing is what these requests do.
            steady.append(&mut preparing);
            steady.sort_unstable();
        }
        Self { steady, preparing, empty, accounts, traces }
    }

    fn requests(&self) -> u64 {
        (self.steady.len() + self.preparing.len()) as u64
    }

    fn totals(&self) -> Counts {
        let mut totals = Counts::default();
        for &slot in &self.steady {
            totals.add_all(&self.accounts[slot]);
        }
        totals
    }

    fn figure(&self, value: &dyn Fn(&Counts) -> u64) -> Option<Figure> {
        let values: Vec<_> = self.steady.iter().map(|&slot| value(&self.accounts[slot])).collect();
        let (low, high) = (*values.iter().min()?, *values.iter().max()?);
        Some(Figure {
            value: values.iter().sum::<u64>() as f64 / values.len() as f64,
            low: low as f64,
            high: high as f64,
            samples: values.len() as u64,
        })
    }

    /// What the requests that prepare have, if it is something else.
    fn preparing_doubt(&self, value: &dyn Fn(&Counts) -> u64) -> Option<String> {
        let values = self.preparing.iter().map(|&slot| value(&self.accounts[slot]));
        let (low, high) = (values.clone().min()?, values.max()?);
        let steady = self.figure(value)?;
        let same = steady.low == low as f64 && steady.high == high as f64;
        (!same).then(|| {
            let range = if low == high { low.to_string() } else { format!("{low} to {high}") };
            format!(
                "{range} in {} of {} requests: they prepare",
                self.preparing.len(),
                self.requests()
            )
        })
    }

    fn mean_empty(&self, value: &dyn Fn(&Counts) -> u64) -> f64 {
        if self.empty.is_empty() {
            return 0.0;
        }
        let sum: u64 = self.empty.iter().map(|&slot| value(&self.accounts[slot])).sum();
        sum as f64 / self.empty.len() as f64
    }

    fn nobody(&self, parts: &Parts<'_>) -> Vec<(Metric, f64)> {
        METRICS
            .iter()
            .filter(|(protocol, ..)| parts.protocols.contains(protocol))
            .map(|&(_, metric, count, _)| (metric, self.mean_empty(&|c| c.get(count))))
            .filter(|&(_, mean)| mean > 0.0)
            .collect()
    }

    fn distributions(&self, parts: &Parts<'_>) -> Vec<Distribution> {
        let counts = [
            (Protocol::Postgres, Metric::PostgresFlights, Count::Flights),
            (Protocol::Postgres, Metric::PostgresReadyForQuery, Count::ReadyForQuery),
            (Protocol::Redis, Metric::RedisCommands, Count::RedisCommands),
        ];
        let spread = |slots: &[usize], count: Count| {
            let mut spread = BTreeMap::new();
            for &slot in slots {
                *spread.entry(self.accounts[slot].get(count)).or_insert(0) += 1;
            }
            spread
        };
        counts
            .into_iter()
            .filter(|(protocol, ..)| parts.protocols.contains(protocol))
            .map(|(_, metric, count)| Distribution {
                metric,
                steady: spread(&self.steady, count),
                preparing: spread(&self.preparing, count),
            })
            .collect()
    }
}
