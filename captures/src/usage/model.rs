//! The records of a usage capture.

use serde::{Deserialize, Serialize};

use crate::ids::Role;
use crate::units::{Moment, Nanos, Span};

/// One look at all targets and at the machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// When reading began.
    pub moment: Moment,
    /// How long reading took: counters were read at some time within.
    pub took: Nanos,
    /// What it was read for.
    pub at: At,
    /// One for each target, in the order of the command line; targets of one role are one group.
    pub groups: Vec<Group>,
    /// The whole machine.
    pub machine: Machine,
}

impl Sample {
    /// From the first reading to the last.
    #[must_use]
    pub fn span(&self) -> Span {
        Span { start: self.moment, end: self.moment.after(self.took) }
    }

    /// The processes that play this part.
    #[must_use]
    pub fn group(&self, role: Role) -> Option<&Group> {
        self.groups.iter().find(|group| group.role == role)
    }
}

/// What a sample was read for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum At {
    /// Recording has begun.
    Ready,
    /// Somebody asked: the boundary of a lap.
    Mark,
    /// Recording goes on from here.
    On,
    /// Recording pauses from here.
    Off,
    /// The interval was over.
    Tick,
    /// The last one.
    End,
}

/// What all processes of one role have used, those that have exited with them where that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    /// The part they play.
    pub role: Role,
    /// CPU time, cumulative. Only differences mean something.
    pub cpu: Nanos,
    /// Voluntary context switches, cumulative; of a thread that has exited, those up to the last
    /// sample that saw it.
    pub voluntary: u64,
    /// Involuntary context switches, cumulative; likewise.
    pub involuntary: u64,
    /// Time spent runnable but waiting for a CPU, cumulative; likewise.
    pub run_queue_wait: Nanos,
    /// Live processes.
    pub processes: u64,
    /// Live threads.
    pub threads: u64,
    /// Processes and threads that have exited since the first sample, in so far as it was
    /// noticed: where it grows, the counts of switches are lower bounds.
    pub exits: u64,
    /// Resident memory in bytes, summed over processes: shared pages count in each of them.
    pub resident: u64,
    /// The largest resident memory that each process has had, in bytes, summed.
    pub peak: u64,
    /// Proportional memory in bytes (shared pages divided among their users), where it was read.
    pub proportional: Option<u64>,
}

/// The whole machine.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// Time in soft interrupts, all CPUs, cumulative; the kernel keeps it in ticks.
    pub softirq: Nanos,
    /// Time that the hypervisor gave to others, all CPUs, cumulative, in ticks.
    pub steal: Nanos,
    /// Runnable and uninterruptible tasks, averaged over a minute.
    pub load_average: f64,
}
