//! What users, databases and caches were told is in nothing that a run keeps, in whatever pass and
//! however it ended; and nobody else may look at it.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use assay::processes;
use assay_captures::{capture, pcap};
use nix::sys::signal::Signal;

use crate::guarded_run::{Tiny, Watched, all_faults_are_tried, services_are_installed};

/// Begins and ends everything that must not be kept.
const MARK: &str = "zq-";

/// The passwords of the services, from the environment of a subject.
fn passwords(run: &Watched) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for process in processes::descendants(run.front_pid()) {
        let environment = fs::read(format!("/proc/{}/environ", process.pid)).unwrap_or_default();
        for variable in String::from_utf8_lossy(&environment).split('\0') {
            if let Some((_, url)) = variable.split_once("_URL=")
                && let Some((login, _)) = url.split_once('@')
                && let Some((_, password)) = login.rsplit_once(':')
            {
                found.insert(password.to_owned());
            }
        }
    }
    found
}

/// Every file below a folder, with the folder's and the files' modes checked.
fn files(folder: &Path) -> Vec<std::path::PathBuf> {
    let mode = |path: &Path| fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
    let mut found = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        assert_eq!(mode(&folder), 0o700, "{}", folder.display());
        for entry in fs::read_dir(&folder).expect("it is ours").flatten() {
            let kind = entry.file_type().expect("it has a kind");
            if kind.is_dir() {
                folders.push(entry.path());
                continue;
            }
            assert!(kind.is_file(), "{} is no file", entry.path().display());
            assert_eq!(mode(&entry.path()), 0o600, "{}", entry.path().display());
            found.push(entry.path());
        }
    }
    found
}

fn hold_nothing(what: &str, run: &Path, passwords: &BTreeSet<String>) {
    assert!(passwords.len() >= 2, "{what}: Postgres and Redis have passwords: {passwords:?}");
    let files = files(run);
    assert!(files.len() > 3, "{what}: only {files:?}");
    let secrets = passwords.iter().map(String::as_str).chain([MARK, "SCRAM-SHA-256$"]);
    let secrets: Vec<&str> = secrets.collect();
    for file in files {
        let bytes = unpacked(&file);
        for secret in &secrets {
            let at = bytes.windows(secret.len()).position(|window| window == secret.as_bytes());
            if let Some(at) = at {
                let shown = &bytes[at.saturating_sub(40)..bytes.len().min(at + 40)];
                let shown = String::from_utf8_lossy(shown);
                panic!("{what}: {} holds {secret:?}: {shown:?}", file.display());
            }
        }
    }
}

/// What is in a file; of one whose writer was killed, as far as it can be unpacked.
fn unpacked(file: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    let _torn = capture::feed_file(file, |chunk| bytes.extend_from_slice(chunk));
    bytes
}

fn start(tiny: &Tiny, stage: &str) -> (Watched, BTreeSet<String>) {
    let mut run = Watched::start(tiny.command());
    run.wait_for(stage);
    let passwords = passwords(&run);
    (run, passwords)
}

#[test]
fn nothing_that_was_secret_is_kept_in_any_pass() {
    if !services_are_installed() {
        return;
    }
    let tiny = Tiny::secrets();
    let (run, passwords) = start(&tiny, "fair …");
    let (status, said) = run.end();
    assert_eq!(status.code(), Some(0), "{said}");
    assert_eq!(tiny.status().0, "complete", "{said}");
    hold_nothing("a whole run", &tiny.run(), &passwords);
    assert!(!said.contains(MARK), "{said}");
    // What was recorded would have held them.
    let packets = tiny.run().join("captures/wire/diary.default/note/wire").join(pcap::FILE);
    assert!(unpacked(&packets).len() > 20_000);
}

#[test]
fn nothing_that_was_secret_is_kept_of_a_run_that_was_killed() {
    if !all_faults_are_tried() || !services_are_installed() {
        return;
    }
    for pass in ["serial", "serial-strace", "wire", "syscalls", "cpu", "allocations"] {
        let tiny = Tiny::secrets();
        let (run, passwords) = start(&tiny, &format!("{pass} …"));
        let captures = tiny.run().join("captures").join(pass);
        let until = Instant::now() + Duration::from_secs(20);
        // Something has been recorded.
        while walk(&captures) < 2 && Instant::now() < until {
            sleep(Duration::from_millis(5));
        }
        sleep(Duration::from_millis(100));
        run.send(run.worker(), Signal::SIGKILL);
        run.end();
        tiny.assert_nothing_is_left(pass, &[]);
        hold_nothing(&format!("killed in {pass}"), &tiny.run(), &passwords);
    }
}

/// How many files there are below a folder.
fn walk(folder: &Path) -> usize {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| if entry.path().is_dir() { walk(&entry.path()) } else { 1 }).sum()
}
