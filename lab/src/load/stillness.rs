//! Knowing when a service has nothing left to do.
//!
//! A pool talks to its database after the answer has gone out, and on a busy machine it may have
//! to wait for a CPU first: time alone does not tell. So the service is still when none of its
//! processes has used any CPU time for as long as is asked, and none is waiting for a CPU.

use std::fs;
use std::io;
use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};
use nix::unistd::Pid;

use super::timer::Timer;
use crate::processes;

/// Between two looks at the clocks.
const STEP: Duration = Duration::from_micros(500);
/// How often it is looked who has joined the service.
const WAITS_PER_LOOK: u32 = 16;
/// A service that is never still is not waited for any longer.
const PATIENCE: Duration = Duration::from_millis(500);

/// The processes of a service, watched from outside.
#[derive(Clone, Debug, Default)]
pub struct Stillness {
    roots: Vec<Pid>,
    members: Vec<Pid>,
    waits: u32,
}

impl Stillness {
    /// Watches these processes and all their descendants. Without any, only time is waited for.
    #[must_use]
    pub fn of(roots: Vec<Pid>) -> Self {
        Self { roots, ..Self::default() }
    }

    /// Returns when the service has been still for `gap`.
    pub(super) async fn wait(&mut self, timer: &Timer, gap: Duration) -> io::Result<()> {
        let deadline = Instant::now() + PATIENCE;
        // Reading all of /proc takes longer than the gap: not for each request.
        if self.waits.is_multiple_of(WAITS_PER_LOOK) {
            self.look();
        }
        self.waits = self.waits.wrapping_add(1);
        let mut used = self.cpu();
        let mut still_since = Instant::now();
        loop {
            timer.until((still_since + gap).min(Instant::now() + STEP)).await?;
            let now = Instant::now();
            let used_now = self.cpu();
            if used_now != used {
                (used, still_since) = (used_now, now);
            } else if now.duration_since(still_since) >= gap {
                if !self.is_running() {
                    return Ok(());
                }
                still_since = now;
            }
            if now >= deadline {
                return Ok(());
            }
        }
    }

    /// Connections come with new processes, in Postgres.
    fn look(&mut self) {
        self.members.clear();
        for &root in &self.roots {
            self.members.push(root);
            let below = processes::descendants(root);
            self.members.extend(below.into_iter().map(|process| process.pid));
        }
    }

    /// CPU time of all members, in nanoseconds. One that has ended counts as nothing, which is a
    /// change too.
    fn cpu(&self) -> i64 {
        let clock = |pid: &Pid| {
            // The number of another process's clock, as clock_getcpuclockid(3) makes it.
            let clock = ClockId::from_raw((!pid.as_raw() << 3) | 2);
            let time = clock_gettime(clock).ok()?;
            Some(time.tv_sec() * 1_000_000_000 + time.tv_nsec())
        };
        self.members.iter().filter_map(clock).sum()
    }

    /// Whether any thread runs or waits for a CPU.
    fn is_running(&self) -> bool {
        self.members.iter().any(|pid| {
            let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return false };
            threads.flatten().any(|thread| {
                let stat = fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
                // `TID (name) STATE …`: the name may hold parentheses, so the last one closes it.
                stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('R'))
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    fn wait(stillness: &mut Stillness, gap: Duration) -> Duration {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let began = Instant::now();
        runtime.block_on(async {
            let timer = Timer::new().unwrap();
            stillness.wait(&timer, gap).await.unwrap();
        });
        began.elapsed()
    }

    #[test]
    fn a_sleeping_process_is_still_and_a_busy_one_is_waited_for_in_vain() {
        let gap = Duration::from_millis(3);
        let start = |script: &str| {
            Command::new("sh").args(["-c", script]).stdin(Stdio::null()).spawn().unwrap()
        };
        // The deadline tells the two apart: the gap is a small part of it.
        let mut busy = start("while :; do :; done");
        let mut stillness = Stillness::of(vec![Pid::from_raw(busy.id().cast_signed())]);
        assert!(wait(&mut stillness, gap) >= PATIENCE);
        busy.kill().unwrap();
        busy.wait().unwrap();
        assert!(wait(&mut Stillness::default(), gap) >= gap);
    }
}
