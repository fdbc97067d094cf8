//! System calls, counted in the kernel and traced by strace, of a child whose calls are known.
//!
//! The child is this test program itself, told by its environment to play that part.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod child;
mod running;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use assay_captures::bpf_counts::{self, Sample};
use assay_captures::capture;
use assay_captures::ids::Role;
use assay_captures::manifest::Status;
use assay_captures::parsed::{Problem, Sink};
use assay_captures::strace::{self, Decoder, Outcome, Record};
use assay_captures::usage::At;
use serde_json::Value;

use child::Subject;
use running::{Folder, Running, manifest};

const PROBE: &str = env!("CARGO_BIN_EXE_assay-probe-syscalls");
const BACKENDS: [&str; 2] = ["bpf", "strace"];

const GETPPIDS: u64 = 1000;
const WRITES: u64 = 300;
const EMPTY_READS: u64 = 200;
const WRONG_CLOSES: u64 = 50;
const THREADS: u64 = 4;

/// Calls of one name: begun, failed with `EAGAIN`, failed otherwise.
type Counts = BTreeMap<&'static str, (u64, u64, u64)>;

/// What `times` times the work of a stage is.
fn work(times: u64) -> Counts {
    Counts::from([
        ("getppid", (GETPPIDS * times, 0, 0)),
        ("write", (WRITES * times, 0, 0)),
        ("read", (EMPTY_READS * times, EMPTY_READS * times, 0)),
        ("close", (WRONG_CLOSES * times, 0, WRONG_CLOSES * times)),
    ])
}

/// The descriptors that a stage works on, opened before anything is counted.
struct Descriptors {
    null: i32,
    empty: i32,
}

/// The work of a stage, once.
fn call(descriptors: &Descriptors) {
    let mut byte = 0u8;
    // SAFETY: one byte of a live local; no descriptor that is open gets closed.
    unsafe {
        for _ in 0..GETPPIDS {
            libc::syscall(libc::SYS_getppid);
        }
        for _ in 0..WRITES {
            libc::write(descriptors.null, (&raw const byte).cast(), 1);
        }
        for _ in 0..EMPTY_READS {
            libc::read(descriptors.empty, (&raw mut byte).cast(), 1);
        }
        for _ in 0..WRONG_CLOSES {
            libc::close(-1);
        }
    }
}

/// Not a test but the child: does nothing unless it was started as one.
#[test]
fn child() {
    let Some(part) = child::part() else { return };
    let null = File::options().write(true).open("/dev/null").unwrap();
    let (empty, _writer) = nix::unistd::pipe2(nix::fcntl::OFlag::O_NONBLOCK).unwrap();
    let descriptors = Descriptors { null: null.as_raw_fd(), empty: empty.as_raw_fd() };
    while child::next_stage().is_some() {
        match part.as_str() {
            "one thread" => call(&descriptors),
            "threads" => std::thread::scope(|scope| {
                for _ in 0..THREADS {
                    scope.spawn(|| call(&descriptors));
                }
            }),
            // SAFETY: the forked child only makes system calls, and leaves at once.
            "fork" => unsafe {
                let forked = libc::fork();
                if forked == 0 {
                    call(&descriptors);
                    libc::_exit(0);
                }
                libc::waitpid(forked, std::ptr::null_mut(), 0);
            },
            other => panic!("unknown part {other}"),
        }
    }
}

/// Whether counting and tracing are possible; says so where they are not.
fn able() -> bool {
    if !nix::unistd::geteuid().is_root() {
        let _gone = writeln!(std::io::stderr(), "left out: system calls are counted by root only");
        return false;
    }
    if Command::new("strace").arg("--version").output().is_err() {
        let _gone = writeln!(std::io::stderr(), "left out: strace is not installed");
        return false;
    }
    true
}

fn start(backend: &str, out: &Path, subject: &Subject, more: &[&str]) -> Running {
    let target = subject.target();
    let words = [&["--backend", backend, "--target", target.as_str()], more].concat();
    Running::start(PROBE, out, &words)
}

fn samples(out: &Path) -> Vec<Sample> {
    capture::json_lines(&out.join(bpf_counts::FILE)).unwrap()
}

/// What the kernel counted of the calls that the work is made of, from one sample to another.
fn counted(before: &Sample, after: &Sample) -> Counts {
    let read = |sample: &Sample, name: &str| {
        let counts = sample.role(Role::Subject).unwrap();
        let failed = counts.failures.get(name).copied().unwrap_or_default();
        (counts.calls.get(name).copied().unwrap_or_default(), failed.again, failed.other)
    };
    let names = work(1).into_keys();
    names
        .map(|name| {
            let (from, to) = (read(before, name), read(after, name));
            (name, (to.0 - from.0, to.1 - from.1, to.2 - from.2))
        })
        .collect()
}

/// Counts the calls of a trace that the work is made of.
struct Traced(Counts);

impl Sink<Record<'_>> for Traced {
    fn record(&mut self, record: Record<'_>) {
        let Record::Call(call) = record else { return };
        let Some(counts) = self.0.get_mut(call.name) else { return };
        // A call that strace left in the middle was not begun by the work.
        assert!(matches!(call.outcome, Outcome::Returned { .. }), "{call:?}");
        counts.0 += 1;
        match call.outcome.errno() {
            Some("EAGAIN") => counts.1 += 1,
            Some(_) => counts.2 += 1,
            None => {}
        }
    }

    fn problem(&mut self, problem: Problem) {
        panic!("{problem}");
    }
}

