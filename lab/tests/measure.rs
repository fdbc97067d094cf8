//! Runs real experiments from end to end: a private Postgres and Redis, a real subject, the
//! probes, and the results that a user would get.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

/// An experiment that was run, and its results.
struct Measured {
    run: PathBuf,
    results: Value,
    _folder: tempfile::TempDir,
}

impl Measured {
    /// Runs `assay run` on an experiment of this repository.
    fn run(experiment: &str, options: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let run = folder.path().join("run");
        let output = assay()
            .arg("run")
            .arg(workspace().join(experiment))
            .args(options)
            .arg("--out")
            .arg(&run)
            .output()
            .expect("assay starts");
        assert_success(&output);
        let results = read_results(&run);
        Self { run, results, _folder: folder }
    }

    fn costs(&self) -> impl Iterator<Item = &Value> {
        self.results["costs"].as_array().expect("results hold costs").iter()
    }

    /// The one cost with this metric and these labels; panics when it is not there once.
    fn cost(&self, place: Place<'_>, metric: &str, labels: &[(&str, &str)]) -> &Value {
        let wanted: BTreeMap<&str, &str> = labels.iter().copied().collect();
        let found: Vec<&Value> = self
            .costs()
            .filter(|cost| {
                let labels = cost["labels"].as_object().expect("labels are an object");
                cost["metric"] == metric
                    && cost["pass"] == place.pass
                    && cost["variant"] == place.variant
                    && cost["route"] == place.route
                    && labels.len() == wanted.len()
                    && wanted.iter().all(|(name, value)| labels[*name] == *value)
            })
            .collect();
        assert_eq!(found.len(), 1, "{metric} {labels:?} of {place:?}: {found:#?}");
        found[0]
    }

    fn amount(&self, place: Place<'_>, metric: &str, labels: &[(&str, &str)]) -> f64 {
        let cost = self.cost(place, metric, labels);
        cost["amount"].as_f64().unwrap_or_else(|| panic!("not measured: {cost:#}"))
    }
}

/// Where a cost belongs.
#[derive(Clone, Copy, Debug)]
struct Place<'a> {
    pass: &'a str,
    variant: &'a str,
    route: &'a str,
}

fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("lab lies in the workspace")
}

fn assay() -> Command {
    Command::new(env!("CARGO_BIN_EXE_assay"))
}

