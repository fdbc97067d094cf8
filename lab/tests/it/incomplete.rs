//! What goes wrong on the way is told in one line with the right exit code, the record says that
//! the run is incomplete and why, and what was recorded can still be shown.

use std::fs;
use std::io::{self, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, ExitStatus};

use assay::processes;
use nix::sys::signal::Signal;

use crate::guarded_run::{Tiny, Watched, services_are_installed};

/// What `assay report` shows of a run; it must show something.
pub(crate) fn shown(run: &Path) -> String {
    let mut report = Command::new(env!("CARGO_BIN_EXE_assay"));
    let output = report.arg("report").arg(run).output().expect("assay starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    // Lines are broken where the terminal ends.
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Runs to the early end, and returns what was said.
fn fails(tiny: &Tiny) -> String {
    let (status, said) = Watched::start(tiny.command()).end();
    told(tiny, status, &said)
}

/// Fails unless everything tells the same story: exit code, standard error, record and report.
fn told(tiny: &Tiny, status: ExitStatus, said: &str) -> String {
    assert_eq!(status.code(), Some(1), "{said}");
    tiny.assert_nothing_is_left("the run", &[]);
    let (record, reason) = tiny.status();
    assert_eq!(record, "incomplete", "{said}");
    assert!(!reason.is_empty() && said.contains(&format!("error: {reason}")), "{reason}: {said}");
    assert!(said.contains("the run is incomplete; what was recorded is in "), "{said}");
    let shown = shown(&tiny.run());
    let words: Vec<&str> = reason.split_whitespace().collect();
    // A very long reason is cut.
    let begin = words[..words.len().min(12)].join(" ");
    assert!(shown.contains(&format!("this run: {begin}")), "{shown}");
    said.to_owned()
}

/// Has the experiment run one pass alone.
pub(crate) fn only_pass(tiny: &Tiny, pass: &str) {
    tiny.change("experiment.toml", "[\"fair\", \"serial\", \"wire\"]", &format!("[\"{pass}\"]"));
}

/// What the record says of a pass.
pub(crate) fn pass_record(tiny: &Tiny, place: usize) -> serde_json::Value {
    let text = fs::read(tiny.run().join("run.json")).expect("the record is there");
    let record: serde_json::Value = serde_json::from_slice(&text).expect("it is JSON");
    record["passes"][place].clone()
}

#[test]
fn a_subject_that_dies_under_load_is_quoted() {
    if !services_are_installed() {
        return;
    }
    let tiny = Tiny::built();
    tiny.change("experiment.toml", "SPAWN = 1", "DIE_AFTER = 2000");
    let said = fails(&tiny);
    let told = "ended under load (exit status: 7); its last lines:\n  \
                the first line of trouble\n  the last line of trouble";
    assert!(said.contains(told), "{said}");
}

#[test]
fn a_subject_whose_port_is_taken_is_quoted() {
    if !services_are_installed() {
        return;
    }
    let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let tiny = Tiny::built();
    let address = taken.local_addr().expect("it is bound").to_string();
    tiny.change("experiment.toml", "{address}", &address);
    let said = fails(&tiny);
    assert!(said.contains("page.one ended before it was ready"), "{said}");
    assert!(said.contains("Address already in use"), "{said}");
}

#[test]
fn an_answer_that_differs_is_shown_from_its_first_line_that_does() {
    if !services_are_installed() {
        return;
    }
    let tiny = Tiny::built();
    let other = "name = \"two\"\nenv = { PAGE = \"another page\" }";
    tiny.change("experiment.toml", "name = \"two\"", other);
    let said = fails(&tiny);
    let told = "two, route page: GET /page/1 is answered unlike by one, from line 1 on\n  \
                one: a page that is always the same\n  two: another page";
    assert!(said.contains(told), "{said}");
}

#[test]
fn a_postgres_that_is_killed_ends_the_run_and_keeps_its_laps() {
    if !services_are_installed() {
        return;
    }
    let tiny = Tiny::built();
    only_pass(&tiny, "fair");
    tiny.change("experiment.toml", "rounds = 4, lap_s = 0.4", "rounds = 4, lap_s = 1");
    let mut run = Watched::start(tiny.command());
    run.wait_for("fair …");
    let laps = tiny.run().join("captures/fair/laps.jsonl");
    while !fs::read_to_string(&laps).is_ok_and(|text| text.contains('\n')) {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let below = processes::descendants(run.front_pid());
    // The oldest: its backends have its name.
    let postmaster = below.iter().filter(|process| process.name == "postgres");
    run.send(postmaster.map(|process| process.pid).min().expect("it runs"), Signal::SIGKILL);
    let (status, said) = run.end();
    let said = told(&tiny, status, &said);
    assert!(
        said.lines().any(|line| line.contains("postgres") && line.contains("SIGKILL")),
        "{said}"
    );
    let kept = fs::read_to_string(&laps).expect("the laps are there");
    assert!(kept.lines().count() >= 1);
    assert_eq!(pass_record(&tiny, 0)["status"], "incomplete");
}

/// A small disk, mounted until this is dropped.
struct Disk<'a>(&'a Path);

impl<'a> Disk<'a> {
    fn mount(path: &'a Path, size: &str) -> Option<Self> {
        fs::create_dir(path).expect("a folder can be made");
        let options = format!("size={size}");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &options, "tmpfs"]).arg(path);
        let mounted = mount.output().is_ok_and(|output| output.status.success());
        if !mounted {
            let _gone = writeln!(io::stderr(), "left out: mounting a small disk needs root");
        }
        mounted.then_some(Self(path))
    }
}

