//! Waits for a moment to within microseconds. Tokio's own timers tick in milliseconds, which a
//! schedule of more than a thousand requests a second would show as latency of the subject.

use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::time::{Duration, Instant};

use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use tokio::io::unix::AsyncFd;

/// A kernel timer.
pub(super) struct Timer {
    fd: AsyncFd<Descriptor>,
}

struct Descriptor(TimerFd);

impl AsRawFd for Descriptor {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_fd().as_raw_fd()
    }
}

impl Timer {
    pub(super) fn new() -> io::Result<Self> {
        let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, flags)?;
        // SAFETY: the descriptor is owned by what is registered, and neither closes it before it
        // is dropped nor hands out another one.
        let registered = unsafe { AsyncFd::register(Descriptor(timer)) };
        Ok(Self { fd: registered.map_err(io::Error::from)? })
    }

    /// Returns at `instant`, or at once when it has passed.
    pub(super) async fn until(&self, instant: Instant) -> io::Result<()> {
        let left = instant.saturating_duration_since(Instant::now());
        if left == Duration::ZERO {
            return Ok(());
        }
        let expiration = Expiration::OneShot(TimeSpec::from_duration(left));
        self.fd.get_ref().0.set(expiration, TimerSetTimeFlags::empty())?;
        loop {
            let mut guard = self.fd.readable().await?;
            // `wait` of a timer that has not expired says EAGAIN: a stale readiness.
            match guard.try_io(|fd| fd.get_ref().0.wait().map_err(io::Error::from)) {
                Ok(outcome) => return outcome,
                Err(_would_block) => {}
            }
        }
    }
}
