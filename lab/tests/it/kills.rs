//! Whoever dies in the middle of a run, and in whatever pass: the lap or the pass says so in one
//! line, the rest goes on where it can, and nothing is left behind. Most of these take long; `just
//! faults` runs them all.

use std::fs;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use assay::processes::{self, Process};
use nix::sys::signal::Signal;
use nix::unistd::Pid;
use serde_json::Value;

use crate::faults::survives;
use crate::guarded_run::{Tiny, Watched, all_faults_are_tried, services_are_installed};
use crate::incomplete::{only_pass, pass_record, shown};

/// The laps of a pass as they were recorded.
fn laps(tiny: &Tiny, pass: &str) -> Vec<Value> {
    let path = tiny.run().join("captures").join(pass).join("laps.jsonl");
    let text = fs::read_to_string(path).unwrap_or_default();
    // The last line may be half written while the run goes on.
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(120);
    while !done() {
        assert!(Instant::now() < deadline, "it never happened: {what}");
        sleep(Duration::from_millis(2));
    }
}

/// The oldest process of a run with this name, as the kernel keeps it: 15 characters.
fn oldest(run: &Watched, name: &str) -> Option<Process> {
    let below = processes::descendants(run.front_pid()).into_iter();
    below.filter(|process| process.name == name).min_by_key(|process| process.pid)
}

fn is_running(pid: Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit(") ").next().and_then(|rest| rest.chars().next());
    matches!(state, Some('R' | 'S'))
}

fn set_load(tiny: &Tiny, pass: &str) {
    only_pass(tiny, pass);
    if ["syscalls", "cpu", "allocations"].contains(&pass) {
        tiny.change("experiment.toml", "wire = {", &format!("{pass} = {{"));
    }
    tiny.change("experiment.toml", "rounds = 2, lap_s = 0.4", "rounds = 1, lap_s = 1.5");
    tiny.change("experiment.toml", "rounds = 4, lap_s = 0.4", "rounds = 4, lap_s = 1");
    tiny.change("experiment.toml", "requests = 100", "requests = 400");
}

#[test]
fn a_subject_that_is_killed_costs_its_lap_and_is_started_anew() {
    if !services_are_installed() {
        return;
    }
    let tiny = Tiny::built();
    set_load(&tiny, "fair");
    let mut run = Watched::start(tiny.command());
    run.wait_for("fair …");
    wait_until("a lap", || !laps(&tiny, "fair").is_empty());
    // One arm is loaded at a time, the other is stopped.
    let victim = oldest(&run, "subject").expect("both arms run").pid;
    wait_until("its turn", || is_running(victim));
    run.send(victim, Signal::SIGKILL);
    let (status, said) = run.end();
    assert_eq!(status.code(), Some(1), "{said}");
    tiny.assert_nothing_is_left("a killed subject", &[]);

    let laps = laps(&tiny, "fair");
    let spoiled: Vec<&str> = laps.iter().filter_map(|lap| lap["spoiled"].as_str()).collect();
    assert!(spoiled.len() <= 1, "{spoiled:?}");
    let whole = laps.len() - spoiled.len();
    assert!((7..=8).contains(&whole), "{whole} of 8 laps: {said}");
    let told = "page.one ended under load (signal: 9 (SIGKILL)); it printed nothing";
    assert!(spoiled.iter().all(|reason| *reason == told), "{spoiled:?}");
    assert!(said.contains(&format!("warning: {told}")), "{said}");
    assert!(said.contains("page.one was started anew"), "{said}");
    let (record, reason) = tiny.status();
    assert_eq!((&*record, &*reason), ("incomplete", &*format!("a lap was lost: {told}")));
    assert!(said.contains(&format!("error: {reason}")), "{said}");
    assert_eq!(pass_record(&tiny, 0)["status"], "incomplete");
    assert!(shown(&tiny.run()).contains("a lap was lost"));
}

#[test]
fn a_subject_that_always_dies_is_left_out_and_the_others_are_measured() {
    if !all_faults_are_tried() || !services_are_installed() {
        return;
    }
    let tiny = Tiny::built();
    set_load(&tiny, "fair");
    let two = "name = \"two\"\nenv = { DIE_AFTER = 200 }";
    tiny.change("experiment.toml", "name = \"two\"", two);
    let (status, said) = Watched::start(tiny.command()).end();
    assert_eq!(status.code(), Some(1), "{said}");
    assert!(said.contains("page.two is left out from here on: it has ended 3 times"), "{said}");
    let laps = laps(&tiny, "fair");
    let whole = |lap: &&Value| lap["spoiled"].is_null();
    assert_eq!(laps.iter().filter(whole).count(), 4, "those of the other arm: {said}");
    assert!(laps.iter().filter(whole).all(|lap| lap["variant"] == "one"));
    tiny.assert_nothing_is_left("a subject that always dies", &[]);
}

