//! Joins what strace printed in parts, and delivers records.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::grammar::{self, Body, End, Prefix, Printed};
use super::lines::{LINE_MAX, Line, Lines};
use super::model::{Call, Exit, Outcome, Record, Row, Signal, Stamp, Superseded};
use super::summary::{Table, TableLine};
use crate::ids::Tid;
use crate::parsed::{Place, Problem, Sink};
use crate::units::Nanos;

/// Of a call that was printed in two parts, so much of its arguments is kept from the first.
const ARGS_KEPT: usize = 4096;
/// Calls that can be open at once: a thread has one.
const OPEN_MAX: usize = 65_536;
const HALF_A_DAY: u64 = 12 * 3600 * 1_000_000_000;

/// Reads a trace as it streams by. Memory is bounded by a line of 1 MiB and by the calls that are
/// open at once.
#[derive(Debug, Default)]
pub struct Decoder {
    lines: Lines,
    state: State,
}

impl Decoder {
    /// A decoder for a trace of any form.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A decoder for one file of `-ff`, whose thread only the file's name tells.
    #[must_use]
    pub fn for_thread(tid: Tid) -> Self {
        Self { state: State { tid: Some(tid), ..State::default() }, ..Self::default() }
    }

    /// Takes the next bytes of the file.
    pub fn feed(&mut self, bytes: &[u8], sink: &mut impl for<'a> Sink<Record<'a>>) {
        let state = &mut self.state;
        self.lines.feed(bytes, |line| state.line(line, sink));
    }

    /// The file has ended.
    pub fn finish(&mut self, sink: &mut impl for<'a> Sink<Record<'a>>) {
        let state = &mut self.state;
        self.lines.finish(|line| state.line(line, sink));
        state.finish(sink);
    }
}

#[derive(Debug, Default)]
struct State {
    /// The thread of all lines that name none.
    tid: Option<Tid>,
    open: HashMap<Option<Tid>, Open, RandomState>,
    /// Used again, so that a split call allocates nothing.
    spare: Vec<Open>,
    /// The beginning of a line into which a notice was printed, and where it was.
    held: Option<(Vec<u8>, u64)>,
    clock: Clock,
    table: Option<Table>,
    /// Whether calls have their times behind them (`-T`): then a line without is cut off.
    timed: bool,
}

/// The first part of a call.
#[derive(Debug, Default)]
struct Open {
    name: String,
    args: Vec<u8>,
    stamp: Option<Stamp>,
    line: u64,
}

/// Turns printed stamps into stamps that grow.
#[derive(Debug, Default)]
struct Clock {
    last: u64,
    days: u64,
    steps: u64,
}

impl Clock {
    fn read(&mut self, printed: Printed) -> Stamp {
        const DAY: u64 = 2 * HALF_A_DAY;
        match printed {
            Printed::Unix(moment) => Stamp::Unix(moment),
            Printed::TimeOfDay(Nanos(nanos)) => {
                let mut days = self.days;
                if nanos + HALF_A_DAY < self.last {
                    self.days += 1;
                    days += 1;
                    self.last = nanos;
                } else if nanos > self.last + HALF_A_DAY && days > 0 {
                    // A line of another thread from just before midnight.
                    days -= 1;
                } else {
                    self.last = nanos;
                }
                Stamp::SinceMidnight(Nanos(days.saturating_mul(DAY).saturating_add(nanos)))
            }
            Printed::Step(Nanos(step)) => {
                self.steps = self.steps.saturating_add(step);
                Stamp::SinceFirst(Nanos(self.steps))
            }
        }
    }
}

/// Where a record comes from.
#[derive(Clone, Copy, Debug)]
struct Source {
    tid: Option<Tid>,
    stamp: Option<Stamp>,
    line: u64,
    cut: bool,
    ended: bool,
}

impl Source {
    fn problem(&self, message: impl Into<std::borrow::Cow<'static, str>>) -> Problem {
        Problem::new(Place::Line(self.line), message)
    }
}

impl State {
    fn line(&mut self, line: Line<'_>, sink: &mut impl for<'a> Sink<Record<'a>>) {
        if line.text.is_empty() || self.tabled(line.text, sink) {
            return;
        }
        if line.cut {
            let place = Place::Line(line.number);
            sink.problem(Problem::new(place, "longer than 1 MiB: its middle was left out"));
        }
        if line.text.starts_with(b" > ") {
            sink.record(Record::Frame(&line.text[3..]));
            return;
        }
        if let Some(start) = grammar::notice(line.text) {
            let (before, notice) = line.text.split_at(start);
            if !before.is_empty() {
                let held = self.held.get_or_insert_with(|| (Vec::new(), line.number));
                if held.0.len() + before.len() <= LINE_MAX {
                    held.0.extend_from_slice(before);
                }
            }
            sink.record(Record::Notice(notice));
            return;
        }
        let Some((mut text, number)) = self.held.take() else {
            self.whole_line(line, sink);
            return;
        };
        if line.text.starts_with(b"[pid ") || text.len() + line.text.len() > LINE_MAX {
            sink.problem(Problem::new(Place::Line(number), "a line that does not go on"));
            self.whole_line(line, sink);
        } else {
            text.extend_from_slice(line.text);
            self.whole_line(Line { text: &text, number, ..line }, sink);
        }
    }

