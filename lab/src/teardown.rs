//! Ends everything that a run started, in whatever state it is, and removes what was temporary.
//!
//! Postgres first and by SIGQUIT, because only a postmaster that ends by itself takes its shared
//! memory away; then everyone else; then the memory of a postmaster that could not; then files.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::libc;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use crate::processes::{self, Process};
use crate::unmasked;

/// How long postmasters may take; they give their backends five seconds.
const POSTMASTERS: Duration = Duration::from_secs(8);
/// How long everyone else may take to end by SIGTERM.
const TERMINATE: Duration = Duration::from_secs(2);
/// How long the kernel may take to end what was killed.
const KILL: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(10);

/// Ends all descendants of this process. When `reap` is set, those that became its children are
/// waited for as well.
pub fn end_descendants(reap: bool) {
    let wait = |limit, wanted: fn(&Process) -> bool| wait_for(limit, reap, wanted);
    send(Signal::SIGCONT, |_| true);
    send(Signal::SIGQUIT, is_postmaster);
    wait(POSTMASTERS, is_postgres);
    send(Signal::SIGTERM, |_| true);
    wait(TERMINATE, |_| true);
    let deadline = Instant::now() + KILL;
    // Again and again: whoever was being started while the list was read is in the next one.
    while Instant::now() < deadline {
        if send(Signal::SIGKILL, |_| true) == 0 {
            break;
        }
        wait(PAUSE, |_| true);
    }
    if reap {
        reap_children();
    }
}

fn is_postgres(process: &Process) -> bool {
    process.name == "postgres"
}

fn is_postmaster(process: &Process) -> bool {
    let parent = processes::process(process.parent);
    is_postgres(process) && parent.is_none_or(|parent| !is_postgres(&parent))
}

/// Sends a signal to the descendants that are `wanted`; returns how many there were.
fn send(signal: Signal, wanted: impl Fn(&Process) -> bool) -> usize {
    let chosen: Vec<Process> =
        processes::descendants(nix::unistd::getpid()).into_iter().filter(wanted).collect();
    for process in &chosen {
        let _gone = kill(process.pid, signal);
    }
    chosen.len()
}

fn wait_for(limit: Duration, reap: bool, wanted: impl Fn(&Process) -> bool) {
    let deadline = Instant::now() + limit;
    loop {
        if reap {
            reap_children();
        }
        let left = processes::descendants(nix::unistd::getpid());
        if !left.iter().any(&wanted) || Instant::now() > deadline {
            return;
        }
        sleep(PAUSE);
    }
}

/// Waits for every child that has ended.
pub fn reap_children() {
    let any = Pid::from_raw(-1);
    while !matches!(waitpid(any, Some(WaitPidFlag::WNOHANG)), Ok(WaitStatus::StillAlive) | Err(_)) {
    }
}

/// Where a private cluster lies in a temporary directory.
fn cluster(scratch: &Path) -> PathBuf {
    scratch.join("postgres/data")
}

/// Ends the postmaster whose cluster lies under `scratch`, if it still runs there.
pub fn end_postmaster_of(scratch: &Path) {
    let data = cluster(scratch);
    let Ok(text) = fs::read_to_string(data.join("postmaster.pid")) else { return };
    let Some(pid) = text.lines().next().and_then(|line| line.trim().parse().ok()) else { return };
    let pid = Pid::from_raw(pid);
    // The number may belong to someone else by now; a postmaster works in its data folder.
    let at_home = || fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd == data);
    if !at_home() {
        return;
    }
    let _gone = kill(pid, Signal::SIGCONT);
    let _gone = kill(pid, Signal::SIGQUIT);
    let deadline = Instant::now() + POSTMASTERS;
    while at_home() && Instant::now() < deadline {
        sleep(PAUSE);
    }
    if at_home() {
        processes::signal_tree(pid, Signal::SIGKILL);
    }
}

/// Removes a temporary directory with all that is in it, the shared memory of a cluster there
/// whose postmaster was killed, and packets of its run whose probe was.
pub fn remove(scratch: &Path) {
    unmasked::remove_of(scratch);
    remove_shared_memory(&cluster(scratch));
    let deadline = Instant::now() + KILL;
    while fs::remove_dir_all(scratch).is_err() && scratch.exists() && Instant::now() < deadline {
        sleep(PAUSE);
    }
}

/// Line 7 of `postmaster.pid` has the key and the number of the cluster's System V segment.
fn remove_shared_memory(data: &Path) {
    let Ok(text) = fs::read_to_string(data.join("postmaster.pid")) else { return };
    let Some(line) = text.lines().nth(6) else { return };
    let mut numbers = line.split_ascii_whitespace().map(str::parse::<i64>);
    let (Some(Ok(key)), Some(Ok(segment))) = (numbers.next(), numbers.next()) else { return };
    let table = fs::read_to_string("/proc/sysvipc/shm").unwrap_or_default();
    let Ok(number) = i32::try_from(segment) else { return };
    if table.lines().skip(1).any(|row| is_deserted(row, key, segment)) {
        // SAFETY: IPC_RMID reads no memory of ours; the segment was checked to be the cluster's.
        let _gone = unsafe { libc::shmctl(number, libc::IPC_RMID, std::ptr::null_mut()) };
    }
}

/// A row of `/proc/sysvipc/shm`: `key shmid perms size cpid lpid nattch …`.
fn is_deserted(row: &str, key: i64, segment: i64) -> bool {
    let numbers: Vec<i64> =
        row.split_ascii_whitespace().take(7).filter_map(|word| word.parse().ok()).collect();
    // The key is unsigned in one place and signed in the other.
    numbers.len() == 7
        && numbers[0] & 0xffff_ffff == key & 0xffff_ffff
        && numbers[1] == segment
        && numbers[6] == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_segment_that_nobody_uses_is_removed() {
        let row = "  16777221          3  600   56  4012  4020      0  101  104  101  104  1 2 3";
        assert!(is_deserted(row, 16_777_221, 3));
        assert!(!is_deserted(row, 16_777_221, 4));
        assert!(!is_deserted(row, 5, 3));
        let used = row.replace("4020      0", "4020      2");
        assert!(!is_deserted(&used, 16_777_221, 3));
        assert!(!is_deserted("key shmid", 1, 1));
    }
}
