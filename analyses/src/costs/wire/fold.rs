//! The fold: from the records of a capture to the books.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use assay_captures::parsed::{Problem, Sink};
use assay_captures::pcap::Record;
use assay_captures::request_log::Slot;
use assay_captures::tcp::{Connection, Event, EventSink, Streams};
use assay_captures::units::{Moment, Span};

use super::books::Books;
use super::counts::{Count, Counts};
use super::integrity::{Integrity, Protocol};
use super::loaded::{WireOutcome, loaded};
use super::protocols::Talk;
use super::routes::{RouteCost, Routes};
use super::serial::{SerialOutcome, serial};
use super::statements::{StatementCost, Statements};
use crate::attribute::Owner;
use crate::cost::Origin;
use crate::window::Window;

/// Ports that are known to listen, by protocol. Where all are empty, connections are recognised
/// by content.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WirePorts {
    /// The service under test.
    pub http: Vec<u16>,
    /// Its Postgres servers or poolers.
    pub postgres: Vec<u16>,
    /// Its Redis servers.
    pub redis: Vec<u16>,
}

impl WirePorts {
    /// Whether no port is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.http.is_empty() && self.postgres.is_empty() && self.redis.is_empty()
    }

    /// What is spoken to this port.
    #[must_use]
    pub fn protocol(&self, port: u16) -> Option<Protocol> {
        Protocol::ALL.into_iter().find(|&protocol| self.ports(protocol).contains(&port))
    }

    /// The ports of a protocol.
    #[must_use]
    pub fn ports(&self, protocol: Protocol) -> &[u16] {
        match protocol {
            Protocol::Http => &self.http,
            Protocol::Postgres => &self.postgres,
            Protocol::Redis => &self.redis,
        }
    }

    fn all(&self) -> Vec<u16> {
        [&self.http[..], &self.postgres, &self.redis].concat()
    }
}

/// Counts what a capture holds, by window. Feed it with
/// [`assay_captures::capture::packets`] or any [`assay_captures::pcap::Decoder`].
#[derive(Debug)]
pub struct WireFold {
    streams: Streams,
    conversations: Conversations,
    windows: Vec<Window>,
    slots: Vec<Slot>,
    drops: HashMap<u32, u64>,
    drops_between: u64,
    problems: Vec<String>,
    foreign: bool,
    last: Option<usize>,
    /// Drops that were told already.
    told: u64,
}

/// What a rolling fold has counted since the last time.
#[derive(Clone, Debug)]
pub struct Taken {
    /// Totals.
    pub counts: Counts,
    /// Statements, the most frequent first; per response where there were any.
    pub statements: Vec<StatementCost>,
    /// Whether it is whole. Drops are those since the last time.
    pub integrity: Integrity,
    /// What was asked for, the most frequent first.
    pub routes: Vec<RouteCost>,
}

/// All connections, and the books.
#[derive(Debug)]
struct Conversations {
    ports: WirePorts,
    talks: HashMap<Connection, Talk, RandomState>,
    books: Books,
    statements: Statements,
    /// Which protocols were recognised.
    seen: [bool; Protocol::ALL.len()],
}

impl WireFold {
    /// Counts what falls into these windows: laps under load.
    #[must_use]
    pub fn new(windows: &[Window], ports: WirePorts) -> Self {
        let spans: Vec<_> = windows.iter().map(|window| window.span).collect();
        Self::with(&spans, windows.to_vec(), Vec::new(), ports)
    }

    /// Counts what a file from elsewhere holds in a span, whole or in part; `requests` is 0 where
    /// nobody counted them.
    #[must_use]
    pub fn foreign(span: Span, requests: u64, ports: WirePorts) -> Self {
        let mut fold = Self::new(&[Window { span, requests }], ports);
        fold.foreign = true;
        fold
    }

    /// Counts by the slots of a serial lap: each request by itself.
    #[must_use]
    pub fn serial(slots: &[Slot], ports: WirePorts) -> Self {
        let spans: Vec<_> =
            slots.iter().map(|slot| Span { start: slot.start, end: slot.end }).collect();
        Self::with(&spans, Vec::new(), slots.to_vec(), ports)
    }

    /// Counts what passes for as long as one likes; [`take`](Self::take) says what came since the
    /// last time. What is kept is bounded by open connections and distinct statements.
    #[must_use]
    pub fn rolling(ports: WirePorts) -> Self {
        let span = Span { start: Moment(0), end: Moment(u64::MAX) };
        Self::new(&[Window { span, requests: 0 }], ports).by_route()
    }

    /// Tells routes apart as well, by what was asked for in the last half minute.
    #[must_use]
    pub fn by_route(mut self) -> Self {
        self.conversations.books.routes = Some(Routes::default());
        self
    }

    /// What was counted since the last time.
    pub fn take(&mut self) -> Taken {
        let (counts, tallies, faults) = self.conversations.books.take();
        let drops = self.drops.values().sum::<u64>() + self.drops_between;
        let responses = counts.get(Count::HttpResponses);
        let integrity = Integrity {
            drops: drops - std::mem::replace(&mut self.told, drops),
            faults: faults.by_kind(),
            problems: std::mem::take(&mut self.problems),
            responses,
            ..Integrity::default()
        };
        let divisor = (responses > 0).then_some(responses);
        let routes = self.conversations.books.routes.as_mut().map(Routes::take);
        Taken {
            counts,
            statements: self.conversations.statements.costs(&tallies, divisor),
            integrity,
            routes: routes.unwrap_or_default(),
        }
    }