fn assert_success(output: &Output) {
    assert!(
        output.status.success(),
        "{}\n{}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

fn read_results(run: &Path) -> Value {
    let text = fs::read(run.join("results.json")).expect("a run leaves results.json");
    serde_json::from_slice(&text).expect("results.json is JSON")
}

/// The probes need root; the machine that runs these tests for the project has it.
#[expect(clippy::print_stderr, reason = "a test that does nothing says so")]
fn without_root(test: &str) -> bool {
    let user = nix::unistd::geteuid();
    if !user.is_root() {
        eprintln!("{test}: left out, since recording packets and system calls needs root");
    }
    !user.is_root()
}

#[test]
fn the_four_ways_of_taking_a_connection_make_nine_six_five_and_four_trips() {
    if without_root("the_four_ways_of_taking_a_connection_make_nine_six_five_and_four_trips") {
        return;
    }
    let measured = Measured::run(
        "lab/experiments/blog/experiment.toml",
        &["--quick", "--route", "detail,index,index-cached,compute", "--pass", "serial,wire"],
    );
    let trips = [
        ("query-ping", 9.0, 6.0),
        ("query", 6.0, 3.0),
        ("page-ping", 5.0, 2.0),
        ("page", 4.0, 1.0),
    ];
    for (variant, all, pings) in trips {
        for route in ["detail", "index"] {
            let serial = Place { pass: "serial", variant, route };
            let flights = measured.cost(serial, "postgres.flights", &[]);
            assert_eq!(flights["amount"], all, "{serial:?}");
            assert_eq!(
                (&flights["low"], &flights["high"]),
                (&all.into(), &all.into()),
                "{serial:?}"
            );
            assert_eq!(measured.amount(serial, "postgres.ready_for_query", &[]), all);
            assert_eq!(measured.amount(serial, "postgres.flights", &[("reason", "user")]), 3.0);
            let ping = [("reason", "pool ping")];
            assert_eq!(measured.amount(serial, "postgres.flights", &ping), pings);
            assert_eq!(measured.amount(serial, "postgres.executions", &[]), 3.0);

            let wire = Place { pass: "wire", ..serial };
            let prepared = measured.amount(wire, "postgres.flights", &[("reason", "prepare")]);
            let loaded = measured.amount(wire, "postgres.flights", &[]) - prepared;
            assert!((loaded - all).abs() < 0.01, "{wire:?}: {loaded}, not {all}");
            let cycles = measured.amount(wire, "postgres.ready_for_query", &[]) - prepared;
            assert!((cycles - all).abs() < 0.01, "{wire:?}: {cycles}, not {all}");
        }
    }
    let cached = Place { pass: "wire", variant: "query-ping", route: "index-cached" };
    assert_eq!(measured.amount(cached, "postgres.flights", &[]), 0.0);
    assert!((measured.amount(cached, "redis.commands", &[]) - 1.0).abs() < 1e-9);
    let compute = Place { route: "compute", ..cached };
    assert_eq!(measured.amount(compute, "postgres.flights", &[]), 0.0);
    assert_eq!(measured.amount(compute, "redis.commands", &[]), 0.0);
    the_same_bytes_come_from_the_captures_alone(&measured);
    no_secret_is_left_in(&measured.run);
}

/// Rebuilds the results in a copy of the run that has no results.
fn the_same_bytes_come_from_the_captures_alone(measured: &Measured) {
    let text = fs::read(measured.run.join("results.json")).expect("results");
    let tables = fs::read(measured.run.join("tables.md")).expect("tables");
    fs::remove_file(measured.run.join("results.json")).expect("removed");
    fs::remove_file(measured.run.join("tables.md")).expect("removed");
    let output = assay().arg("analyze").arg(&measured.run).output().expect("assay starts");
    assert_success(&output);
    assert!(fs::read(measured.run.join("results.json")).expect("results") == text);
    assert!(fs::read(measured.run.join("tables.md")).expect("tables") == tables);
}

/// Text that stands in rows, pages and keys of the blog: a capture must not hold it.
fn no_secret_is_left_in(run: &Path) {
    let mut files = 0;
    let mut folders = vec![run.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder of the run").flatten() {
            if entry.path().is_dir() {
                folders.push(entry.path());
                continue;
            }
            files += 1;
            let bytes = fs::read(entry.path()).expect("a file of the run");
            for secret in ["juniper", "Author 1", "Reader 5", "page:index", "SCRAM-SHA-256$"] {
                let secret = secret.as_bytes();
                assert!(
                    !bytes.windows(secret.len()).any(|window| window == secret),
                    "{} holds {:?}",
                    entry.path().display(),
                    String::from_utf8_lossy(secret)
                );
            }
        }
    }
    assert!(files > 20, "only {files} files: nothing was recorded");
}

#[test]
fn flush_pipelines_and_several_processes_are_counted_right() {
    if without_root("flush_pipelines_and_several_processes_are_counted_right") {
        return;
    }
    let measured = Measured::run("lab/tests/experiments/clients/experiment.toml", &[]);
    // (route, flights, ReadyForQuery, executions): asyncpg prepares with Flush and runs with
    // Sync; psycopg sends three queries and a Flush when the first row is asked for, and a Sync
    // when the pipeline is left.
    let truths = [("flush", 2.0, 1.0, 1.0), ("pipeline", 2.0, 1.0, 3.0), ("plain", 1.0, 1.0, 1.0)];
    for (route, flights, cycles, executions) in truths {
        for pass in ["serial", "wire"] {
            let place = Place { pass, variant: "default", route };
            assert_eq!(measured.amount(place, "postgres.flights", &[]), flights, "{place:?}");
            assert_eq!(
                measured.amount(place, "postgres.ready_for_query", &[]),
                cycles,
                "{place:?}"
            );
            assert_eq!(measured.amount(place, "postgres.executions", &[]), executions, "{place:?}");
            assert_eq!(
                measured.amount(place, "postgres.flights", &[("reason", "pool ping")]),
                0.0,
                "{place:?}"
            );
        }
    }
    // Packets, counters, strace and the server's own statistics say the same of both workers.
    let checks = measured.results["integrity"].as_array().expect("results hold checks");
    assert!(checks.iter().any(|check| check["counted"] == "sendto a request"), "{checks:#?}");
    for check in checks {
        assert_eq!(check["outcome"], "holds", "{check:#}");
    }
    a_budget_is_kept_broken_or_not_judged(&measured);
    // Both workers' calls count: the parent alone makes none.
    for route in ["flush", "pipeline", "plain"] {
        let place = Place { pass: "syscalls", variant: "default", route };
        let answers = measured.amount(place, "syscalls", &[("name", "sendto")]);
        assert!(answers >= 2.0, "{place:?}: {answers} sendto a request");
    }
}

/// Judges the run by budgets: exit codes are the contract with scripts.
fn a_budget_is_kept_broken_or_not_judged(measured: &Measured) {
    let budget = measured.run.with_file_name("budget.toml");
    let check = |limits: &str, options: &[&str]| {
        fs::write(&budget, limits).expect("a budget");
        let mut command = assay();
        command.arg("check").arg(&measured.run).arg("--budget").arg(&budget).args(options);
        let output = command.output().expect("assay starts");
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let kept = "baseline = \"kept.json\"\nlimits = [\"plain: postgres.flights < 2\",\n\
                \"postgres.flights{reason=pool ping} <= 0\", \"syscalls <= baseline + 10 %\"]";
    let file = measured.run.with_file_name("kept.json").display().to_string();
    assert_eq!(check(kept, &["--save-baseline", &file]).0, Some(0));
    let (code, said) = check(kept, &["--json"]);
    assert_eq!(code, Some(0), "{said}");
    let (code, said) = check("limits = [\"postgres.flights <= 1\"]", &[]);
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("prefork.default · flush: 2, at most 1; 1 too much (+100 %)"), "{said}");
    assert!(said.contains("captures/serial/"), "{said}");
    assert!(said.contains("1 more figure keeps it"), "{said}");
    let (code, said) = check("limits = [\"allocations.blocks <= 1\"]", &[]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("there is no allocations.blocks in this run"), "{said}");
    assert_eq!(check("limits = [\"plian: syscalls <= 1\"]", &[]).0, Some(2));
}
