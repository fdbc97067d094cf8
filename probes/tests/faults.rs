//! What happens to a capture when something around its probe fails: an outside tool is killed, the
//! clock is set, packets come faster than they can be taken.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod child;
mod running;

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use assay_captures::manifest::Status;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use child::Subject;
use running::{Folder, Running, manifest};

const USAGE: &str = env!("CARGO_BIN_EXE_assay-probe-usage");
const SYSCALLS: &str = env!("CARGO_BIN_EXE_assay-probe-syscalls");
const WIRE: &str = env!("CARGO_BIN_EXE_assay-probe-wire");

/// Not a test but the child: busy for a moment at each stage.
#[test]
fn child() {
    if child::part().is_none() {
        return;
    }
    while child::next_stage().is_some() {
        let until = Instant::now() + Duration::from_millis(50);
        while Instant::now() < until {
            std::hint::black_box(nix::unistd::getppid());
        }
    }
}

/// Whether this user may record, and the tool is there; says so where not.
fn able(tool: &str) -> bool {
    let root = nix::unistd::geteuid().is_root();
    let there = Command::new(tool).arg("--version").output().is_ok();
    if !root || !there {
        let _gone = writeln!(std::io::stderr(), "left out: needs root and {tool}");
    }
    root && there
}

/// The child of a process that runs a program of this name.
fn child_named(parent: u32, name: &str) -> Pid {
    let children = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).unwrap();
    let mut pids = children.split_whitespace().map(|pid| pid.parse::<i32>().unwrap());
    let is = |pid: &i32| {
        fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|comm| comm.trim() == name)
    };
    Pid::from_raw(pids.find(is).unwrap())
}

fn is_gone(pid: Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.is_empty() || stat.contains(") Z ")
}

fn wait_until(what: &str, done: impl Fn() -> bool) {
    let until = Instant::now() + Duration::from_secs(30);
    while !done() {
        assert!(Instant::now() < until, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A capture that failed, with a reason in one line, and nothing in the folder but its files.
fn failed(out: &Path, last: &serde_json::Value, said: &[&str]) {
    let reason = last["reason"].as_str().unwrap();
    for said in said {
        assert!(reason.contains(said), "{reason}");
    }
    assert_eq!(reason.lines().count(), 1);
    let manifest = manifest(out);
    assert_eq!((manifest.status, manifest.reason.as_deref()), (Status::Failed, Some(reason)));
    for entry in fs::read_dir(out).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let known = name == "manifest.json" || manifest.files.contains(&name);
        assert!(known, "{name} is left behind");
    }
}

#[test]
fn a_trace_whose_strace_was_killed_is_not_called_whole_and_the_service_lives_on() {
    if !able("strace") {
        return;
    }
    let folder = Folder::new("faults-strace");
    // Noticed at a mark, and where there is none, at the end.
    for mark in [true, false] {
        let out = folder.join(if mark { "mark" } else { "end" });
        let mut subject = Subject::start("child", "busy");
        let target = subject.target();
        let words = ["--backend", "strace", "--target", &target];
        let mut probe = Running::start(SYSCALLS, &out, &words);
        probe.ready();
        subject.stage(b'x');
        let strace = child_named(probe.child.id(), "strace");
        kill(strace, Signal::SIGKILL).unwrap();
        wait_until("strace ends", || is_gone(strace));
        subject.stage(b'x');
        let (last, status) = if mark {
            probe.send("mark");
            probe.wait()
        } else {
            probe.end()
        };
        assert_eq!(status.code(), Some(1));
        failed(&out, &last, &["strace ended before it was told to", "SIGKILL"]);
        assert!(fs::metadata(out.join("trace.strace")).unwrap().len() > 0, "what it wrote is kept");
        subject.stage(b'x');
    }
}

/// Builds a library that sets the clock of whoever it is loaded into: no test may set the
/// machine's.
fn shim(folder: &Folder) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clock_shim/shim.rs");
    let library = folder.join("libshim.so");
    let status = Command::new("rustc")
        .args(["--edition", "2024", "--crate-type", "cdylib", "-o"])
        .args([&library, &source])
        .status();
    assert!(status.unwrap().success());
    library
}

#[test]
fn a_capture_over_which_the_clock_was_set_says_by_how_much_and_is_not_called_whole() {
    let folder = Folder::new("faults-clock");
    let library = shim(&folder);
    for (name, seconds, said) in [("on", "3600", "forward by 3600."), ("back", "-7", "back by 7.")]
    {
        let out = folder.join(name);
        let shift = folder.join(&format!("{name}.shift"));
        let environment = [("LD_PRELOAD", library.as_os_str()), ("CLOCK_SHIFT", shift.as_os_str())];
        let target = format!("subject:pid={}", std::process::id());
        let mut probe = Running::start_in(USAGE, &out, &["--target", &target], &environment);
        probe.ready();
        probe.tell("mark");
        fs::write(&shift, seconds).unwrap();
        probe.tell("mark");
        let (last, status) = probe.end();
        assert_eq!(status.code(), Some(1));
        failed(&out, &last, &["the machine's clock was set", said, "record again"]);
    }
    // The same library without a shift changes nothing.
    let out = folder.join("still");
    let environment = [("LD_PRELOAD", library.as_os_str())];
    let target = format!("subject:pid={}", std::process::id());
    let mut probe = Running::start_in(USAGE, &out, &["--target", &target], &environment);
    probe.ready();
    assert_eq!(probe.end().0["status"], "complete");
}

#[test]
fn what_the_ring_had_no_room_for_is_counted_as_dropped() {
    if !able("true") {
        return;
    }
    let folder = Folder::new("faults-drops");
    let out = folder.join("wire");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let target = format!("redis:port={port}");
    let mut probe = Running::start(WIRE, &out, &["--ring", "2", "--target", &target]);
    probe.ready();
    let pid = Pid::from_raw(probe.child.id().cast_signed());
    kill(pid, Signal::SIGSTOP).unwrap();
    let sender = std::thread::spawn(move || {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.write_all(&vec![b'x'; 8 << 20]).unwrap();
    });
    let mut received = Vec::new();
    listener.accept().unwrap().0.read_to_end(&mut received).unwrap();
    sender.join().unwrap();
    kill(pid, Signal::SIGCONT).unwrap();
    let (last, _) = probe.end();
    assert_eq!(last["status"], "complete", "{last}");
    let manifest = manifest(&out);
    let (drops, kept) = (manifest.integrity["drops"], manifest.integrity["packets"]);
    assert!(drops > 0 && kept > 0, "{drops} dropped, {kept} kept");
    assert_eq!(manifest.integrity["received"], drops + kept);
}

#[test]
fn a_folder_that_may_not_be_written_is_one_line_and_nothing_is_recorded() {
    if !able("setpriv") {
        return;
    }
    let folder = Folder::new("faults-right");
    let out = folder.join("mine/usage");
    fs::create_dir(folder.join("mine")).unwrap();
    let own = format!("subject:pid={}", std::process::id());
    let output = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups", "--"])
        .args([USAGE, "--target", &own, "--out"])
        .arg(&out)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.contains("cannot make the capture's folder"), "{said}");
    assert!(said.contains("Permission denied"), "{said}");
    assert!(!out.exists());
}
