//! Cuts a stream into lines, with bounded memory.

/// Longest line that is kept whole.
pub(super) const LINE_MAX: usize = 1 << 20;
/// Of a longer one, so much of its end is kept: a call's result is there.
const TAIL: usize = 4096;

/// A line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line<'a> {
    /// Without its end.
    pub(super) text: &'a [u8],
    /// 1-based.
    pub(super) number: u64,
    /// Whether its middle is missing.
    pub(super) cut: bool,
    /// Whether it has an end; the last one of a killed strace has none.
    pub(super) ended: bool,
}

/// Collects the pieces of a line that came in several chunks.
#[derive(Debug, Default)]
pub(super) struct Lines {
    pending: Vec<u8>,
    tail: Vec<u8>,
    /// Bytes that the line has had so far.
    length: usize,
    number: u64,
}

impl Lines {
    pub(super) fn feed(&mut self, mut bytes: &[u8], mut each: impl FnMut(Line<'_>)) {
        while let Some(end) = memchr::memchr(b'\n', bytes) {
            let (text, rest) = (&bytes[..end], &bytes[end + 1..]);
            bytes = rest;
            if self.length == 0 && text.len() <= LINE_MAX {
                self.number += 1;
                each(Line { text: unreturned(text), number: self.number, cut: false, ended: true });
            } else {
                self.keep(text);
                self.end(true, &mut each);
            }
        }
        if !bytes.is_empty() {
            self.keep(bytes);
        }
    }

    pub(super) fn finish(&mut self, mut each: impl FnMut(Line<'_>)) {
        if self.length > 0 {
            self.end(false, &mut each);
        }
    }

    fn keep(&mut self, bytes: &[u8]) {
        self.length = self.length.saturating_add(bytes.len());
        let room = (LINE_MAX - self.pending.len()).min(bytes.len());
        self.pending.extend_from_slice(&bytes[..room]);
        let over = &bytes[room..];
        if over.len() >= TAIL {
            self.tail.clear();
            self.tail.extend_from_slice(&over[over.len() - TAIL..]);
        } else if !over.is_empty() {
            let surplus = (self.tail.len() + over.len()).saturating_sub(TAIL);
            self.tail.drain(..surplus);
            self.tail.extend_from_slice(over);
        }
    }

    fn end(&mut self, ended: bool, each: &mut impl FnMut(Line<'_>)) {
        self.number += 1;
        self.pending.extend_from_slice(&self.tail);
        let cut = self.length > self.pending.len();
        each(Line { text: unreturned(&self.pending), number: self.number, cut, ended });
        self.pending.clear();
        self.tail.clear();
        self.length = 0;
    }
}

/// Traces that have been through another system may have a carriage return at their lines' ends.
fn unreturned(text: &[u8]) -> &[u8] {
    text.strip_suffix(b"\r").unwrap_or(text)
}
