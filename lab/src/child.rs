//! How children are started: on their cores, as their user, and so that they die with this
//! process.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{SigHandler, SigSet, SigmaskHow, Signal, signal, sigprocmask};
use nix::unistd::{Gid, Pid, Uid, User, getpid, getppid, setgroups};

use crate::pinning::CoreSet;

/// What a child is given.
#[derive(Clone, Debug)]
pub struct Upbringing {
    cores: Option<CpuSet>,
    user: Option<(Uid, Gid)>,
    death: Signal,
}

impl Upbringing {
    /// A child that stays on `cores` and gets SIGKILL when this process dies.
    pub fn on(cores: &CoreSet) -> io::Result<Self> {
        Ok(Self { cores: Some(cores.cpu_set()?), ..Self::anywhere() })
    }

    /// A child that may run on any core and gets SIGKILL when this process dies.
    #[must_use]
    pub fn anywhere() -> Self {
        Self { cores: None, user: None, death: Signal::SIGKILL }
    }

    /// Runs it as another user.
    #[must_use]
    pub fn as_user(mut self, user: Option<&User>) -> Self {
        self.user = user.map(|user| (user.uid, user.gid));
        self
    }

    /// Sends it another signal when this process dies.
    #[must_use]
    pub fn dying_of(mut self, signal: Signal) -> Self {
        self.death = signal;
        self
    }

    /// Makes `command` start a child like this, in a process group of its own, so that Ctrl-C in
    /// the terminal reaches it only through us.
    ///
    /// The parent-death signal fires when the *thread* that started the child ends: start
    /// children from the main thread.
    pub fn apply(self, command: &mut Command) {
        command.process_group(0);
        let parent = getpid();
        // SAFETY: the closure runs between fork and exec and makes system calls only; it
        // allocates nothing and takes no lock.
        unsafe {
            command.pre_exec(move || self.settle(parent));
        }
    }

    fn settle(&self, parent: Pid) -> io::Result<()> {
        if let Some(cores) = &self.cores {
            sched_setaffinity(Pid::from_raw(0), cores)?;
        }
        if let Some((uid, gid)) = self.user {
            setgroups(&[])?;
            nix::unistd::setgid(gid)?;
            nix::unistd::setuid(uid)?;
        }
        // After the change of user, which clears it.
        set_pdeathsig(self.death)?;
        if getppid() != parent {
            return Err(io::Error::from(io::ErrorKind::BrokenPipe));
        }
        // We block signals, and a shell may have started us with some of them ignored; a child
        // must be able to be stopped.
        for stop in [Signal::SIGINT, Signal::SIGQUIT, Signal::SIGTERM, Signal::SIGHUP] {
            // SAFETY: the default disposition runs no code of ours.
            unsafe { signal(stop, SigHandler::SigDfl) }?;
        }
        sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None)?;
        Ok(())
    }
}
