//! Fixed-rate load: requests start on a schedule, whether earlier ones were answered or not.
//!
//! Request k is meant to start at `start + k / rate`, and its latency counts from there. When all
//! connections are busy it starts late, and the wait is part of its latency: a subject that stalls
//! cannot make the driver ask less of it (no coordinated omission).

use std::io;
use std::rc::Rc;
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;

use super::connection::Connection;
use super::lap::{Shared, Stop};
use super::timer::Timer;

/// When each request is meant to start.
pub(super) struct Schedule {
    start: Instant,
    rate: f64,
    total: u64,
    /// Nothing is sent after this: a rate far above what the subject can do would never end.
    last_call: Instant,
    due: Semaphore,
}

impl Schedule {
    /// A schedule of `rate` requests a second from `start`; `patience` is how long the backlog
    /// may take after the last intended start.
    pub(super) fn new(start: Instant, rate: f64, stop: Stop, patience: Duration) -> Rc<Self> {
        let total = match stop {
            Stop::Requests(total) => total,
            // The cast saturates; the half keeps 2 s at 1,000/s from becoming 1,999.
            Stop::After(length) => (length.as_secs_f64() * rate + 0.5) as u64,
        };
        let mut schedule = Self { start, rate, total, last_call: start, due: Semaphore::new(0) };
        schedule.last_call = schedule.intended(total) + patience;
        Rc::new(schedule)
    }

    /// How many requests there are.
    pub(super) fn total(&self) -> u64 {
        self.total
    }

    fn intended(&self, number: u64) -> Instant {
        self.start + Duration::from_secs_f64(number as f64 / self.rate)
    }

    /// How many are due at `now`.
    fn due_at(&self, now: Instant) -> u64 {
        let elapsed = now.saturating_duration_since(self.start).as_secs_f64();
        ((elapsed * self.rate) as u64).saturating_add(1).min(self.total)
    }
}

/// Releases requests as they fall due, until all are or the lap must end.
pub(super) async fn pace(
    schedule: Rc<Schedule>,
    shared: Rc<Shared>,
    connections: usize,
) -> io::Result<()> {
    let timer = Timer::new()?;
    let mut released = 0;
    while released < schedule.total && !shared.must_end() {
        let due = schedule.due_at(Instant::now());
        // At most 2^29 permits fit; more than that many requests are never due at once.
        schedule.due.add_permits((due - released).min(1 << 28) as usize);
        released += (due - released).min(1 << 28);
        if released < schedule.total {
            // Wakes at least every 50 ms, to see the wish to stop at low rates too.
            let next = schedule.intended(released);
            timer.until(next.min(Instant::now() + Duration::from_millis(50))).await?;
        }
    }
    // Whoever still waits wakes, finds nothing left to issue, and leaves.
    schedule.due.add_permits(connections);
    Ok(())
}

/// One connection's part of a lap.
pub(super) async fn drive(
    mut connection: Connection,
    shared: Rc<Shared>,
    schedule: Rc<Schedule>,
) -> Connection {
    while Instant::now() < schedule.last_call {
        let Ok(permit) = schedule.due.acquire().await else { break };
        permit.forget();
        let Some(number) = shared.issue(schedule.total) else { break };
        let intended = schedule.intended(number);
        shared.exchange(&mut connection, number, Some(intended)).await;
    }
    connection
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_due_at_their_intended_start_and_no_more_than_all_of_them() {
        // 0 ms      10 ms     20 ms     30 ms
        // k=0       k=1       k=2       k=3        rate 100/s, 40 ms: 4 requests
        let start = Instant::now();
        let stop = Stop::After(Duration::from_millis(40));
        let schedule = Schedule::new(start, 100.0, stop, Duration::ZERO);
        let due = |ms| schedule.due_at(start + Duration::from_millis(ms));
        assert_eq!(schedule.total(), 4);
        assert_eq!([due(0), due(9), due(11), due(21), due(31)], [1, 1, 2, 3, 4]);
        assert_eq!(due(5_000), 4);
        assert_eq!(schedule.intended(3), start + Duration::from_millis(30));
    }
}
