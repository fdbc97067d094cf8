//! Collections, and what many of them add up to.

use crate::parsed::{Problem, Sink};
use crate::units::Nanos;

/// One garbage collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Collection {
    /// Its number; counts from 1 when the program starts.
    pub number: u64,
    /// When it began, since the program started.
    pub since_start: Nanos,
    /// Stop-the-world: sweep termination, wall clock.
    pub stopped_before: Nanos,
    /// Concurrent marking, wall clock.
    pub concurrent: Nanos,
    /// Stop-the-world: mark termination, wall clock.
    pub stopped_after: Nanos,
    /// CPU of all its phases: stops, assists, background and idle marking.
    pub cpu: Nanos,
    /// Heap when it began, in bytes (printed in whole MB).
    pub heap_before: u64,
    /// Live heap after it, in bytes.
    pub heap_live: u64,
    /// Whether the program asked for it.
    pub forced: bool,
}

impl Collection {
    /// How long the program stood still.
    #[must_use]
    pub fn stopped(&self) -> Nanos {
        Nanos(self.stopped_before.0.saturating_add(self.stopped_after.0))
    }
}

/// A sink that adds collections up.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Summary {
    /// How many.
    pub collections: u64,
    /// How many of them the program asked for.
    pub forced: u64,
    /// When the first began.
    pub first: Option<Nanos>,
    /// When the last began.
    pub last: Option<Nanos>,
    /// Stop-the-world time of all but the last.
    pub stopped: Nanos,
    /// Longest stop-the-world pause of one phase.
    pub longest_pause: Nanos,
    /// CPU of all but the last.
    pub cpu: Nanos,
    /// Largest heap at a collection's begin, in bytes.
    pub largest_heap: u64,
    /// What could not be understood, the first hundred.
    pub problems: Vec<Problem>,
    pending: Option<Collection>,
}

impl Summary {
    /// Collections per second between the first and the last; `None` under two.
    #[must_use]
    pub fn per_second(&self) -> Option<f64> {
        let wall = self.wall()?;
        Some((self.collections - 1) as f64 / wall.seconds())
    }

    /// Share of the wall time between the first and the last collection in which the program
    /// stood still: the two stop-the-world clock fields ÷ wall. `None` under two collections.
    #[must_use]
    pub fn stopped_share(&self) -> Option<f64> {
        Some(self.stopped.seconds() / self.wall()?.seconds())
    }

    fn wall(&self) -> Option<Nanos> {
        let wall = self.last?.0.checked_sub(self.first?.0)?;
        (wall > 0).then_some(Nanos(wall))
    }
}

impl Sink<Collection> for Summary {
    fn record(&mut self, collection: Collection) {
        // From the first begin to the last begin there lie all collections but the last.
        if let Some(earlier) = self.pending.replace(collection) {
            self.stopped.0 = self.stopped.0.saturating_add(earlier.stopped().0);
            self.cpu.0 = self.cpu.0.saturating_add(earlier.cpu.0);
        }
        self.collections += 1;
        self.forced += u64::from(collection.forced);
        self.first = self.first.or(Some(collection.since_start));
        self.last = Some(collection.since_start);
        let pause = collection.stopped_before.max(collection.stopped_after);
        self.longest_pause = self.longest_pause.max(pause);
        self.largest_heap = self.largest_heap.max(collection.heap_before);
    }

    fn problem(&mut self, problem: Problem) {
        if self.problems.len() < 100 {
            self.problems.push(problem);
        }
    }
}
