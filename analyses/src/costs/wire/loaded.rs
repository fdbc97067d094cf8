//! Costs under load: totals in the windows, divided by their requests.

use super::counts::{Count, Counts};
use super::details::Details;
use super::fold::Parts;
use super::integrity::{Integrity, Protocol};
use super::routes::{RouteCost, Routes};
use super::statements::StatementCost;
use crate::cost::{Amount, Cost, Figure, Origin, Per};
use crate::metric::Metric;
use crate::trips::Reason;
use crate::window::Window;

/// What came of a capture under load.
#[derive(Clone, Debug, PartialEq)]
pub struct WireOutcome {
    /// One for each metric and label. Per request where the number of requests is known,
    /// otherwise totals per capture.
    pub costs: Vec<Cost>,
    /// Whether the capture is whole.
    pub integrity: Integrity,
    /// The statements that were run in the windows, the most frequent first.
    pub statements: Vec<StatementCost>,
    /// Responses seen inside the windows.
    pub responses_on_wire: u64,
    /// What the costs are divided by; `None` where it is not known.
    pub requests: Option<u64>,
    /// What else the windows hold.
    pub details: Details,
    /// Each window by itself.
    pub windows: Vec<Counts>,
    /// Each route by itself, where routes are told apart.
    pub routes: Vec<RouteCost>,
    /// Everything inside the windows.
    pub totals: Counts,
    /// Everything outside of them.
    pub nobody: Counts,
}

/// Each metric, where it is counted, and whether it is told apart by reason.
pub(super) const METRICS: [(Protocol, Metric, Count, bool); 19] = [
    (Protocol::Postgres, Metric::PostgresExecutions, Count::Executions, true),
    (Protocol::Postgres, Metric::PostgresReadyForQuery, Count::ReadyForQuery, true),
    (Protocol::Postgres, Metric::PostgresFlights, Count::Flights, true),
    (Protocol::Postgres, Metric::PostgresAwaitedFlights, Count::AwaitedFlights, true),
    (Protocol::Postgres, Metric::PostgresSetUpFlights, Count::SetUpFlights, false),
    (Protocol::Postgres, Metric::PostgresRows, Count::Rows, false),
    (Protocol::Postgres, Metric::PostgresBytesSent, Count::PostgresSent, false),
    (Protocol::Postgres, Metric::PostgresBytesReceived, Count::PostgresReceived, false),
    (Protocol::Postgres, Metric::PostgresErrors, Count::PostgresErrors, false),
    (Protocol::Postgres, Metric::PostgresConnects, Count::Connects, false),
    (Protocol::Postgres, Metric::PostgresParses, Count::Parses, false),
    (Protocol::Redis, Metric::RedisCommands, Count::RedisCommands, false),
    (Protocol::Redis, Metric::RedisFlights, Count::RedisFlights, false),
    (Protocol::Redis, Metric::RedisBytesSent, Count::RedisSent, false),
    (Protocol::Redis, Metric::RedisBytesReceived, Count::RedisReceived, false),
    (Protocol::Http, Metric::HttpResponses, Count::HttpResponses, false),
    (Protocol::Http, Metric::HttpBytesSent, Count::HttpSent, false),
    (Protocol::Http, Metric::HttpBytesReceived, Count::HttpReceived, false),
    (Protocol::Http, Metric::HttpPieces, Count::HttpPieces, false),
];

pub(super) fn loaded(
    origin: &Origin,
    windows: &[Window],
    parts: &Parts<'_>,
    integrity: Integrity,
) -> WireOutcome {
    let ledger = &parts.books.ledger;
    let mut totals = Counts::default();
    for account in ledger.windows() {
        totals.add_all(account);
    }
    let sent: u64 = windows.iter().map(|window| window.requests).sum();
    let responses = totals.get(Count::HttpResponses);
    // Where nobody counted the requests, the wire did.
    let requests = [sent, responses].into_iter().find(|&count| count > 0);
    let division = Division { totals: &totals, windows, accounts: ledger.windows(), requests };
    let mut costs = Vec::new();
    for (protocol, metric, count, by_reason) in METRICS {
        if !parts.protocols.contains(&protocol) {
            continue;
        }
        let amount = |value: &dyn Fn(&Counts) -> u64| {
            integrity.guard(protocol, Amount::Measured(division.figure(value)))
        };
        let per = division.per();
        let mut cost = origin.cost(metric, per, amount(&|counts| counts.get(count)));
        cost.doubts = doubts(metric, &totals);
        if sent > 0 && responses > 0 && sent != responses && protocol == Protocol::Http {
            cost = cost.doubted(format!("{responses} responses on the wire, {sent} requests"));
        }
        costs.push(cost);
        if by_reason {
            for reason in Reason::ALL {
                let amount = amount(&|counts| counts.by_reason(count, reason));
                costs.push(origin.cost(metric, per, amount).with("reason", reason.word()));
            }
        }
    }
    WireOutcome {
        costs,
        statements: parts.statements.costs(&parts.books.tallies, requests),
        responses_on_wire: responses,
        requests,
        details: parts.books.details.clone(),
        nobody: *ledger.nobody(),
        windows: ledger.windows().to_vec(),
        routes: parts.books.routes.as_ref().map(Routes::costs).unwrap_or_default(),
        totals,
        integrity,
    }
}

