//! System calls counted in the kernel, by process and number.

use std::collections::BTreeMap;
use std::ffi::CStr;
use std::fs;
use std::io;

use anyhow::{Context, Result, bail, ensure};
use assay_captures::bpf_counts::{Failures, RoleCounts};
use assay_captures::ids::{Pid, Role};
use assay_captures::manifest::Target;
use assay_captures::syscall_names::Architecture;

use crate::bpf::btf;
use crate::bpf::kernel::{Attachment, Map, MapKind, Program, possible_cpus};
use crate::bpf::programs::{self, NUMBERS, Offsets};
use crate::processes::ProcessTree;

/// Most processes that can be watched.
const PROCESSES: u32 = 65_536;
/// One role each, and one for our own test.
const ROLES: u32 = 5;
const OURSELVES: u32 = 4;
/// Calls of the test.
const TEST_CALLS: u64 = 1000;

const ENTER: &CStr = c"sys_enter";
const EXIT: &CStr = c"sys_exit";
const FORK: &CStr = c"sched_process_fork";
const END: &CStr = c"sched_process_exit";

/// The counters. Counting goes on in the kernel while attached; all is gone when this is dropped.
#[derive(Debug)]
pub struct SyscallCounter {
    architecture: Architecture,
    cpus: usize,
    watched: Map,
    calls: Map,
    failures: Map,
    unfollowed: Map,
    programs: [Program; 2],
    /// What follows forks and forgets the dead.
    follower: Option<[Program; 2]>,
    attached: Vec<Attachment>,
    targets: Vec<(Role, ProcessTree)>,
}

impl SyscallCounter {
    /// Loads the programs, watches the targets with all their descendants, and proves on calls of
    /// our own that counting is exact. Nothing of the targets is counted yet.
    pub fn load(targets: &[Target]) -> Result<Self> {
        let Some(architecture) = Architecture::here() else {
            bail!("system calls of this processor are not known; use --backend strace");
        };
        let refused = |error: io::Error| match error.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => anyhow::anyhow!(
                "the kernel refuses bpf(2): counting system calls needs cap_bpf and cap_perfmon; \
                 run as root, or: setcap cap_bpf,cap_perfmon=ep on this probe"
            ),
            _ => anyhow::Error::new(error).context("the kernel does not take the counters"),
        };
        let watched = Map::create(MapKind::Hash, PROCESSES).map_err(refused)?;
        let calls = Map::create(MapKind::PerCpuArray, ROLES * NUMBERS).map_err(refused)?;
        let failures = Map::create(MapKind::PerCpuArray, ROLES * NUMBERS * 2).map_err(refused)?;
        let unfollowed = Map::create(MapKind::PerCpuArray, 1).map_err(refused)?;
        let load = |code: Vec<_>| Program::load(&code).map_err(refused);
        let programs = [
            load(programs::count_calls(&watched, &calls))?,
            load(programs::count_failures(&watched, &failures))?,
        ];
        let follower = match offsets() {
            None => None,
            Some(offsets) => Some([
                load(programs::follow_forks(&watched, &unfollowed, offsets))?,
                load(programs::forget_exits(&watched, offsets))?,
            ]),
        };
        let cpus = possible_cpus().context("cannot tell how many CPUs the kernel counts on")?;
        let targets =
            targets.iter().map(|target| (target.role, ProcessTree::new(&target.pids))).collect();
        let attached = Vec::new();
        let mut counter = Self {
            architecture,
            cpus,
            watched,
            calls,
            failures,
            unfollowed,
            programs,
            follower,
            attached,
            targets,
        };
        counter.prove()?;
        Ok(counter)
    }

    /// Counts from here on.
    pub fn attach(&mut self) -> Result<()> {
        // The follower first: a process that is forked while we look around is caught by it.
        let mut attached = Vec::new();
        if let Some([follow, forget]) = &self.follower {
            attached.push(attach(follow, FORK)?);
            attached.push(attach(forget, END)?);
        }
        self.watch_targets()?;
        attached.push(attach(&self.programs[0], ENTER)?);
        attached.push(attach(&self.programs[1], EXIT)?);
        self.attached = attached;
        Ok(())
    }

    /// Counts no more; costs nothing from here on. What was counted stays readable.
    pub fn detach(&mut self) {
        self.attached.clear();
    }

    /// Whether children are followed from their first call on. Without, they are found when
    /// counters are read.
    #[must_use]
    pub fn follows_forks(&self) -> bool {
        self.follower.is_some()
    }

    /// Looks for processes that have joined the targets.
    pub fn watch_targets(&mut self) -> Result<()> {
        for (role, tree) in &mut self.targets {
            // Their numbers may be anybody's by now.
            for gone in tree.refresh().vanished {
                self.watched.remove(gone.0).context("cannot stop watching a process")?;
            }
            for pid in tree.pids() {
                self.watched.insert(pid.0, *role as u32).context("cannot watch a process")?;
            }
        }
        Ok(())
    }

    /// Everything counted so far, by role.
    pub fn read(&self) -> Result<Vec<RoleCounts>> {
        let mut roles: Vec<Role> = self.targets.iter().map(|(role, _)| *role).collect();
        roles.sort_unstable();
        roles.dedup();
        roles.into_iter().map(|role| self.counts(role)).collect()
    }

    /// How many processes are being watched.
    pub fn watched(&self) -> Result<u64> {
        self.watched.keys(PROCESSES).context("cannot tell how many processes are watched")
    }

    /// How many children could not be followed, since too many processes lived at once.
    pub fn unfollowed(&self) -> Result<u64> {
        self.unfollowed.sum(0, self.cpus).context("cannot read a counter")
    }

    /// How often a call was not counted since a counter was already running on that CPU.
    pub fn recursion_misses(&self) -> Result<u64> {
        let misses: io::Result<Vec<u64>> =
            self.programs.iter().map(Program::recursion_misses).collect();
        Ok(misses.context("the kernel does not tell about missed calls")?.iter().sum())
    }

    fn counts(&self, role: Role) -> Result<RoleCounts> {
        let mut counts = RoleCounts { role, calls: BTreeMap::new(), failures: BTreeMap::new() };
        for number in 0..NUMBERS {
            let index = role as u32 * NUMBERS + number;
            let calls = self.calls.sum(index, self.cpus).context("cannot read a counter")?;
            if calls == 0 {
                continue;
            }
            let name = self.architecture.name(number as usize);
            let name = name.map_or_else(|| format!("#{number}"), str::to_owned);
            let again = self.failures.sum(index * 2, self.cpus).context("cannot read a counter")?;
            let other =
                self.failures.sum(index * 2 + 1, self.cpus).context("cannot read a counter")?;
            if again + other > 0 {
                counts.failures.insert(name.clone(), Failures { again, other });
            }
            counts.calls.insert(name, calls);
        }
        Ok(counts)
    }

    /// Calls getppid a known number of times and reads the counter.
    fn prove(&mut self) -> Result<()> {
        let own = Pid(std::process::id());
        self.watched.insert(own.0, OURSELVES).context("cannot watch a process")?;
        let attached = attach(&self.programs[0], ENTER)?;
        for _ in 0..TEST_CALLS {
            nix::unistd::getppid();
        }
        drop(attached);
        self.watched.remove(own.0).context("cannot stop watching a process")?;
        let number = self.architecture.number("getppid").unwrap_or_default() as u32;
        let counted = self.calls.sum(OURSELVES * NUMBERS + number, self.cpus)?;
        ensure!(
            counted != 0,
            "the counters do not see this process: it lives in a PID namespace of its own (a \
             container); run the probe outside, or use --backend strace"
        );
        ensure!(
            counted == TEST_CALLS,
            "{TEST_CALLS} calls of our own were counted as {counted}: the counters are not exact \
             here; use --backend strace"
        );
        Ok(())
    }
}

