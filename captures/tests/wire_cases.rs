//! Captures that others made, against what independent readers say of them. Reads the folder
//! that `ASSAY_CASES` names; without it there is nothing to compare with.

#![expect(clippy::unwrap_used, reason = "a case that cannot be read is a failure")]

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use assay_captures::parsed::{Problem, Sink};
use assay_captures::pcap::Record;
use assay_captures::tcp::{Connection, Event, EventSink, Side, Streams};
use assay_captures::{capture, http, postgres, redis};
use serde_json::Value;

/// Files on which the readers differ, and who is right; `CASES.md` says why.
const KNOWN: [&str; 11] = [
    "pgsql/gen-gap-15.pcap",
    "redis/tcpdump-resp_4_infiniteloop.pcapng",
    "redis/zeek-50-pings.pcap",
    "redis/zeek-django-cloud.pcapng",
    "redis/gen-bench.pcap",
    "http/zeek-100-continue.pcap",
    "http/zeek-content-range-gap.pcap",
    "http/zeek-entity_gap.pcap",
    "http/zeek-http-single-conn-22.pcap",
    "http/zeek-methods.pcap",
    "http/zeek-zero-length-bodies-with-drops.pcap",
];

type Totals = BTreeMap<String, u64>;

/// One conversation's decoder, whatever its protocol.
trait Decode {
    fn feed(&mut self, event: &Event<'_>, totals: &mut Totals);
}

struct Reader {
    streams: Streams,
    talks: Talks,
    packets: u64,
    bytes: u64,
    problems: Vec<Problem>,
}

struct Talks {
    make: fn(bool) -> Box<dyn Decode>,
    open: HashMap<Connection, Box<dyn Decode>>,
    totals: Totals,
}

impl Sink<Record<'_>> for Reader {
    fn record(&mut self, record: Record<'_>) {
        match record {
            Record::Packet(packet) => {
                self.packets += 1;
                self.bytes += u64::from(packet.original_length);
                self.streams.feed(&packet, &mut self.talks);
            }
            Record::Other { original_length, .. } => {
                self.packets += 1;
                self.bytes += u64::from(original_length);
            }
            _ => {}
        }
    }

    fn problem(&mut self, problem: Problem) {
        self.problems.push(problem);
    }
}

impl EventSink for Talks {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Opened { connection, from_start, .. } => {
                self.open.insert(connection, (self.make)(from_start));
            }
            Event::Chunk { connection, .. } | Event::Gap { connection, .. } => {
                if let Some(talk) = self.open.get_mut(&connection) {
                    talk.feed(&event, &mut self.totals);
                }
            }
            Event::Closed { connection, .. } => {
                if let Some(mut talk) = self.open.remove(&connection) {
                    talk.feed(&event, &mut self.totals);
                }
            }
        }
    }
}

fn read(path: &Path, make: fn(bool) -> Box<dyn Decode>) -> Reader {
    let mut reader = Reader {
        streams: Streams::new(&[5432, 15432, 6379, 80, 8080]),
        talks: Talks { make, open: HashMap::new(), totals: Totals::new() },
        packets: 0,
        bytes: 0,
        problems: Vec::new(),
    };
    capture::packets(path, &mut reader).unwrap();
    reader.streams.finish(&mut reader.talks);
    reader
}

fn add(totals: &mut Totals, name: impl Into<String>) {
    *totals.entry(name.into()).or_default() += 1;
}

impl Decode for postgres::Decoder {
    fn feed(&mut self, event: &Event<'_>, totals: &mut Totals) {
        let mut sink = |message: postgres::Message<'_>| add(totals, postgres_name(&message));
        match *event {
            Event::Chunk { from, moment, bytes, .. } => self.feed(from, moment, bytes, &mut sink),
            Event::Gap { from, moment, length, .. } => self.gap(from, moment, length, &mut sink),
            _ => {}
        }
    }
}

