//! The first line of a sample. Read from its time stamp to both sides, since the thread's name may
//! hold anything: spaces, colons, brackets, digits.

use crate::ids::{Pid, Tid};
use crate::units::Nanos;

use super::model::{Frame, Sample};

/// Reads the header; what stands behind the event (a stack of one frame on the same line) is
/// handed back.
pub(super) fn header(line: &str) -> Option<(Sample<'_>, &str)> {
    let line = line.trim_end();
    match time_stamp(line) {
        Some(stamp) => with_time(line, &stamp),
        None => without_time(line),
    }
}

/// Whether the line is the first one of a sample that has a time stamp.
#[must_use]
pub fn is_stamped(line: &str) -> bool {
    header(line).is_some_and(|(sample, _)| sample.time.is_some() && !sample.event.is_empty())
}

/// The same for bytes; cheap for the lines of a stack.
pub(super) fn is_stamped_bytes(line: &[u8]) -> bool {
    // Colon and blank: between a time stamp and its event, and in next to no frame.
    let colon = memchr::memchr_iter(b':', line)
        .any(|at| line.get(at + 1).is_none_or(|after| b" \t".contains(after)));
    colon && (is_event_of_perf(line) || is_stamped(&String::from_utf8_lossy(line)))
}

/// Whether a line tells of something else than a sample: that samples were lost, or with
/// `--show-task-events` and its kind, of processes and maps.
pub(super) fn is_event_of_perf(line: &[u8]) -> bool {
    memchr::memmem::find(line, b": PERF_RECORD_").is_some()
}

/// Where the time stamp stands.
struct Stamp {
    start: usize,
    end: usize,
    time: Nanos,
}

/// The last word that looks like `123.456789:` and is followed by an event.
fn time_stamp(line: &str) -> Option<Stamp> {
    let mut found = None;
    let mut at = 0;
    for word in line.split([' ', '\t']) {
        let end = at + word.len();
        if let Some(time) = word.strip_suffix(':').and_then(seconds)
            && event(&line[end..]).is_some()
        {
            found = Some(Stamp { start: at, end, time });
        }
        at = end + 1;
    }
    found
}

fn seconds(text: &str) -> Option<Nanos> {
    let (whole, fraction) = text.split_once('.')?;
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(fraction) || fraction.len() > 9 {
        return None;
    }
    let scale = 10u64.pow(9 - u32::try_from(fraction.len()).ok()?);
    let fraction = fraction.parse::<u64>().ok()? * scale;
    whole.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(fraction).map(Nanos)
}

/// `[period] event: rest` → period, event, rest.
fn event(text: &str) -> Option<(Option<u64>, &str, &str)> {
    let text = text.trim_start();
    let (word, rest) = text.split_once([' ', '\t']).unwrap_or((text, ""));
    if let Ok(period) = word.parse::<u64>() {
        let rest = rest.trim_start();
        let (word, rest) = rest.split_once([' ', '\t']).unwrap_or((rest, ""));
        return Some((Some(period), word.strip_suffix(':')?, rest));
    }
    let name = word.strip_suffix(':')?;
    (!name.is_empty()).then_some((None, name, rest))
}

fn with_time<'a>(line: &'a str, stamp: &Stamp) -> Option<(Sample<'a>, &'a str)> {
    let (period, event, rest) = event(&line[stamp.end..])?;
    let mut sample = who(&line[..stamp.start])?;
    sample.time = Some(stamp.time);
    sample.period = period;
    sample.event = event;
    Some((sample, rest))
}

/// `thread pid/tid [cpu] event:`, or with nothing after the thread's number.
fn without_time(line: &str) -> Option<(Sample<'_>, &str)> {
    let (front, word) = line.rsplit_once([' ', '\t']).unwrap_or(("", line));
    let Some(event) = word.strip_suffix(':') else { return Some((who(line)?, "")) };
    let front = front.trim_end();
    let (before, word) = front.rsplit_once([' ', '\t']).unwrap_or(("", front));
    // A number before the event is the period, unless it is all that names the thread.
    if let Ok(period) = word.parse::<u64>()
        && let Some(mut sample) = who(before)
    {
        (sample.period, sample.event) = (Some(period), event);
        return Some((sample, ""));
    }
    let mut sample = who(front)?;
    sample.event = event;
    Some((sample, ""))
}

/// `thread pid/tid [cpu] flags` from its right end; what `-F +flags` and the like print in between
/// is left out.
fn who(text: &str) -> Option<Sample<'_>> {
    let mut rest = text.trim_end();
    let mut cpu = None;
    if let Some((open, number)) = last_cpu(rest) {
        (rest, cpu) = (rest[..open].trim_end(), Some(number));
    }
    let (thread, numbers) = rest.rsplit_once([' ', '\t']).unwrap_or(("", rest));
    let (pid, tid) = match numbers.split_once('/') {
        Some((pid, tid)) => (Some(Pid(number(pid)?)), Tid(number(tid)?)),
        None => (None, Tid(number(numbers)?)),
    };
    Some(Sample {
        thread: thread.trim(),
        pid,
        tid,
        cpu,
        time: None,
        period: None,
        event: "",
        frames: Vec::new(),
    })
}

/// `[003]` as the last word but one at most.
fn last_cpu(text: &str) -> Option<(usize, u32)> {
    let close = text.rfind(']')?;
    let after = text[close + 1..].trim();
    if after.contains([' ', '\t']) {
        return None;
    }
    let open = text[..close].rfind('[')?;
    Some((open, text[open + 1..close].parse().ok()?))
}

/// A process or thread number. perf prints −1 for one that it does not know.
fn number(text: &str) -> Option<u32> {
    if text == "-1" { Some(u32::MAX) } else { text.parse().ok() }
}

/// `address symbol+offset (module)`.
pub(super) fn frame(line: &str) -> Option<Frame<'_>> {
    let line = line.trim();
    let (address, rest) = line.split_once([' ', '\t']).unwrap_or((line, ""));
    let address = u64::from_str_radix(address, 16).ok()?;
    let rest = rest.trim();
    let (name, module) = match module(rest) {
        Some(open) => (rest[..open].trim_end(), &rest[open + 1..rest.len() - 1]),
        None => (rest, ""),
    };
    let (symbol, offset) = offset(name).unwrap_or((name, None));
    let symbol = if symbol.is_empty() { "[unknown]" } else { symbol };
    Some(Frame { address, symbol, offset, module })
}

/// `symbol+0x1f`: the symbol and its offset. Looking for the plus alone is the fast way.
fn offset(name: &str) -> Option<(&str, Option<u64>)> {
    let (symbol, digits) = name.split_at_checked(memchr::memrchr(b'+', name.as_bytes())?)?;
    let offset = u64::from_str_radix(digits.strip_prefix("+0x")?, 16).ok()?;
    Some((symbol, Some(offset)))
}

/// Where the last balanced parenthesis opens: a module's name may hold some of its own, as in
/// `(/srv/app (deleted))`, and so may a symbol's.
fn module(text: &str) -> Option<usize> {
    if !text.ends_with(')') {
        return None;
    }
    let mut depth = 0usize;
    for (at, byte) in text.bytes().enumerate().rev() {
        match byte {
            b')' => depth += 1,
            b'(' => {
                depth -= 1;
                if depth == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
    }
    None
}
