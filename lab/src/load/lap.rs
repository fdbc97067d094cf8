//! What a lap is ordered to do, what its connections share, and what it says afterwards.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use assay_captures::lap::{Generator, Latency, Load, Slice};
use assay_captures::request_log::Slot;
use assay_captures::units::{Moment, Nanos, Span};

use super::cancel::Cancel;
use super::connection::Connection;
use super::errors::ErrorKind;
use super::requests::Requests;
use super::stillness::Stillness;
use super::tally::Tally;

/// Three refused connections in a row, with no answer between them: nobody listens any more.
const REFUSED_MAX: u32 = 3;
/// More failures in a row than this, above two a connection: nobody answers any more.
const FAILED_MAX: u32 = 100;

/// When a lap stops sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// After a length of time.
    After(Duration),
    /// After a number of requests.
    Requests(u64),
}

/// One lap to be driven.
#[derive(Clone, Debug)]
pub struct LapOrder {
    /// Where the subject listens.
    pub address: SocketAddr,
    /// What is sent, in turn.
    pub requests: Arc<Requests>,
    /// How it is sent.
    pub load: Load,
    /// When sending ends.
    pub stop: Stop,
    /// How long an answer may take.
    pub timeout: Duration,
    /// The processes that must be still before the lap begins and before it ends.
    pub service: Stillness,
}

/// How a lap ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// As ordered.
    Whole,
    /// By the wish to stop.
    Cancelled,
    /// Because nobody answers any more; says how that showed.
    Gone(String),
}

/// What a lap found: the fields of `captures::lap::Lap` that the driver knows.
#[derive(Clone, Debug, PartialEq)]
pub struct LapFigures {
    /// How it ended.
    pub ending: Ending,
    /// From before the first request until everything was quiet.
    pub span: Span,
    /// By how many nanoseconds CLOCK_REALTIME was set forward meanwhile; negative is back.
    pub clock_step: i64,
    /// When the last request had been sent.
    pub sent_until: Moment,
    /// Answers up to `sent_until`.
    pub answered_in_time: u64,
    /// All requests.
    pub requests: u64,
    /// Answers with a 2xx status and the expected body.
    pub good: u64,
    /// Answers with another status.
    pub non_2xx: u64,
    /// 2xx answers with another body.
    pub mismatched: u64,
    /// Requests without an answer, by kind.
    pub errors: BTreeMap<String, u64>,
    /// Bytes of response bodies.
    pub body_bytes: u64,
    /// Latency of all answers.
    pub latency: Latency,
    /// Second by second.
    pub timeline: Vec<Slice>,
    /// What the driver's thread used.
    pub generator: Option<Generator>,
    /// The slots of a serial lap; none otherwise.
    pub slots: Vec<Slot>,
}

/// A moment read on both clocks, so that one can be told from the other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    moment: Moment,
    instant: Instant,
}

impl Clock {
    pub(super) fn now() -> Self {
        Self { moment: now(), instant: Instant::now() }
    }

    pub(super) fn moment(&self) -> Moment {
        self.moment
    }

    pub(super) fn moment_of(&self, instant: Instant) -> Moment {
        let since = instant.saturating_duration_since(self.instant);
        self.moment.after(Nanos(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)))
    }

    pub(super) fn instant(&self) -> Instant {
        self.instant
    }

    /// What CLOCK_REALTIME has done since and CLOCK_MONOTONIC has not, in nanoseconds. The two go
    /// at the same pace unless somebody sets the clock.
    fn step(&self) -> i64 {
        let read = Self::now();
        let real = read.moment.0.wrapping_sub(self.moment.0).cast_signed();
        let passed = read.instant.saturating_duration_since(self.instant).as_nanos();
        real.wrapping_sub(i64::try_from(passed).unwrap_or(i64::MAX))
    }
}

