//! Bytes → samples. The lines of one sample are kept until the next begins; never more.

use std::borrow::Cow;

use crate::parsed::{Place, Problem, Sink};
use crate::text_lines::{Line, Lines};

use super::header::{self, frame, header};
use super::model::Sample;

/// Longest sample that is kept: a stack of a thousand long names.
const SAMPLE_MAX: usize = 4 * 1024 * 1024;

/// Reads the text of `perf script` as it streams by.
#[derive(Debug, Default)]
pub struct Decoder {
    lines: Lines,
    pending: Pending,
}

/// The lines of the sample that is coming in.
#[derive(Debug, Default)]
struct Pending {
    text: Vec<u8>,
    /// Number of its first line, and how many have come.
    first: u64,
    lines: u64,
    too_long: bool,
}

impl Decoder {
    /// Takes the next bytes of the file.
    pub fn feed<S>(&mut self, bytes: &[u8], sink: &mut S)
    where
        S: for<'a> Sink<Sample<'a>>,
    {
        let pending = &mut self.pending;
        self.lines.feed(bytes, |line| pending.line(line, sink));
    }

    /// The file has ended.
    pub fn finish<S>(&mut self, sink: &mut S)
    where
        S: for<'a> Sink<Sample<'a>>,
    {
        let pending = &mut self.pending;
        self.lines.finish(|line| pending.last_line(line, sink));
        self.pending.deliver(sink);
    }
}

impl Pending {
    fn line<S>(&mut self, line: Line<'_>, sink: &mut S)
    where
        S: for<'a> Sink<Sample<'a>>,
    {
        if line.text.trim_ascii().is_empty() {
            // perf sometimes leaves a line empty between the first one and the stack.
            if self.lines > 1 {
                self.deliver(sink);
            }
            return;
        }
        if line.text.starts_with(b"#") && !header::is_stamped_bytes(line.text) {
            return;
        }
        if self.lines == 0 || begins_sample(line.text) {
            self.deliver(sink);
            self.first = line.number;
        }
        self.keep(line);
    }

    /// A line that no line feed ends. A frame with its closing parenthesis is whole; anything
    /// else was cut, and the sample that it belongs to may be short of frames.
    fn last_line<S>(&mut self, line: Line<'_>, sink: &mut S)
    where
        S: for<'a> Sink<Sample<'a>>,
    {
        if line.text.trim_ascii().is_empty() || line.text.ends_with(b")") {
            self.line(line, sink);
            return;
        }
        if begins_sample(line.text) {
            self.deliver(sink);
        }
        *self = Self::default();
        sink.problem(Problem::new(Place::Line(line.number), "the last line has no end"));
    }

    fn keep(&mut self, line: Line<'_>) {
        self.lines += 1;
        if line.cut || self.text.len() + line.text.len() > SAMPLE_MAX {
            self.too_long = true;
            self.text.clear();
        }
        if !self.too_long {
            self.text.extend_from_slice(line.text);
            self.text.push(b'\n');
        }
    }

    fn deliver<S>(&mut self, sink: &mut S)
    where
        S: for<'a> Sink<Sample<'a>>,
    {
        if self.lines == 0 {
            return;
        }
        if self.too_long {
            sink.problem(Problem::new(Place::Line(self.first), "too long for a sample"));
        } else {
            sample(&self.text, self.first, sink);
        }
        // The buffer is kept for the next sample.
        self.text.clear();
        (self.lines, self.too_long) = (0, false);
    }
}

/// Frames are indented. So are names of threads that are short, but a time stamp follows them.
fn begins_sample(line: &[u8]) -> bool {
    !line.starts_with(b" ") && !line.starts_with(b"\t") || header::is_stamped_bytes(line)
}

fn sample<S>(block: &[u8], first: u64, sink: &mut S)
where
    S: for<'a> Sink<Sample<'a>>,
{
    // Nearly every file is valid throughout, and that is quickly seen.
    let text =
        std::str::from_utf8(block).map_or_else(|_| String::from_utf8_lossy(block), Cow::from);
    let mut lines = text.lines().zip(first..);
    let Some((line, number)) = lines.next() else { return };
    if header::is_event_of_perf(line.as_bytes()) {
        if let Some((_, lost)) = line.split_once("PERF_RECORD_LOST") {
            let text = format!("perf lost samples: {}", lost.trim());
            sink.problem(Problem::new(Place::Line(number), text));
        }
        return;
    }
    let Some((mut sample, rest)) = header(line) else {
        sink.problem(Problem::new(Place::Line(number), "not the first line of a sample"));
        return;
    };
    sample.frames.extend(frame(rest));
    for (line, number) in lines {
        match frame(line) {
            Some(frame) => sample.frames.push(frame),
            None if is_source_line(line) => {}
            None => sink.problem(Problem::new(Place::Line(number), "not a frame of a stack")),
        }
    }
    sink.record(sample);
}

/// `  server.c:120`, which `-F +srcline` prints below a frame.
fn is_source_line(line: &str) -> bool {
    line.trim().rsplit_once(':').is_some_and(|(file, line)| {
        let number = !line.is_empty() && line.bytes().all(|byte| byte.is_ascii_digit());
        number && !file.is_empty() && !file.contains(' ')
    })
}
