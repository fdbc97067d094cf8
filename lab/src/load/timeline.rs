//! A lap second by second: how many answers, how late, and how busy the machine was, in memory
//! that does not grow with the number of requests.

use std::fs;
use std::time::{Duration, Instant};

use assay_captures::lap::Slice;
use assay_captures::units::Nanos;
use hdrhistogram::Histogram;

/// The length of a slice.
pub(super) const SLICE: Duration = Duration::from_secs(1);
/// A lap's first hour is kept.
const SLICES_MAX: usize = 3_600;
/// Longer ones are counted as a minute: a quantile of a second's answers cannot say more.
const LONGEST_NS: u64 = 60_000_000_000;
/// Two digits: a curve shows no more.
const DIGITS: u8 = 2;

/// The slices of a lap so far.
pub(super) struct Timeline {
    start: Instant,
    slices: Vec<Slice>,
    answers: u64,
    latencies: Option<Histogram<u64>>,
    machine: Option<Busy>,
    full: bool,
}

impl Timeline {
    pub(super) fn new(start: Instant) -> Self {
        Self {
            start,
            slices: Vec::new(),
            answers: 0,
            // It refuses only bounds that make no sense; these are constants that do.
            latencies: Histogram::new_with_bounds(1_000, LONGEST_NS, DIGITS).ok(),
            machine: Busy::read(),
            full: false,
        }
    }

    /// An answer came at `at`.
    pub(super) fn answer(&mut self, at: Instant, latency: Duration) {
        self.close_until(at);
        if self.full {
            return;
        }
        self.answers += 1;
        if let Some(latencies) = &mut self.latencies {
            let latency = u64::try_from(latency.as_nanos()).unwrap_or(LONGEST_NS);
            latencies.saturating_record(latency.max(1));
        }
    }

    /// The whole slices; the last answers of a lap, which fill none, are left out.
    pub(super) fn slices(&self) -> Vec<Slice> {
        self.slices.clone()
    }

    /// Closes every slice that ended before `at`.
    fn close_until(&mut self, at: Instant) {
        let passed = at.saturating_duration_since(self.start).as_secs_f64();
        let whole = (passed / SLICE.as_secs_f64()) as usize;
        if whole <= self.slices.len() || self.full {
            return;
        }
        let now = Busy::read();
        let busy = self.machine.zip(now).and_then(|(before, now)| now.share_since(before));
        self.machine = now;
        // Where no answer came for seconds, what the machine did is known of all of them together.
        while self.slices.len() < whole && !self.full {
            let slice = self.slice(busy);
            self.slices.push(slice);
            self.full = self.slices.len() >= SLICES_MAX;
        }
    }

    fn slice(&mut self, machine_busy: Option<f64>) -> Slice {
        let mut slice = Slice { answers: self.answers, machine_busy, ..Slice::default() };
        if let Some(latencies) = &mut self.latencies {
            slice.p50 = Nanos(latencies.value_at_quantile(0.5));
            slice.p99 = Nanos(latencies.value_at_quantile(0.99));
            slice.max = Nanos(latencies.max());
            latencies.reset();
        }
        self.answers = 0;
        slice
    }
}

/// Ticks of all CPUs since the start of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Busy {
    busy: u64,
    all: u64,
}

impl Busy {
    fn read() -> Option<Self> {
        Self::parse(&fs::read_to_string("/proc/stat").ok()?)
    }

    /// The line of all CPUs: user, nice, system, idle, iowait, irq, softirq, steal (proc(5)); guest
    /// time after them is in user already.
    fn parse(stat: &str) -> Option<Self> {
        let line = stat.lines().next()?.strip_prefix("cpu ")?;
        let ticks: Option<Vec<u64>> =
            line.split_whitespace().take(8).map(|field| field.parse().ok()).collect();
        let ticks = ticks.filter(|ticks| ticks.len() == 8)?;
        let all = ticks.iter().sum();
        Some(Self { busy: all - ticks[3] - ticks[4], all })
    }

    fn share_since(self, before: Self) -> Option<f64> {
        let all = self.all.checked_sub(before.all)?;
        (all > 0).then(|| self.busy.saturating_sub(before.busy) as f64 / all as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // 0 s        1 s        2 s        3 s        4 s
    //   a  b  a                          a          a      answers
    // the first second has three, the second and third none, the fourth one, the fifth is not over
    #[test]
    fn each_second_has_its_own_answers_and_an_empty_one_has_none() {
        let start = Instant::now();
        let mut timeline = Timeline::new(start);
        let ms = Duration::from_millis;
        for (at, latency) in [(100, 10), (400, 30), (700, 10), (3_100, 50), (4_200, 1)] {
            timeline.answer(start + ms(at), ms(latency));
        }
        let slices = timeline.slices();
        let answers: Vec<u64> = slices.iter().map(|slice| slice.answers).collect();
        assert_eq!(answers, [3, 0, 0, 1]);
        let near = |nanos: Nanos, wanted: f64| (nanos.0 as f64 / wanted - 1.0).abs() < 0.02;
        assert!(near(slices[0].p50, 10e6) && near(slices[0].max, 30e6), "{:?}", slices[0]);
        assert!(near(slices[3].p99, 50e6), "{:?}", slices[3]);
        assert_eq!(slices[1].p50, Nanos(0));
    }

    #[test]
    fn a_lap_without_end_is_kept_for_an_hour() {
        let start = Instant::now();
        let mut timeline = Timeline::new(start);
        for hours in [2, 200_000] {
            timeline.answer(start + Duration::from_secs(hours * 3_600), Duration::from_millis(1));
            assert_eq!(timeline.slices().len(), SLICES_MAX);
        }
    }

    #[test]
    fn the_machine_is_busy_by_all_that_is_neither_idle_nor_waiting_for_a_disk() {
        let before = Busy::parse("cpu  100 0 50 800 50 0 0 0 0 0\ncpu0 1 2").unwrap();
        let after = Busy::parse("cpu  160 0 60 810 60 5 5 0 40 0\n").unwrap();
        assert_eq!(after.share_since(before), Some(0.8));
        assert_eq!(after.share_since(after), None);
        assert_eq!(Busy::parse("intr 1 2 3"), None);
        assert_eq!(Busy::parse("cpu  1 2 x 4 5 6 7 8"), None);
    }
}
