//! Cuts the server's bytes into replies and pushes.

use super::commands::{LINE_LIMIT, Step, WORD_LIMIT, number};
use super::model::Reply;

/// Deepest nesting that is followed; Redis itself nests a few levels.
const DEPTH_LIMIT: usize = 128;

/// The unfinished reply.
#[derive(Debug, Default)]
pub(super) struct Replies {
    line: Vec<u8>,
    /// Bytes of a bulk string and its line end that are still to come.
    bulk_left: u64,
    /// The aggregates that the next value lies in.
    stack: Vec<Aggregate>,
    kind: u8,
    null: bool,
    start: Vec<u8>,
    /// Whether `start` is complete.
    started: bool,
    length: u64,
}

#[derive(Clone, Copy, Debug)]
struct Aggregate {
    left: u64,
    /// An attribute is no value of its own.
    attribute: bool,
}

impl Replies {
    pub(super) fn is_between(&self) -> bool {
        self.line.is_empty() && self.bulk_left == 0 && self.stack.is_empty()
    }

    pub(super) fn reset(&mut self) {
        *self = Self::default();
    }

    /// Passes over bytes that were not captured; false when the place is lost.
    pub(super) fn pass_gap(&mut self, gap: u64) -> bool {
        if self.bulk_left > gap {
            self.bulk_left -= gap;
            self.length += gap;
            return true;
        }
        self.reset();
        false
    }

    pub(super) fn feed(&mut self, mut bytes: &[u8], each: &mut impl FnMut(Reply<'_>, u64)) -> Step {
        while !bytes.is_empty() {
            if self.bulk_left > 0 {
                let take = self.bulk_left.min(bytes.len() as u64) as usize;
                let content = self.bulk_left.saturating_sub(2).min(take as u64) as usize;
                self.keep(&bytes[..content]);
                self.bulk_left -= take as u64;
                self.length += take as u64;
                bytes = &bytes[take..];
                if self.bulk_left == 0 {
                    self.value_done(each);
                }
                continue;
            }
            let Some(end) = bytes.iter().position(|&byte| byte == b'\n') else {
                self.line.extend_from_slice(bytes);
                self.length += bytes.len() as u64;
                return if self.line.len() > LINE_LIMIT { Step::Bad } else { Step::Used };
            };
            self.length += end as u64 + 1;
            let good = if self.line.is_empty() {
                self.take_line(&bytes[..end], each)
            } else {
                let mut line = std::mem::take(&mut self.line);
                line.extend_from_slice(&bytes[..end]);
                let good = self.take_line(&line, each);
                line.clear();
                self.line = line;
                good
            };
            if !good {
                return Step::Bad;
            }
            bytes = &bytes[end + 1..];
        }
        Step::Used
    }

    fn take_line(&mut self, line: &[u8], each: &mut impl FnMut(Reply<'_>, u64)) -> bool {
        let Some((&kind, rest)) = line.strip_suffix(b"\r").and_then(<[u8]>::split_first) else {
            return false;
        };
        let outermost = self.stack.is_empty();
        if outermost && kind != b'|' {
            self.kind = kind;
        }
        match kind {
            b'+' | b'-' | b',' | b'(' => self.simple(rest, each),
            b':' if number(rest).is_some() => self.simple(rest, each),
            b'#' if matches!(rest, b"t" | b"f") => self.simple(rest, each),
            b'_' if rest.is_empty() => {
                self.null |= outermost;
                self.simple(rest, each);
            }
            b'$' | b'!' | b'=' => {
                let Some(length) = number(rest) else { return false };
                if !(-1..=512 << 20).contains(&length) {
                    return false;
                }
                if length < 0 {
                    self.null |= outermost;
                    self.simple(&[], each);
                } else {
                    self.bulk_left = length.unsigned_abs() + 2;
                }
            }
            b'*' | b'%' | b'~' | b'>' | b'|' => return self.aggregate(kind, rest, each),
            _ => return false,
        }
        true
    }

    fn aggregate(&mut self, kind: u8, count: &[u8], each: &mut impl FnMut(Reply<'_>, u64)) -> bool {
        let Some(count) = number(count) else { return false };
        if !(-1..=1 << 40).contains(&count) || self.stack.len() >= DEPTH_LIMIT {
            return false;
        }
        if count < 0 {
            self.null |= self.stack.is_empty();
            self.simple(&[], each);
            return true;
        }
        let pair = u64::from(matches!(kind, b'%' | b'|')) + 1;
        let left = count.unsigned_abs() * pair;
        let attribute = kind == b'|';
        if left > 0 {
            self.stack.push(Aggregate { left, attribute });
        } else if !attribute {
            self.value_done(each);
        }
        true
    }

    fn simple(&mut self, value: &[u8], each: &mut impl FnMut(Reply<'_>, u64)) {
        self.keep(value);
        self.value_done(each);
    }

    fn keep(&mut self, bytes: &[u8]) {
        if self.started || self.stack.iter().any(|aggregate| aggregate.attribute) {
            return;
        }
        let room = WORD_LIMIT.saturating_sub(self.start.len()).min(bytes.len());
        self.start.extend_from_slice(&bytes[..room]);
    }

    /// A value is there: closes the aggregates that it completes.
    fn value_done(&mut self, each: &mut impl FnMut(Reply<'_>, u64)) {
        if !self.stack.iter().any(|aggregate| aggregate.attribute) {
            self.started = true;
        }
        while let Some(inner) = self.stack.last_mut() {
            inner.left -= 1;
            if inner.left > 0 {
                return;
            }
            let attribute = inner.attribute;
            self.stack.pop();
            if attribute {
                // The value that it belongs to follows.
                return;
            }
        }
        let length = std::mem::take(&mut self.length);
        each(Reply { kind: self.kind, null: self.null, start: &self.start }, length);
        self.start.clear();
        self.started = false;
        self.null = false;
    }
}
