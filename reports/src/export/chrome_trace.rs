//! The JSON of Chrome's tracing, which Perfetto opens: the *Trace Event Format*, events of type
//! `X` (complete) and `M` (names).

use assay_analyses::costs::wire::RequestTrip;
use assay_analyses::trips::Service;
use serde_json::{Value, json};

use crate::report::{OneRequest, Which};

/// Single requests of the serial pass, each a process of its own: the request, its trips to
/// Postgres and to Redis, and the time of the service between them. Times are microseconds.
#[must_use]
pub fn chrome_trace(requests: &[&OneRequest]) -> String {
    let numbered = (1u32..).zip(requests);
    let events: Vec<Value> = numbered.flat_map(|(id, request)| events(id, request)).collect();
    format!("{}\n", json!({ "traceEvents": events, "displayTimeUnit": "ns" }))
}

fn micros(nanos: u64) -> f64 {
    nanos as f64 / 1e3
}

/// Tracks: the request, then as many for each service as have trips at once.
fn events(id: u32, request: &OneRequest) -> Vec<Value> {
    let which = match request.which {
        Which::Median => "median request",
        Which::Slowest => "slowest request",
    };
    let title = format!("{}: {which}", super::title(&request.arm, &request.route));
    let record = &request.record;
    let mut events = vec![
        json!({ "ph": "M", "name": "process_name", "pid": id, "args": { "name": title } }),
        named(id, 1, "request"),
        complete(id, 1, &request.route, "request", (0, record.length.0), json!({})),
    ];
    let gaps = gaps(&record.trips, record.length.0);
    events.extend(gaps.map(|span| complete(id, 1, "service", "service", span, json!({}))));
    let mut track = 2;
    for (service, name) in [(Service::Postgres, "Postgres"), (Service::Redis, "Redis")] {
        let trips: Vec<&RequestTrip> =
            record.trips.iter().filter(|trip| trip.service == service).collect();
        let mut free: Vec<u64> = Vec::new();
        for trip in trips {
            let lane = free.iter().position(|&free| free <= trip.start.0);
            let lane = lane.unwrap_or_else(|| {
                free.push(0);
                events.push(named(id, track + free.len() as u32 - 1, name));
                free.len() - 1
            });
            free[lane] = trip.end.0;
            events.push(of_trip(id, track + lane as u32, name, trip));
        }
        track += free.len() as u32;
    }
    events
}

fn of_trip(id: u32, track: u32, service: &str, trip: &RequestTrip) -> Value {
    let reason = match trip.reason {
        _ if trip.set_up => "connection set-up",
        Some(reason) => reason.word(),
        None => "command",
    };
    let name = if trip.text.is_empty() { reason } else { &trip.text };
    let about = json!({ "reason": reason, "awaited": trip.awaited, "after the response":
        trip.after_response });
    complete(id, track, name, service, (trip.start.0, trip.end.0), about)
}

/// The spans of the request in which it waits for nobody.
fn gaps(trips: &[RequestTrip], length: u64) -> impl Iterator<Item = (u64, u64)> {
    let mut waits: Vec<(u64, u64)> = trips
        .iter()
        .filter(|trip| trip.awaited && !trip.after_response)
        .map(|trip| (trip.start.0.min(length), trip.end.0.min(length)))
        .collect();
    waits.sort_unstable();
    waits.push((length, length));
    let mut reached = 0;
    waits.into_iter().filter_map(move |(start, end)| {
        let gap = (reached, start);
        reached = reached.max(end);
        (gap.0 < gap.1).then_some(gap)
    })
}

fn named(id: u32, track: u32, name: &str) -> Value {
    json!({ "ph": "M", "name": "thread_name", "pid": id, "tid": track, "args": { "name": name } })
}

fn complete(
    id: u32,
    track: u32,
    name: &str,
    category: &str,
    (start, end): (u64, u64),
    about: Value,
) -> Value {
    json!({
        "ph": "X", "name": name, "cat": category, "pid": id, "tid": track,
        "ts": micros(start), "dur": micros(end.saturating_sub(start)), "args": about,
    })
}
