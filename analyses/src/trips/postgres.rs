//! Trips of one Postgres connection.

mod queue;

use std::collections::HashMap;

use assay_captures::postgres::{Backend, Body, Fault, Frontend, Message, Rows, Target};
use assay_captures::tcp::Connection;
use assay_captures::units::Moment;

use foldhash::fast::RandomState;

use self::queue::{Contents, Queue, Step};
use super::{Reason, Service, Trip, What};
use crate::costs::wire::{StatementId, Statements};
use crate::sql::{Class, class_of_tag};

/// Statement names remembered for a connection; later ones count as unknown.
const NAMES_LIMIT: usize = 10_000;

/// Something that happened on a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fact {
    /// A statement completed. `reason` is `None` for connection set-up.
    Execution {
        /// When.
        moment: Moment,
        /// Which statement.
        statement: StatementId,
        /// Why it was run.
        reason: Option<Reason>,
    },
    /// Rows of a statement's result.
    Rows {
        /// When.
        moment: Moment,
        /// Which statement.
        statement: StatementId,
        /// How many.
        count: u64,
        /// Bytes of their messages.
        length: u64,
    },
    /// A statement was prepared.
    Prepared {
        /// When.
        moment: Moment,
        /// Which statement.
        statement: StatementId,
    },
    /// ReadyForQuery.
    Cycle {
        /// When.
        moment: Moment,
        /// What it answered.
        answered: Answered,
    },
    /// A trip is over.
    Flight(Trip),
    /// Statements that failed (the first) or were passed over after a failure.
    Failed {
        /// When.
        moment: Moment,
        /// How many failed: one, or none where something else did.
        failed: u64,
        /// How many were passed over.
        skipped: u64,
    },
    /// A portal has more rows than were asked for.
    Suspended {
        /// When.
        moment: Moment,
    },
    /// A trip whose end cannot be told.
    Lost {
        /// When.
        moment: Moment,
    },
}

/// What a ReadyForQuery answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answered {
    /// Connection set-up.
    SetUp,
    /// Messages of this kind.
    Reason(Reason),
    /// Messages from before the capture.
    Unknown,
}

/// The state of one connection.
#[derive(Debug)]
pub struct Session {
    connection: Connection,
    queue: Queue,
    flight: Option<Flight>,
    /// What has been answered since the last ReadyForQuery.
    cycle: Contents,
    /// Whether the server passes over everything up to the next Sync.
    skipping: bool,
    /// Whether the next ReadyForQuery ends that: the Sync belongs to what failed.
    recovering: bool,
    /// Whether the server waits for copied data, or both sides stream.
    copying: bool,
    /// Whether only set-up has been seen on this connection.
    setting_up: bool,
    /// Whether the trip before was a statement's, so that a bare Sync is a release.
    after_statement: bool,
    /// Whether the portal that was executed last has rows left: its statement has been counted.
    suspended: bool,
    prepared: HashMap<Box<[u8]>, StatementId, RandomState>,
    portals: HashMap<Box<[u8]>, StatementId, RandomState>,
    unnamed: Option<StatementId>,
    unnamed_portal: Option<StatementId>,
}

#[derive(Debug)]
struct Flight {
    start: Moment,
    contents: Contents,
    cycles: u32,
    bursts: u32,
    server_spoke: bool,
    what: What,
}

/// Takes facts.
pub trait FactSink {
    /// Takes one, in the order in which they became known.
    fn fact(&mut self, fact: Fact);
}

impl<F: FnMut(Fact)> FactSink for F {
    fn fact(&mut self, fact: Fact) {
        self(fact);
    }
}

impl Session {
    /// A connection of which nothing has been seen.
    #[must_use]
    pub fn new(connection: Connection) -> Self {
        Self {
            connection,
            queue: Queue::default(),
            flight: None,
            cycle: Contents::default(),
            skipping: false,
            recovering: false,
            copying: false,
            setting_up: false,
            after_statement: false,
            suspended: false,
            prepared: HashMap::default(),
            portals: HashMap::default(),
            unnamed: None,
            unnamed_portal: None,
        }
    }

