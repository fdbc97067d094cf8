//! Three processes, so that nothing is left behind however one of them dies.
//!
//! ```text
//! front ── guardian ── worker ── services, subjects, probes
//! ```
//!
//! The *front* is what the user started and the shell waits for; it forwards signals. The
//! *worker* does the work. The *guardian* does nothing: it waits for either of the others to be
//! gone, ends every process below itself (orphans come to it, because it is their subreaper) and
//! removes the temporary directory. When the guardian itself is killed, the worker does that.
//!
//! Who is gone is told by pipes, which the kernel closes whatever happens.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::prctl;
use nix::sys::signal::{SigHandler, SigSet, Signal, kill, signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork, pipe2, setsid};

use crate::exit::Exit;
use crate::load::Cancel;
use crate::scratch::{Scratch, sweep};
use crate::teardown;
use crate::ui::Ui;

/// How long the worker may take to stop in order when the front was killed.
const IN_ORDER: Duration = Duration::from_secs(15);
/// What the front forwards.
const FORWARDED: [Signal; 4] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT];

/// What the worker is given.
#[derive(Debug)]
pub struct Worker {
    /// The private temporary directory.
    pub scratch: Scratch,
    /// Raised when somebody wants to stop.
    pub cancel: Cancel,
}

/// Runs `work` under guard. Returns in all three processes: in each, the code is what that process
/// must end with. Must be called before any thread is started.
pub fn guarded(ui: &Ui, work: impl FnOnce(Worker) -> Exit) -> Result<Exit> {
    sweep();
    let scratch = Scratch::create()?;
    let (orders_read, orders) = pipe().context("cannot make a pipe")?;
    let (life_read, life) = pipe()?;
    block(&FORWARDED)?;
    // SAFETY: this process has one thread, so the child may do whatever the parent may.
    match unsafe { fork() }.context("cannot start the guardian")? {
        ForkResult::Parent { child } => {
            drop((orders_read, life, scratch));
            Ok(Front { guardian: child, orders: File::from(orders), life: life_read }.wait(ui))
        }
        ForkResult::Child => {
            drop((orders, life_read));
            guard(ui, scratch, orders_read, life, work)
        }
    }
}

fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(pipe2(OFlag::O_CLOEXEC)?)
}

fn block(signals: &[Signal]) -> io::Result<SigSet> {
    let set: SigSet = signals.iter().copied().collect();
    set.thread_block()?;
    Ok(set)
}

/// Waits until one of the two can be read; says which.
fn readable(first: BorrowedFd<'_>, second: BorrowedFd<'_>) -> (bool, bool) {
    let mut waited =
        [PollFd::new(first, PollFlags::POLLIN), PollFd::new(second, PollFlags::POLLIN)];
    while poll(&mut waited, PollTimeout::NONE) == Err(Errno::EINTR) {}
    let ready = |place: usize| waited[place].any().unwrap_or(true);
    (ready(0), ready(1))
}

/// The process that the user started.
struct Front {
    guardian: Pid,
    orders: File,
    life: OwnedFd,
}

impl Front {
    /// Forwards signals until the worker is gone, then waits for the guardian.
    fn wait(mut self, ui: &Ui) -> Exit {
        let set: SigSet = FORWARDED.into_iter().collect();
        let Ok(signals) = SignalFd::with_flags(&set, SfdFlags::SFD_CLOEXEC) else {
            return Exit::CannotMeasure;
        };
        loop {
            let (signalled, gone) = readable(signals.as_fd(), self.life.as_fd());
            if gone {
                break;
            }
            if signalled && let Ok(Some(info)) = signals.read_signal() {
                // The guardian may be gone; then the worker has noticed and is stopping already.
                let _gone = self.orders.write_all(&[info.ssi_signo.to_le_bytes()[0]]);
            }
        }
        match wait_for(self.guardian) {
            Some(WaitStatus::Exited(_, code)) => Exit::from_code(code),
            _ => {
                ui.fail("assay's guardian was killed; what the run had started was stopped");
                Exit::CannotMeasure
            }
        }
    }
}

fn wait_for(child: Pid) -> Option<WaitStatus> {
    loop {
        match waitpid(child, None) {
            Err(Errno::EINTR) => {}
            done => return done.ok(),
        }
    }
}

/// The second process: starts the worker, and clears up when it or the front is gone.
fn guard(
    ui: &Ui,
    scratch: Scratch,
    orders: OwnedFd,
    life: OwnedFd,
    work: impl FnOnce(Worker) -> Exit,
) -> Result<Exit> {
    // Out of the terminal's foreground: its Ctrl-C is for the front, which passes it on.
    setsid().context("cannot start a session")?;
    prctl::set_child_subreaper(true).context("cannot become a subreaper")?;
    let (watch, watched) = pipe()?;
    block(&[Signal::SIGCHLD])?;
    // SAFETY: this process, itself just forked, has one thread.
    match unsafe { fork() }.context("cannot start the worker")? {
        ForkResult::Child => {
            drop((watched, orders));
            let exit = act(scratch, watch, work);
            drop(life);
            exit
        }
        ForkResult::Parent { child } => {
            drop((watch, life));
            let _name_only = prctl::set_name(c"assay-guardian");
            for ignored in FORWARDED {
                // SAFETY: ignoring runs no code of ours.
                let _kept = unsafe { signal(ignored, SigHandler::SigIgn) };
            }
            let exit = watch_over(child, File::from(orders), ui);
            teardown::end_descendants(true);
            teardown::remove(scratch.path());
            drop(watched);
            Ok(exit)
        }
    }
}