impl Drop for Disk<'_> {
    fn drop(&mut self) {
        let _status = Command::new("umount").arg(self.0).status();
    }
}

#[test]
fn a_full_disk_is_told_and_what_fitted_is_kept() {
    if !services_are_installed() {
        return;
    }
    let tiny = Tiny::built();
    let path = tiny.run();
    let Some(_disk) = Disk::mount(&path, "768k") else { return };
    tiny.change("experiment.toml", "\"serial\", ", "");
    let mut run = Watched::start(tiny.command());
    run.wait_for("wire …");
    let packets = path.join("captures/wire/page.one/page/wire/capture.pcapng");
    while !packets.exists() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    // However slow the machine is: the disk is full while the probe records.
    let mut filler = fs::File::create(path.join("filler")).expect("there is room for a name");
    while filler.write_all(&[0; 4096]).is_ok() {}
    let (status, said) = run.end();
    fs::remove_file(path.join("filler")).expect("it is ours");
    let said = told(&tiny, status, &said);
    let line = said.lines().find(|line| line.starts_with("error: ")).unwrap_or_default();
    assert!(line.contains("No space left on device"), "{said}");
    assert!(line.ends_with("make room and run it again (what was recorded is kept)"), "{said}");
    assert_eq!(pass_record(&tiny, 0)["status"], "complete");
    let wire = pass_record(&tiny, 1);
    assert_ne!(wire["status"], "complete");
}

#[test]
fn a_pass_whose_probe_fails_is_incomplete_and_the_others_are_not() {
    if !services_are_installed() {
        return;
    }
    let tiny = Tiny::built();
    only_pass(&tiny, "serial");
    let tools = tiny.path().join("tools");
    fs::create_dir(&tools).expect("a folder can be made");
    let strace = tools.join("strace");
    fs::write(
        &strace,
        "#!/bin/sh\n[ \"$1\" = --version ] && exec echo 'strace -- version 6.1'\nexit 3\n",
    )
    .expect("it can be written");
    fs::set_permissions(&strace, PermissionsExt::from_mode(0o755)).expect("it is ours");
    let path = format!("{}:{}", tools.display(), std::env::var("PATH").unwrap_or_default());
    let mut command = tiny.command();
    command.env("PATH", path);
    let (status, said) = Watched::start(command).end();
    assert_eq!(status.code(), Some(0), "{said}");
    let reason = "syscalls: strace ended before it had attached (exit status: 3) (page.one, page)";
    assert!(said.contains(&format!("pass serial-strace: {reason}")), "{said}");
    assert_eq!(pass_record(&tiny, 0)["status"], "complete");
    let strace = pass_record(&tiny, 1);
    assert_eq!(strace["status"], "incomplete");
    assert!(strace["reason"].as_str().is_some_and(|told| told.starts_with(reason)), "{strace}");
    assert!(shown(&tiny.run()).contains(reason));
}

