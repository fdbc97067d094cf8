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
use crate::bpf::programs::{self, NUMBERS};
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

/// The counters. Counting goes on in the kernel while attached; all is gone when this is dropped.
#[derive(Debug)]
pub struct SyscallCounter {
    architecture: Architecture,
    cpus: usize,
    watched: Map,
    calls: Map,
    failures: Map,
    programs: [Program; 2],
    follower: Option<Program>,
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
        let load = |code: Vec<_>| Program::load(&code).map_err(refused);
        let programs = [
            load(programs::count_calls(&watched, &calls))?,
            load(programs::count_failures(&watched, &failures))?,
        ];
        let follower = fs::read("/sys/kernel/btf/vmlinux")
            .ok()
            .and_then(|btf| btf::field_offset(&btf, "task_struct", "tgid"))
            .map(|offset| load(programs::follow_forks(&watched, offset)))
            .transpose()?;
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
        if let Some(follower) = &self.follower {
            attached.push(attach(follower, FORK)?);
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
            tree.refresh();
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

fn attach(program: &Program, tracepoint: &CStr) -> Result<Attachment> {
    program
        .attach(tracepoint)
        .with_context(|| format!("cannot attach to {}", tracepoint.to_string_lossy()))
}
