//! strace as a child: started on a process, told to leave it again.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use assay_captures::ids::Pid;
use assay_captures::manifest::Tool;
use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{SigSet, Signal, kill};

/// How long strace may take to seize a process, and to leave it.
const PATIENCE: Duration = Duration::from_secs(10);

/// A running strace.
#[derive(Debug)]
pub struct Strace {
    child: Child,
    /// Exactly how it was started.
    pub command: Vec<String>,
}

/// The tool and its version; an error in one line where it is not installed.
pub fn tool() -> Result<Tool> {
    let output = Command::new("strace").arg("--version").output().context(
        "strace is not installed, so system calls cannot be traced one by one; apt-get install \
         strace",
    )?;
    let text = String::from_utf8_lossy(&output.stdout);
    let version = text.lines().next().unwrap_or_default();
    let version = version.rsplit(' ').next().unwrap_or_default().to_owned();
    Ok(Tool { name: "strace".into(), version })
}

impl Strace {
    /// Attaches to processes with all their threads and later children; returns when every thread
    /// that was there has been seized.
    ///
    /// On another core than the service's each stop is a wake-up across cores, which costs the
    /// service several times as much: so give `core` where the service is pinned.
    pub fn attach(pids: &[Pid], file: &Path, core: Option<usize>) -> Result<Self> {
        for pid in pids {
            refuse_traced(*pid)?;
        }
        let mut command = Command::new("strace");
        // Seized threads are named on standard error. No strings: they may hold secrets.
        command.args(["-f", "-ttt", "-T", "-yy", "-s", "0", "-o"]).arg(file);
        for pid in pids {
            command.args(["-p", &pid.0.to_string()]);
        }
        let words = std::iter::once(command.get_program()).chain(command.get_args());
        let words: Vec<String> = words.map(|word| word.to_string_lossy().into_owned()).collect();
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        // SAFETY: between fork and exec only system calls are made.
        unsafe {
            command.pre_exec(move || {
                crate::rights::hand_on()?;
                set_pdeathsig(Signal::SIGINT)?;
                // The session takes signals by descriptor and has them blocked; a child must not.
                SigSet::empty().thread_set_mask()?;
                if let Some(core) = core {
                    let mut set = CpuSet::new();
                    set.set(core)?;
                    sched_setaffinity(nix::unistd::Pid::from_raw(0), &set)?;
                }
                Ok(())
            });
        }
        let child = command.spawn().context("cannot start strace")?;
        let mut strace = Self { child, command: words };
        strace.wait_until_attached(pids.len())?;
        Ok(strace)
    }

    /// An error where strace has ended though nobody told it to. With the last of the processes it
    /// ends by itself, and then has written everything.
    pub fn check(&mut self) -> Result<()> {
        match self.child.try_wait().context("cannot wait for strace")? {
            Some(status) if !status.success() => {
                bail!("strace ended before it was told to ({status}): its trace has no end")
            }
            _ => Ok(()),
        }
    }

    /// Leaves the processes, which live on, and waits for the last line to be written.
    pub fn detach(mut self) -> Result<()> {
        let pid = nix::unistd::Pid::from_raw(self.child.id().cast_signed());
        self.check()?;
        if self.child.try_wait().context("cannot wait for strace")?.is_none() {
            kill(pid, Signal::SIGINT).context("cannot tell strace to leave")?;
        }
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            if self.child.try_wait().context("cannot wait for strace")?.is_some() {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        // The traced processes live on even then: they were seized.
        self.child.kill().context("cannot end strace")?;
        self.child.wait().context("cannot wait for strace")?;
        bail!("strace did not leave within {PATIENCE:?} and was killed: its last lines are lost")
    }

    /// strace names each process that it has seized on standard error.
    fn wait_until_attached(&mut self, processes: usize) -> Result<()> {
        let errors = self.child.stderr.take().context("strace has no standard error")?;
        let mut lines = BufReader::new(errors).lines();
        let mut attached = 0;
        while attached < processes {
            match lines.next().transpose().context("cannot read from strace")? {
                Some(line) if line.contains(" attached") => attached += 1,
                Some(line) if line.contains("Operation not permitted") => {
                    bail!("{line}: tracing needs cap_sys_ptrace; run as root");
                }
                Some(_) => {}
                None => {
                    let status = self.child.wait().context("cannot wait for strace")?;
                    bail!("strace ended before it had attached ({status})");
                }
            }
        }
        // Somebody must go on reading, or strace would block on a full pipe.
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
        Ok(())
    }
}

/// A process has one tracer at most.
fn refuse_traced(pid: Pid) -> Result<()> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", pid.0))
        .with_context(|| format!("there is no process {}; is it still running?", pid.0))?;
    let tracer = status.lines().find_map(|line| line.strip_prefix("TracerPid:"));
    let tracer = tracer.map_or("0", str::trim);
    ensure!(
        tracer == "0",
        "process {} is already traced by process {tracer} (a debugger or another strace)",
        pid.0
    );
    Ok(())
}