/// Kills one process in a pass; what was said, and the record of the pass.
fn kill_in(pass: &str, stage: &str, victim: &str) -> (Option<i32>, String, Tiny) {
    let tiny = Tiny::built();
    set_load(&tiny, pass);
    let mut run = Watched::start(tiny.command());
    run.wait_for(&format!("{stage} …"));
    let mut found = None;
    wait_until(victim, || {
        found = oldest(&run, victim).map(|process| process.pid);
        // In the middle of what it does; one that is asked for its version ends by itself.
        sleep(Duration::from_millis(300));
        found.is_some() && found == oldest(&run, victim).map(|process| process.pid)
    });
    run.send(found.expect("it was found"), Signal::SIGKILL);
    let (status, said) = run.end();
    tiny.assert_nothing_is_left(&format!("{victim} killed in {stage}"), &[]);
    assert!(!shown(&tiny.run()).is_empty());
    (status.code(), said, tiny)
}

#[test]
fn a_probe_or_tool_that_is_killed_costs_its_figures_and_not_the_run() {
    if !all_faults_are_tried() || !services_are_installed() {
        return;
    }
    let cases = [
        ("fair", "fair", "assay-probe-usa", "usage: "),
        ("wire", "wire", "assay-probe-wir", "wire: "),
        ("wire", "wire", "assay-probe-usa", "usage: "),
        ("syscalls", "syscalls", "assay-probe-sys", "syscalls: "),
        ("syscalls", "syscalls", "assay-probe-usa", "usage: "),
        ("cpu", "cpu", "assay-probe-cpu", "cpu: "),
        ("cpu", "cpu", "perf", "cpu: perf ended"),
        ("allocations", "allocations", "assay-probe-all", "allocations: "),
        ("serial", "serial", "assay-probe-wir", "wire: "),
        ("serial", "serial", "assay-probe-sys", "syscalls: "),
        ("serial", "serial-strace", "strace", "syscalls: strace ended before"),
        ("serial", "serial-strace", "assay-probe-sys", "syscalls: "),
    ];
    for (pass, stage, victim, told) in cases {
        let (code, said, tiny) = kill_in(pass, stage, victim);
        let what = format!("{victim} in {stage}");
        assert_eq!(code, Some(0), "{what}: {said}");
        let place = usize::from(stage == "serial-strace");
        let record = pass_record(&tiny, place);
        assert_ne!(record["status"], "complete", "{what}: {said}");
        let reason = record["reason"].as_str().unwrap_or_default();
        assert!(reason.starts_with(told), "{what}: {reason}");
        assert!(said.contains(&format!("pass {stage}: {reason}")), "{what}: {said}");
        assert_eq!(reason.lines().count(), 1, "{what}: {reason}");
        if victim.ends_with("usa") {
            // The pass itself does not need the clocks.
            let wanted = if pass == "fair" { 8 } else { 4 };
            assert_eq!(laps(&tiny, pass).len(), wanted, "{what}: {said}");
        }
    }
}

#[test]
fn a_service_that_is_killed_ends_the_run_with_its_name_and_what_was_recorded_is_kept() {
    if !all_faults_are_tried() || !services_are_installed() {
        return;
    }
    for pass in ["fair", "serial", "wire", "syscalls", "cpu", "allocations"] {
        for (victim, told) in [("redis-server", "redis ended"), ("postgres", "postgres ended")] {
            let (code, said, tiny) = kill_in(pass, pass, victim);
            let what = format!("{victim} in {pass}");
            assert_eq!(code, Some(1), "{what}: {said}");
            let (record, reason) = tiny.status();
            assert_eq!(record, "incomplete", "{what}: {said}");
            assert!(reason.contains(told) && reason.contains("SIGKILL"), "{what}: {reason}");
            assert!(said.contains(&format!("error: {reason}")), "{what}: {said}");
            assert_eq!(pass_record(&tiny, 0)["status"], "incomplete", "{what}");
            for lap in laps(&tiny, pass).iter().filter(|lap| !lap["spoiled"].is_null()) {
                let spoiled = lap["spoiled"].as_str().unwrap_or_default();
                assert!(spoiled.contains(told), "{what}: {spoiled}");
            }
        }
    }
}

