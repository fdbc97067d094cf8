//! What a trace holds altogether: counts and times by name of call.

use std::collections::{BTreeMap, HashMap};

use foldhash::fast::RandomState;

use super::model::{Call, Outcome, Record, Stamp};
use crate::parsed::{Problem, Sink};
use crate::units::Nanos;

/// How many problems are kept; all are counted.
const PROBLEMS_KEPT: usize = 100;

/// Names told apart: Linux has fewer than five hundred calls, a broken file any number.
const NAMES_MAX: usize = 4096;
/// All names after these.
const MORE: &str = "(more names)";

/// The name to count under, where so many are known.
fn bounded(name: &str, known: usize) -> &str {
    if known < NAMES_MAX { name } else { MORE }
}

/// Counts of one call's name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NameTotals {
    /// Calls that returned to their caller, or that the kernel went on with by itself.
    pub calls: u64,
    /// Of these, failed; counted as `strace -c` does.
    pub errors: u64,
    /// Calls that do not return.
    pub never: u64,
    /// Calls during which strace let go.
    pub detached: u64,
    /// Calls that had not ended when the trace did.
    pub unfinished: u64,
    /// Time in calls whose time is known. With `-T` it is time that passed, waiting included.
    pub time: Nanos,
    /// Calls whose time is known.
    pub timed: u64,
}

/// Adds up a trace.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    names: HashMap<String, NameTotals, RandomState>,
    /// Tables of `-c`: calls, errors and time of each name.
    pub table: BTreeMap<String, NameTotals>,
    /// Signals delivered, by name.
    pub signals: BTreeMap<String, u64>,
    /// Threads that ended.
    pub exits: u64,
    /// The earliest and the latest stamp.
    pub stamps: Option<(Stamp, Stamp)>,
    /// The first problems.
    pub problems: Vec<Problem>,
    /// All problems.
    pub problem_count: u64,
}

impl Totals {
    /// Counts by name, ascending.
    #[must_use]
    pub fn names(&self) -> BTreeMap<&str, NameTotals> {
        self.names.iter().map(|(name, totals)| (name.as_str(), *totals)).collect()
    }

    /// Counts over all names.
    #[must_use]
    pub fn all(&self) -> NameTotals {
        self.names.values().fold(NameTotals::default(), |mut sum, each| {
            sum.calls += each.calls;
            sum.errors += each.errors;
            sum.never += each.never;
            sum.detached += each.detached;
            sum.unfinished += each.unfinished;
            sum.time.0 = sum.time.0.saturating_add(each.time.0);
            sum.timed += each.timed;
            sum
        })
    }

    /// From the first stamp to the last.
    #[must_use]
    pub fn span(&self) -> Option<Nanos> {
        let (first, last) = self.stamps?;
        Some(Nanos(last.nanos().saturating_sub(first.nanos())))
    }

    fn call(&mut self, call: &Call<'_>) {
        let totals = match self.names.get_mut(call.name) {
            Some(totals) => totals,
            None => {
                let name = bounded(call.name, self.names.len());
                self.names.entry(name.to_owned()).or_default()
            }
        };
        match call.outcome {
            Outcome::Returned { .. } | Outcome::Restarted { .. } => totals.calls += 1,
            Outcome::Never => totals.never += 1,
            Outcome::Detached => totals.detached += 1,
            Outcome::Unfinished => totals.unfinished += 1,
        }
        totals.errors += u64::from(call.outcome.errno().is_some());
        if let Some(Nanos(length)) = call.duration {
            totals.time.0 = totals.time.0.saturating_add(length);
            totals.timed += 1;
        }
    }

    fn stamp(&mut self, stamp: Option<Stamp>) {
        let Some(stamp) = stamp else { return };
        let (first, last) = self.stamps.get_or_insert((stamp, stamp));
        *first = stamp.min(*first);
        *last = stamp.max(*last);
    }
}

impl Sink<Record<'_>> for Totals {
    fn record(&mut self, record: Record<'_>) {
        match record {
            Record::Call(call) => {
                self.call(&call);
                self.stamp(call.stamp);
            }
            Record::Signal(signal) => {
                self.stamp(signal.stamp);
                if !signal.stopped {
                    let name = bounded(signal.name, self.signals.len());
                    *self.signals.entry(name.to_owned()).or_default() += 1;
                }
            }
            Record::Exit(exit) => {
                self.stamp(exit.stamp);
                self.exits += 1;
            }
            Record::Superseded(superseded) => self.stamp(superseded.stamp),
            Record::Row(row) if row.name != "total" => {
                let name = bounded(row.name, self.table.len());
                let totals = self.table.entry(name.to_owned()).or_default();
                totals.calls += row.calls;
                totals.errors += row.errors;
                totals.time.0 = totals.time.0.saturating_add(row.time.unwrap_or_default().0);
            }
            Record::Row(_) | Record::Frame(_) | Record::Notice(_) => {}
        }
    }

    fn problem(&mut self, problem: Problem) {
        self.problem_count += 1;
        if self.problems.len() < PROBLEMS_KEPT {
            self.problems.push(problem);
        }
    }
}
