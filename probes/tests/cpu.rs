//! The cpu probe on a child that burns CPU time in two functions of known shares.
//!
//! The child is this test program itself, told by its environment to play that part.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod child;
mod running;

use std::fs;
use std::hint::black_box;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use assay_captures::manifest::Status;
use assay_captures::parsed::{Problem, Sink};
use assay_captures::perf_script::{Decoder, FILE, Sample};

use child::Subject;
use running::{Folder, Running, manifest};

const PROBE: &str = env!("CARGO_BIN_EXE_assay-probe-cpu");

/// Of each ten pieces of work, so many are the first function's; the second has the rest.
const FIRST: u32 = 7;
/// CPU time of a stage.
const STAGE: i64 = 1_500_000_000;
/// Steps of a piece of work: far shorter than the time between two samples.
const STEPS: u64 = 20_000;

/// A chain of operations that each wait for the one before, so that a step takes as long in one
/// function as in the other. `$odd` keeps the functions different: equal ones could be merged.
macro_rules! burner {
    ($name:ident, $odd:literal) => {
        #[inline(never)]
        fn $name(seed: u64) -> u64 {
            let mut value = seed;
            let mut step = 0;
            while step < STEPS {
                value = (value ^ (value >> 7)).wrapping_mul($odd);
                step += 1;
            }
            value
        }
    };
}

burner!(burn_first, 0x9e37_79b9_7f4a_7c15);
burner!(burn_second, 0xbf58_476d_1ce4_e5b9);
burner!(burn_unwatched, 0x94d0_49bb_1331_11eb);

/// CPU time of the calling thread, in nanoseconds.
fn spent() -> i64 {
    let time = nix::time::clock_gettime(nix::time::ClockId::CLOCK_THREAD_CPUTIME_ID).unwrap();
    time.tv_sec() * 1_000_000_000 + time.tv_nsec()
}

fn burn(mut piece: impl FnMut()) {
    let until = spent() + STAGE;
    while spent() < until {
        piece();
    }
}

/// Not a test but the child: does nothing unless it was started as one.
#[test]
fn child() {
    if child::part().is_none() {
        return;
    }
    let mut value = 1;
    while let Some(word) = child::next_stage() {
        match word {
            b'w' => burn(|| {
                for piece in 0..10 {
                    value = if piece < FIRST { burn_first(value) } else { burn_second(value) };
                }
            }),
            _ => burn(|| value = burn_unwatched(value)),
        }
    }
    black_box(value);
}

/// Whether sampling is possible; says so where it is not.
fn able() -> bool {
    let missing = if !nix::unistd::geteuid().is_root() {
        Some("whole CPUs are sampled by root only")
    } else if Command::new("perf").arg("--version").output().is_err() {
        Some("perf is not installed")
    } else {
        None
    };
    if let Some(reason) = missing {
        let _gone = writeln!(std::io::stderr(), "left out: {reason}");
    }
    missing.is_none()
}

/// In how many samples each function is on the stack.
#[derive(Debug, Default)]
struct Seen {
    all: u64,
    first: u64,
    second: u64,
    unwatched: u64,
}

impl Sink<Sample<'_>> for Seen {
    fn record(&mut self, sample: Sample<'_>) {
        let has = |name: &str| sample.frames.iter().any(|frame| frame.symbol == name);
        self.all += 1;
        self.first += u64::from(has("cpu::burn_first"));
        self.second += u64::from(has("cpu::burn_second"));
        self.unwatched += u64::from(has("cpu::burn_unwatched"));
    }

    fn problem(&mut self, problem: Problem) {
        panic!("{problem}");
    }
}

fn seen(out: &Path) -> Seen {
    let mut seen = Seen::default();
    let mut decoder = Decoder::default();
    assay_captures::capture::feed_stacks(out, |bytes| decoder.feed(bytes, &mut seen)).unwrap();
    decoder.finish(&mut seen);
    seen
}

