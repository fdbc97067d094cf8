//! Profiles in text that others recorded, with counts by independent readers. The folder is named
//! by `ASSAY_CASES`; without it there is nothing to do.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the message")]
#![expect(clippy::print_stdout, reason = "the table is what this test is for")]

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use assay_captures::folded::{self, Stack};
use assay_captures::parsed::{Problem, Sink};
use assay_captures::perf_script::{self, Sample};
use flate2::read::MultiGzDecoder;
use serde_json::Value;

fn cases() -> Option<PathBuf> {
    std::env::var_os("ASSAY_CASES").map(PathBuf::from)
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

fn bytes(path: &Path) -> Vec<u8> {
    let bytes = std::fs::read(path).unwrap();
    if !bytes.starts_with(&[0x1f, 0x8b]) {
        return bytes;
    }
    let mut unpacked = Vec::new();
    MultiGzDecoder::new(bytes.as_slice()).read_to_end(&mut unpacked).unwrap();
    unpacked
}

#[derive(Debug, Default)]
struct Seen {
    /// Event → samples and periods.
    events: BTreeMap<String, (u64, u64)>,
    threads: BTreeMap<String, u64>,
    /// Leaf → samples and periods.
    leaves: BTreeMap<String, (u64, u64)>,
    stacks: u64,
    sum: f64,
    problems: Vec<String>,
}

impl Sink<Sample<'_>> for Seen {
    fn record(&mut self, sample: Sample<'_>) {
        let period = sample.period.unwrap_or(0);
        let event = self.events.entry(sample.event.to_owned()).or_default();
        *event = (event.0 + 1, event.1 + period);
        *self.threads.entry(sample.thread.to_owned()).or_default() += 1;
        if let Some(leaf) = sample.frames.first() {
            let leaf = self.leaves.entry(leaf.symbol.to_owned()).or_default();
            *leaf = (leaf.0 + 1, leaf.1 + period);
        }
    }

    fn problem(&mut self, problem: Problem) {
        self.problems.push(problem.to_string());
    }
}

impl Sink<Stack<'_>> for Seen {
    fn record(&mut self, stack: Stack<'_>) {
        self.stacks += 1;
        self.sum += stack.weight;
    }

    fn problem(&mut self, problem: Problem) {
        self.problems.push(problem.to_string());
    }
}

fn perf(path: &Path) -> Seen {
    let (mut decoder, mut seen) = (perf_script::Decoder::default(), Seen::default());
    bytes(path).chunks(8191).for_each(|chunk| decoder.feed(chunk, &mut seen));
    decoder.finish(&mut seen);
    seen
}

/// Samples that stackcollapse folded, for files whose first lines its oracle cannot read.
fn folded_sum(path: &Path) -> Option<f64> {
    let text = std::fs::read_to_string(path).ok()?;
    Some(text.lines().filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok()).sum())
}

/// Where the other reader is wrong, and why: see `CASES.md`.
const KNOWN: [&str; 1] = ["perf/fg-perf-vertx-stacks-01.txt: folded Some(285.0), got 286"];

#[test]
fn samples_count_as_an_independent_reader_counts_them() {
    let Some(cases) = cases() else { return };
    let oracle = json(&cases.join("oracle-perf.json"));
    let mut found = Vec::new();
    for entry in oracle["perf_script"].as_array().unwrap() {
        let file = entry["file"].as_str().unwrap();
        let path = cases.join(file);
        // The reader has seen more files than the folder holds.
        if !path.exists() {
            continue;
        }
        let seen = perf(&path);
        let expected: BTreeMap<String, u64> = (entry["events"].as_object().unwrap().iter())
            .map(|(event, count)| (event.clone(), count.as_u64().unwrap()))
            .collect();
        let got: BTreeMap<String, u64> =
            seen.events.iter().map(|(event, (count, _))| (event.clone(), *count)).collect();
        println!("{file}: expected {expected:?}, got {got:?}, {} problems", seen.problems.len());
        let samples: u64 = got.values().sum();
        if expected.is_empty() {
            // It knows first lines with a time and a period only.
            let name = path.to_str().unwrap().replace(".txt", ".expected-all.folded");
            let folded = folded_sum(Path::new(&name));
            if folded.is_some_and(|sum| sum != samples as f64) {
                found.push(format!("{file}: folded {folded:?}, got {samples}"));
            }
        } else if expected != got {
            found.push(format!("{file}: expected {expected:?}, got {got:?}"));
        }
    }
    assert_eq!(found, KNOWN);
}

#[test]
fn folded_stacks_count_as_an_independent_reader_counts_them() {
    let Some(cases) = cases() else { return };
    let oracle = json(&cases.join("oracle-perf.json"));
    let mut found = Vec::new();
    for entry in oracle["folded"].as_array().unwrap() {
        let file = entry["file"].as_str().unwrap();
        let path = cases.join(file);
        if !path.exists() {
            continue;
        }
        let (mut decoder, mut seen) = (folded::Decoder::default(), Seen::default());
        bytes(&path).chunks(8191).for_each(|chunk| decoder.feed(chunk, &mut seen));
        decoder.finish(&mut seen);
        let number = |key: &str| entry[key].as_u64().unwrap();
        let expected = (number("stacks"), number("sum") as f64, number("unreadable"));
        let got = (seen.stacks, seen.sum, seen.problems.len() as u64);
        println!("{file}: expected {expected:?}, got {got:?}");
        if expected != got {
            found.push(format!("{file}: expected {expected:?}, got {got:?} {:?}", seen.problems));
        }
    }
    assert_eq!(found, [""; 0]);
}

#[test]
fn each_bug_of_others_is_met_with_the_right_answer() {
    let Some(cases) = cases() else { return };
    let bug = |name: &str| {
        let folder = cases.join("bugs").join(name);
        (perf(&folder.join("in.txt")), json(&folder.join("expected.json"))["right_answer"].clone())
    };
    let number = |value: &Value| value.as_u64().unwrap();

    let (seen, right) = bug("E01-odd-thread-names");
    let (samples, weight) = seen.events["cpu-clock"];
    assert_eq!((samples, weight), (number(&right["samples"]), number(&right["weight"])));
    for (thread, count) in right["threads"].as_object().unwrap() {
        assert_eq!(seen.threads.get(thread), Some(&number(count)), "{thread}");
    }
    assert_eq!(seen.problems, [""; 0]);

    let (seen, right) = bug("E02-period-is-not-count");
    for (leaf, &(samples, cycles)) in &seen.leaves {
        assert_eq!(samples, number(&right["samples"][leaf]), "{leaf}");
        assert_eq!(cycles, number(&right["cycles"][leaf]), "{leaf}");
    }

    let (seen, right) = bug("E04-two-events-in-one-file");
    let events = right["events"].as_object().unwrap();
    assert_eq!(seen.events.len(), events.len());
    for (event, expected) in events {
        let expected = (number(&expected["samples"]), number(&expected["weight"]));
        assert_eq!(seen.events.get(event), Some(&expected), "{event}");
    }
}
