//! Profiles on their way to disk: samples of others are left out, names are made readable, and
//! times are put on the clock that everything else uses.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::io::{self, Write};

use assay_captures::ids::Pid;
use assay_captures::manifest::ClockAnchor;
use assay_captures::parsed::{Problem, Sink};
use assay_captures::perf_script::{Frame, Sample};
use assay_captures::units::Nanos;

use crate::inlines::{INLINED, Inlines};
use assay_captures::demangle::readable;

/// Writes the samples of some processes.
pub struct StackWriter<W> {
    out: W,
    pids: BTreeSet<Pid>,
    clock: ClockAnchor,
    inlines: Inlines,
    /// Samples written.
    pub kept: u64,
    /// Samples of processes that nobody asked for.
    pub others: u64,
    /// Lines that were not understood.
    pub problems: u64,
    error: Option<io::Error>,
}

impl<W: Write> StackWriter<W> {
    /// Keeps samples of `pids`; their times are of CLOCK_MONOTONIC and become CLOCK_REALTIME.
    pub fn new(out: W, pids: BTreeSet<Pid>, clock: ClockAnchor) -> Self {
        let inlines = Inlines::since(clock.realtime);
        Self { out, pids, clock, inlines, kept: 0, others: 0, problems: 0, error: None }
    }

    /// What it wrote to, to be closed; or why not all is there.
    pub fn finish(mut self) -> io::Result<W> {
        match self.error.take() {
            Some(error) => Err(error),
            None => Ok(self.out),
        }
    }

    fn realtime(&self, time: Nanos) -> Nanos {
        let ahead = i128::from(time.0) - i128::from(self.clock.monotonic.0);
        let realtime = i128::from(self.clock.realtime.0) + ahead;
        Nanos(u64::try_from(realtime).unwrap_or(0))
    }
}

impl<W: Write> Sink<Sample<'_>> for StackWriter<W> {
    fn record(&mut self, sample: Sample<'_>) {
        if !sample.pid.is_some_and(|pid| self.pids.contains(&pid)) {
            self.others += 1;
            return;
        }
        let stack = named(&mut self.inlines, &sample.frames);
        let readable = Sample {
            frames: stack.iter().map(|(frame, name)| Frame { symbol: name, ..*frame }).collect(),
            time: sample.time.map(|time| self.realtime(time)),
            ..sample
        };
        self.kept += 1;
        if let Err(error) = write!(self.out, "{readable}") {
            self.error.get_or_insert(error);
        }
    }

    fn problem(&mut self, _: Problem) {
        self.problems += 1;
    }
}

/// The frames under readable names, each after the functions that are inlined in it.
fn named<'a>(inlines: &mut Inlines, frames: &[Frame<'a>]) -> Vec<(Frame<'a>, Cow<'a, str>)> {
    let mut stack = Vec::with_capacity(frames.len());
    // What is interrupted stands where it stands; who called it will go on behind the call.
    let mut returned_to = false;
    for frame in frames {
        for name in inlines.at(frame, returned_to) {
            let inlined = Frame { offset: None, module: INLINED, ..*frame };
            stack.push((inlined, Cow::Owned(name.clone())));
        }
        stack.push((*frame, readable(frame.symbol)));
        returned_to = !frame.is_kernel();
    }
    stack
}

#[cfg(test)]
mod tests {
    use assay_captures::ids::Tid;
    use assay_captures::units::Moment;

    use super::*;

    #[test]
    fn names_are_readable_times_are_realtime_and_others_are_left_out() {
        let mut out = Vec::new();
        let clock = ClockAnchor { realtime: Moment(1_000_000), monotonic: Nanos(400) };
        let mut writer = StackWriter::new(&mut out, BTreeSet::from([Pid(7)]), clock);
        let frame = Frame {
            address: 0xabc,
            symbol: "_ZN4tera8renderer6render17h0123456789abcdefE",
            offset: Some(2),
            module: "/srv/app",
        };
        let sample = Sample {
            thread: "app",
            pid: Some(Pid(7)),
            tid: Tid(8),
            cpu: Some(0),
            time: Some(Nanos(500)),
            period: Some(2_004_008),
            event: "cpu-clock:pppH",
            frames: vec![frame],
        };
        writer.record(Sample { pid: Some(Pid(9)), ..sample.clone() });
        writer.record(sample);
        assert_eq!((writer.kept, writer.others), (1, 1));
        writer.finish().unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "app 7/8 [000] 0.001000100: 2004008 cpu-clock:pppH:\n\
             \tabc tera::renderer::render+0x2 (/srv/app)\n\n"
        );
    }
}
