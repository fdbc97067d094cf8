//! Faults that other tools had, and what must come out here. Reads the folder that `ASSAY_CASES`
//! names; without it there is nothing to compare with.
#![expect(clippy::unwrap_used, reason = "a case that cannot be read is a failure")]

use std::path::{Path, PathBuf};

use assay_analyses::cost::{Amount, Origin};
use assay_analyses::costs::wire::{Count, Protocol, WireFold, WireOutcome, WirePorts};
use assay_analyses::metric::Metric;
use assay_analyses::trips::Reason;
use assay_analyses::window::Window;
use assay_captures::capture;
use assay_captures::parsed::{Problem, Sink};
use assay_captures::pcap::{Endpoint, Flags, Record};
use assay_captures::request_log::{Slot, SlotKind};
use assay_captures::units::{Moment, Span};
use serde_json::Value;

fn cases() -> Option<PathBuf> {
    std::env::var_os("ASSAY_CASES").map(PathBuf::from)
}

fn origin() -> Origin {
    Origin {
        subject: "case".into(),
        variant: String::new(),
        route: String::new(),
        pass: "wire".into(),
        capture: None,
    }
}

/// Everything of a capture in one window of an unknown number of requests.
fn whole(path: &Path) -> WireOutcome {
    let span = Span { start: Moment(0), end: Moment(u64::MAX) };
    let mut fold = WireFold::new(&[Window { span, requests: 0 }], WirePorts::default());
    capture::packets(path, &mut fold).unwrap();
    fold.finish(&origin())
}

/// What we say to a question that an `expected.json` asks; `None` if it is asked elsewhere.
fn answer(outcome: &WireOutcome, question: &str) -> Option<u64> {
    let totals = &outcome.totals;
    let ready = |reason| totals.by_reason(Count::ReadyForQuery, reason);
    let empty = || totals.by_reason(Count::Executions, Reason::PoolPing);
    Some(match question {
        "ready_for_query" => totals.get(Count::ReadyForQuery),
        "statement_round_trips" => {
            totals.get(Count::ReadyForQuery) - totals.get(Count::ReadyForSetUp)
        }
        "complete_round_trips" | "waits" => totals.get(Count::Flights),
        "statements" => totals.get(Count::Executions) - empty(),
        "executions" => totals.get(Count::Executions),
        "empty_queries" => empty(),
        "user_statements" => totals.by_reason(Count::Executions, Reason::User),
        "rows" => totals.get(Count::Rows),
        "answer_without_question" => totals.get(Count::ReadyUnknown),
        "question_without_answer" => totals.get(Count::PostgresLost),
        "bytes_client" => totals.get(Count::PostgresSent),
        "reason user" | "reason execute" | "reason check" => ready(Reason::User),
        "reason prepare" | "reason close" => ready(Reason::Prepare),
        "reason begin" | "reason commit" => ready(Reason::Transaction),
        "reason pool_reset" | "reason reset" => ready(Reason::PoolReset),
        "reason ping_bare_sync" | "reason ping_empty_query" => ready(Reason::PoolPing),
        "commands" => totals.get(Count::RedisCommands) + totals.get(Count::RedisSetUp),
        "set_up" => totals.get(Count::RedisSetUp),
        "user" => totals.get(Count::RedisCommands),
        "requests" => totals.get(Count::HttpRequests),
        "responses" | "final_responses" => totals.get(Count::HttpResponses),
        _ => return None,
    })
}

/// Reasons that are one with us are added up.
fn reasons(expected: &Value) -> Vec<(String, u64)> {
    let groups = [
        ["user", "execute", "check"],
        ["prepare", "close", ""],
        ["begin", "commit", ""],
        ["pool_reset", "reset", ""],
        ["ping_bare_sync", "ping_empty_query", ""],
    ];
    groups
        .iter()
        .filter_map(|group| {
            let counts: Vec<_> =
                group.iter().filter_map(|name| expected.get(*name)?.as_u64()).collect();
            (!counts.is_empty()).then(|| (format!("reason {}", group[0]), counts.iter().sum()))
        })
        .collect()
}

