//! One request as a waterfall.

use assay_captures::units::{Nanos, Span};

use super::books::SlotTrace;
use super::statements::Statements;
use crate::trips::{Reason, Service, Trip, What};

/// One request, from the wire.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestRecord {
    /// Its place in the request log, 0-based.
    pub slot: usize,
    /// From the request in to the last byte of the response out.
    pub length: Nanos,
    /// Its trips in order of their start, those after the response included.
    pub trips: Vec<RequestTrip>,
}

/// One trip of a request.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestTrip {
    /// Where it went.
    pub service: Service,
    /// Its start, from the request in.
    pub start: Nanos,
    /// Its end, from the request in.
    pub end: Nanos,
    /// Why; `None` for connection set-up and for Redis.
    pub reason: Option<Reason>,
    /// Whether it belongs to connection set-up.
    pub set_up: bool,
    /// Whether somebody waits for it, by rule.
    pub awaited: bool,
    /// Whether it began after the response.
    pub after_response: bool,
    /// The first statement without its values, or the first command; empty for protocol alone.
    pub text: String,
}

/// From the request in to the response out; `None` if either was not seen.
pub(super) fn span(trace: &SlotTrace) -> Option<Span> {
    let span = Span { start: trace.request?, end: trace.response? };
    (span.start < span.end).then_some(span)
}

pub(super) fn record(
    slot: usize,
    trace: &SlotTrace,
    statements: &Statements,
) -> Option<RequestRecord> {
    let request = span(trace)?;
    let mut trips: Vec<_> = trace
        .trips
        .iter()
        .map(|trip| RequestTrip {
            service: trip.service,
            start: trip.start.since(request.start).unwrap_or_default(),
            end: trip.end.since(request.start).unwrap_or_default(),
            reason: trip.reason,
            set_up: trip.set_up,
            awaited: trip.awaited,
            after_response: trip.start >= request.end,
            text: text(trip, statements),
        })
        .collect();
    trips.sort_by_key(|trip| (trip.start, trip.end));
    Some(RequestRecord { slot, length: request.length(), trips })
}

fn text(trip: &Trip, statements: &Statements) -> String {
    match &trip.what {
        What::Statement(statement) => statements.sql(*statement).to_owned(),
        What::Command(command) => command.clone(),
        What::Nothing => String::new(),
    }
}