#[test]
fn packets_of_a_wire_probe_that_was_killed_do_not_stay() {
    if !services_are_installed() {
        return;
    }
    let tiny = Tiny::built();
    only_pass(&tiny, "wire");
    tiny.change("experiment.toml", "rounds = 2, lap_s = 0.4", "rounds = 2, lap_s = 1");
    let mut run = Watched::start(tiny.command());
    run.wait_for("wire …");
    let packets = tiny.run().join("captures/wire/page.one/page/wire/capture.pcapng");
    let size = || fs::metadata(&packets).map(|found| found.len()).unwrap_or_default();
    while size() < 10_000 {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let below = processes::descendants(run.front_pid());
    // The kernel keeps 15 characters of a name.
    let probe = below.iter().find(|process| process.name == "assay-probe-wir");
    run.send(probe.expect("it records").pid, Signal::SIGKILL);
    let (status, said) = run.end();
    assert_eq!(status.code(), Some(0), "{said}");
    assert!(!packets.exists());
    let pass = pass_record(&tiny, 0);
    assert_eq!(pass["status"], "incomplete");
    let reason = pass["reason"].as_str().unwrap_or_default();
    assert!(reason.contains("SIGKILL") && reason.ends_with(assay::unmasked::REMOVED), "{reason}");
    assert!(said.contains(reason), "{said}");
    let other = tiny.run().join("captures/wire/page.two/page/wire/capture.pcapng.gz");
    assert!(other.exists(), "the other arm was recorded");
}

#[test]
fn a_full_temporary_directory_is_told_in_one_line() {
    if !services_are_installed() {
        return;
    }
    let tiny = Tiny::built();
    let temporary = tiny.path().join("small");
    let Some(_disk) = Disk::mount(&temporary, "24m") else { return };
    let mut command = tiny.command();
    command.env("TMPDIR", &temporary);
    let (status, said) = Watched::start(command).end();
    let said = told(&tiny, status, &said);
    assert!(said.contains("No space left on device"), "{said}");
    let left = fs::read_dir(&temporary).expect("it is still there").count();
    assert_eq!(left, 0, "temporary directories");
}

#[test]
fn a_folder_on_a_disk_that_cannot_be_written_is_one_line_with_advice() {
    let tiny = Tiny::built();
    let place = tiny.path().join("fixed");
    let Some(_disk) = Disk::mount(&place, "1m,ro") else { return };
    let mut command = Command::new(env!("CARGO_BIN_EXE_assay"));
    command.arg("run").arg(tiny.path().join("experiment.toml"));
    command.arg("--out").arg(place.join("run")).env("TMPDIR", tiny.path().join("tmp"));
    let (status, said) = Watched::start(command).end();
    assert_eq!(status.code(), Some(1), "{said}");
    let line = said.lines().last().unwrap_or_default();
    assert!(line.starts_with("error: cannot write "), "{said}");
    assert!(
        line.ends_with("(os error 30); give a folder that may be written: --out DIR"),
        "{said}"
    );
}

#[test]
fn a_lap_over_which_the_clock_was_set_does_not_count() {
    if !services_are_installed() {
        return;
    }
    let tiny = Tiny::built();
    only_pass(&tiny, "fair");
    tiny.change("experiment.toml", "rounds = 4, lap_s = 0.4", "rounds = 2, lap_s = 4");
    let source = Path::new(env!("CARGO_MANIFEST_DIR"));
    let source = source.join("../probes/tests/clock_shim/shim.rs");
    let (library, shift) = (tiny.path().join("libshim.so"), tiny.path().join("shift"));
    let built = Command::new("rustc")
        .args(["--edition", "2024", "--crate-type", "cdylib", "-o"])
        .args([&library, &source])
        .status();
    assert!(built.expect("rustc runs").success());
    // Only our own processes see it: what we start begins with an environment of its own.
    let mut command = tiny.command();
    command.env("LD_PRELOAD", &library).env("CLOCK_SHIFT", &shift);
    let mut run = Watched::start(command);
    run.wait_for("fair …");
    let laps = tiny.run().join("captures/fair/laps.jsonl");
    while !fs::read_to_string(&laps).is_ok_and(|text| text.contains('\n')) {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    // In the middle of the second lap, which takes four seconds.
    std::thread::sleep(std::time::Duration::from_millis(2000));
    fs::write(&shift, "3600").expect("it can be written");
    let (status, said) = run.end();
    let said = told(&tiny, status, &said);
    let was_set = "the machine's clock was set forward by 3600.000 s";
    assert!(said.contains(&format!("{was_set} during the lap (page.")), "{said}");
    let text = fs::read_to_string(&laps).expect("the laps are there");
    assert_eq!((text.lines().count(), text.matches(was_set).count()), (4, 1), "{text}");
    assert!(shown(&tiny.run()).contains(was_set));
}