#[test]
fn faults_of_other_tools_are_not_ours() {
    let Some(cases) = cases() else { return };
    let mut found = Vec::new();
    let mut asked = 0;
    for folder in std::fs::read_dir(cases.join("bugs")).unwrap() {
        let folder = folder.unwrap().path();
        let (input, expected) = (folder.join("in.pcap"), folder.join("expected.json"));
        if !input.exists() {
            continue;
        }
        let expected: Value = serde_json::from_slice(&std::fs::read(expected).unwrap()).unwrap();
        let outcome = whole(&input);
        let right = expected["right_answer"].as_object().unwrap();
        let plain = right.iter().filter_map(|(name, value)| Some((name.clone(), value.as_u64()?)));
        let by_reason = right.get("by_reason").map(reasons).unwrap_or_default();
        for (question, expected) in plain.chain(by_reason) {
            let Some(got) = answer(&outcome, &question) else { continue };
            asked += 1;
            if got != expected {
                let name = folder.file_name().unwrap().to_string_lossy().into_owned();
                found.push(format!("{name}: {question}: expected {expected}, got {got}"));
            }
        }
    }
    assert_eq!(found, Vec::<String>::new(), "{found:#?}");
    assert!(asked > 40, "only {asked} questions were asked");
}

#[test]
fn an_encrypted_connection_is_not_measured_rather_than_zero() {
    let Some(cases) = cases() else { return };
    let outcome = whole(&cases.join("bugs/P04-sslrequest-answer-is-one-byte/in.pcap"));
    let flights = outcome.costs.iter().find(|c| c.metric == Metric::PostgresFlights).unwrap();
    let Amount::NotMeasured(reason) = &flights.amount else { panic!("{:?}", flights.amount) };
    assert!(reason.starts_with("1 × connections are encrypted; sslmode=disable"), "{reason}");
}

#[test]
fn frames_that_were_captured_twice_are_said() {
    let Some(cases) = cases() else { return };
    let outcome = whole(&cases.join("bugs/P18-every-frame-twice/in.pcap"));
    assert!(outcome.integrity.frames_twice);
    assert_eq!(outcome.integrity.against(Protocol::Postgres), None);
}

#[test]
fn a_capture_that_begins_and_ends_in_the_middle_gives_lower_bounds() {
    let Some(cases) = cases() else { return };
    let outcome = whole(&cases.join("bugs/P20-capture-starts-and-ends-in-the-middle/in.pcap"));
    let flights = outcome.costs.iter().find(|c| c.metric == Metric::PostgresFlights).unwrap();
    assert!(matches!(flights.amount, Amount::LowerBound(figure, _) if figure.value == 1.0));
}

/// When each request of the one HTTP port was sent.
#[derive(Default)]
struct Requests(Vec<Moment>);

impl Sink<Record<'_>> for Requests {
    fn record(&mut self, record: Record<'_>) {
        if let Record::Packet(packet) = record {
            let Endpoint { .. } = packet.source;
            let head = packet.payload;
            let sent = [&b"GET "[..], b"POST ", b"HEAD "].iter().any(|m| head.starts_with(m));
            if sent && !packet.flags.has(Flags::SYN) {
                self.0.push(packet.moment);
            }
        }
    }

    fn problem(&mut self, _: Problem) {}
}

#[test]
fn each_request_is_charged_what_the_application_counted() {
    let Some(cases) = cases() else { return };
    let path = cases.join("combo/combo-seq.pcap");
    let mut requests = Requests::default();
    capture::packets(&path, &mut requests).unwrap();
    let ends = requests.0.iter().skip(1).copied().chain([Moment(u64::MAX)]);
    let slots: Vec<_> = requests
        .0
        .iter()
        .zip(ends)
        .map(|(&start, end)| Slot {
            start,
            answered: Some(start),
            end,
            kind: SlotKind::Request,
            status: None,
        })
        .collect();
    let truth = std::fs::read_to_string(cases.join("combo/combo-seq.truth.jsonl")).unwrap();
    let truth: Vec<(u64, u64)> = truth
        .lines()
        .map(|line| {
            let line: Value = serde_json::from_str(line).unwrap();
            let count = |name: &str| line[name].as_u64().unwrap();
            (count("pg_round_trips"), count("redis_commands"))
        })
        .collect();
    let windows: Vec<_> = slots
        .iter()
        .map(|slot| Window { span: Span { start: slot.start, end: slot.end }, requests: 1 })
        .collect();
    let mut got = Vec::new();
    for window in &windows {
        let mut fold = WireFold::new(&[*window], WirePorts::default());
        capture::packets(&path, &mut fold).unwrap();
        let totals = fold.finish(&origin()).totals;
        got.push((totals.get(Count::Flights), totals.get(Count::RedisCommands)));
    }
    assert_eq!(got, truth);
    let mut fold = WireFold::serial(&slots, WirePorts::default());
    capture::packets(&path, &mut fold).unwrap();
    let outcome = fold.finish_serial(&origin());
    assert_eq!(outcome.requests, 8);
    assert_eq!(outcome.responses_on_wire, 8);
    assert!(outcome.median.is_some() && outcome.slowest.is_some());
}