    /// Whether the line belongs to a table of `-c`.
    fn tabled(&mut self, text: &[u8], sink: &mut impl for<'a> Sink<Record<'a>>) -> bool {
        let Some(table) = &self.table else {
            // A header begins with its first column, which no other line does.
            if matches!(text.first(), Some(b'%' | b' ' | b's' | b'c' | b'e' | b'u')) {
                self.table = Table::of_header(text);
            }
            return self.table.is_some();
        };
        match table.read(text) {
            TableLine::Rule => true,
            TableLine::Row(row) => {
                let last = row.name == "total";
                sink.record(Record::Row(Row { ..row }));
                if last {
                    self.table = None;
                }
                true
            }
            TableLine::Foreign => {
                self.table = None;
                false
            }
        }
    }

    fn whole_line(&mut self, line: Line<'_>, sink: &mut impl for<'a> Sink<Record<'a>>) {
        let (Prefix { tid, stamp }, rest) = grammar::prefix(line.text);
        let source = Source {
            tid: tid.or(self.tid),
            stamp: stamp.map(|stamp| self.clock.read(stamp)),
            line: line.number,
            cut: line.cut,
            ended: line.ended,
        };
        match grammar::body(rest) {
            Some(Body::Call { name, rest }) => self.call(source, name, rest, sink),
            Some(Body::Resumed { name, rest }) => self.resumed(source, name, rest, sink),
            Some(Body::Signal { name, stopped, detail }) => {
                let Source { tid, stamp, .. } = source;
                sink.record(Record::Signal(Signal { tid, stamp, name, stopped, detail }));
            }
            Some(Body::Exited(status)) => self.exit(source, Some(status), None, false, sink),
            Some(Body::Killed { signal, core_dumped }) => {
                self.exit(source, None, Some(signal), core_dumped, sink);
            }
            Some(Body::Superseded(by)) => {
                self.supersede(source, by, sink);
                let Source { tid, stamp, .. } = source;
                sink.record(Record::Superseded(Superseded { tid, stamp, by }));
            }
            None if !line.ended => sink.problem(source.problem("the last line is cut off")),
            None => sink.problem(source.problem("not a line of strace")),
        }
    }

    fn call(
        &mut self,
        source: Source,
        name: &str,
        rest: &[u8],
        sink: &mut impl for<'a> Sink<Record<'a>>,
    ) {
        let call = |args, outcome, duration| Call {
            tid: source.tid,
            stamp: source.stamp,
            name,
            args,
            outcome,
            duration,
            line: source.line,
            headless: false,
        };
        match self.end(source, rest) {
            Some(End::Whole { args, outcome, duration }) => {
                self.timed |= duration.is_some();
                sink.record(Record::Call(call(args, outcome, duration)));
            }
            Some(End::Detached { args }) => {
                sink.record(Record::Call(call(args, Outcome::Detached, None)));
            }
            Some(End::Unfinished { args }) => self.open(source, source.tid, name, args, sink),
            Some(End::Renamed { args, to }) => self.open(source, Some(to), name, args, sink),
            None if source.ended => sink.problem(source.problem("a call without its end")),
            None => {
                sink.problem(source.problem("the last line is cut off"));
                sink.record(Record::Call(call(rest, Outcome::Unfinished, None)));
            }
        }
    }