fn postgres_name(message: &postgres::Message<'_>) -> String {
    use postgres::{Backend, Body, Frontend};
    let name = match message.body {
        Body::Fault(fault) => return format!("fault: {fault:?}"),
        Body::Frontend(Frontend::TlsRequest) => "F:SSLRequest",
        Body::Frontend(Frontend::GssRequest) => "F:GSSENCRequest",
        Body::Frontend(Frontend::Password) => "F:PasswordOrSASL",
        Body::Frontend(Frontend::FunctionCall) => "F:FunctionCall",
        Body::Backend(Backend::Encryption(_)) => "fault: encryption answer",
        Body::Backend(Backend::Error { .. }) => "B:ErrorResponse",
        Body::Backend(Backend::Notice) => "B:NoticeResponse",
        Body::Backend(Backend::CopyIn) => "B:CopyInResponse",
        Body::Backend(Backend::CopyOut) => "B:CopyOutResponse",
        Body::Backend(Backend::CopyBoth) => "B:CopyBothResponse",
        Body::Backend(Backend::EmptyQuery) => "B:EmptyQueryResponse",
        Body::Backend(Backend::Notification) => "B:NotificationResponse",
        Body::Frontend(other) => return format!("F:{}", word(&format!("{other:?}"))),
        Body::Backend(other) => return format!("B:{}", word(&format!("{other:?}"))),
    };
    name.to_owned()
}

fn word(debug: &str) -> &str {
    debug.split([' ', '(', '{']).next().unwrap_or(debug)
}

impl Decode for redis::Decoder {
    fn feed(&mut self, event: &Event<'_>, totals: &mut Totals) {
        let mut sink = |message: redis::Message<'_>| match message.said {
            redis::Said::Command(_) => add(totals, "commands"),
            redis::Said::Reply(reply) => {
                add(totals, "replies");
                if reply.is_error() {
                    add(totals, "errors");
                }
            }
            redis::Said::Push(_) => add(totals, "pushes"),
            redis::Said::Fault(fault) => add(totals, format!("fault: {fault:?}")),
        };
        match *event {
            Event::Chunk { from, moment, bytes, .. } => self.feed(from, moment, bytes, &mut sink),
            Event::Gap { from, moment, length, .. } => self.gap(from, moment, length, &mut sink),
            _ => {}
        }
    }
}

impl Decode for http::Decoder {
    fn feed(&mut self, event: &Event<'_>, totals: &mut Totals) {
        let mut sink = |message: http::Message<'_>| match message.said {
            http::Said::Request { method, .. } => {
                add(totals, "requests");
                add(totals, format!("method {}", String::from_utf8_lossy(method)));
            }
            http::Said::Response { status } => {
                add(totals, "responses");
                add(totals, format!("status {status}"));
            }
            http::Said::Interim { .. } => add(totals, "interim"),
            http::Said::RequestEnd | http::Said::ResponseEnd => {}
            http::Said::Fault(http::Fault::HoleInBody(_, length)) => {
                *totals.entry("missing bytes".to_owned()).or_default() += length;
            }
            http::Said::Fault(fault) => add(totals, format!("fault: {fault:?}")),
        };
        match *event {
            Event::Chunk { from: Side::Client, moment, bytes, .. } => {
                self.feed(Side::Client, moment, bytes, &mut sink);
            }
            Event::Chunk { from, moment, bytes, .. } => self.feed(from, moment, bytes, &mut sink),
            Event::Gap { from, moment, length, .. } => self.gap(from, moment, length, &mut sink),
            Event::Closed { moment, .. } => self.close(moment, &mut sink),
            Event::Opened { .. } => {}
        }
    }
}

fn cases() -> Option<PathBuf> {
    std::env::var_os("ASSAY_CASES").map(PathBuf::from)
}

fn oracle(cases: &Path, name: &str) -> Value {
    serde_json::from_slice(&std::fs::read(cases.join(name)).unwrap()).unwrap()
}