/// Passes signals on until the worker has ended. When the front is gone, asks it to stop.
fn watch_over(worker: Pid, mut orders: File, ui: &Ui) -> Exit {
    let set: SigSet = [Signal::SIGCHLD].into_iter().collect();
    let Ok(children) = SignalFd::with_flags(&set, SfdFlags::SFD_CLOEXEC) else {
        return Exit::CannotMeasure;
    };
    loop {
        let (ordered, child_ended) = readable(orders.as_fd(), children.as_fd());
        if child_ended {
            let _which = children.read_signal();
            if let Some(exit) = ended(worker, ui) {
                return exit;
            }
        }
        if ordered {
            let mut order = [0];
            match orders.read(&mut order) {
                Ok(1) => {
                    if let Ok(signal) = Signal::try_from(i32::from(order[0])) {
                        let _gone = kill(worker, signal);
                    }
                }
                // The front is gone.
                _ => return give_up(worker, ui),
            }
        }
    }
}

fn give_up(worker: Pid, ui: &Ui) -> Exit {
    let _gone = kill(worker, Signal::SIGTERM);
    let deadline = Instant::now() + IN_ORDER;
    loop {
        if let Some(exit) = ended(worker, ui) {
            return exit;
        }
        if Instant::now() > deadline {
            let _gone = kill(worker, Signal::SIGKILL);
        }
        thread::sleep(Duration::from_millis(10));
    }
}

/// The worker's end, if it has come; orphans that have ended are reaped on the way.
fn ended(worker: Pid, ui: &Ui) -> Option<Exit> {
    use nix::sys::wait::WaitPidFlag;
    loop {
        match waitpid(Pid::from_raw(-1), Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::Exited(pid, code)) if pid == worker => {
                return Some(Exit::from_code(code));
            }
            Ok(WaitStatus::Signaled(pid, signal, _)) if pid == worker => {
                ui.fail(&format!(
                    "assay's worker was killed by {signal}; what it had started was stopped"
                ));
                return Some(Exit::CannotMeasure);
            }
            Ok(WaitStatus::StillAlive) => return None,
            Err(Errno::EINTR) | Ok(_) => {}
            // No child at all: it was reaped, which cannot be, or was never there.
            Err(_) => return Some(Exit::CannotMeasure),
        }
    }
}

/// The third process: does the work, and clears up itself where the guardian is gone.
fn act(scratch: Scratch, watch: OwnedFd, work: impl FnOnce(Worker) -> Exit) -> Result<Exit> {
    // Orphans come here first; when this process dies they go on to the guardian.
    prctl::set_child_subreaper(true).context("cannot become a subreaper")?;
    SigSet::from(Signal::SIGCHLD).thread_unblock()?;
    let cancel = Cancel::default();
    let path = scratch.path().to_path_buf();
    let unguarded = Arc::new(AtomicBool::new(false));
    listen_for_signals(cancel.clone())?;
    notice_the_guardians_end(watch, path.clone(), cancel.clone(), Arc::clone(&unguarded))?;
    let exit = work(Worker { scratch, cancel });
    if unguarded.load(Ordering::SeqCst) {
        teardown::end_descendants(true);
        teardown::remove(&path);
    }
    Ok(exit)
}

/// The first signal asks for an orderly stop, the second ends this process at once; the guardian
/// then does the rest.
fn listen_for_signals(cancel: Cancel) -> Result<()> {
    let set: SigSet = FORWARDED.into_iter().collect();
    let listen = move || {
        while let Ok(_signal) = set.wait() {
            if cancel.is_cancelled() {
                leave_at_once(Exit::Interrupted);
            }
            cancel.cancel();
        }
    };
    thread::Builder::new().name("signals".to_owned()).spawn(listen)?;
    Ok(())
}

fn notice_the_guardians_end(
    watch: OwnedFd,
    scratch: std::path::PathBuf,
    cancel: Cancel,
    unguarded: Arc<AtomicBool>,
) -> Result<()> {
    let notice = move || {
        // Nothing is ever written: the read returns when the guardian is gone.
        let _end = File::from(watch).read(&mut [0]);
        unguarded.store(true, Ordering::SeqCst);
        cancel.cancel();
        thread::sleep(IN_ORDER);
        teardown::end_descendants(false);
        teardown::remove(&scratch);
        leave_at_once(Exit::CannotMeasure);
    };
    thread::Builder::new().name("guardian-watch".to_owned()).spawn(notice)?;
    Ok(())
}

/// Ends this process without running anything of it any more.
fn leave_at_once(exit: Exit) -> ! {
    // SAFETY: always sound; nothing that would have to be written is buffered in this process.
    unsafe { libc::_exit(i32::from(exit.code())) }
}
