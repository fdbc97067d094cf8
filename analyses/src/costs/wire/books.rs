//! The books of a fold: everything that is counted is charged here, to a window or to nobody.

use std::collections::HashMap;

use assay_captures::tcp::{Connection, Side};
use assay_captures::units::{Moment, Span};

use super::counts::{Count, Counts};
use super::details::Details;
use super::integrity::{Faults, Protocol};
use super::routes::Routes;
use super::statements::{StatementId, Tally};
use crate::attribute::{Ledger, Owner, Windows};
use crate::metric::Metric;
use crate::trips::postgres::{Answered, Fact, FactSink};
use crate::trips::{Reason, Service, Trip, What, redis};

#[derive(Debug)]
pub(super) struct Books {
    windows: Windows,
    pub(super) ledger: Ledger<Counts>,
    pub(super) tallies: Vec<Tally>,
    pub(super) faults: Faults,
    pub(super) details: Details,
    /// The statement of the last trip on each connection, and how often in a row.
    runs: HashMap<Connection, (StatementId, u64)>,
    /// Trips and responses by window, where single requests are told apart.
    pub(super) slots: Option<Vec<SlotTrace>>,
    /// Responses and trips by route, where they are told apart.
    pub(super) routes: Option<Routes>,
}

/// What was seen in one slot.
#[derive(Clone, Debug, Default)]
pub(super) struct SlotTrace {
    pub(super) trips: Vec<Trip>,
    /// When the first request could be read.
    pub(super) request: Option<Moment>,
    /// When the last byte of the last response was seen.
    pub(super) response: Option<Moment>,
}

impl Books {
    pub(super) fn new(spans: &[Span], keeps_trips: bool) -> Self {
        Self {
            windows: Windows::new(spans.iter().copied()),
            ledger: Ledger::new(spans.len()),
            tallies: Vec::new(),
            faults: Faults::default(),
            details: Details::default(),
            runs: HashMap::new(),
            slots: keeps_trips.then(|| vec![SlotTrace::default(); spans.len()]),
            routes: None,
        }
    }

    pub(super) fn owner(&mut self, moment: Moment) -> Owner {
        self.windows.owner(moment)
    }

    pub(super) fn charge(&mut self, moment: Moment, count: Count, more: u64) {
        let owner = self.windows.owner(moment);
        self.ledger.charge(owner, |counts| counts.add(count, more));
    }

    /// Notes something that no cost of a run is made of, if it fell into a window.
    pub(super) fn detail(&mut self, moment: Moment, post: impl FnOnce(&mut Details)) {
        if let Owner::Window(_) = self.windows.owner(moment) {
            post(&mut self.details);
        }
    }

    pub(super) fn bytes(&mut self, protocol: Protocol, from: Side, moment: Moment, bytes: u64) {
        let count = match (protocol, from) {
            (Protocol::Http, Side::Client) => Count::HttpSent,
            (Protocol::Http, Side::Server) => Count::HttpReceived,
            (Protocol::Postgres, Side::Client) => Count::PostgresSent,
            (Protocol::Postgres, Side::Server) => Count::PostgresReceived,
            (Protocol::Redis, Side::Client) => Count::RedisSent,
            (Protocol::Redis, Side::Server) => Count::RedisReceived,
        };
        self.charge(moment, count, bytes);
        if count == Count::HttpReceived {
            self.charge(moment, Count::HttpPieces, 1);
        }
    }

    pub(super) fn fault(
        &mut self,
        protocol: Protocol,
        fault: &'static str,
        connection: Connection,
        moment: Moment,
    ) {
        let owner = self.windows.owner(moment);
        self.faults.note(protocol, fault, connection.0, owner);
    }

    pub(super) fn request(&mut self, moment: Moment) {
        self.charge(moment, Count::HttpRequests, 1);
        self.detail(moment, |details| details.add(Metric::HttpRequests, 1));
        if let Some(slot) = self.slot(moment) {
            slot.request.get_or_insert(moment);
        }
    }

    pub(super) fn response(&mut self, moment: Moment) {
        self.charge(moment, Count::HttpResponses, 1);
        if let Some(slot) = self.slot(moment) {
            slot.response = Some(moment);
        }
    }

    fn slot(&mut self, moment: Moment) -> Option<&mut SlotTrace> {
        match (self.windows.owner(moment), &mut self.slots) {
            (Owner::Window(index), Some(slots)) => slots.get_mut(index),
            _ => None,
        }
    }

    /// Charges a trip to the window that it began in.
    fn trip(&mut self, trip: Trip) {
        let owner = self.windows.owner(trip.start);
        if !trip.set_up {
            let wait = trip.end.since(trip.start).unwrap_or_default().0;
            self.detail(trip.start, |details| {
                details.add_for(Metric::Wait, "on", trip.service.word(), wait);
            });
        }
        self.ledger.charge(owner, |counts| match (trip.service, trip.set_up) {
            (Service::Postgres, true) => counts.add(Count::SetUpFlights, 1),
            (Service::Postgres, false) => {
                counts.add_for(Count::Flights, trip.reason);
                if trip.awaited {
                    counts.add_for(Count::AwaitedFlights, trip.reason);
                }
                counts.add(Count::PipelinedFlights, u64::from(trip.is_pipelined()));
                counts.add(Count::Bursts, u64::from(trip.bursts));
            }
            (Service::Redis, true) => {}
            (Service::Redis, false) => counts.add(Count::RedisFlights, 1),
        });
        if let (Some(routes), Service::Postgres, false) =
            (&mut self.routes, trip.service, trip.set_up)
        {
            routes.trip(trip.start);
        }
        self.run(&trip);
        if let Some(slot) = self.slot(trip.start) {
            slot.trips.push(trip);
        }
    }