/// Now, on CLOCK_REALTIME.
pub(super) fn now() -> Moment {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Moment(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
}

/// What the connections of one lap share.
pub(super) struct Shared {
    requests: Arc<Requests>,
    timeout: Duration,
    cancel: Cancel,
    tally: RefCell<Tally>,
    issued: Cell<u64>,
    failed_in_a_row: Cell<u32>,
    failed_max: u32,
    refused_in_a_row: Cell<u32>,
    gone: RefCell<Option<String>>,
}

impl Shared {
    pub(super) fn new(
        order: &LapOrder,
        connections: usize,
        start: Clock,
        cancel: Cancel,
    ) -> Rc<Self> {
        let connections = u32::try_from(connections).unwrap_or(u32::MAX);
        Rc::new(Self {
            requests: Arc::clone(&order.requests),
            timeout: order.timeout,
            cancel,
            tally: RefCell::new(Tally::new(start.instant())),
            issued: Cell::new(0),
            failed_in_a_row: Cell::new(0),
            failed_max: connections.saturating_mul(2).saturating_add(FAILED_MAX),
            refused_in_a_row: Cell::new(0),
            gone: RefCell::new(None),
        })
    }

    /// The number of the next request, unless `limit` have been issued or the lap must end.
    pub(super) fn issue(&self, limit: u64) -> Option<u64> {
        let number = self.issued.get();
        if number >= limit || self.must_end() {
            return None;
        }
        self.issued.set(number + 1);
        Some(number)
    }

    /// How many numbers have been given out.
    pub(super) fn issued(&self) -> u64 {
        self.issued.get()
    }

    /// Whether nothing more should be sent.
    pub(super) fn must_end(&self) -> bool {
        self.cancel.is_cancelled() || self.gone.borrow().is_some()
    }

    /// Sends request `number` and counts what comes of it. Latency is counted from `intended`
    /// where a schedule has set a start, from the send otherwise; a connection that has to be
    /// opened again first is waited for as a client would. Returns the status of the answer.
    pub(super) async fn exchange(
        &self,
        connection: &mut Connection,
        number: u64,
        intended: Option<Instant>,
    ) -> Option<u16> {
        let prepared = self.requests.at(number)?;
        let sent = Instant::now();
        self.tally.borrow_mut().sent(sent);
        let outcome = connection.exchange(prepared, self.timeout, |_| {}).await;
        match outcome {
            Ok(answer) => {
                let now = Instant::now();
                let latency = now.saturating_duration_since(intended.unwrap_or(sent));
                self.tally.borrow_mut().answer(answer, now, latency);
                self.failed_in_a_row.set(0);
                self.refused_in_a_row.set(0);
                Some(answer.status)
            }
            Err(kind) => {
                self.tally.borrow_mut().failed(kind);
                self.note_failure(kind);
                if kind == ErrorKind::Connect {
                    // Keeps a lap by duration from turning into a busy loop of refusals.
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                None
            }
        }
    }

    /// Counts requests that the schedule asked for and that were never sent.
    pub(super) fn unsent(&self, number: u64) {
        self.tally.borrow_mut().unsent(number);
    }

    fn note_failure(&self, kind: ErrorKind) {
        let failed = self.failed_in_a_row.get() + 1;
        self.failed_in_a_row.set(failed);
        if kind == ErrorKind::Connect {
            self.refused_in_a_row.set(self.refused_in_a_row.get() + 1);
        }
        let reason = if self.refused_in_a_row.get() >= REFUSED_MAX {
            format!("{REFUSED_MAX} connections in a row were refused")
        } else if failed >= self.failed_max {
            format!("{failed} requests in a row got no answer, the last one by `{kind}`")
        } else {
            return;
        };
        self.gone.borrow_mut().get_or_insert(reason);
    }

    /// The figures, once every request has ended and it is quiet.
    pub(super) fn figures(&self, start: Clock, own: Option<Generator>) -> LapFigures {
        let tally = self.tally.borrow();
        let ending = match self.gone.borrow().clone() {
            Some(reason) => Ending::Gone(reason),
            None if self.cancel.is_cancelled() => Ending::Cancelled,
            None => Ending::Whole,
        };
        LapFigures {
            ending,
            span: Span { start: start.moment(), end: now() },
            clock_step: start.step(),
            sent_until: tally.last_sent.map_or(start.moment(), |sent| start.moment_of(sent)),
            answered_in_time: tally.answered_at_last_sent,
            requests: tally.requests,
            good: tally.good,
            non_2xx: tally.non_2xx,
            mismatched: tally.mismatched,
            errors: tally.errors.by_name(),
            body_bytes: tally.body_bytes,
            latency: tally.latency(),
            timeline: tally.slices(),
            generator: own,
            slots: Vec::new(),
        }
    }
}
