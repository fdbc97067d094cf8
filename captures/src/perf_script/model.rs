//! The records of a profile.

use std::fmt;

use crate::ids::{Pid, Tid};
use crate::units::Nanos;

/// One sample. Borrows from the decoder's buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample<'a> {
    /// Name of the thread.
    pub thread: &'a str,
    /// Its process, where the file says so.
    pub pid: Option<Pid>,
    /// The thread.
    pub tid: Tid,
    /// The CPU that it ran on.
    pub cpu: Option<u32>,
    /// The time stamp, since the start of whichever clock recorded it.
    pub time: Option<Nanos>,
    /// What the sample stands for, in the event's unit: nanoseconds for `cpu-clock`.
    pub period: Option<u64>,
    /// Name of the event without its modifiers' colon, such as `cpu-clock:pppH`; empty when the
    /// file does not name it.
    pub event: &'a str,
    /// The stack, leaf first.
    pub frames: Vec<Frame<'a>>,
}

/// One frame of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Its address; 0 for an inlined frame without one.
    pub address: u64,
    /// Name of the function as the file has it; `[unknown]` where there is none.
    pub symbol: &'a str,
    /// Offset into the function.
    pub offset: Option<u64>,
    /// The file that the code came from, or `inlined`; empty where the file does not say.
    pub module: &'a str,
}

impl Frame<'_> {
    /// Whether the code belongs to the kernel.
    #[must_use]
    pub fn is_kernel(&self) -> bool {
        self.address >> 63 == 1
            || self.module.starts_with("[kernel")
            || self.module == "[guest.kernel.kallsyms]"
    }
}

/// Printed as `perf script` prints it, time stamps with nine decimals.
impl fmt::Display for Sample<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.thread)?;
        if let Some(pid) = self.pid {
            write!(f, "{}/", pid.0)?;
        }
        write!(f, "{}", self.tid.0)?;
        if let Some(cpu) = self.cpu {
            write!(f, " [{cpu:03}]")?;
        }
        if let Some(Nanos(time)) = self.time {
            write!(f, " {}.{:09}:", time / 1_000_000_000, time % 1_000_000_000)?;
        }
        if let Some(period) = self.period {
            write!(f, " {period}")?;
        }
        writeln!(f, " {}:", self.event)?;
        for frame in &self.frames {
            write!(f, "\t{:x} {}", frame.address, frame.symbol)?;
            if let Some(offset) = frame.offset {
                write!(f, "+{offset:#x}")?;
            }
            writeln!(f, " ({})", frame.module)?;
        }
        writeln!(f)
    }
}
