//! The clocks that probes read.

use std::time::Duration;

use assay_captures::ids::Pid;
use assay_captures::manifest::ClockAnchor;
use assay_captures::units::{Moment, Nanos};
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_gettime};

/// The moment: CLOCK_REALTIME.
#[must_use]
pub fn now() -> Moment {
    // Reading CLOCK_REALTIME cannot fail on Linux; 0 would show in every reader.
    Moment(clock_gettime(ClockId::CLOCK_REALTIME).map_or(0, nanos))
}

/// Time since boot: CLOCK_MONOTONIC.
#[must_use]
pub fn monotonic() -> Nanos {
    Nanos(clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(0, nanos))
}

/// Both clocks, read together: of several tries the one with the shortest way around, so that a
/// preemption between the two readings does not shift one against the other.
#[must_use]
pub fn anchor() -> ClockAnchor {
    let read = || {
        let before = monotonic();
        let realtime = now();
        let after = monotonic();
        let way = after.0.saturating_sub(before.0);
        (way, ClockAnchor { realtime, monotonic: Nanos(before.0 + way / 2) })
    };
    let mut best = read();
    for _ in 0..9 {
        let next = read();
        if next.0 < best.0 {
            best = next;
        }
    }
    best.1
}

/// Two pairs of readings may differ by so much though nobody has set the clock, in nanoseconds: the
/// two clocks go at the same pace, and a preemption between two readings takes less.
pub const STEP_MAX: u64 = 1_000_000;

/// By how many nanoseconds CLOCK_REALTIME was set forward between two anchors; negative is back.
#[must_use]
pub fn step(first: ClockAnchor, second: ClockAnchor) -> i64 {
    let real = second.realtime.0.wrapping_sub(first.realtime.0).cast_signed();
    let passed = second.monotonic.0.wrapping_sub(first.monotonic.0).cast_signed();
    real.wrapping_sub(passed)
}

/// CPU time of a process since its start, all its threads with those that have exited. None when
/// there is no such process.
///
/// The clock's number is what `clock_getcpuclockid(3)` makes of a pid; the C library's function
/// would only add a second system call.
#[must_use]
pub fn process_cpu(pid: Pid) -> Option<Nanos> {
    let clock = (!i32::try_from(pid.0).ok()? << 3) | 2;
    clock_gettime(ClockId::from_raw(clock)).ok().map(|time| Nanos(nanos(time)))
}

fn nanos(time: TimeSpec) -> u64 {
    u64::try_from(Duration::from(time).as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_anchor_joins_two_clocks_that_go_on_at_the_same_pace() {
        let first = anchor();
        std::thread::sleep(Duration::from_millis(5));
        let second = anchor();
        let real = second.realtime.since(first.realtime).unwrap().0;
        let boot = second.monotonic.0 - first.monotonic.0;
        assert!(real.abs_diff(boot) < 1_000_000, "{real} and {boot}");
    }

    #[test]
    fn a_step_of_the_clock_is_what_the_other_clock_did_not_do() {
        let at = |realtime, monotonic| ClockAnchor {
            realtime: Moment(realtime),
            monotonic: Nanos(monotonic),
        };
        assert_eq!(step(at(1_000, 10), at(1_500, 510)), 0);
        assert_eq!(step(at(1_000, 10), at(9_500, 510)), 8_000);
        assert_eq!(step(at(1_000, 10), at(500, 510)), -1_000);
    }

    #[test]
    fn the_own_cpu_clock_runs_and_that_of_nobody_is_none() {
        let own = Pid(std::process::id());
        let before = process_cpu(own).unwrap();
        let mut sum = 0_u64;
        while process_cpu(own).unwrap() == before {
            sum = std::hint::black_box(sum.wrapping_add(1));
        }
        assert_eq!(process_cpu(Pid(u32::MAX)), None);
        assert_eq!(process_cpu(Pid(4_194_305)), None, "above the largest pid that Linux gives");
    }
}
