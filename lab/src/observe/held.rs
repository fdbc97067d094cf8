//! A command that waits before its first instruction until its recorder is ready.
//!
//! Its input and outputs are this process's own, and so is its process group: what the terminal
//! sends reaches it. This process outlives Ctrl-C, as `time` does, and passes on what is sent to
//! it alone. If it is killed, the command lives on.

use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicI32, Ordering};

use anyhow::{Context, Result};
use assay_captures::ids::Pid;
use nix::fcntl::OFlag;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, kill, sigaction};
use nix::unistd::{dup2_raw, pipe2};

/// Where the shell waits. It then becomes the command, in the same process; whether the command
/// is there, it says as shells do: 127 for one that is not, 126 for one that may not run.
const DESCRIPTOR: i32 = 9;
const WAIT: &str = "read -r _ <&9 || exit 125; exec 9<&-; exec \"$@\"";

/// The command's process, for signals that are passed on.
static COMMAND: AtomicI32 = AtomicI32::new(0);

/// The command, held.
#[derive(Debug)]
pub struct Held {
    child: Child,
    go: File,
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The code that a shell would see: 128 and the signal where one ended it.
    pub code: u8,
    /// The signal that ended it.
    pub signal: Option<i32>,
}

impl Held {
    /// Starts the process that will become the command.
    pub fn start(words: &[OsString]) -> Result<Self> {
        let (wait, go) = pipe2(OFlag::O_CLOEXEC).context("cannot make a pipe")?;
        outlive_the_terminal()?;
        let mut command = Command::new("/bin/sh");
        command.args(["-c", WAIT, "assay"]).args(words);
        hand_over(&mut command, wait);
        let child = command.spawn().context("cannot start a process for the command")?;
        COMMAND.store(child.id().cast_signed(), Ordering::Release);
        Ok(Self { child, go: File::from(go) })
    }

    /// Its process, before and after it becomes the command.
    #[must_use]
    pub fn pid(&self) -> Pid {
        Pid(self.child.id())
    }

    /// Lets it go, and waits for its end.
    pub fn run(mut self) -> Result<Ended> {
        // Whoever killed it meanwhile will be seen in its status.
        let _gone = self.go.write_all(b"\n");
        drop(self.go);
        let status = self.child.wait().context("cannot wait for the command")?;
        COMMAND.store(0, Ordering::Release);
        let signal = status.signal();
        let code = status.code().or(signal.map(|signal| 128 + signal)).unwrap_or(1);
        Ok(Ended { code: u8::try_from(code).unwrap_or(u8::MAX), signal })
    }

    /// Ends it before it has begun.
    pub fn give_up(mut self) {
        let _gone = self.child.kill();
        let _gone = self.child.wait();
    }
}

fn hand_over(command: &mut Command, wait: OwnedFd) {
    // SAFETY: the closure runs between fork and exec and makes system calls only; the descriptor
    // that it makes is the new program's.
    unsafe {
        command.pre_exec(move || {
            // A copy is not closed at exec.
            std::mem::forget(dup2_raw(&wait, DESCRIPTOR)?);
            Ok(())
        });
    }
}

/// Handlers, not "ignored": that would be inherited, a handler is not. Whatever this process was
/// started to ignore stays ignored, for the command too.
fn outlive_the_terminal() -> Result<()> {
    extern "C" fn stay(_: i32) {}
    extern "C" fn pass_on(signal: i32) {
        let pid = COMMAND.load(Ordering::Acquire);
        if pid > 0 {
            // kill may be called in a handler.
            let _gone = Signal::try_from(signal)
                .map(|signal| kill(nix::unistd::Pid::from_raw(pid), signal));
        }
    }
    let set = |signal: Signal, handler: extern "C" fn(i32)| {
        let handler = SigHandler::Handler(handler);
        let action = SigAction::new(handler, SaFlags::SA_RESTART, SigSet::empty());
        // SAFETY: the handlers read an atomic and make one system call.
        let before = unsafe { sigaction(signal, &action) }.context("cannot handle a signal")?;
        if before.handler() == SigHandler::SigIgn {
            // SAFETY: as it was.
            unsafe { sigaction(signal, &before) }.context("cannot handle a signal")?;
        }
        anyhow::Ok(())
    };
    // The terminal sends these to the command as well.
    set(Signal::SIGINT, stay)?;
    set(Signal::SIGQUIT, stay)?;
    set(Signal::SIGTERM, pass_on)?;
    set(Signal::SIGHUP, pass_on)
}
