//! What a session waits for: commands, signals, the parent's death, the recorder's descriptor.

use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use nix::sys::signalfd::{SfdFlags, SignalFd};

/// Longest command line; the longest command is `mark`.
const COMMAND_MAX: usize = 256;

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// A line on standard input.
    Command(String),
    /// The end of standard input, a signal, or the parent's death.
    End,
    /// The recorder's descriptor has something.
    Recorder,
    /// The time asked for is over.
    Timeout,
}

/// The sources of events.
pub(crate) struct Events {
    signals: SignalFd,
    parent: Option<OwnedFd>,
    commands: Option<Commands>,
}

impl Events {
    /// Takes over signals and standard input.
    pub(crate) fn new() -> Result<Self> {
        Ok(Self { signals: signals()?, parent: parent(), commands: Commands::standard_input() })
    }

    /// Waits until something happens or `deadline` has come. Several things at once are delivered
    /// in one call, commands first, in the order in which they came.
    pub(crate) fn wait(
        &mut self,
        recorder: Option<BorrowedFd<'_>>,
        deadline: Option<Instant>,
    ) -> Result<Vec<Event>> {
        let ready = self.ready(recorder, deadline)?;
        let mut events = Vec::new();
        if ready.commands
            && let Some(commands) = &mut self.commands
        {
            commands.read(&mut events)?;
        }
        if ready.recorder {
            events.push(Event::Recorder);
        }
        if ready.end {
            events.push(Event::End);
        }
        if events.is_empty() {
            events.push(Event::Timeout);
        }
        Ok(events)
    }

    fn ready(&self, recorder: Option<BorrowedFd<'_>>, deadline: Option<Instant>) -> Result<Ready> {
        let commands = self.commands.as_ref().map(|_| io::stdin());
        let sources = [
            Some(self.signals.as_fd()),
            self.parent.as_ref().map(AsFd::as_fd),
            commands.as_ref().map(AsFd::as_fd),
            recorder,
        ];
        let mut polled: Vec<PollFd<'_>> =
            sources.iter().flatten().map(|fd| PollFd::new(*fd, PollFlags::POLLIN)).collect();
        match poll(&mut polled, timeout(deadline)) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => {}
            Err(error) => return Err(error).context("cannot wait for events"),
        }
        // Hang-up and error count as readable: reading then says what it is.
        let mut hits = polled.iter().map(|fd| fd.any() == Some(true));
        let mut hit = |there: bool| there && hits.next() == Some(true);
        let [signal, parent, commands, recorder] = sources.map(|source| hit(source.is_some()));
        Ok(Ready { end: signal || parent, commands, recorder })
    }
}

struct Ready {
    end: bool,
    commands: bool,
    recorder: bool,
}

/// Rounded up to milliseconds, so that waiting for a deadline never spins.
fn timeout(deadline: Option<Instant>) -> PollTimeout {
    let Some(deadline) = deadline else { return PollTimeout::NONE };
    let left = deadline.saturating_duration_since(Instant::now());
    let rounded = left + Duration::from_micros(999);
    PollTimeout::try_from(rounded.as_millis()).unwrap_or(PollTimeout::MAX)
}

/// Lets SIGINT, SIGTERM and SIGHUP arrive as events.
fn signals() -> Result<SignalFd> {
    let mut set = SigSet::empty();
    let default = SigAction::new(SigHandler::SigDfl, SaFlags::empty(), SigSet::empty());
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        set.add(signal);
        // A shell starts `probe &` with SIGINT ignored, and the tools that the probe starts
        // would inherit that.
        // SAFETY: the default disposition runs no code of ours.
        unsafe { sigaction(signal, &default) }.context("cannot reset a signal")?;
    }
    set.thread_block().context("cannot block signals")?;
    SignalFd::with_flags(&set, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)
        .context("cannot receive signals")
}

/// A descriptor that becomes readable when the parent process has died. The parent-death signal
/// fires when the *thread* that started us ends, so it is only the way out on kernels before 5.3.
fn parent() -> Option<OwnedFd> {
    let pid = nix::unistd::getppid().as_raw();
    // SAFETY: no pointers; the result is a new descriptor or an error.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    let Ok(fd @ 0..) = i32::try_from(fd) else {
        // SAFETY: no pointers.
        unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM) };
        return None;
    };
    // SAFETY: the kernel has just given us this descriptor, and nobody else has it.
    Some(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Standard input where it is a pipe or a socket, cut into lines.
struct Commands {
    pending: Vec<u8>,
}

impl Commands {
    /// A terminal, `/dev/null` or a file gives no commands.
    fn standard_input() -> Option<Self> {
        let input = std::fs::metadata("/proc/self/fd/0").ok()?.file_type();
        (input.is_fifo() || input.is_socket()).then(|| Self { pending: Vec::new() })
    }

    /// Reads what is there, without waiting for more.
    fn read(&mut self, events: &mut Vec<Event>) -> Result<()> {
        let mut chunk = [0; COMMAND_MAX];
        // Not through io::Stdin, whose buffer would hide from poll what it has already read.
        let mut input = io::stdin().as_fd().try_clone_to_owned().map(std::fs::File::from)?;
        let length = match input.read(&mut chunk) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(()),
            // A parent that was killed resets a socket: that is an end as well.
            Err(_) | Ok(0) => {
                events.push(Event::End);
                return Ok(());
            }
            Ok(length) => length,
        };
        self.split(&chunk[..length], events);
        Ok(())
    }

    fn split(&mut self, bytes: &[u8], events: &mut Vec<Event>) {
        for &byte in bytes {
            if byte == b'\n' {
                let line = String::from_utf8_lossy(&self.pending).trim().to_owned();
                self.pending.clear();
                if !line.is_empty() {
                    events.push(Event::Command(line));
                }
            } else if self.pending.len() < COMMAND_MAX {
                self.pending.push(byte);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_lines_however_they_are_cut() {
        let mut commands = Commands { pending: Vec::new() };
        let mut events = Vec::new();
        for piece in ["o", "n\nof", "f\n\n mark \r\nst"] {
            commands.split(piece.as_bytes(), &mut events);
        }
        let expected = ["on", "off", "mark"].map(|word| Event::Command(word.into()));
        assert_eq!(events, expected);
    }

    #[test]
    fn a_deadline_that_is_over_does_not_wait_and_one_ahead_is_rounded_up() {
        assert_eq!(timeout(None), PollTimeout::NONE);
        assert_eq!(timeout(Some(Instant::now() - Duration::from_secs(1))), PollTimeout::ZERO);
        let soon = timeout(Some(Instant::now() + Duration::from_micros(1500)));
        assert!(soon.as_millis().is_some_and(|ms| (1..=2).contains(&ms)));
    }
}