    /// Takes a message.
    pub fn message(
        &mut self,
        message: &Message<'_>,
        statements: &mut Statements,
        sink: &mut impl FactSink,
    ) {
        let moment = message.moment;
        match message.body {
            Body::Frontend(frontend) => self.client(moment, frontend, statements, sink),
            Body::Backend(backend) => {
                if let Some(flight) = &mut self.flight {
                    flight.server_spoke = true;
                }
                self.server(moment, message.length, backend, statements, sink);
                self.settle(moment, sink);
            }
            Body::Fault(Fault::Resumed(_)) => {}
            Body::Fault(_) => self.lose(moment, sink),
        }
    }

    /// Takes rows that came together: what [`Session::message`] does with each of them.
    pub fn rows(&mut self, rows: &Rows<'_>, statements: &Statements, sink: &mut impl FactSink) {
        let moment = rows.moment;
        if let Some(flight) = &mut self.flight {
            flight.server_spoke = true;
        }
        if let Some(statement) = self.current(statements) {
            let (count, length) = (rows.count, rows.length());
            sink.fact(Fact::Rows { moment, statement, count, length });
        }
        self.settle(moment, sink);
    }

    /// The connection is closed, or the capture over.
    pub fn close(&mut self, moment: Moment, sink: &mut impl FactSink) {
        self.lose(moment, sink);
    }

    /// Forgets what is under way: messages are missing.
    fn lose(&mut self, moment: Moment, sink: &mut impl FactSink) {
        if self.flight.take().is_some() {
            sink.fact(Fact::Lost { moment });
        }
        self.queue.clear();
        self.skipping = false;
        self.copying = false;
        self.cycle = Contents::default();
    }

    fn client(
        &mut self,
        moment: Moment,
        frontend: Frontend<'_>,
        statements: &mut Statements,
        sink: &mut impl FactSink,
    ) {
        if let Some(flight) = &mut self.flight
            && std::mem::take(&mut flight.server_spoke)
        {
            flight.bursts += 1;
        }
        match frontend {
            Frontend::Startup { .. } => {
                self.setting_up = true;
                self.push(moment, Step::Opening);
            }
            Frontend::TlsRequest | Frontend::GssRequest | Frontend::Password => {
                self.push(moment, Step::Opening);
            }
            Frontend::CopyDone | Frontend::CopyFail => {
                if std::mem::take(&mut self.copying) && self.queue.owe_front() {
                    self.open(moment);
                }
            }
            Frontend::Sync => {
                self.recovering |= std::mem::take(&mut self.skipping);
                self.push(moment, Step::Sync);
            }
            _ if self.skipping => self.skip(moment, frontend, sink),
            Frontend::Query { sql } => {
                let text = statements.text(sql);
                self.push(moment, Step::Query { text, at: 0, owes: true });
            }
            Frontend::Parse { name, sql } => {
                let text = statements.text(sql);
                let statement = statements.first(text);
                sink.fact(Fact::Prepared { moment, statement });
                self.name(name, statement);
                let setting = statements.class(statement) == Some(Class::Setting);
                self.push(moment, Step::Parse { setting });
            }
            Frontend::Bind { portal, statement } => {
                self.bind(portal, statement, statements);
                self.push(moment, Step::Bind);
            }
            Frontend::Describe(target) => self.push(moment, Step::Describe(target)),
            Frontend::Execute { portal } => {
                let statement = if portal.is_empty() {
                    self.unnamed_portal
                } else {
                    self.portals.get(portal).copied()
                };
                self.push(moment, Step::Execute { statement, owes: false });
            }
            Frontend::Close(target, name) => {
                match target {
                    Target::Statement => drop(self.prepared.remove(name)),
                    Target::Portal => drop(self.portals.remove(name)),
                }
                self.push(moment, Step::Close(target));
            }
            Frontend::Flush => {
                if !self.queue.is_empty() {
                    self.push(moment, Step::Flush);
                }
            }
            Frontend::FunctionCall => self.push(moment, Step::Function),
            Frontend::CopyData | Frontend::Terminate | Frontend::CancelRequest => {}
        }
    }

