//! Doing something inside another process's network namespace.

use std::fs::File;
use std::os::fd::AsFd;

use anyhow::{Context, Result};
use assay_captures::ids::Pid;
use nix::sched::{CloneFlags, setns};

/// Runs `act` inside the network namespace of `pid`, and comes back. A socket that is opened there
/// stays there for its life.
///
/// Only this thread goes there: it must be one that does nothing else meanwhile.
pub fn inside<T>(pid: Option<Pid>, act: impl FnOnce() -> Result<T>) -> Result<T> {
    let Some(pid) = pid else { return act() };
    let home = File::open("/proc/thread-self/ns/net").context("cannot name our own namespace")?;
    let there = File::open(format!("/proc/{}/ns/net", pid.0)).with_context(|| {
        format!("cannot open the network namespace of process {}; is it still running?", pid.0)
    })?;
    setns(there.as_fd(), CloneFlags::CLONE_NEWNET).with_context(|| {
        format!(
            "cannot enter the network namespace of process {}: this needs cap_sys_admin; run as \
             root",
            pid.0
        )
    })?;
    let done = act();
    setns(home.as_fd(), CloneFlags::CLONE_NEWNET).context("cannot come back from a namespace")?;
    done
}