impl Integrity {
    /// The amount, unless what is missing can change it.
    pub(super) fn guard(&self, protocol: Protocol, amount: Amount) -> Amount {
        let mut partial = self.partial(protocol);
        if let Some(reason) = self.against(protocol) {
            if !self.keeps_a_part(protocol) {
                return Amount::NotMeasured(reason);
            }
            partial = Some(reason);
        }
        match (amount, partial) {
            (Amount::Measured(figure), Some(reason)) => Amount::LowerBound(figure, reason),
            (amount, _) => amount,
        }
    }
}

struct Division<'a> {
    totals: &'a Counts,
    windows: &'a [Window],
    accounts: &'a [Counts],
    requests: Option<u64>,
}

impl Division<'_> {
    fn per(&self) -> Per {
        if self.requests.is_some() { Per::Request } else { Per::Capture }
    }

    /// The total by the requests; from the smallest window's quotient to the largest's.
    fn figure(&self, value: &dyn Fn(&Counts) -> u64) -> Figure {
        let total = value(self.totals) as f64;
        let Some(requests) = self.requests else { return Figure::exact(total, 1) };
        let mut figure = Figure::exact(total / requests as f64, requests);
        for (window, account) in self.windows.iter().zip(self.accounts) {
            if window.requests > 0 {
                let quotient = value(account) as f64 / window.requests as f64;
                figure.low = figure.low.min(quotient);
                figure.high = figure.high.max(quotient);
            }
        }
        figure
    }
}

/// What limits the meaning of a metric.
pub(super) fn doubts(metric: Metric, totals: &Counts) -> Vec<String> {
    let mut doubts = Vec::new();
    match metric {
        Metric::PostgresFlights => {
            let pipelined = totals.get(Count::PipelinedFlights);
            if pipelined > 0 {
                doubts.push(format!(
                    "pipelined: {pipelined} of {} flights hold several exchanges; by client \
                     bursts there are {}",
                    totals.get(Count::Flights),
                    totals.get(Count::Bursts),
                ));
            }
        }
        Metric::PostgresAwaitedFlights => {
            let unawaited = totals.get(Count::Flights) - totals.get(Count::AwaitedFlights);
            if unawaited > 0 {
                doubts.push(format!(
                    "a guess by rule: {unawaited} bare Syncs right after a statement and lone \
                     Closes are taken for a pool's or driver's own"
                ));
            }
        }
        Metric::PostgresExecutions => {
            let (failed, skipped) = (totals.get(Count::Failed), totals.get(Count::Skipped));
            if failed + skipped > 0 {
                doubts.push(format!("{failed} failed and {skipped} skipped statements apart"));
            }
            let suspended = totals.get(Count::Suspended);
            if suspended > 0 {
                doubts.push(format!("{suspended} portals fetched in parts"));
            }
        }
        Metric::PostgresReadyForQuery => {
            let set_up = totals.get(Count::ReadyForSetUp);
            if set_up > 0 {
                doubts.push(format!("{set_up} of them in connection set-up"));
            }
            let unknown = totals.get(Count::ReadyUnknown);
            if unknown > 0 {
                doubts.push(format!("{unknown} answer what was asked before the capture"));
            }
        }
        Metric::RedisCommands => {
            let set_up = totals.get(Count::RedisSetUp);
            if set_up > 0 {
                doubts.push(format!("{set_up} commands of connection set-up apart"));
            }
        }
        _ => {}
    }
    doubts
}
