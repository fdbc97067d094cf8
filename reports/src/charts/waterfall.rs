//! One request of the serial pass: each trip at its time.

use assay_analyses::costs::wire::RequestTrip;
use assay_analyses::trips::{Reason, Service};
use assay_captures::run_record::Arm;

use super::{Chart, Drawing, Numbers, Waterfall, WaterfallTrip};
use crate::cost_table::Finder;
use crate::numbers::Scale;
use crate::report::{OneRequest, Which};

/// Trips that are drawn; the table has them all.
const TRIPS: usize = 24;

/// The median request of each arm, and the slowest.
pub(super) fn of_route(finder: &Finder<'_>) -> Vec<Chart> {
    let of_arm = |arm: &Arm| -> Vec<Chart> {
        let own = finder.report.requests.iter().filter(|request| {
            request.route == finder.route
                && request.arm.subject == arm.subject
                && request.arm.variant == arm.variant
                && !request.record.trips.is_empty()
        });
        own.map(|request| chart(arm, request)).collect()
    };
    finder.arms.iter().flat_map(|arm| of_arm(arm)).collect()
}

fn chart(arm: &Arm, request: &OneRequest) -> Chart {
    let record = &request.record;
    let length = record.length.seconds();
    let scale = Scale::of("s", "", &[(length, length / 1000.0)]);
    let kinds = kinds(&record.trips);
    let trips = record.trips.iter().take(TRIPS).map(|trip| WaterfallTrip {
        span: (trip.start.seconds() * scale.factor, trip.end.seconds() * scale.factor),
        kind: kinds.iter().position(|known| *known == kind(trip)).unwrap_or(0),
        unawaited: !trip.awaited,
        text: said(trip),
    });
    let rows = record.trips.iter().map(|trip| {
        let when = if trip.after_response { "after the response" } else { "" };
        vec![
            said(trip),
            scale.show(trip.start.seconds()),
            scale.show(trip.end.seconds()),
            if trip.awaited { "yes" } else { "no, by rule" }.to_owned(),
            when.to_owned(),
        ]
    });
    let which = match request.which {
        Which::Median => "the median request",
        Which::Slowest => "the slowest request",
    };
    let more = record.trips.len().saturating_sub(TRIPS);
    let more = if more > 0 { format!(" {more} more are in the table.") } else { String::new() };
    Chart {
        title: format!("{}: {which}, {}", arm.title, scale.unit),
        says: format!(
            "Request {} of the serial pass, {} {} from the request in to the response out, on an \
             idle machine. Hollow: nobody waits for it, by rule.{more}",
            record.slot + 1,
            scale.show(length),
            scale.unit
        ),
        drawing: Drawing::Waterfall(Waterfall {
            length: length * scale.factor,
            unit: scale.unit,
            trips: trips.collect(),
            kinds: kinds.iter().map(|kind| ((*kind).to_owned(), colour(kind))).collect(),
        }),
        numbers: Numbers {
            head: vec![
                "trip".into(),
                format!("start, {}", scale.unit),
                format!("end, {}", scale.unit),
                "awaited".into(),
                "when".into(),
            ],
            rows: rows.collect(),
        },
    }
}

/// The kinds that occur, in the order of first sight.
fn kinds(trips: &[RequestTrip]) -> Vec<&'static str> {
    let mut kinds = Vec::new();
    for trip in trips {
        if !kinds.contains(&kind(trip)) {
            kinds.push(kind(trip));
        }
    }
    kinds
}

/// All kinds, in the order of colours.
const KINDS: [&str; 8] = [
    "user statement",
    "pool ping",
    "Redis command",
    "transaction control",
    "statement prepare",
    "connection set-up",
    "pool reset",
    "other",
];

fn colour(kind: &str) -> usize {
    KINDS.iter().position(|known| *known == kind).unwrap_or(KINDS.len() - 1)
}

fn kind(trip: &RequestTrip) -> &'static str {
    match (trip.service, trip.set_up, trip.reason) {
        (Service::Redis, ..) => "Redis command",
        (_, true, _) => "connection set-up",
        (_, _, Some(Reason::User)) => "user statement",
        (_, _, Some(Reason::Transaction)) => "transaction control",
        (_, _, Some(Reason::Prepare)) => "statement prepare",
        (_, _, Some(Reason::PoolPing)) => "pool ping",
        (_, _, Some(Reason::PoolReset)) => "pool reset",
        (_, _, None) => "other",
    }
}

fn said(trip: &RequestTrip) -> String {
    if trip.text.is_empty() { kind(trip).to_owned() } else { trip.text.clone() }
}
