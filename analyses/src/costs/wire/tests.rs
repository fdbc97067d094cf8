//! Hand-made packets in, costs and notes out.

use std::net::Ipv4Addr;

use assay_captures::parsed::Sink;
use assay_captures::pcap::{Endpoint, Flags, Packet, Record};
use assay_captures::request_log::{Slot, SlotKind};
use assay_captures::units::{Moment, Nanos, Span};

use super::*;
use crate::cost::{Amount, Cost, Origin, Per};
use crate::metric::Metric;
use crate::trips::{Reason, Service};
use crate::window::Window;

const PING: (&[u8], &[u8]) = (b"S\0\0\0\x04", b"Z\0\0\0\x05I");
const QUERY: (&[u8], &[u8]) = (b"Q\0\0\0\x0dselect a\0", b"C\0\0\0\x0dSELECT 1\0Z\0\0\0\x05I");
const PREPARE: (&[u8], &[u8]) =
    (b"P\0\0\0\x10\0select a\0\0\0S\0\0\0\x04", b"1\0\0\0\x04Z\0\0\0\x05I");
const GET: (&[u8], &[u8]) = (b"*2\r\n$3\r\nGET\r\n$1\r\na\r\n", b"$1\r\nx\r\n");
const REQUEST: &[u8] = b"GET / HTTP/1.1\r\n\r\n";
const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

fn ports() -> WirePorts {
    WirePorts { http: vec![8080], postgres: vec![5432], redis: vec![6379] }
}

fn origin() -> Origin {
    Origin {
        subject: "s".into(),
        variant: "v".into(),
        route: "r".into(),
        pass: "wire".into(),
        capture: None,
    }
}

/// Sends segments into a fold; each connection is a pair of ports.
struct Wire {
    fold: WireFold,
    sequences: std::collections::HashMap<(u16, u16), u32>,
}

impl Wire {
    fn new(fold: WireFold) -> Self {
        Self { fold, sequences: std::collections::HashMap::new() }
    }

    fn send(&mut self, at: u64, from: u16, to: u16, payload: &[u8]) {
        self.record(at, from, to, payload, true);
    }

    /// Not captured: the recorder is off, or loses it.
    fn miss(&mut self, from: u16, to: u16, payload: &[u8]) {
        self.record(0, from, to, payload, false);
    }

    fn record(&mut self, at: u64, from: u16, to: u16, payload: &[u8], captured: bool) {
        let acknowledgement = *self.sequences.get(&(to, from)).unwrap_or(&1);
        let sequence = self.sequences.entry((from, to)).or_insert(1);
        let packet = Packet {
            moment: Moment(at),
            source: Endpoint { address: Ipv4Addr::LOCALHOST.into(), port: from },
            destination: Endpoint { address: Ipv4Addr::LOCALHOST.into(), port: to },
            sequence: *sequence,
            acknowledgement,
            flags: Flags::ACK,
            payload,
            payload_offset: 0,
            missing: 0,
            captured_length: 0,
            original_length: 0,
        };
        *sequence += payload.len() as u32;
        if captured {
            self.fold.record(Record::Packet(packet));
        }
    }

    fn exchange(&mut self, at: u64, port: u16, (asked, answered): (&[u8], &[u8])) {
        self.send(at, 40_000, port, asked);
        self.send(at + 2, port, 40_000, answered);
    }
}

fn value(costs: &[Cost], metric: Metric, label: Option<&str>) -> f64 {
    cost(costs, metric, label).amount.figure().unwrap().value
}

fn cost<'a>(costs: &'a [Cost], metric: Metric, label: Option<&str>) -> &'a Cost {
    costs
        .iter()
        .find(|cost| {
            cost.metric == metric && cost.labels.values().next().map(String::as_str) == label
        })
        .unwrap()
}

fn window(start: u64, end: u64, requests: u64) -> Window {
    Window { span: Span { start: Moment(start), end: Moment(end) }, requests }
}