    /// How a part of a call ends; `None` where it is cut off.
    fn end<'a>(&self, source: Source, rest: &'a [u8]) -> Option<End<'a>> {
        let end = grammar::end(rest, source.cut)?;
        // `= 12` can be the beginning of `= 1234 <0.000010>`.
        let torn = !source.ended
            && self.timed
            && matches!(end, End::Whole { outcome: Outcome::Returned { .. }, duration: None, .. });
        (!torn).then_some(end)
    }

    /// Keeps the first part of a call.
    fn open(
        &mut self,
        source: Source,
        tid: Option<Tid>,
        name: &str,
        args: &[u8],
        sink: &mut impl for<'a> Sink<Record<'a>>,
    ) {
        self.close(tid, Outcome::Unfinished, sink);
        if self.open.len() >= OPEN_MAX {
            sink.problem(source.problem("too many calls are open at once: this one is left out"));
            return;
        }
        let mut open = self.spare.pop().unwrap_or_default();
        open.name.clear();
        open.name.push_str(name);
        open.args.clear();
        open.args.extend_from_slice(&args[..args.len().min(ARGS_KEPT)]);
        open.stamp = source.stamp;
        open.line = source.line;
        self.open.insert(tid, open);
    }

    fn resumed(
        &mut self,
        source: Source,
        name: &str,
        rest: &[u8],
        sink: &mut impl for<'a> Sink<Record<'a>>,
    ) {
        let Some(end) = self.end(source, rest) else {
            let cut =
                if source.ended { "a call without its end" } else { "the last line is cut off" };
            sink.problem(source.problem(cut));
            return;
        };
        let (args, outcome, duration) = match end {
            End::Whole { args, outcome, duration } => (args, outcome, duration),
            End::Detached { args } => (args, Outcome::Detached, None),
            End::Unfinished { args } | End::Renamed { args, .. } => {
                // Interrupted once more: it is still the same call.
                match self.open.get_mut(&source.tid) {
                    Some(open) if open.name == name => keep(open, args),
                    _ => self.open(source, source.tid, name, args, sink),
                }
                return;
            }
        };
        self.timed |= duration.is_some();
        let open = self.beginning(source.tid, name).map(|mut open| {
            keep(&mut open, args);
            open
        });
        if open.is_none() {
            let text = format!("{name} resumed, but its beginning is not in the trace");
            sink.problem(source.problem(text));
        }
        sink.record(Record::Call(Call {
            tid: source.tid,
            stamp: open.as_ref().map_or(source.stamp, |open| open.stamp),
            name,
            args: open.as_ref().map_or(args, |open| &open.args),
            outcome,
            duration,
            line: open.as_ref().map_or(source.line, |open| open.line),
            headless: open.is_none(),
        }));
        self.spare.extend(open);
    }

    /// Finds the first part of a call by thread and name.
    fn beginning(&mut self, tid: Option<Tid>, name: &str) -> Option<Open> {
        // While there is one process, strace prints no pid: the first part may have none.
        for key in [tid, None] {
            if self.open.get(&key).is_some_and(|open| open.name == name) {
                return self.open.remove(&key);
            }
        }
        // Without a pid it is the last process left, whichever that is; an `execve` was called by
        // another thread of the process, and strace was told to be quiet.
        if tid.is_some() && !name.starts_with("execve") {
            return None;
        }
        let mut callers = self.open.iter().filter(|(_, open)| open.name == name);
        let only = callers.next().map(|(key, _)| *key).filter(|_| callers.next().is_none());
        self.open.remove(&only?)
    }

    /// The thread that called `execve` goes on under its leader's number.
    fn supersede(&mut self, source: Source, by: Tid, sink: &mut impl for<'a> Sink<Record<'a>>) {
        let Some(open) = self.open.remove(&Some(by)) else { return };
        self.close(source.tid, Outcome::Never, sink);
        self.open.insert(source.tid, open);
    }

    fn exit(
        &mut self,
        source: Source,
        status: Option<i32>,
        signal: Option<&str>,
        core_dumped: bool,
        sink: &mut impl for<'a> Sink<Record<'a>>,
    ) {
        let Source { tid, stamp, .. } = source;
        self.close(tid, Outcome::Never, sink);
        sink.record(Record::Exit(Exit { tid, stamp, status, signal, core_dumped }));
    }

    /// Delivers a call whose second part will not come.
    fn close(
        &mut self,
        tid: Option<Tid>,
        outcome: Outcome<'static>,
        sink: &mut impl for<'a> Sink<Record<'a>>,
    ) {
        let Some(open) = self.open.remove(&tid) else { return };
        sink.record(Record::Call(Call {
            tid,
            stamp: open.stamp,
            name: &open.name,
            args: &open.args,
            outcome,
            duration: None,
            line: open.line,
            headless: false,
        }));
        self.spare.push(open);
    }

    fn finish(&mut self, sink: &mut impl for<'a> Sink<Record<'a>>) {
        if let Some((_, number)) = self.held.take() {
            sink.problem(Problem::new(Place::Line(number), "a line that does not go on"));
        }
        let mut tids: Vec<(u64, Option<Tid>)> =
            self.open.iter().map(|(tid, open)| (open.line, *tid)).collect();
        tids.sort_unstable();
        for (_, tid) in tids {
            self.close(tid, Outcome::Unfinished, sink);
        }
    }
}

/// Adds the arguments of a later part.
fn keep(open: &mut Open, args: &[u8]) {
    let args = args.trim_ascii_start();
    if !args.is_empty() && open.args.last().is_some_and(|&byte| byte == b',') {
        open.args.push(b' ');
    }
    let room = (2 * ARGS_KEPT).saturating_sub(open.args.len()).min(args.len());
    open.args.extend_from_slice(&args[..room]);
}
