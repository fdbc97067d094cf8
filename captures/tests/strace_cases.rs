//! Traces that others recorded, with counts by independent readers. The folder is named by
//! `ASSAY_CASES`; without it there is nothing to do.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the message")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use assay_captures::capture;
use assay_captures::strace::{
    Decoder, NameTotals, Outcome, Record, Totals, descriptor, program, socket,
};
use assay_captures::units::Nanos;
use serde_json::Value;

fn cases() -> Option<PathBuf> {
    std::env::var_os("ASSAY_CASES").map(PathBuf::from)
}

fn totals(path: &Path) -> Totals {
    let mut totals = Totals::default();
    capture::strace(path, &mut totals).unwrap();
    totals
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

fn number(value: &Value, key: &str) -> u64 {
    value[key].as_u64().unwrap_or(0)
}

fn close(nanos: Nanos, seconds: f64) -> bool {
    (nanos.seconds() - seconds).abs() < 2e-6 + seconds * 1e-6
}

/// One line for each difference between what a file holds and what we read.
fn differences(file: &str, naive: &Value, ours: &BTreeMap<&str, NameTotals>) -> Vec<String> {
    let empty = serde_json::Map::new();
    let theirs = naive["by_name"].as_object().unwrap_or(&empty);
    let mut found = Vec::new();
    for name in theirs.keys().map(String::as_str).chain(ours.keys().copied()) {
        let expected = theirs.get(name).unwrap_or(&Value::Null);
        let got = ours.get(name).copied().unwrap_or_default();
        let starts = got.calls + got.never + got.detached + got.unfinished;
        let pairs = [
            ("starts", number(expected, "starts"), starts),
            ("completed", number(expected, "completed"), got.calls + got.never),
            ("errors", number(expected, "errors"), got.errors),
        ];
        for (what, expected, got) in pairs {
            if expected != got {
                found.push(format!("{file}: {name} {what}: expected {expected}, got {got}"));
            }
        }
        let time = expected["time_s"].as_f64().unwrap_or(0.0);
        if !close(got.time, time) {
            found.push(format!("{file}: {name} time: expected {time}, got {}", got.time.seconds()));
        }
    }
    found.sort();
    found.dedup();
    found
}

/// Where the other reader is wrong, and why: see `CASES.md`.
const KNOWN: [&str; 1] = ["strace/ses-sssd_pam.strace: epoll_wait completed: expected 15, got 14"];

#[test]
fn traces_of_others_count_as_independent_readers_count_them() {
    let Some(cases) = cases() else { return };
    let oracle = json(&cases.join("oracle-strace.json"));
    let mut found = Vec::new();
    for entry in oracle["files"].as_array().unwrap() {
        let file = entry["file"].as_str().unwrap();
        // The reader has seen more files than the folder holds.
        if !cases.join(file).exists() {
            continue;
        }
        let totals = totals(&cases.join(file));
        let naive = &entry["naive_count"];
        if naive.is_object() {
            found.extend(differences(file, naive, &totals.names()));
            let signals: u64 = totals.signals.values().sum();
            let expected: u64 = naive["signals"]
                .as_object()
                .map_or(0, |signals| signals.values().filter_map(Value::as_u64).sum());
            if signals != expected {
                found.push(format!("{file}: signals: expected {expected}, got {signals}"));
            }
        }
        if let Some(table) = entry["strace_own_table_C_w"].as_object() {
            let names = totals.names();
            for (name, row) in table {
                let got = names.get(name.as_str()).copied().unwrap_or_default();
                let in_table = totals.table.get(name).copied().unwrap_or_default();
                for (what, got) in [("calls", got.calls), ("calls in table", in_table.calls)] {
                    if got != number(row, "calls") {
                        found.push(format!("{file}: {name} {what}: {got}, own table {row}"));
                    }
                }
            }
        }
    }
    found.retain(|line| !KNOWN.contains(&line.as_str()));
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}

#[test]
fn tables_of_strace_add_up() {
    let Some(cases) = cases() else { return };
    for (file, calls, errors) in
        [("gen-c-plain.txt", 145, 19), ("gen-c-f-w.txt", 1699, 177), ("gen-c-S-calls.txt", 148, 26)]
    {
        let totals = totals(&cases.join("strace").join(file));
        let sum = |count: fn(&NameTotals) -> u64| totals.table.values().map(count).sum::<u64>();
        assert_eq!(sum(|row| row.calls), calls, "{file}");
        assert_eq!(sum(|row| row.errors), errors, "{file}");
        assert_eq!(totals.problems, [], "{file}");
    }
}

/// Compares a map of the right answer, name by name.
fn check_map(id: &str, answer: &Value, key: &str, got: impl Fn(&str) -> f64) {
    for (name, expected) in answer[key].as_object().into_iter().flatten() {
        let expected = expected.as_f64().unwrap();
        assert!(
            (got(name) - expected).abs() < 1e-9,
            "{id}: {key} {name}: {} {expected}",
            got(name)
        );
    }
}

#[test]
fn faults_of_other_tools_are_not_ours() {
    let Some(cases) = cases() else { return };
    let mut seen = 0;
    for entry in std::fs::read_dir(cases.join("bugs")).unwrap() {
        let folder = entry.unwrap().path();
        let expected = json(&folder.join("expected.json"));
        if expected["kind"] != "strace" {
            continue;
        }
        seen += 1;
        let id = expected["id"].as_str().unwrap();
        let input = folder.join(expected["inputs"][0].as_str().unwrap());
        let totals = totals(&input);
        let answer = &expected["right_answer"];
        let name = |name: &str| {
            let table = totals.table.get(name).copied();
            table.or_else(|| totals.names().get(name).copied()).unwrap_or_default()
        };
        check_map(id, answer, "calls", |call| name(call).calls as f64);
        check_map(id, answer, "never_returned", |call| name(call).unfinished as f64);
        check_map(id, answer, "no_result", |call| name(call).never as f64);
        check_map(id, answer, "detached", |call| name(call).detached as f64);
        check_map(id, answer, "time_s", |call| name(call).time.seconds());
        if answer["errors"].is_object() {
            check_map(id, answer, "errors", |call| name(call).errors as f64);
        } else if let Some(errors) = answer["errors"].as_u64() {
            assert_eq!(totals.all().errors, errors, "{id}");
        }
        if let Some(span) = answer["span_s"].as_f64() {
            assert!(close(totals.span().unwrap(), span), "{id}");
        }
        if let Some(seconds) = answer["time_s_total"].as_f64() {
            assert!(close(totals.all().time, seconds), "{id}");
        }
        if let Some(timed) = answer["calls_with_time"].as_u64() {
            assert_eq!(totals.all().timed, timed, "{id}");
        }
        let warned = answer["warnings_at_least"].as_u64().unwrap_or(0);
        assert!(totals.problem_count >= warned, "{id}");
        if warned == 0 {
            assert_eq!(totals.problems, [], "{id}");
        }
    }
    assert!(seen > 0, "the folder has cases of strace");
}

/// Copies out of records what a test asks for.
#[derive(Default)]
struct Notes(Vec<String>);

impl assay_captures::parsed::Sink<Record<'_>> for Notes {
    fn record(&mut self, record: Record<'_>) {
        let Record::Call(call) = record else { return };
        if let Some(path) = program(&call) {
            self.0.push(format!("program {}", String::from_utf8_lossy(path)));
        }
        if let Some(target) = descriptor(call.args).map(|found| found.target)
            && !target.is_empty()
        {
            self.0.push(match socket(target) {
                Some(socket) => format!("{} {}", socket.protocol, socket.peer),
                None => String::from_utf8_lossy(target).into_owned(),
            });
        }
        if let Outcome::Returned { value, target: Some(_), .. } = call.outcome {
            self.0.push(format!("returns {value}"));
        }
        if call.name == "read" {
            self.0.push("read".into());
        }
    }

    fn problem(&mut self, _: assay_captures::parsed::Problem) {}
}

fn notes(path: &Path) -> Vec<String> {
    let mut notes = Notes::default();
    let mut decoder = Decoder::new();
    decoder.feed(&std::fs::read(path).unwrap(), &mut notes);
    decoder.finish(&mut notes);
    notes.0
}

#[test]
fn odd_paths_and_two_programs_in_one_process_are_told_apart() {
    let Some(cases) = cases() else { return };
    let paths = notes(&cases.join("bugs/S05-y-decoding-odd-paths/in.strace"));
    assert_eq!(
        paths,
        [
            "/srv/a,b)> = 3 (x).txt",
            "TCP 127.0.0.1:5432",
            "TCPv6 [::1]:5432",
            "read",
            "anon_inode:[eventpoll]",
            "returns 6",
        ]
    );
    let programs = notes(&cases.join("bugs/S14-two-execs-one-pid/in.strace"));
    assert_eq!(programs, ["program ./one", "read", "program ./two", "read"]);
}
