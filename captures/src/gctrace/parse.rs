//! Lines → collections. Other output of the program is passed over.

use crate::gctrace::model::Collection;
use crate::parsed::{Place, Problem, Sink};
use crate::text_lines::{Line, Lines};
use crate::units::Nanos;

/// Reads a program's standard error as it comes in.
#[derive(Debug, Default)]
pub struct Decoder {
    lines: Lines,
    last: u64,
}

impl Decoder {
    /// Takes the next bytes.
    pub fn feed(&mut self, bytes: &[u8], sink: &mut impl Sink<Collection>) {
        let last = &mut self.last;
        self.lines.feed(bytes, |found| line(found, last, sink));
    }

    /// Says that the input is over.
    pub fn finish(&mut self, sink: &mut impl Sink<Collection>) {
        let last = &mut self.last;
        self.lines.finish(|found| line(found, last, sink));
    }
}

fn line(line: Line<'_>, last: &mut u64, sink: &mut impl Sink<Collection>) {
    let text = String::from_utf8_lossy(line.text);
    let Some(text) = trace(&text) else {
        return;
    };
    let place = Place::Line(line.number);
    let Some(collection) = collection(text) else {
        let message = if line.ended {
            "not a finished collection: two writers on one line, or a newer Go"
        } else {
            "the file ends in the middle of a collection"
        };
        return sink.problem(Problem::new(place, message));
    };
    // Numbers start again when the program does; a jump ahead means that lines were lost.
    if *last > 0 && collection.number > *last + 1 {
        let lost = collection.number - *last - 1;
        sink.problem(Problem::new(
            place,
            format!("{lost} collections before this one are missing"),
        ));
    } else if *last > 0 && collection.number <= *last {
        sink.problem(Problem::new(place, "collections count from the beginning: another process"));
    }
    *last = collection.number;
    sink.record(collection);
}

/// Whether a line holds a collection.
#[must_use]
pub fn is_trace(line: &str) -> bool {
    trace(line).is_some()
}

/// The part of a line that begins like a trace; log collectors put stamps before it.
fn trace(line: &str) -> Option<&str> {
    let mut from = 0;
    while let Some(at) = line.get(from..)?.find("gc ") {
        let text = line.get(from + at..)?;
        let mut words = text.split(' ').skip(1);
        let (number, moment) = (words.next()?, words.next().unwrap_or_default());
        if number.bytes().all(|byte| byte.is_ascii_digit()) && moment.starts_with('@') {
            return Some(text);
        }
        from += at + 3;
    }
    None
}

fn collection(text: &str) -> Option<Collection> {
    let rest = text.strip_prefix("gc ")?;
    let (number, rest) = rest.split_once(" @")?;
    let (start, rest) = rest.split_once("s ")?;
    let (_percent, rest) = rest.split_once("%: ")?;
    let (clock, rest) = rest.split_once(" ms clock, ")?;
    let (cpu, rest) = rest.split_once(" ms cpu, ")?;
    let (heap, rest) = rest.split_once(" MB, ")?;
    // What follows differs between versions; the goal and the processors are in all of them.
    (rest.contains(" MB goal") && rest.contains(" P")).then_some(())?;
    let mut clocks = clock.split('+').map(|text| nanos(text, 1e6));
    let (before, concurrent, after) = (clocks.next()??, clocks.next()??, clocks.next()??);
    let mut heaps = heap.split("->").map(|text| text.parse::<u64>().ok());
    let (heap_before, _, live) = (heaps.next()??, heaps.next()??, heaps.next()??);
    let parts = cpu.split(['+', '/']).map(|text| nanos(text, 1e6));
    let cpu = parts
        .collect::<Option<Vec<_>>>()?
        .iter()
        .fold(0, |sum: u64, part| sum.saturating_add(part.0));
    Some(Collection {
        number: number.parse().ok()?,
        since_start: nanos(start, 1e9)?,
        stopped_before: before,
        concurrent,
        stopped_after: after,
        cpu: Nanos(cpu),
        heap_before: heap_before.checked_mul(1 << 20)?,
        heap_live: live.checked_mul(1 << 20)?,
        forced: rest.ends_with("(forced)"),
    })
}

/// A decimal number of a unit of so many nanoseconds; at most a century, so sums cannot overflow.
fn nanos(text: &str, unit: f64) -> Option<Nanos> {
    let value = text.parse::<f64>().ok()? * unit;
    (value.is_finite() && (0.0..3e18).contains(&value)).then(|| Nanos(value.round() as u64))
}
