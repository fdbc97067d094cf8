//! What a capture holds beyond what a run asks of it: for whoever inspects a file that came from
//! elsewhere. Only what falls into the window is counted.

use std::collections::BTreeMap;

use super::integrity::Protocol;
use super::loaded::WireOutcome;
use super::statements::StatementCost;
use crate::cost::{Amount, Cost, Figure, Origin, Per};
use crate::metric::Metric;

/// Names of commands told apart; an attack can make up any number.
const NAMES_LIMIT: usize = 1_000;

/// Counts beside those of [`super::Counts`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Details {
    /// Connections by what they speak.
    pub connections: BTreeMap<Protocol, u64>,
    /// Connections that are TLS, whatever is spoken in them.
    pub encrypted: u64,
    /// Sums by metric, in the metric's unit.
    sums: BTreeMap<Metric, u64>,
    /// Sums of the parts of a metric: by label, and by its value.
    parts: BTreeMap<(Metric, &'static str), BTreeMap<String, u64>>,
}

impl Details {
    /// Adds to a metric's total.
    pub(super) fn add(&mut self, metric: Metric, more: u64) {
        *self.sums.entry(metric).or_default() += more;
    }

    /// Adds to a part of a metric.
    pub(super) fn add_for(&mut self, metric: Metric, label: &'static str, value: &str, more: u64) {
        let parts = self.parts.entry((metric, label)).or_default();
        // Allocates for the first of a value only.
        if let Some(sum) = parts.get_mut(value) {
            *sum += more;
        } else if parts.len() < NAMES_LIMIT {
            parts.insert(value.to_owned(), more);
        }
    }

    /// How much of a metric in all.
    #[must_use]
    pub fn get(&self, metric: Metric) -> u64 {
        self.sums.get(&metric).copied().unwrap_or(0)
    }

    /// How much of a part of a metric.
    #[must_use]
    pub fn part(&self, metric: Metric, label: &'static str, value: &str) -> u64 {
        let parts = self.parts.get(&(metric, label));
        parts.and_then(|parts| parts.get(value)).copied().unwrap_or(0)
    }
}

/// Metrics of details, the protocol that they hang on, and whether 0 is worth a record.
const METRICS: [(Protocol, Metric, bool); 13] = [
    (Protocol::Postgres, Metric::PostgresNotices, false),
    (Protocol::Postgres, Metric::PostgresNotifications, false),
    (Protocol::Postgres, Metric::PostgresConnections, true),
    (Protocol::Postgres, Metric::PostgresCancels, false),
    (Protocol::Redis, Metric::RedisCommands, false),
    (Protocol::Redis, Metric::RedisSetUpCommands, true),
    (Protocol::Redis, Metric::RedisErrors, true),
    (Protocol::Redis, Metric::RedisNulls, false),
    (Protocol::Redis, Metric::RedisPushes, false),
    (Protocol::Http, Metric::HttpRequests, true),
    (Protocol::Http, Metric::HttpResponses, false),
    (Protocol::Http, Metric::HttpInterim, false),
    (Protocol::Http, Metric::HttpMissingBytes, false),
];

/// The costs of the details, those of single statements among them: at most `top` of each kind.
#[must_use]
pub fn details(outcome: &WireOutcome, origin: &Origin, top: usize) -> Vec<Cost> {
    let view = Shown { outcome, origin };
    let mut costs = Vec::new();
    for (protocol, metric, zero) in METRICS {
        let Some(&connections) = outcome.details.connections.get(&protocol) else { continue };
        // The protocol's own totals stand among the costs of every capture.
        if !matches!(metric, Metric::RedisCommands | Metric::HttpResponses) {
            let sum = match metric {
                Metric::PostgresConnections => connections,
                _ => outcome.details.get(metric),
            };
            if sum > 0 || zero {
                costs.push(view.cost(protocol, metric, sum as f64));
            }
        }
        for ((of, label), parts) in &outcome.details.parts {
            if *of != metric {
                continue;
            }
            let mut parts: Vec<_> = parts.iter().collect();
            parts.sort_by_key(|&(_, sum)| std::cmp::Reverse(sum));
            costs.extend(
                parts.into_iter().take(top).map(|(value, &sum)| {
                    view.cost(protocol, metric, sum as f64).with(label, value)
                }),
            );
        }
    }
    for protocol in [Protocol::Postgres, Protocol::Redis] {
        let nanos = outcome.details.part(Metric::Wait, "on", protocol.word());
        if nanos > 0 {
            let cost = view.cost(protocol, Metric::Wait, nanos as f64 / 1e9);
            costs.push(cost.with("on", protocol.word()));
        }
    }
    let counted: [(Metric, CountOf); 3] = [
        (Metric::PostgresExecutions, |of| of.executions),
        (Metric::PostgresRows, |of| of.rows),
        (Metric::PostgresParses, |of| of.prepared),
    ];
    for (metric, count) in counted {
        let of = outcome.statements.iter().take(top).filter(|of| count(of) > 0);
        costs.extend(of.map(|of| view.statement(of, metric, count(of))));
    }
    costs
}