#[test]
fn totals_of_the_windows_are_divided_by_their_requests() {
    // 0         10        20        30        40
    // 01234567890123456789012345678901234567890123
    //      <--- w0, 2 ----->        <--- w1, 2 -->
    //  p    q  p  q  g          p    q  q  p        p ping, q query, g Redis
    let windows = [window(5, 21, 2), window(31, 45, 2)];
    let mut wire = Wire::new(WireFold::new(&windows, ports()));
    wire.exchange(1, 5432, PING);
    wire.exchange(7, 5432, QUERY);
    wire.exchange(10, 5432, PING);
    wire.exchange(13, 5432, QUERY);
    wire.exchange(16, 6379, GET);
    wire.exchange(26, 5432, PING);
    wire.exchange(32, 5432, QUERY);
    wire.exchange(35, 5432, QUERY);
    wire.exchange(38, 5432, PING);
    let outcome = wire.fold.finish(&origin());
    let costs = &outcome.costs;
    assert_eq!(value(costs, Metric::PostgresFlights, None), 1.5);
    assert_eq!(value(costs, Metric::PostgresFlights, Some("user")), 1.0);
    assert_eq!(value(costs, Metric::PostgresFlights, Some("pool ping")), 0.5);
    assert_eq!(value(costs, Metric::PostgresAwaitedFlights, None), 1.0);
    assert_eq!(value(costs, Metric::PostgresExecutions, None), 1.0);
    assert_eq!(value(costs, Metric::RedisCommands, None), 0.25);
    assert_eq!(value(costs, Metric::RedisFlights, None), 0.25);
    assert_eq!(outcome.nobody.get(Count::Flights), 2);
    let statement = &outcome.statements[0];
    assert_eq!((statement.sql.as_str(), statement.executions), ("select a", 4));
    assert_eq!(statement.reason, Some(Reason::User));
    let by_reason: f64 = Reason::ALL
        .iter()
        .map(|reason| value(costs, Metric::PostgresFlights, Some(reason.word())))
        .sum();
    assert_eq!(by_reason, value(costs, Metric::PostgresFlights, None));
}

#[test]
fn without_requests_amounts_are_totals_of_the_capture() {
    let mut wire = Wire::new(WireFold::new(&[window(0, 100, 0)], WirePorts::default()));
    wire.exchange(7, 5432, QUERY);
    let outcome = wire.fold.finish(&origin());
    let flights = cost(&outcome.costs, Metric::PostgresFlights, None);
    assert_eq!((flights.per, flights.amount.figure().unwrap().value), (Per::Capture, 1.0));
    // Redis has neither a port nor a connection: nothing is claimed of it.
    assert!(outcome.costs.iter().all(|cost| cost.metric != Metric::RedisCommands));
}

#[test]
fn what_passed_while_the_recorder_was_off_is_no_gap() {
    let windows = [window(0, 10, 1), window(20, 30, 1)];
    let mut wire = Wire::new(WireFold::new(&windows, ports()));
    wire.exchange(1, 5432, QUERY);
    wire.miss(40_000, 5432, QUERY.0);
    wire.miss(5432, 40_000, QUERY.1);
    wire.exchange(21, 5432, QUERY);
    let outcome = wire.fold.finish(&origin());
    assert_eq!(outcome.integrity.against(Protocol::Postgres), None);
    assert_eq!(value(&outcome.costs, Metric::PostgresFlights, None), 1.0);
}

#[test]
fn a_lost_segment_or_a_drop_makes_the_count_not_measured() {
    let mut wire = Wire::new(WireFold::new(&[window(0, 100, 1)], ports()));
    wire.exchange(1, 5432, QUERY);
    wire.exchange(5, 6379, GET);
    wire.miss(40_000, 5432, QUERY.0);
    wire.miss(5432, 40_000, QUERY.1);
    for at in 2..12 {
        wire.exchange(at * 5, 5432, QUERY);
    }
    let outcome = wire.fold.finish(&origin());
    let amount = &cost(&outcome.costs, Metric::PostgresFlights, None).amount;
    assert!(
        matches!(amount, Amount::NotMeasured(reason) if reason.contains("missing")),
        "{amount:?}"
    );
    assert_eq!(value(&outcome.costs, Metric::RedisCommands, None), 1.0);

    let mut wire = Wire::new(WireFold::new(&[window(0, 100, 1)], ports()));
    wire.exchange(1, 6379, GET);
    wire.fold.record(Record::Drops { interface: 0, total: 7 });
    let outcome = wire.fold.finish(&origin());
    assert_eq!(
        cost(&outcome.costs, Metric::RedisCommands, None).amount,
        Amount::NotMeasured("the recorder dropped 7 packets".to_owned())
    );
}

fn slot(start: u64, end: u64, kind: SlotKind) -> Slot {
    let answered = (kind == SlotKind::Request).then_some(Moment(end));
    Slot { start: Moment(start), answered, end: Moment(end), kind, status: None }
}

