//! The session that all probes share, and the usage probe in it.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod running;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use assay_captures::manifest::Status;
use assay_captures::parsed::Parsed;
use assay_captures::usage::{At, Decoder, FILE, Sample};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use running::{Folder, Running, manifest};

const PROBE: &str = env!("CARGO_BIN_EXE_assay-probe-usage");

fn own() -> String {
    format!("subject:pid={}", std::process::id())
}

fn samples(folder: &Path) -> Vec<Sample> {
    let mut parsed = Parsed::default();
    let mut decoder = Decoder::default();
    decoder.feed(&std::fs::read(folder.join(FILE)).unwrap(), &mut parsed);
    decoder.finish(&mut parsed);
    assert_eq!(parsed.problems, []);
    parsed.records
}

#[test]
fn each_command_is_answered_and_leaves_a_sample() {
    let folder = Folder::new("usage-commands");
    let out = folder.join("new/usage");
    let mut probe = Running::start(PROBE, &out, &["--target", &own(), "--interval", "3600000"]);
    let ready = probe.ready();
    let marked = probe.tell("mark");
    let off = probe.tell("off");
    let on = probe.tell("on");
    let (last, status) = probe.end();
    assert_eq!(last, serde_json::json!({"done": true, "status": "complete"}));
    assert!(status.success());

    let samples = samples(&out);
    let reasons: Vec<At> = samples.iter().map(|sample| sample.at).collect();
    assert_eq!(reasons, [At::Ready, At::Mark, At::Off, At::On, At::End]);
    for (sample, moment) in samples.iter().zip([ready, marked, off, on]) {
        assert!(sample.span().end.0 <= moment, "the answer comes after the sample");
    }
    assert!(samples.windows(2).all(|two| two[0].groups[0].cpu <= two[1].groups[0].cpu));
    let manifest = manifest(&out);
    assert_eq!(manifest.status, Status::Complete);
    assert_eq!(manifest.integrity["samples"], 5);
    assert_eq!(manifest.files, [FILE]);
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&out), 0o700);
    assert_eq!(mode(&out.join(FILE)), 0o600);
    assert_eq!(mode(&out.join("manifest.json")), 0o600);
}

#[test]
fn signals_and_time_end_it_as_stop_does() {
    let folder = Folder::new("usage-signals");
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        let out = folder.join(signal.as_str());
        let mut probe = Running::start(PROBE, &out, &["--target", &own()]);
        probe.ready();
        assert_eq!(manifest(&out).status, Status::Recording);
        kill(Pid::from_raw(probe.child.id() as i32), signal).unwrap();
        let (last, status) = probe.wait();
        assert_eq!(last["status"], "complete");
        assert!(status.success());
        assert_eq!(manifest(&out).status, Status::Complete);
    }
    let out = folder.join("time");
    let words = ["--target", &own(), "--duration", "0.2", "--interval", "50"];
    let mut probe = Running::start(PROBE, &out, &words);
    probe.ready();
    let (last, _) = probe.wait();
    assert_eq!(last["status"], "complete");
    assert!(samples(&out).iter().any(|sample| sample.at == At::Tick));
}

#[test]
fn it_ends_with_its_parent_even_without_a_pipe() {
    let folder = Folder::new("usage-orphan");
    let out = folder.join("usage");
    let script = format!("{PROBE} --out {} --target {} </dev/null & wait", out.display(), own());
    let mut shell = Command::new("sh").args(["-c", &script]).stdout(Stdio::null()).spawn().unwrap();
    let until = Instant::now() + Duration::from_secs(20);
    while !out.join(FILE).exists() {
        assert!(Instant::now() < until);
        std::thread::sleep(Duration::from_millis(5));
    }
    shell.kill().unwrap();
    shell.wait().unwrap();
    while manifest(&out).status == Status::Recording {
        assert!(Instant::now() < until, "it still runs");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(manifest(&out).status, Status::Complete);
}

#[test]
fn what_cannot_be_done_is_one_line_and_exit_code_1() {
    let folder = Folder::new("usage-errors");
    std::fs::write(folder.join("file"), "x").unwrap();
    for (out, target, said) in [
        (folder.join(""), own(), "is not empty: give --out a new folder"),
        (folder.join("file/usage"), own(), "cannot make the capture's folder"),
        (folder.join("gone"), "redis:pid=2147483647".into(), "there is no process 2147483647"),
        (folder.join("none"), "redis:port=1".into(), "no process to watch"),
    ] {
        let probe = Running::start(PROBE, &out, &["--target", &target]);
        let (last, status) = probe.wait();
        assert_eq!(last["status"], "failed");
        let reason = last["reason"].as_str().unwrap();
        assert!(reason.contains(said) && !reason.contains('\n'), "{reason}");
        assert_eq!(status.code(), Some(1));
    }
    let failed = manifest(&folder.join("gone"));
    assert_eq!(failed.status, Status::Failed);
    assert!(failed.reason.unwrap().contains("there is no process"));
}

#[test]
fn every_probe_describes_itself_without_a_folder() {
    for program in [
        PROBE,
        env!("CARGO_BIN_EXE_assay-probe-wire"),
        env!("CARGO_BIN_EXE_assay-probe-syscalls"),
        env!("CARGO_BIN_EXE_assay-probe-cpu"),
        env!("CARGO_BIN_EXE_assay-probe-allocations"),
    ] {
        let output = Command::new(program).arg("--describe").output().unwrap();
        assert!(output.status.success());
        let description: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        for key in ["question", "summary", "tools", "rights", "cost"] {
            assert!(!description[key].is_null(), "{program}: {key}");
        }
    }
}