fn traced(out: &Path) -> Counts {
    let none = work(0);
    let mut traced = Traced(none);
    let mut decoder = Decoder::default();
    decoder.feed(&fs::read(out.join(strace::FILE)).unwrap(), &mut traced);
    decoder.finish(&mut traced);
    traced.0
}

/// Everything that a capture holds of the work.
fn recorded(backend: &str, out: &Path) -> Counts {
    match backend {
        "bpf" => {
            let samples = samples(out);
            counted(&samples[0], samples.last().unwrap())
        }
        _ => traced(out),
    }
}

fn complete(ended: (Value, std::process::ExitStatus)) {
    assert_eq!(ended.0["status"], "complete", "{}", ended.0);
    assert!(ended.1.success());
}

#[test]
fn both_backends_count_each_call_of_threads_and_forked_processes_once() {
    if !able() {
        return;
    }
    let folder = Folder::new("syscalls-counts");
    for (part, times) in [("one thread", 1), ("threads", THREADS), ("fork", 1)] {
        let out = folder.join(&format!("bpf {part}"));
        let mut subject = Subject::start("child", part);
        let mut probe = start("bpf", &out, &subject, &[]);
        probe.ready();
        subject.stage(b'x');
        probe.tell("mark");
        for _ in 0..2 {
            subject.stage(b'x');
        }
        probe.tell("mark");
        complete(probe.end());
        let samples = samples(&out);
        let reasons: Vec<At> = samples.iter().map(|sample| sample.at).collect();
        assert_eq!(reasons, [At::Ready, At::Mark, At::Mark, At::End]);
        assert_eq!(counted(&samples[0], &samples[1]), work(times), "bpf, {part}");
        assert_eq!(counted(&samples[1], &samples[2]), work(2 * times), "bpf, {part}");
        assert_eq!(counted(&samples[2], &samples[3]), work(0), "bpf, {part}");
        assert_eq!(manifest(&out).integrity["recursion_misses"], 0);

        let out = folder.join(&format!("strace {part}"));
        let mut subject = Subject::start("child", part);
        let mut probe = start("strace", &out, &subject, &[]);
        probe.ready();
        subject.stage(b'x');
        complete(probe.end());
        assert_eq!(traced(&out), work(times), "strace, {part}");
    }
}

#[test]
fn calls_are_counted_only_while_it_is_on() {
    if !able() {
        return;
    }
    let folder = Folder::new("syscalls-off");
    for backend in BACKENDS {
        let out = folder.join(backend);
        let mut subject = Subject::start("child", "threads");
        let mut probe = start(backend, &out, &subject, &["--off"]);
        probe.ready();
        subject.stage(b'x');
        probe.tell("on");
        subject.stage(b'x');
        probe.tell("off");
        subject.stage(b'x');
        complete(probe.end());
        subject.stage(b'x');
        assert_eq!(recorded(backend, &out), work(THREADS), "{backend}");
    }
}

fn tracer(pid: u32) -> String {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("TracerPid:"));
    line.unwrap().trim().to_owned()
}

#[test]
fn the_subject_lives_on_when_the_probe_is_killed() {
    if !able() {
        return;
    }
    let folder = Folder::new("syscalls-killed");
    for backend in BACKENDS {
        let out = folder.join(backend);
        let mut subject = Subject::start("child", "one thread");
        let mut probe = start(backend, &out, &subject, &[]);
        probe.ready();
        subject.stage(b'x');
        probe.child.kill().unwrap();
        probe.child.wait().unwrap();
        subject.stage(b'x');
        let until = Instant::now() + Duration::from_secs(20);
        while tracer(subject.pid()) != "0" {
            assert!(Instant::now() < until, "it is still traced");
            std::thread::sleep(Duration::from_millis(5));
        }
        subject.stage(b'x');
        assert_eq!(manifest(&out).status, Status::Recording, "{backend}");
    }
}

#[test]
fn a_process_that_is_traced_already_is_refused_in_one_line() {
    if !able() {
        return;
    }
    let folder = Folder::new("syscalls-traced");
    let mut subject = Subject::start("child", "one thread");
    let mut first = start("strace", &folder.join("first"), &subject, &[]);
    first.ready();
    let out = folder.join("second");
    let (last, status) = start("strace", &out, &subject, &[]).wait();
    let (pid, by) = (subject.pid(), tracer(subject.pid()));
    let said =
        format!("process {pid} is already traced by process {by} (a debugger or another strace)");
    assert_eq!((last["status"].as_str(), last["reason"].as_str()), (Some("failed"), Some(&*said)));
    assert_eq!(status.code(), Some(1));
    assert_eq!(manifest(&out).reason, Some(said));
    subject.stage(b'x');
    complete(first.end());
    assert_eq!(traced(&folder.join("first")), work(1));
}

#[test]
fn without_the_right_it_says_in_one_line_which() {
    if !able() {
        return;
    }
    let folder = Folder::new("syscalls-rights");
    let subject = Subject::start("child", "one thread");
    for (backend, right) in [("bpf", "cap_bpf and cap_perfmon"), ("strace", "cap_sys_ptrace")] {
        // Still root by name, so that files are no matter.
        let output = Command::new("setpriv")
            .args(["--bounding-set=-all", "--inh-caps=-all", PROBE, "--backend", backend])
            .args(["--target", &subject.target(), "--out"])
            .arg(folder.join(backend))
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(1));
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(said.lines().count(), 1, "{said}");
        assert!(said.starts_with("assay-probe-syscalls: "), "{said}");
        assert!(said.contains(right) && said.contains("run as root"), "{said}");
        assert_eq!(manifest(&folder.join(backend)).status, Status::Failed);
    }
}