    fn with(spans: &[Span], windows: Vec<Window>, slots: Vec<Slot>, ports: WirePorts) -> Self {
        Self {
            streams: Streams::new(&ports.all()),
            conversations: Conversations {
                ports,
                talks: HashMap::default(),
                books: Books::new(spans, !slots.is_empty()),
                statements: Statements::default(),
                seen: [false; Protocol::ALL.len()],
            },
            windows,
            slots,
            drops: HashMap::new(),
            drops_between: 0,
            problems: Vec::new(),
            foreign: false,
            last: None,
            told: 0,
        }
    }

    /// The costs under load.
    #[must_use]
    pub fn finish(mut self, origin: &Origin) -> WireOutcome {
        let integrity = self.close();
        loaded(origin, &self.windows, &self.conversations.parts(), integrity)
    }

    /// The costs of single requests.
    #[must_use]
    pub fn finish_serial(mut self, origin: &Origin) -> SerialOutcome {
        let integrity = self.close();
        serial(origin, &self.slots, &self.conversations.parts(), integrity)
    }

    fn close(&mut self) -> Integrity {
        self.streams.finish(&mut self.conversations);
        let books = &self.conversations.books;
        debug_assert!(books.balance(), "every count is charged to a window or to nobody");
        let streams = self.streams.figures();
        let slots = self.slots.iter().filter(|slot| slot.answered.is_some()).count() as u64;
        Integrity {
            drops: self.drops.values().sum::<u64>() + self.drops_between,
            streams,
            faults: books.faults.by_kind(),
            problems: std::mem::take(&mut self.problems),
            responses: books.ledger.windows().iter().map(|c| c.get(Count::HttpResponses)).sum(),
            requests: self.windows.iter().map(|window| window.requests).sum::<u64>() + slots,
            foreign: self.foreign.then(|| books.details.connections.clone()),
            // Half of all segments with payload are copies then; retransmissions are far fewer.
            frames_twice: streams.copies > 0 && streams.copies * 5 > streams.carrying * 2,
        }
    }

    /// Entering another window after a stretch in which the recorder may have been off: what was
    /// sent in between is no gap.
    fn enter(&mut self, owner: Owner) {
        let Owner::Window(index) = owner else { return };
        if self.last == Some(index) {
            return;
        }
        let before = self.last.replace(index);
        let adjacent = before.is_some_and(|before| {
            let span = |index: usize| match self.windows.get(index) {
                Some(window) => Some((window.span.start, window.span.end)),
                None => self.slots.get(index).map(|slot| (slot.start, slot.end)),
            };
            span(before).map(|span| span.1) == span(index).map(|span| span.0)
        });
        if before.is_some() && !adjacent {
            self.streams.resume();
        }
    }
}

impl Sink<Record<'_>> for WireFold {
    fn record(&mut self, record: Record<'_>) {
        match record {
            Record::Packet(packet) => {
                let owner = self.conversations.books.owner(packet.moment);
                self.enter(owner);
                self.streams.feed(&packet, &mut self.conversations);
            }
            Record::Drops { interface, total } => {
                self.drops.insert(interface, total);
            }
            Record::DropsBefore { count } => self.drops_between += count,
            Record::Interface(_) | Record::Other { .. } => {}
        }
    }

    fn problem(&mut self, problem: Problem) {
        if self.problems.len() < 20 {
            self.problems.push(problem.to_string());
        }
    }
}

/// What the end of a fold reads.
pub(super) struct Parts<'a> {
    pub(super) books: &'a Books,
    pub(super) statements: &'a Statements,
    /// Protocols to give costs of: those with a port, and those that were recognised.
    pub(super) protocols: Vec<Protocol>,
}

impl Conversations {
    fn parts(&self) -> Parts<'_> {
        let known = |protocol: &Protocol| {
            !self.ports.ports(*protocol).is_empty() || self.seen[*protocol as usize]
        };
        Parts {
            books: &self.books,
            statements: &self.statements,
            protocols: Protocol::ALL.into_iter().filter(known).collect(),
        }
    }
}

impl EventSink for Conversations {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Opened { connection, server, from_start, .. } => {
                let talk = Talk::new(connection, server, from_start, &self.ports);
                self.talks.insert(connection, talk);
            }
            Event::Chunk { connection, from, moment, bytes } => {
                if let Some(talk) = self.talks.get_mut(&connection) {
                    talk.bytes(from, moment, bytes, &mut self.books, &mut self.statements);
                    if let Some(protocol) = talk.protocol() {
                        self.seen[protocol as usize] = true;
                    }
                }
            }
            Event::Gap { connection, from, moment, length } => {
                if let Some(talk) = self.talks.get_mut(&connection) {
                    talk.gap(from, moment, length, &mut self.books, &mut self.statements);
                }
            }
            Event::Closed { connection, moment, .. } => {
                if let Some(mut talk) = self.talks.remove(&connection) {
                    talk.close(moment, &mut self.books);
                }
            }
        }
    }
}