/// `None` where the kernel does not describe its own types.
fn offsets() -> Option<Offsets> {
    let btf = fs::read("/sys/kernel/btf/vmlinux").ok()?;
    Some(Offsets {
        process_number: btf::field_offset(&btf, "task_struct", "tgid")?,
        signal: btf::field_offset(&btf, "task_struct", "signal")?,
        live: btf::field_offset(&btf, "signal_struct", "live")?,
    })
}

fn attach(program: &Program, tracepoint: &CStr) -> Result<Attachment> {
    program
        .attach(tracepoint)
        .with_context(|| format!("cannot attach to {}", tracepoint.to_string_lossy()))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn the_dead_are_watched_no_more_so_their_numbers_can_be_given_to_others() {
        if !nix::unistd::geteuid().is_root() {
            return;
        }
        let own = Pid(std::process::id());
        let target = Target { role: Role::Subject, pids: vec![own], port: None, path: None };
        let mut counter = SyscallCounter::load(&[target]).unwrap();
        counter.attach().unwrap();
        if !counter.follows_forks() {
            return;
        }
        let before = counter.watched().unwrap();
        let mut alive = Command::new("sleep").arg("60").spawn().unwrap();
        for _ in 0..40 {
            assert!(Command::new("true").status().unwrap().success());
        }
        // Other tests of this program start and end processes of their own meanwhile.
        let after = counter.watched().unwrap();
        alive.kill().unwrap();
        alive.wait().unwrap();
        assert!(before >= 1 && after > 1, "{before}, {after}: the living are watched");
        assert!(after < before + 20, "{before}, {after}: the dead are not");
        assert_eq!(counter.unfollowed().unwrap(), 0);
    }
}
