//! A service under load for a long time, with the probes of the wire, of system calls and of usage
//! recording all along: nobody's memory grows, and the wire counts what the driver counts.
//!
//! `just soak [MINUTES]`; 30 minutes where it is left out.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "its table is what it is run for")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use assay::load::{Cancel, Driver, Ending, LapOrder, Requests, Stillness, Stop};
use assay::pinning::{CoreSet, usable_cores};
use assay::probe::{ProbeSession, ProbeTarget};
use assay::processes;
use assay_captures::capture;
use assay_captures::ids::{Pid, Port, Role};
use assay_captures::lap::Load;
use nix::unistd::getpid;

/// Requests a second: at 0.6 KB a request half an hour fits on any disk.
const RATE: f64 = 400.0;
const LAP: Duration = Duration::from_secs(10);
/// The first part of the samples in which memory may still grow: buffers are filled.
const WARM_UP: f64 = 0.2;
/// From the first to the last quarter of the other samples the median may grow by so much.
const GROWTH: f64 = 0.03;
const GROWTH_BYTES: f64 = 512.0 * 1024.0;

/// How much a series grew, in bytes, and whether that is flat. Too few samples are not.
fn growth(samples: &[u64]) -> (f64, bool) {
    let rest = &samples[(samples.len() as f64 * WARM_UP) as usize..];
    let quarter = rest.len() / 4;
    if quarter < 2 {
        return (f64::NAN, false);
    }
    let median = |part: &[u64]| {
        let mut part = part.to_vec();
        part.sort_unstable();
        part[part.len() / 2] as f64
    };
    let (first, last) = (median(&rest[..quarter]), median(&rest[rest.len() - quarter..]));
    (last - first, last - first <= first * GROWTH + GROWTH_BYTES)
}

#[test]
fn a_series_that_grows_is_not_flat_and_one_that_settles_is() {
    let mib = 1 << 20;
    let leaking: Vec<u64> = (0..100).map(|n| 10 * mib + n * 40_000).collect();
    assert!(!growth(&leaking).1);
    let settled: Vec<u64> = (0..100).map(|n| 10 * mib + n.min(15) * 300_000 + n % 3).collect();
    assert!(growth(&settled).1);
    assert!(!growth(&[mib; 5]).1, "too short to tell");
}

/// The program of the tiny experiment.
struct Service {
    child: Child,
    port: u16,
    folder: tempfile::TempDir,
}

impl Service {
    fn start() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let source =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/experiments/tiny/subject.rs");
        let program = folder.path().join("subject");
        let built = Command::new("rustc")
            .args(["--edition", "2024", "-O", "-o"])
            .args([&program, &source])
            .status();
        assert!(built.expect("rustc runs").success());
        let free = std::net::TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr());
        let port = free.expect("a port is free").port();
        let child = Command::new(&program)
            .env("BIND", format!("127.0.0.1:{port}"))
            .stdin(Stdio::null())
            .spawn()
            .expect("it starts");
        let until = Instant::now() + Duration::from_secs(20);
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(Instant::now() < until, "it does not listen");
            sleep(Duration::from_millis(20));
        }
        Self { child, port, folder }
    }

    fn target(&self) -> ProbeTarget {
        let pids = vec![Pid(self.child.id())];
        ProbeTarget { role: Role::Subject, pids, port: Port(self.port), path: None }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _gone = self.child.kill();
        let _status = self.child.wait();
    }
}

fn probe(question: &str, service: &Service) -> (ProbeSession, PathBuf) {
    let name = format!("assay-probe-{question}");
    let program = Path::new(env!("CARGO_BIN_EXE_assay")).with_file_name(name);
    let out = service.folder.path().join(question);
    let cores = CoreSet::new(usable_cores().expect("there are cores")).expect("at least one");
    let target = [service.target()];
    let session = ProbeSession::start(question, &program, &out, &target, &[], true, &cores);
    (session.unwrap_or_else(|error| panic!("{error}")), out)
}