    /// Counts trips in a row for one statement; those of pools and transactions do not break it.
    fn run(&mut self, trip: &Trip) {
        let (Some(Reason::User), What::Statement(statement)) = (trip.reason, &trip.what) else {
            return;
        };
        let run = self.runs.entry(trip.connection).or_insert((*statement, 0));
        if run.0 != *statement {
            *run = (*statement, 0);
        }
        run.1 += 1;
        let length = run.1;
        self.tally(trip.start, *statement, |tally| {
            tally.longest_run = tally.longest_run.max(length);
        });
    }

    /// A connection is over.
    pub(super) fn closed(&mut self, connection: Connection) {
        self.runs.remove(&connection);
        if let Some(routes) = &mut self.routes {
            routes.closed(connection);
        }
    }

    /// What the only window holds, which begins anew.
    pub(super) fn take(&mut self) -> (Counts, Vec<Tally>, Faults) {
        let counts = self.ledger.window(0).copied().unwrap_or_default();
        self.ledger = Ledger::new(1);
        self.details = Details::default();
        (counts, std::mem::take(&mut self.tallies), std::mem::take(&mut self.faults))
    }

    pub(super) fn redis(&mut self, connection: Connection, fact: redis::Fact) {
        match fact {
            redis::Fact::Command { moment, set_up: true } => {
                self.charge(moment, Count::RedisSetUp, 1);
                self.detail(moment, |details| details.add(Metric::RedisSetUpCommands, 1));
            }
            redis::Fact::Command { moment, set_up: false } => {
                self.charge(moment, Count::RedisCommands, 1);
            }
            redis::Fact::Error { moment, set_up } => {
                self.charge(moment, Count::RedisErrors, u64::from(!set_up));
                self.detail(moment, |details| {
                    details.add(Metric::RedisErrors, 1);
                    if set_up {
                        details.add_for(Metric::RedisErrors, "of", "set-up", 1);
                    }
                });
            }
            redis::Fact::Flight(trip) => self.trip(trip),
            redis::Fact::Lost { moment } => {
                self.charge(moment, Count::RedisLost, 1);
                self.fault(Protocol::Redis, "unfinished", connection, moment);
            }
        }
    }

    fn tally(&mut self, moment: Moment, statement: StatementId, post: impl FnOnce(&mut Tally)) {
        if let Owner::Window(_) = self.windows.owner(moment) {
            post(Tally::of(&mut self.tallies, statement));
        }
    }

    /// The books balance: what was charged to all owners is what was posted.
    pub(super) fn balance(&self) -> bool {
        self.ledger.balances(|sum, more| sum.add_all(more))
    }
}

/// Takes the facts of one Postgres connection into the books.
pub(super) struct Entries<'b> {
    pub(super) books: &'b mut Books,
    pub(super) connection: Connection,
}

impl FactSink for Entries<'_> {
    fn fact(&mut self, fact: Fact) {
        let books = &mut *self.books;
        match fact {
            Fact::Execution { moment, statement, reason } => {
                let owner = books.owner(moment);
                books.ledger.charge(owner, |counts| counts.add_for(Count::Executions, reason));
                books.tally(moment, statement, |tally| {
                    tally.executions += 1;
                    tally.set_up += u64::from(reason.is_none());
                });
            }
            Fact::Rows { moment, statement, count, length } => {
                books.tally(moment, statement, |tally| {
                    tally.rows += count;
                    tally.bytes += length;
                });
            }
            Fact::Prepared { moment, statement } => {
                books.tally(moment, statement, |tally| tally.prepared += 1);
            }
            Fact::Cycle { moment, answered } => {
                let owner = books.owner(moment);
                books.ledger.charge(owner, |counts| match answered {
                    Answered::SetUp => {
                        counts.add_for(Count::ReadyForQuery, None);
                        counts.add(Count::ReadyForSetUp, 1);
                    }
                    Answered::Reason(reason) => {
                        counts.add_for(Count::ReadyForQuery, Some(reason));
                    }
                    Answered::Unknown => {
                        counts.add_for(Count::ReadyForQuery, None);
                        counts.add(Count::ReadyUnknown, 1);
                    }
                });
            }
            Fact::Flight(trip) => books.trip(trip),
            Fact::Failed { moment, failed, skipped } => {
                books.charge(moment, Count::Failed, failed);
                books.charge(moment, Count::Skipped, skipped);
            }
            Fact::Suspended { moment } => books.charge(moment, Count::Suspended, 1),
            Fact::Lost { moment } => {
                books.charge(moment, Count::PostgresLost, 1);
                books.fault(Protocol::Postgres, "unfinished", self.connection, moment);
            }
        }
    }
}
