//! Cuts the client's bytes into commands.

use super::model::Command;

/// Longest line that is kept: Redis itself refuses longer inline commands.
pub(super) const LINE_LIMIT: usize = 64 * 1024;
/// How much of a word is kept.
pub(super) const WORD_LIMIT: usize = 64;

/// The unfinished command.
#[derive(Debug, Default)]
pub(super) struct Commands {
    line: Vec<u8>,
    state: State,
    words: [Vec<u8>; 3],
    count: u64,
    left: u64,
    length: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Start,
    /// The line with the length of the next word.
    WordLength,
    /// A word and the line end behind it.
    Word { left: u64 },
}

/// What came of some bytes.
pub(super) enum Step {
    /// All bytes are used.
    Used,
    /// Not a command.
    Bad,
}

impl Commands {
    pub(super) fn is_between(&self) -> bool {
        self.state == State::Start && self.line.is_empty()
    }

    pub(super) fn reset(&mut self) {
        *self = Self::default();
    }

    /// Passes over bytes that were not captured; false when the place is lost.
    pub(super) fn pass_gap(&mut self, gap: u64) -> bool {
        if let State::Word { left } = &mut self.state
            && *left > gap
        {
            *left -= gap;
            self.length += gap;
            return true;
        }
        self.reset();
        false
    }

    pub(super) fn feed(
        &mut self,
        mut bytes: &[u8],
        each: &mut impl FnMut(Command<'_>, u64),
    ) -> Step {
        while !bytes.is_empty() {
            if let State::Word { left } = self.state {
                let take = left.min(bytes.len() as u64) as usize;
                self.word(&bytes[..take], left);
                self.length += take as u64;
                bytes = &bytes[take..];
                let left = left - take as u64;
                self.state = State::Word { left };
                if left == 0 {
                    self.word_done(each);
                }
                continue;
            }
            let Some(end) = bytes.iter().position(|&byte| byte == b'\n') else {
                self.line.extend_from_slice(bytes);
                self.length += bytes.len() as u64;
                return if self.line.len() > LINE_LIMIT { Step::Bad } else { Step::Used };
            };
            self.length += end as u64 + 1;
            self.line.extend_from_slice(&bytes[..end]);
            bytes = &bytes[end + 1..];
            let line = std::mem::take(&mut self.line);
            let good = self.take_line(line.strip_suffix(b"\r").unwrap_or(&line), each);
            self.line = line;
            self.line.clear();
            if !good {
                return Step::Bad;
            }
        }
        Step::Used
    }

    fn take_line(&mut self, line: &[u8], each: &mut impl FnMut(Command<'_>, u64)) -> bool {
        if self.state == State::WordLength {
            let Some(length) = line.strip_prefix(b"$").and_then(number) else { return false };
            let Ok(length) = u64::try_from(length) else { return false };
            if length > 512 << 20 {
                return false;
            }
            self.state = State::Word { left: length + 2 };
            return true;
        }
        if let Some(count) = line.strip_prefix(b"*") {
            let Some(count) = number(count) else { return false };
            if count > 1 << 20 {
                return false;
            }
            if count <= 0 {
                self.length = 0;
                return true;
            }
            self.count = count.unsigned_abs();
            self.left = self.count;
            self.state = State::WordLength;
            return true;
        }
        let length = std::mem::take(&mut self.length);
        if line.iter().any(|&byte| byte < b' ' && byte != b'\t') {
            return false;
        }
        let mut words = line.split(|byte| byte.is_ascii_whitespace()).filter(|w| !w.is_empty());
        if let Some(name) = words.next() {
            let second = words.next().unwrap_or(&[]);
            let third = words.next().unwrap_or(&[]);
            let given = 1 + u64::from(!second.is_empty()) + u64::from(!third.is_empty());
            let words = given + words.count() as u64;
            each(Command { name, second, third, words, inline: true }, length);
        }
        true
    }

    /// Keeps the start of the first three words; `left` still counts the line end behind it.
    fn word(&mut self, bytes: &[u8], left: u64) {
        let index = (self.count - self.left) as usize;
        let Some(word) = self.words.get_mut(index) else { return };
        let content = left.saturating_sub(2).min(bytes.len() as u64) as usize;
        let room = WORD_LIMIT.saturating_sub(word.len()).min(content);
        word.extend_from_slice(&bytes[..room]);
    }

    fn word_done(&mut self, each: &mut impl FnMut(Command<'_>, u64)) {
        self.left -= 1;
        if self.left > 0 {
            self.state = State::WordLength;
            return;
        }
        self.state = State::Start;
        let length = std::mem::take(&mut self.length);
        let [name, second, third] = &self.words;
        each(Command { name, second, third, words: self.count, inline: false }, length);
        for word in &mut self.words {
            word.clear();
        }
    }
}

/// A decimal number with an optional sign.
pub(super) fn number(digits: &[u8]) -> Option<i64> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}