    fn skip(&mut self, moment: Moment, frontend: Frontend<'_>, sink: &mut impl FactSink) {
        if matches!(frontend, Frontend::Execute { .. } | Frontend::Query { .. }) {
            sink.fact(Fact::Failed { moment, failed: 0, skipped: 1 });
        }
    }

    fn name(&mut self, name: &[u8], statement: StatementId) {
        if name.is_empty() {
            self.unnamed = Some(statement);
        } else if self.prepared.len() < NAMES_LIMIT {
            self.prepared.insert(name.into(), statement);
        }
    }

    fn bind(&mut self, portal: &[u8], statement: &[u8], statements: &mut Statements) {
        let bound = match self.prepared.get(statement) {
            _ if statement.is_empty() => self.unnamed,
            Some(&known) => Some(known),
            None => {
                let named = statements.named(statement);
                self.name(statement, named);
                Some(named)
            }
        };
        if portal.is_empty() {
            self.unnamed_portal = bound;
        } else if let Some(bound) = bound
            && self.portals.len() < NAMES_LIMIT
        {
            self.portals.insert(portal.into(), bound);
        }
    }

    fn push(&mut self, moment: Moment, step: Step) {
        if self.queue.push(step) {
            self.open(moment);
        }
    }

    /// An answer is owed from here on.
    fn open(&mut self, moment: Moment) {
        self.flight.get_or_insert_with(|| Flight {
            start: moment,
            contents: Contents::default(),
            cycles: 0,
            bursts: 1,
            server_spoke: false,
            what: What::Nothing,
        });
    }

    fn server(
        &mut self,
        moment: Moment,
        length: u64,
        backend: Backend<'_>,
        statements: &mut Statements,
        sink: &mut impl FactSink,
    ) {
        match backend {
            Backend::Encryption(_) => self.answer_opening(),
            // 0 is the end, 12 the last word of SASL: neither asks anything of the client.
            Backend::Authentication(0 | 12) => {}
            Backend::Authentication(_) => self.answer_opening(),
            Backend::ParseComplete => self.answer(|step| matches!(step, Step::Parse { .. })),
            Backend::BindComplete => {
                self.suspended = false;
                self.answer(|step| matches!(step, Step::Bind));
            }
            Backend::CloseComplete => self.answer(|step| matches!(step, Step::Close(_))),
            Backend::RowDescription | Backend::NoData => {
                self.answer(|step| matches!(step, Step::Describe(_)));
            }
            Backend::DataRow => {
                if let Some(statement) = self.current(statements) {
                    sink.fact(Fact::Rows { moment, statement, count: 1, length });
                }
            }
            Backend::CommandComplete { tag } => self.complete(moment, Some(tag), statements, sink),
            Backend::EmptyQuery => self.complete(moment, None, statements, sink),
            Backend::PortalSuspended => {
                self.suspend(moment, statements, sink);
                self.answer(|step| matches!(step, Step::Execute { .. }));
                self.note(Contents::of(Class::User));
                sink.fact(Fact::Suspended { moment });
            }
            Backend::CopyIn | Backend::CopyBoth => {
                self.copying = true;
                self.note(Contents::of(Class::User));
                self.queue.await_copy();
            }
            Backend::Error { .. } => self.error(moment, sink),
            Backend::ReadyForQuery(_) => self.ready(moment, sink),
            _ => {}
        }
    }

    /// The statement whose result is coming.
    fn current(&self, statements: &Statements) -> Option<StatementId> {
        match *self.queue.front()? {
            Step::Execute { statement, .. } => Some(statement.unwrap_or(StatementId::UNKNOWN)),
            Step::Query { text, at, .. } => Some(statements.nth(text, at)),
            _ => None,
        }
    }

