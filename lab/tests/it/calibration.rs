//! Counts of the reference subject, whose truth is known, are exact with every instrument.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

use crate::guarded_run::services_are_installed;

fn calibrate(folder: &Path, words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_assay"))
        .arg("calibrate")
        .args(words)
        .env("XDG_STATE_HOME", folder.join("state"))
        // The probes lie beside the program: cargo has built them.
        .env_remove("CARGO")
        .output()
        .expect("assay starts")
}

#[test]
fn every_count_of_known_work_is_exact() {
    if !nix::unistd::geteuid().is_root() || !services_are_installed() {
        return;
    }
    let folder = TempDir::with_prefix("calibration-").expect("a temporary folder can be made");
    let out = folder.path().join("out");
    let stages = ["--quick", "--json", "--only", "one-connection,three-processes", "--out"];
    let output = calibrate(folder.path(), &[&stages[..], &[&out.to_string_lossy()]].concat());
    let said = String::from_utf8_lossy(&output.stderr);
    // Clocks and switches may be off on a busy machine; that is for the certificate to say.
    assert!(matches!(output.status.code(), Some(0 | 3)), "{}\n{said}", output.status);
    let certificate: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    let figures = certificate["figures"].as_array().expect("it has figures");
    let exact: Vec<&Value> = figures.iter().filter(|figure| figure["limit"] == 0.0).collect();
    for figure in &exact {
        assert_eq!(figure["verdict"], "holds", "{figure:#}");
        assert_eq!(figure["amount"], figure["truth"], "{figure:#}");
    }
    let words = |name: &str| -> BTreeSet<&str> {
        exact.iter().filter_map(|figure| figure[name].as_str()).collect()
    };
    for metric in [
        "postgres.flights",
        "postgres.executions",
        "postgres.parses",
        "postgres.ready_for_query",
        "postgres.bytes_sent",
        "postgres.bytes_received",
        "redis.commands",
        "redis.flights",
        "redis.bytes_received",
        "syscalls",
        "syscalls.errors",
        "allocations.blocks",
        "allocations.bytes",
    ] {
        assert!(words("metric").contains(metric), "{metric} was not looked at");
    }
    assert!(words("instrument").is_superset(&["wire", "syscalls", "strace", "allocations"].into()));
    assert_eq!(words("condition").len(), 3, "{:?}", words("condition"));
    let calls: BTreeSet<&str> =
        exact.iter().filter_map(|figure| figure["labels"]["name"].as_str()).collect();
    assert!(calls.len() >= 17, "only {calls:?}");
    // Clocks were held against the subject's own, whatever came of it.
    let read = |metric: &str| {
        let figure = figures.iter().find(|figure| figure["metric"] == metric);
        figure.is_some_and(|figure| figure["amount"].is_number())
    };
    assert!(read("cpu.time") && read("context_switches") && read("latency"), "{figures:#?}");
    assert!(out.join("certificate.md").is_file());
    let state = fs::exists(folder.path().join("state")).expect("it can be looked for");
    assert!(!state, "a part of a calibration was kept as if it were all");
}

#[test]
fn a_stage_that_does_not_exist_is_told_with_those_that_do() {
    let folder = TempDir::with_prefix("calibration-").expect("a temporary folder can be made");
    let output = calibrate(folder.path(), &["--only", "cost"]);
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.contains("there is no stage \"cost\" (there are: one-connection, "), "{said}");
}