#[test]
fn single_requests_have_exact_counts_phases_and_a_waterfall() {
    // Each request, from its slot's start (a request in at +5, its response out at +40):
    //
    // 0    5    10        20        30        40   45
    //      |    pp        qqq       gg        |    ss     ping, query, Redis GET, release Sync
    //
    // before 5, Postgres 2 + 2, between 8 + 8, Redis 2, after 8 (exchanges take 2)
    let slots = [
        slot(0, 100, SlotKind::Request),
        slot(100, 200, SlotKind::Empty),
        slot(200, 300, SlotKind::Request),
        slot(300, 400, SlotKind::Request),
    ];
    let mut wire = Wire::new(WireFold::serial(&slots, ports()));
    for (index, start) in [0, 200, 300].into_iter().enumerate() {
        wire.send(start + 5, 50_000, 8080, REQUEST);
        wire.exchange(start + 10, 5432, PING);
        if index == 0 {
            wire.exchange(start + 15, 5432, PREPARE);
        }
        wire.exchange(start + 20, 5432, QUERY);
        wire.exchange(start + 30, 6379, GET);
        wire.send(start + 40, 8080, 50_000, RESPONSE);
        wire.exchange(start + 45, 5432, PING);
    }
    wire.exchange(150, 5432, PING);
    let outcome = wire.fold.finish_serial(&origin());
    let costs = &outcome.costs;
    assert_eq!((outcome.requests, outcome.preparing, outcome.responses_on_wire), (3, 1, 3));
    let flights = cost(costs, Metric::PostgresFlights, None);
    let figure = flights.amount.figure().unwrap();
    assert_eq!((figure.value, figure.low, figure.high, figure.samples), (3.0, 3.0, 3.0, 2));
    assert_eq!(flights.doubts[0], "4 in 1 of 3 requests: they prepare");
    assert_eq!(flights.doubts[1], "1.000 in an empty slot of the same length");
    assert_eq!(value(costs, Metric::PostgresFlights, Some("user")), 1.0);
    assert_eq!(value(costs, Metric::PostgresFlights, Some("pool ping")), 2.0);
    let nanos = |metric, label| (value(costs, metric, label) * 1e9).round();
    assert_eq!(nanos(Metric::PhaseBefore, None), 5.0);
    assert_eq!(nanos(Metric::Wait, Some("postgres")), 4.0);
    assert_eq!(nanos(Metric::Wait, Some("redis")), 2.0);
    assert_eq!(nanos(Metric::PhaseBetween, None), 16.0);
    assert_eq!(nanos(Metric::PhaseAfter, None), 8.0);
    let median = outcome.median.unwrap();
    assert_eq!(median.length, Nanos(35));
    let trips: Vec<_> = median
        .trips
        .iter()
        .map(|trip| (trip.service, trip.start.0, trip.text.as_str(), trip.after_response))
        .collect();
    assert_eq!(
        trips,
        [
            (Service::Postgres, 5, "", false),
            (Service::Postgres, 15, "select a", false),
            (Service::Redis, 25, "GET", false),
            (Service::Postgres, 40, "", true),
        ]
    );
    let spread = &outcome.distributions[0];
    assert_eq!(spread.steady.iter().collect::<Vec<_>>(), [(&3, &2)]);
    assert_eq!(spread.preparing.iter().collect::<Vec<_>>(), [(&4, &1)]);
}

/// Bind of the statement prepared as `s1`, Execute, Sync; and what the server answers.
const NAMED: (&[u8], &[u8]) = (
    b"B\0\0\0\x0e\0s1\0\0\0\0\0\0\0E\0\0\0\x09\0\0\0\0\0S\0\0\0\x04",
    b"2\0\0\0\x04C\0\0\0\x0dSELECT 1\0Z\0\0\0\x05I",
);

#[test]
fn a_statement_from_before_the_capture_that_repeats_in_each_request_is_one_statement() {
    let slots = [slot(0, 100, SlotKind::Request), slot(100, 200, SlotKind::Request)];
    let mut wire = Wire::new(WireFold::serial(&slots, ports()));
    for start in [0, 100] {
        wire.send(start + 5, 50_000, 8080, REQUEST);
        for at in [10, 20, 30] {
            wire.exchange(start + at, 5432, NAMED);
        }
        wire.send(start + 40, 8080, 50_000, RESPONSE);
    }
    let outcome = wire.fold.finish_serial(&origin());
    let [statement] = &outcome.statements[..] else { panic!("{:?}", outcome.statements) };
    assert_eq!(statement.sql, "(s1, prepared before the capture: its text is not known)");
    assert!(statement.told_apart);
    assert_eq!((statement.per_request, statement.executions), (Some(3.0), 6));
}