/// Compares, leaving out what is ours alone, and returns a line for each file that differs.
fn differences(
    rows: impl IntoIterator<Item = (String, Totals)>,
    cases: &Path,
    make: fn(bool) -> Box<dyn Decode>,
) -> Vec<String> {
    let mut lines = Vec::new();
    for (file, expected) in rows {
        let path = cases.join(&file);
        if !path.exists() || KNOWN.contains(&file.as_str()) {
            continue;
        }
        let reader = read(&path, make);
        let mut got = reader.talks.totals;
        let faults: Vec<_> =
            got.iter().filter(|(name, _)| name.starts_with("fault")).map(|f| f.0.clone()).collect();
        got.retain(|name, _| !name.starts_with("fault"));
        let names: std::collections::BTreeSet<_> = got.keys().chain(expected.keys()).collect();
        let differing: Vec<_> = names
            .into_iter()
            .filter(|name| got.get(*name) != expected.get(*name))
            .map(|name| {
                let count = |totals: &Totals| totals.get(name).copied().unwrap_or(0);
                format!("{name} expected {} got {}", count(&expected), count(&got))
            })
            .collect();
        if !differing.is_empty() {
            lines.push(format!("{file}: {} {faults:?}", differing.join(", ")));
        }
    }
    lines
}

fn totals(value: &Value) -> Totals {
    let Some(map) = value.as_object() else { return Totals::new() };
    map.iter().filter_map(|(name, count)| Some((name.clone(), count.as_u64()?))).collect()
}

#[test]
fn postgres_messages_are_those_of_the_independent_reader() {
    let Some(cases) = cases() else { return };
    let oracle = oracle(&cases, "oracle-pgsql.json");
    let rows =
        oracle.as_array().unwrap().iter().map(|entry| {
            (entry["file"].as_str().unwrap().to_owned(), totals(&entry["follow_totals"]))
        });
    let found = differences(rows, &cases, |start| Box::new(postgres::Decoder::new(start)));
    assert_eq!(found, Vec::<String>::new(), "{found:#?}");
}

#[test]
fn redis_commands_and_replies_are_those_of_the_independent_reader() {
    let Some(cases) = cases() else { return };
    let oracle = oracle(&cases, "oracle-redis.json");
    let rows = oracle.as_array().unwrap().iter().map(|entry| {
        let mut expected = totals(entry);
        expected.retain(|name, count| *count > 0 && !name.starts_with("tshark"));
        (entry["file"].as_str().unwrap().to_owned(), expected)
    });
    let found = differences(rows, &cases, |start| Box::new(redis::Decoder::new(start)));
    assert_eq!(found, Vec::<String>::new(), "{found:#?}");
}

#[test]
fn http_requests_and_responses_are_those_of_the_independent_reader() {
    let Some(cases) = cases() else { return };
    let oracle = oracle(&cases, "oracle-http.json");
    let rows = oracle.as_array().unwrap().iter().map(|entry| {
        let reassembled = &entry["reassemble_out_of_order"];
        let mut expected = totals(reassembled);
        expected.retain(|_, count| *count > 0);
        for (name, count) in totals(&reassembled["methods"]) {
            expected.insert(format!("method {name}"), count);
        }
        for (name, count) in totals(&reassembled["statuses"]) {
            expected.insert(format!("status {name}"), count);
        }
        (entry["file"].as_str().unwrap().to_owned(), expected)
    });
    let found = differences(rows, &cases, |start| Box::new(http::Decoder::new(start)));
    assert_eq!(found, Vec::<String>::new(), "{found:#?}");
}

#[test]
fn every_packet_of_every_capture_is_read() {
    let Some(cases) = cases() else { return };
    let oracle = oracle(&cases, "oracle-pcap-meta.json");
    let mut found = Vec::new();
    for row in oracle["rows"].as_array().unwrap() {
        let file = row["file"].as_str().unwrap();
        let info = row["capinfos"].as_array().unwrap();
        let number = |index: usize| info.get(index)?.as_str()?.parse::<u64>().ok();
        let (Some(packets), Some(bytes)) = (number(5), number(6)) else { continue };
        let path = cases.join(file);
        if !path.exists() {
            continue;
        }
        let reader = read(&path, |start| Box::new(http::Decoder::new(start)));
        if (reader.packets, reader.bytes) != (packets, bytes) {
            found.push(format!(
                "{file}: expected {packets} packets, {bytes} bytes, got {}, {} {:?}",
                reader.packets, reader.bytes, reader.problems
            ));
        }
    }
    assert_eq!(found, Vec::<String>::new(), "{found:#?}");
}