/// Resident memory of ourselves and of every probe, in bytes.
fn memory() -> BTreeMap<String, u64> {
    let resident = |pid: nix::unistd::Pid| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
        line.split_whitespace().next()?.parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
    };
    let probes = processes::descendants(getpid()).into_iter();
    let probes = probes.filter(|process| process.name.starts_with("assay-probe"));
    probes
        .map(|process| (process.name, process.pid))
        .chain([("load driver".to_owned(), getpid())])
        .filter_map(|(name, pid)| Some((name, resident(pid)?)))
        .collect()
}

/// For how long, where it is asked for at all.
fn minutes() -> Option<f64> {
    let asked = std::env::var("ASSAY_SOAK_MINUTES").ok()?;
    Some(asked.parse().unwrap_or_else(|_| panic!("ASSAY_SOAK_MINUTES is no number: {asked}")))
}

/// Drives laps one after another; answers, and the memory after each lap.
fn drive(
    minutes: f64,
    service: &Service,
    probes: &mut [ProbeSession],
) -> (u64, BTreeMap<String, Vec<u64>>) {
    let driver = Driver::start(&[], Cancel::default()).expect("the driver starts");
    let mut requests = Requests::default();
    requests.add("GET", "/page/1", std::iter::empty(), None).expect("a request");
    let requests = Arc::new(requests);
    let end = Instant::now() + Duration::from_secs_f64(minutes * 60.0);
    let (mut answered, mut samples) = (0, BTreeMap::<String, Vec<u64>>::new());
    while Instant::now() < end {
        let left = end.saturating_duration_since(Instant::now());
        // Short laps in a short run, so that there is enough to judge.
        let length = LAP.min(left).min(Duration::from_secs_f64(minutes * 60.0 / 40.0));
        let order = LapOrder {
            address: ([127, 0, 0, 1], service.port).into(),
            requests: Arc::clone(&requests),
            load: Load::FixedRate { connections: 8, rate: RATE },
            stop: Stop::After(length.max(Duration::from_millis(200))),
            timeout: Duration::from_secs(10),
            service: Stillness::default(),
        };
        let figures = driver.lap(order).expect("the service answers");
        assert_eq!(figures.ending, Ending::Whole);
        assert_eq!(figures.good, figures.requests - figures.errors.values().sum::<u64>());
        answered += figures.good;
        for probe in probes.iter_mut() {
            probe.mark().unwrap_or_else(|error| panic!("{error}"));
        }
        for (name, bytes) in memory() {
            samples.entry(name).or_default().push(bytes);
        }
    }
    (answered, samples)
}

#[test]
fn memory_stays_flat_and_the_wire_counts_what_the_driver_counts() {
    let Some(minutes) = minutes() else {
        eprintln!("left out, since it takes half an hour: `just soak` does it");
        return;
    };
    let service = Service::start();
    let (mut sessions, mut folders) = (Vec::new(), Vec::new());
    for question in ["wire", "syscalls", "usage"] {
        let (session, folder) = probe(question, &service);
        sessions.push(session);
        folders.push(folder);
    }
    let (answered, samples) = drive(minutes, &service, &mut sessions);
    for session in sessions {
        session.stop().unwrap_or_else(|error| panic!("{error}"));
    }
    println!(
        "{:<18}{:>14}{:>14}{:>12}  flat",
        "resident memory", "first, KiB", "last, KiB", "growth"
    );
    let mut flat = samples.len() == 4;
    for (name, bytes) in &samples {
        let (grown, is_flat) = growth(bytes);
        flat &= is_flat;
        let (first, last) = (bytes[0] / 1024, bytes[bytes.len() - 1] / 1024);
        let verdict = if is_flat { "yes" } else { "NO" };
        println!("{name:<18}{first:>14}{last:>14}{:>12.0}  {verdict}", grown / 1024.0);
    }
    let wire = capture::manifest(&folders[0]).expect("the capture has an end");
    let (seen, drops) = (wire.integrity["responses"], wire.integrity["drops"]);
    println!("{:<18}{answered:>14}\n{:<18}{seen:>14}  {drops} packets dropped", "driver", "wire");
    println!(
        "flat: the median of the last quarter is at most {:.0} % and 512 KiB above that of the \
              first, the first fifth left out",
        GROWTH * 100.0
    );
    assert_eq!(drops, 0, "packets were dropped");
    assert_eq!(seen, answered, "the wire and the driver disagree");
    assert!(flat, "somebody's memory grows");
}
