//! Records system calls: counted in the kernel, or one by one with strace.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail, ensure};
use assay_captures::bpf_counts::{self, Sample};
use assay_captures::ids::Pid;
use assay_captures::usage::At;
use assay_probes::capture_folder::CaptureFolder;
use assay_probes::cli::{Description, SessionArgs};
use assay_probes::clock;
use assay_probes::processes::ProcessTree;
use assay_probes::session::{self, Probe, Recorder};
use assay_probes::strace::{self, Strace};
use assay_probes::syscall_counter::SyscallCounter;

/// File name of strace's output.
const TRACE: &str = "trace.strace";

/// Record the system calls of processes
///
/// Example: assay-probe-syscalls --out syscalls --target subject:pid=123 --duration 10
#[derive(clap::Parser)]
#[command(version)]
struct Args {
    #[command(flatten)]
    session: SessionArgs,

    /// How: counted in the kernel (bpf), or one by one with arguments and times (strace)
    #[arg(long, value_enum, default_value = "bpf")]
    backend: Backend,

    /// The core that strace runs on: the service's own, or each call costs several times more
    #[arg(long, value_name = "N")]
    cpu: Option<usize>,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Backend {
    Bpf,
    Strace,
}

impl Probe for Args {
    const DESCRIPTION: Description = Description {
        question: "syscalls",
        summary: "system calls by name and failures, counted in the kernel or traced by strace",
        tools: &["strace"],
        rights: &["cap_bpf", "cap_perfmon", "cap_sys_ptrace"],
        more_rights: &[],
        more: "",
        without: "system calls, by name and in vain",
        cost: "bpf: none that can be measured; strace: the service runs at a third of its speed",
    };
    type Recorder = Syscalls;

    fn session(&self) -> &SessionArgs {
        &self.session
    }

    fn start(&self, folder: &mut CaptureFolder, recording: bool) -> Result<Syscalls> {
        let pids = self.session.require_pids()?;
        match self.backend {
            Backend::Bpf => {
                folder.manifest.backend = Some("bpf".into());
                Counting::start(&self.session, folder, recording).map(Syscalls::Counting)
            }
            Backend::Strace => {
                folder.manifest.backend = Some("strace".into());
                folder.manifest.tool = Some(strace::tool()?);
                let mut tracing = Tracing {
                    tree: ProcessTree::new(&pids),
                    core: self.cpu,
                    file: folder.path().join(TRACE),
                    running: None,
                    command: Vec::new(),
                    used: false,
                };
                if recording {
                    tracing.on()?;
                }
                Ok(Syscalls::Tracing(tracing))
            }
        }
    }
}

/// One of the two ways.
enum Syscalls {
    Counting(Counting),
    Tracing(Tracing),
}

impl Recorder for Syscalls {
    fn on(&mut self) -> Result<()> {
        match self {
            Self::Counting(counting) => counting.on(),
            Self::Tracing(tracing) => tracing.on(),
        }
    }

    fn off(&mut self) -> Result<()> {
        match self {
            Self::Counting(counting) => counting.off(),
            Self::Tracing(tracing) => tracing.off(),
        }
    }

    fn mark(&mut self) -> Result<()> {
        match self {
            Self::Counting(counting) => counting.sample(At::Mark),
            Self::Tracing(tracing) => tracing.running.as_mut().map_or(Ok(()), Strace::check),
        }
    }

    fn stop(&mut self, folder: &mut CaptureFolder) -> Result<()> {
        match self {
            Self::Counting(counting) => counting.stop(folder),
            Self::Tracing(tracing) => tracing.stop(folder),
        }
    }
}

/// Counting in the kernel.
struct Counting {
    counter: SyscallCounter,
    file: File,
    uring: bool,
}

impl Counting {
    fn start(args: &SessionArgs, folder: &mut CaptureFolder, recording: bool) -> Result<Self> {
        let counter = SyscallCounter::load(&args.targets)?;
        if !counter.follows_forks() {
            folder
                .manifest
                .notes
                .push("this kernel has no BTF: children are counted from the next mark on".into());
        }
        let file = folder.create(bpf_counts::FILE)?;
        let mut counting = Self { counter, file, uring: false };
        if recording {
            counting.counter.attach()?;
        }
        counting.sample(At::Ready)?;
        Ok(counting)
    }

    fn on(&mut self) -> Result<()> {
        self.counter.attach()?;
        self.sample(At::On)
    }

    fn off(&mut self) -> Result<()> {
        self.counter.detach();
        self.sample(At::Off)
    }

    fn sample(&mut self, at: At) -> Result<()> {
        self.counter.watch_targets()?;
        let moment = clock::now();
        let roles = self.counter.read()?;
        let took = clock::now().since(moment).unwrap_or_default();
        self.uring |= roles.iter().any(|counts| counts.calls.contains_key("io_uring_enter"));
        let mut line = serde_json::to_vec(&Sample { moment, took, at, roles })?;
        line.push(b'\n');
        let written = self.file.write_all(&line);
        written.with_context(|| format!("cannot write {}", bpf_counts::FILE))
    }

    fn stop(&mut self, folder: &mut CaptureFolder) -> Result<()> {
        self.counter.detach();
        let last = self.sample(At::End);
        let misses = self.counter.recursion_misses()?;
        let integrity = &mut folder.manifest.integrity;
        integrity.insert("recursion_misses".into(), misses);
        integrity.insert("processes_watched".into(), self.counter.watched()?);
        integrity.insert("processes_not_followed".into(), self.counter.unfollowed()?);
        if self.uring {
            folder.manifest.notes.push(
                "io_uring is in use: work that it does needs no system call and is not counted"
                    .into(),
            );
        }
        last
    }
}

/// Tracing with strace: one file, so it can be switched on once.
struct Tracing {
    tree: ProcessTree,
    core: Option<usize>,
    file: PathBuf,
    running: Option<Strace>,
    command: Vec<String>,
    used: bool,
}

impl Tracing {
    fn on(&mut self) -> Result<()> {
        ensure!(!self.used, "strace writes one file: it cannot be switched on twice");
        self.used = true;
        // strace follows children that come, but has to be told of those that are there.
        self.tree.refresh();
        let pids: Vec<Pid> = self.tree.pids().collect();
        let strace = Strace::attach(&pids, &self.file, self.core)?;
        self.command.clone_from(&strace.command);
        self.running = Some(strace);
        Ok(())
    }

    fn off(&mut self) -> Result<()> {
        self.running.take().map_or(Ok(()), Strace::detach)
    }

    fn stop(&mut self, folder: &mut CaptureFolder) -> Result<()> {
        let left = self.off();
        folder.manifest.command.clone_from(&self.command);
        if self.file.exists() {
            folder.list(TRACE);
        } else if self.used {
            bail!("strace left no file");
        }
        left
    }
}

fn main() -> ExitCode {
    session::run::<Args>()
}