    fn complete(
        &mut self,
        moment: Moment,
        tag: Option<&[u8]>,
        statements: &mut Statements,
        sink: &mut impl FactSink,
    ) {
        let Some(statement) = self.current(statements) else { return };
        let class = match (statements.class(statement), tag) {
            (_, None) => Class::Empty,
            (Some(class), _) => class,
            (None, Some(tag)) => class_of_tag(tag),
        };
        let contents = Contents::of(class);
        let set_up = self.setting_up && class == Class::Setting;
        let reason = if set_up { None } else { contents.reason() };
        // What is left of a portal goes on only where it is executed again.
        let goes_on = matches!(self.queue.front(), Some(Step::Execute { .. }));
        if !(std::mem::take(&mut self.suspended) && goes_on) {
            sink.fact(Fact::Execution { moment, statement, reason });
        }
        if let Some(flight) = &mut self.flight
            && flight.what == What::Nothing
        {
            flight.what = What::Statement(statement);
        }
        self.note(contents);
        self.queue.completed();
    }

    /// The client wanted some rows only, and may never want the others: the statement has run, and
    /// the server counts it. Fetched again to its end, it is not counted again.
    fn suspend(&mut self, moment: Moment, statements: &Statements, sink: &mut impl FactSink) {
        let Some(statement) = self.current(statements) else { return };
        if !std::mem::replace(&mut self.suspended, true) {
            let reason = Contents::of(Class::User).reason();
            sink.fact(Fact::Execution { moment, statement, reason });
        }
        if let Some(flight) = &mut self.flight
            && flight.what == What::Nothing
        {
            flight.what = What::Statement(statement);
        }
    }

    fn error(&mut self, moment: Moment, sink: &mut impl FactSink) {
        let copying = std::mem::take(&mut self.copying);
        let outcome = self.queue.fail();
        self.note(outcome.contents);
        // While data is copied in, the Sync that was already sent counts for nothing.
        self.skipping = outcome.skips_to_sync || (copying && outcome.extended);
        if outcome.failed + outcome.skipped > 0 {
            let (failed, skipped) = (outcome.failed, outcome.skipped);
            sink.fact(Fact::Failed { moment, failed, skipped });
        }
    }

    fn ready(&mut self, moment: Moment, sink: &mut impl FactSink) {
        self.copying = false;
        let known = self.queue.ready();
        if let Some(contents) = known {
            self.note(contents);
        }
        if std::mem::take(&mut self.recovering) {
            self.note(Contents::of(Class::User));
        }
        let cycle = std::mem::take(&mut self.cycle);
        let answered = match known {
            None => Answered::Unknown,
            Some(_) if cycle.is_set_up(self.setting_up) => Answered::SetUp,
            Some(_) => Answered::Reason(cycle.reason().unwrap_or(Reason::User)),
        };
        if let Some(flight) = &mut self.flight {
            flight.cycles += 1;
            // A Sync after a Flush ends what earlier trips of its cycle began: it asks no one
            // whether the connection lives.
            if flight.contents.is_bare() {
                flight.contents.add(cycle);
            }
        }
        sink.fact(Fact::Cycle { moment, answered });
    }

    fn answer_opening(&mut self) {
        self.answer(|step| matches!(step, Step::Opening));
    }

    fn answer(&mut self, fits: impl Fn(&Step) -> bool) {
        if let Some(contents) = self.queue.answer(fits) {
            self.note(contents);
        }
    }

    fn note(&mut self, contents: Contents) {
        self.cycle.add(contents);
        if let Some(flight) = &mut self.flight {
            flight.contents.add(contents);
        }
    }

    /// Ends the trip when nothing is owed any more.
    fn settle(&mut self, moment: Moment, sink: &mut impl FactSink) {
        self.queue.drop_answered_flushes();
        if self.queue.owes() {
            return;
        }
        let Some(flight) = self.flight.take() else { return };
        let contents = flight.contents;
        let set_up = contents.is_set_up(self.setting_up);
        self.setting_up &= set_up;
        let reason = if set_up { None } else { contents.reason() };
        let bare_sync = contents.is_bare();
        let awaited = !(contents.is_close_alone() || (bare_sync && self.after_statement));
        self.after_statement = !bare_sync && !set_up;
        sink.fact(Fact::Flight(Trip {
            service: Service::Postgres,
            connection: self.connection,
            start: flight.start,
            end: moment,
            reason,
            set_up,
            awaited,
            cycles: flight.cycles,
            bursts: flight.bursts,
            what: flight.what,
        }));
    }
}
