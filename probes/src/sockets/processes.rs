//! Which processes are watched in the kernel: roots and all their descendants, from the first
//! system call of each to its last, so that neither a short-lived child is missed nor a number
//! that has been given to somebody else is taken for it.

use std::ffi::CStr;
use std::io;

use anyhow::{Context, Result};
use assay_captures::ids::Pid;

use crate::bpf::btf::Btf;
use crate::bpf::kernel::{Attachment, Map, Program};
use crate::bpf::programs::{Offsets, follow_forks, forget_exits};
use crate::processes::ProcessTree;

const FORK: &CStr = c"sched_process_fork";
const EXIT: &CStr = c"sched_process_exit";

/// The programs that keep the set of watched processes true.
#[derive(Debug)]
pub struct Family {
    tree: ProcessTree,
    follower: Program,
    forgetter: Program,
    attached: Vec<Attachment>,
}

impl Family {
    /// Loads the programs for these roots. `unfollowed` counts at 0 the children for which there is
    /// no room in `watched`.
    pub fn load(watched: &Map, unfollowed: &Map, btf: &Btf<'_>, roots: &[Pid]) -> io::Result<Self> {
        let unknown = || io::Error::other("this kernel keeps its tasks in a way unknown here");
        let at = |structure, field| btf.offset(structure, field).ok_or_else(unknown);
        let offsets = Offsets {
            process_number: at("task_struct", "tgid")?,
            signal: at("task_struct", "signal")?,
            live: at("signal_struct", "live")?,
        };
        Ok(Self {
            tree: ProcessTree::new(roots),
            follower: Program::load(&follow_forks(watched, unfollowed, offsets))?,
            forgetter: Program::load(&forget_exits(watched, offsets))?,
            attached: Vec::new(),
        })
    }

    /// Watches the roots and their descendants from here on.
    pub fn attach(&mut self, watched: &Map, role: u32) -> Result<()> {
        let attach = |program: &Program, point: &CStr| {
            let failed = || format!("cannot attach to {}", point.to_string_lossy());
            program.attach(point).with_context(failed)
        };
        // First: what is forked or goes while we look around is then known.
        self.attached = vec![attach(&self.follower, FORK)?, attach(&self.forgetter, EXIT)?];
        self.tree.refresh();
        for pid in self.tree.pids() {
            watched.insert(pid.0, role).context("cannot watch a process")?;
        }
        // One that went meanwhile would never be forgotten.
        for pid in self.tree.refresh().vanished {
            watched.remove(pid.0).context("cannot stop watching a process")?;
        }
        Ok(())
    }

    /// Follows nobody any more.
    pub fn detach(&mut self) {
        self.attached.clear();
    }

    /// The watched processes, as /proc has them now.
    pub fn look(&mut self) -> Vec<Pid> {
        self.tree.refresh();
        self.tree.pids().collect()
    }
}
