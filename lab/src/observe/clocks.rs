//! CPU time of processes by their own clocks, for a view that goes on: no probe, and nothing is
//! kept.

use std::collections::BTreeMap;
use std::time::Duration;

use assay_captures::ids::Pid;
use nix::time::{clock_getcpuclockid, clock_gettime};

use crate::processes;

/// The clocks of some processes and all below them, as they stood at the last look.
#[derive(Debug)]
pub struct Clocks {
    roots: Vec<Pid>,
    before: BTreeMap<Pid, Duration>,
}

impl Clocks {
    /// Looks for the first time.
    #[must_use]
    pub fn of(roots: Vec<Pid>) -> Self {
        let before = look(&roots);
        Self { roots, before }
    }

    /// Time used since the last look; `None` where no process of them is there any more. What a
    /// process has used that has ended meanwhile is not in it.
    pub fn used(&mut self) -> Option<Duration> {
        let now = look(&self.roots);
        if now.is_empty() {
            return None;
        }
        let more = |(pid, used): (&Pid, &Duration)| {
            used.saturating_sub(self.before.get(pid).copied().unwrap_or_default())
        };
        let used = now.iter().map(more).sum();
        self.before = now;
        Some(used)
    }
}

fn look(roots: &[Pid]) -> BTreeMap<Pid, Duration> {
    let number = |pid: Pid| nix::unistd::Pid::from_raw(pid.0.cast_signed());
    let below = roots.iter().flat_map(|&root| processes::descendants(number(root)));
    let below = below.map(|process| Pid(process.pid.as_raw().cast_unsigned()));
    let all = roots.iter().copied().chain(below);
    all.filter_map(|pid| Some((pid, used(number(pid))?))).collect()
}

/// All threads of the process, those that have ended included.
fn used(pid: nix::unistd::Pid) -> Option<Duration> {
    let now = clock_gettime(clock_getcpuclockid(pid).ok()?).ok()?;
    Some(now.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_moves_the_clock_and_processes_that_are_gone_have_none() {
        let mut own = Clocks::of(vec![Pid(std::process::id())]);
        let begun = std::time::Instant::now();
        let mut sum = 0_u64;
        while begun.elapsed() < Duration::from_millis(60) {
            sum = sum.wrapping_add(std::hint::black_box(begun.elapsed().subsec_nanos().into()));
        }
        assert!(own.used().unwrap() > Duration::ZERO, "{sum}");
        let mut gone = std::process::Command::new("true").spawn().unwrap();
        gone.wait().unwrap();
        assert_eq!(Clocks::of(vec![Pid(gone.id())]).used(), None);
    }
}