#[test]
fn one_name_on_several_connections_may_be_several_statements() {
    let slots = [slot(0, 100, SlotKind::Request)];
    let mut wire = Wire::new(WireFold::serial(&slots, ports()));
    wire.send(5, 50_000, 8080, REQUEST);
    for (at, client) in [(10, 40_001), (20, 40_002), (30, 40_003)] {
        wire.send(at, client, 5432, NAMED.0);
        wire.send(at + 2, 5432, client, NAMED.1);
    }
    wire.send(40, 8080, 50_000, RESPONSE);
    let outcome = wire.fold.finish_serial(&origin());
    assert_eq!(outcome.statements.len(), 1);
    assert!(!outcome.statements[0].told_apart);
}

#[test]
fn a_connection_that_was_encrypted_before_the_capture_is_not_measured_rather_than_zero() {
    let mut wire = Wire::new(WireFold::new(&[window(0, 100, 1)], ports()));
    for at in [10, 20, 30] {
        wire.exchange(at, 5432, (b"\x17\x03\x03\0\x05abcde", b"\x17\x03\x03\0\x05fghij"));
    }
    let outcome = wire.fold.finish(&origin());
    let amount = &cost(&outcome.costs, Metric::PostgresFlights, None).amount;
    assert!(
        matches!(amount, Amount::NotMeasured(reason) if reason.contains("encrypted")),
        "{amount:?}"
    );
}

#[test]
fn servers_are_recognised_by_what_passes_whatever_their_ports() {
    let ports = [7001, 7002, 7003, 7004, 7005];
    let mut recognition = Recognition::new(&ports);
    let said: [(u16, &[u8]); 5] = [
        (7001, NAMED.0),
        (7002, GET.0),
        (7003, REQUEST),
        (7004, b"\x17\x03\x03\0\x05abcde"),
        (7005, b"who knows"),
    ];
    for (at, (port, payload)) in said.into_iter().enumerate() {
        recognition.record(Record::Packet(Packet {
            moment: Moment(at as u64),
            source: Endpoint { address: Ipv4Addr::LOCALHOST.into(), port: 40_000 },
            destination: Endpoint { address: Ipv4Addr::LOCALHOST.into(), port },
            sequence: 1,
            acknowledgement: 1,
            flags: Flags::ACK,
            payload,
            payload_offset: 0,
            missing: 0,
            captured_length: 0,
            original_length: 0,
        }));
    }
    let heard: Vec<(u16, Spoken)> =
        recognition.finish().into_iter().map(|(server, spoken)| (server.port, spoken)).collect();
    assert_eq!(
        heard,
        [
            (7001, Spoken::Clear(Protocol::Postgres)),
            (7002, Spoken::Clear(Protocol::Redis)),
            (7003, Spoken::Clear(Protocol::Http)),
            (7004, Spoken::Encrypted),
        ]
    );
}

/// What stands out in exchanges of one connection, one after the other.
fn concluded(exchanges: &[(&[u8], &[u8])]) -> Vec<String> {
    let always = Span { start: Moment(0), end: Moment(u64::MAX) };
    let mut wire = Wire::new(WireFold::foreign(always, 0, ports()));
    for (index, exchange) in exchanges.iter().enumerate() {
        wire.exchange(10 * index as u64, 5432, *exchange);
    }
    conclusions(&wire.fold.finish(&origin()))
}

#[test]
fn a_foreign_capture_has_conclusions_of_its_trips() {
    let begin: (&[u8], &[u8]) = (b"Q\0\0\0\x0abegin\0", b"C\0\0\0\x0aBEGIN\0Z\0\0\0\x05T");
    let commit: (&[u8], &[u8]) = (b"Q\0\0\0\x0bcommit\0", b"C\0\0\0\x0bCOMMIT\0Z\0\0\0\x05I");
    assert_eq!(
        concluded(&[begin, QUERY, commit, begin, QUERY, commit]),
        ["4 of 6 round trips are transaction control around single reads"]
    );
    assert_eq!(concluded(&[begin, QUERY, QUERY, QUERY, commit]), [""; 0]);
    assert_eq!(
        concluded(&[PING, QUERY, PING, QUERY]),
        ["2 of 4 round trips only ask whether a connection lives"]
    );
    let again = concluded(&[PREPARE, QUERY, PREPARE, QUERY]);
    assert!(again[0].starts_with("a statement is prepared again for each execution"), "{again:?}");
}