/// What of a statement is counted.
type CountOf = fn(&StatementCost) -> u64;

struct Shown<'a> {
    outcome: &'a WireOutcome,
    origin: &'a Origin,
}

impl Shown<'_> {
    fn cost(&self, protocol: Protocol, metric: Metric, value: f64) -> Cost {
        // Connections and bytes that are missing are the capture's, whoever asked.
        let requests = match metric {
            Metric::PostgresConnections | Metric::HttpMissingBytes => None,
            _ => self.outcome.requests,
        };
        let (per, divisor) = match requests {
            Some(requests) => (Per::Request, requests.max(1) as f64),
            None => (Per::Capture, 1.0),
        };
        let figure = Figure::exact(value / divisor, requests.unwrap_or(1));
        let amount = match metric {
            Metric::PostgresConnections | Metric::HttpMissingBytes => Amount::Measured(figure),
            _ => self.outcome.integrity.guard(protocol, Amount::Measured(figure)),
        };
        self.origin.cost(metric, per, amount)
    }

    fn statement(&self, of: &StatementCost, metric: Metric, count: u64) -> Cost {
        let cost = self.cost(Protocol::Postgres, metric, count as f64);
        let cost = cost.with("statement", &of.sql);
        match of.looks_like_a_check && metric == Metric::PostgresExecutions {
            true => cost.doubted("looks like a check that the connection lives"),
            false => cost,
        }
    }
}

/// What stands out in the statements and trips of a capture, one sentence each. Causes are the
/// reader's to judge: a capture has no variant that flips one.
#[must_use]
pub fn conclusions(outcome: &WireOutcome) -> Vec<String> {
    use crate::trips::Reason;
    let mut found = Vec::new();
    let (counts, statements) = (&outcome.totals, &outcome.statements);
    let trips = counts.get(super::Count::Flights);
    let of = |reason| counts.by_reason(super::Count::Flights, reason);
    let pings = of(Reason::PoolPing);
    if pings > 0 {
        found.push(format!("{pings} of {trips} round trips only ask whether a connection lives"));
    }
    let resets = of(Reason::PoolReset);
    if resets > 0 {
        found.push(format!("{resets} of {trips} round trips only reset a session"));
    }
    let control = of(Reason::Transaction);
    let own = |statement: &&StatementCost| statement.reason == Some(Reason::User);
    let checks = |statement: &&StatementCost| statement.looks_like_a_check;
    let run: u64 = statements.iter().filter(own).map(|of| of.executions).sum();
    let reads = statements.iter().filter(own).all(|of| is_read(&of.sql));
    if control > 0 && reads && run > 0 && 2 * run <= control {
        found.push(format!(
            "{control} of {trips} round trips are transaction control around single reads"
        ));
    }
    let others = statements.iter().filter(own).any(|of| !checks(&of));
    let prepares = of(Reason::Prepare);
    for of in statements.iter().filter(|of| of.told_apart) {
        let sql = crate::findings::quoted(&of.sql);
        // In one flight with its execution a Parse costs no trip.
        let trips = prepares > 0;
        if trips && of.prepared >= 2 && of.prepared * 2 >= of.executions {
            found.push(format!(
                "a statement is prepared again for each execution ({} times for {}): {sql}",
                of.prepared, of.executions
            ));
        }
        // By itself it may be all that somebody wanted to run.
        if of.looks_like_a_check && of.executions > 1 && others {
            let often = of.executions;
            found.push(format!(
                "a statement that looks like a pool's check was run {often} times: {sql}"
            ));
        }
    }
    found
}

fn is_read(sql: &str) -> bool {
    let first = sql.split_whitespace().next().unwrap_or_default().to_ascii_lowercase();
    matches!(first.as_str(), "select" | "values" | "table")
        && !sql.to_ascii_uppercase().contains(" FOR ")
}