#[test]
fn a_service_or_subject_that_is_killed_before_any_lap_is_told_by_its_name() {
    if !all_faults_are_tried() || !services_are_installed() {
        return;
    }
    let cases = [
        ("seed postgres …", "postgres", ("seed.sql", "pg_sleep(0)", "pg_sleep(60)"), "postgres"),
        ("start …", "subject", ("experiment.toml", "SPAWN = 1", "SLOW_S = 60"), "page.one ended"),
    ];
    for (stage, victim, (file, from, to), told) in cases {
        let tiny = Tiny::built();
        tiny.change(file, from, to);
        let mut run = Watched::start(tiny.command());
        run.wait_for(stage);
        wait_until(victim, || oldest(&run, victim).is_some());
        sleep(Duration::from_millis(300));
        run.send(oldest(&run, victim).expect("it is there").pid, Signal::SIGKILL);
        let (status, said) = run.end();
        assert_eq!(status.code(), Some(1), "{victim}: {said}");
        let (record, reason) = tiny.status();
        assert_eq!(record, "incomplete");
        assert!(reason.contains(told), "{victim}: {reason}");
        tiny.assert_nothing_is_left(victim, &[]);
    }
}

#[test]
fn nothing_is_left_of_a_run_that_dies_in_whatever_pass() {
    if !all_faults_are_tried() {
        return;
    }
    for pass in ["serial", "serial-strace", "syscalls", "cpu", "allocations"] {
        survives(&format!("{pass} …"), || {
            let tiny = Tiny::built();
            set_load(&tiny, if pass == "serial-strace" { "serial" } else { pass });
            tiny.change("experiment.toml", "lap_s = 1.5", "lap_s = 20");
            tiny
        });
    }
}

#[test]
fn a_subject_that_goes_into_the_background_is_told_to_stay() {
    if !services_are_installed() {
        return;
    }
    let tiny = Tiny::built();
    let script = "command = [\"sh\", \"-c\", \"setsid ./subject & sleep 0.3\"]";
    tiny.change("experiment.toml", "command = [\"./subject\"]", script);
    tiny.change("experiment.toml", "SPAWN = 1", "SLOW_S = 2");
    let (status, said) = Watched::start(tiny.command()).end();
    assert_eq!(status.code(), Some(1));
    let told = "page.one ended before it was ready (exit status: 0; a subject that goes into the \
                background must be told to stay)";
    assert!(said.contains(told), "{said}");
    tiny.assert_nothing_is_left("a daemon", &[]);
}

/// Addresses at which a process waits for somebody, or takes datagrams from anybody.
fn listening(pid: Pid) -> Vec<String> {
    let files = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let sockets: Vec<String> = files
        .filter_map(|file| fs::read_link(file.path()).ok())
        .filter_map(|target| {
            let target = target.to_string_lossy().into_owned();
            Some(target.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned())
        })
        .collect();
    let mut found = Vec::new();
    for (table, waits) in [("tcp", "0A"), ("tcp6", "0A"), ("udp", "07"), ("udp6", "07")] {
        let text = fs::read_to_string(Path::new("/proc/net").join(table)).unwrap_or_default();
        for line in text.lines().skip(1) {
            let fields: Vec<&str> = line.split_whitespace().collect();
            if fields[3] == waits && sockets.iter().any(|socket| socket == fields[9]) {
                found.push(fields[1].to_owned());
            }
        }
    }
    found
}

#[test]
fn nothing_of_a_run_listens_beyond_loopback() {
    if !services_are_installed() {
        return;
    }
    let tiny = Tiny::built();
    set_load(&tiny, "wire");
    let mut run = Watched::start(tiny.command());
    run.wait_for("wire …");
    wait_until("the probe", || oldest(&run, "assay-probe-wir").is_some());
    let mut seen: Vec<String> = Vec::new();
    while run.front.try_wait().expect("it is our child").is_none() {
        for process in processes::descendants(run.front_pid()) {
            seen.extend(listening(process.pid));
        }
        seen.sort_unstable();
        seen.dedup();
        sleep(Duration::from_millis(50));
    }
    // 127.0.0.0/8 and ::1, as the kernel prints them: four bytes a word, the lowest first.
    let loopback = |address: &str| {
        let host = address.split(':').next().unwrap_or_default();
        (host.len() == 8 && host.ends_with("7F")) || host == "00000000000000000000000001000000"
    };
    assert!(seen.len() >= 4, "Postgres, Redis and both subjects listen: {seen:?}");
    assert!(seen.iter().all(|address| loopback(address)), "{seen:?}");
}