fn files(out: &Path) -> Vec<String> {
    let entries = fs::read_dir(out).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> = entries.map(|name| name.into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn samples_fall_on_functions_by_their_shares_while_it_is_on_and_on_nothing_else() {
    if !able() {
        return;
    }
    let folder = Folder::new("cpu-shares");
    let out = folder.join("cpu");
    let mut subject = Subject::start("child", "burn");
    let mut probe = Running::start(PROBE, &out, &["--target", &subject.target(), "--off"]);
    probe.ready();
    subject.stage(b'u');
    probe.tell("on");
    subject.stage(b'w');
    probe.tell("off");
    subject.stage(b'u');
    let (last, status) = probe.end();
    assert_eq!(last["status"], "complete", "{last}");
    assert!(status.success());

    let seen = seen(&out);
    assert_eq!(seen.unwatched, 0, "recorded while it was off");
    let (first, all) = (seen.first as f64, (seen.first + seen.second) as f64);
    assert!(all >= 0.9 * seen.all as f64 && all > 100.0, "{seen:?}");
    let share = f64::from(FIRST) / 10.0;
    let deviation = (share * (1.0 - share) / all).sqrt();
    assert!((first / all - share).abs() < 4.0 * deviation, "{seen:?}");

    assert_eq!(manifest(&out).integrity["samples"], seen.all);
    assert_eq!(manifest(&out).integrity["lines_not_understood"], 0);
    assert_eq!(files(&out), ["manifest.json", FILE], "perf's own files are gone");
}

/// The perf that a probe has started.
fn perf_of(probe: u32) -> nix::unistd::Pid {
    let children = fs::read_to_string(format!("/proc/{probe}/task/{probe}/children")).unwrap();
    let is_perf = |pid: &&str| {
        fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim() == "perf")
    };
    let pid = children.split_whitespace().find(is_perf).unwrap();
    nix::unistd::Pid::from_raw(pid.parse().unwrap())
}

#[test]
fn a_perf_that_is_killed_fails_the_capture_with_a_reason_and_leaves_no_file() {
    if !able() {
        return;
    }
    let folder = Folder::new("cpu-killed");
    let subject = Subject::start("child", "burn");
    // Noticed when it is next told something, or else at the end.
    for (name, word) in [("told", Some("off")), ("ended", None)] {
        let out = folder.join(name);
        let mut probe = Running::start(PROBE, &out, &["--target", &subject.target()]);
        probe.ready();
        let perf = perf_of(probe.child.id());
        nix::sys::signal::kill(perf, nix::sys::signal::Signal::SIGKILL).unwrap();
        if let Some(word) = word {
            probe.send(word);
        }
        let (last, status) = probe.end();
        assert_eq!(last["status"], "failed", "{name}: {last}");
        let reason = last["reason"].as_str().unwrap();
        assert!(reason.contains("perf ended (signal: 9"), "{name}: {reason}");
        assert_eq!(status.code(), Some(1));
        let manifest = manifest(&out);
        assert_eq!(manifest.status, Status::Failed);
        assert_eq!(manifest.reason.as_deref(), Some(reason));
        assert_eq!(files(&out), ["manifest.json"], "{name}");
    }
}

fn answer(out: PathBuf, path: Option<&str>, more: &[&str]) -> String {
    let mut command = Command::new(PROBE);
    command
        .arg("--out")
        .arg(out)
        .args(["--target", &format!("subject:pid={}", std::process::id())]);
    command.args(more).stdin(Stdio::null());
    if let Some(path) = path {
        command.env("PATH", path);
    }
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    String::from_utf8(output.stderr).unwrap().trim_end().to_owned()
}

#[test]
fn a_missing_perf_and_a_rate_in_step_with_the_kernel_are_told_in_one_line() {
    let folder = Folder::new("cpu-missing");
    let said = answer(folder.join("missing"), Some("/nowhere"), &[]);
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.starts_with("assay-probe-cpu: perf is not installed"), "{said}");
    assert!(said.contains("apt-get install linux-perf"), "{said}");
    let missing = manifest(&folder.join("missing"));
    assert_eq!(missing.status, Status::Failed);
    assert!(missing.reason.unwrap().starts_with("perf is not installed"));

    let said = answer(folder.join("rate"), None, &["--rate", "500"]);
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.ends_with("keep step with a kernel's tick; use a prime such as 499"), "{said}");
}
