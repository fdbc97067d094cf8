//! Cuts a stream of bytes into lines, whatever chunks it comes in.

/// The longest line that is kept; what is longer is delivered cut, so memory stays bounded.
pub const LONGEST: usize = 4 << 20;

/// One line of input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line<'a> {
    /// 1-based, as editors count.
    pub number: u64,
    /// Without the line feed and a carriage return before it.
    pub text: &'a [u8],
    /// Whether a line feed ended it; the last line of a killed writer has none.
    pub ended: bool,
    /// Whether it was longer than [`LONGEST`] and its end is missing.
    pub cut: bool,
}

/// Holds the line that is still coming in.
#[derive(Debug, Default)]
pub struct Lines {
    carry: Vec<u8>,
    seen: u64,
    cut: bool,
}

impl Lines {
    /// Takes a chunk and hands over each line that it completes.
    pub fn feed(&mut self, bytes: &[u8], mut each: impl FnMut(Line<'_>)) {
        let mut rest = bytes;
        while let Some(end) = memchr::memchr(b'\n', rest) {
            let (line, after) = rest.split_at(end);
            rest = after.get(1..).unwrap_or_default();
            self.seen += 1;
            if self.carry.is_empty() {
                each(Line { number: self.seen, text: bare(line), ended: true, cut: false });
                continue;
            }
            self.keep(line);
            let (number, cut) = (self.seen, self.cut);
            each(Line { number, text: bare(&self.carry), ended: true, cut });
            self.carry.clear();
            self.cut = false;
        }
        self.keep(rest);
    }

    /// Hands over the last line if no line feed ended it.
    pub fn finish(&mut self, each: impl FnOnce(Line<'_>)) {
        if !self.carry.is_empty() {
            self.seen += 1;
            let (number, cut) = (self.seen, self.cut);
            each(Line { number, text: bare(&self.carry), ended: false, cut });
            self.carry.clear();
            self.cut = false;
        }
    }

    fn keep(&mut self, bytes: &[u8]) {
        let room = LONGEST.saturating_sub(self.carry.len());
        self.cut |= bytes.len() > room;
        self.carry.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }
}

fn bare(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(chunks: &[&[u8]]) -> Vec<(u64, String, bool)> {
        let mut lines = Lines::default();
        let mut out = Vec::new();
        let mut keep = |line: Line<'_>| {
            out.push((line.number, String::from_utf8_lossy(line.text).into_owned(), line.ended));
        };
        for chunk in chunks {
            lines.feed(chunk, &mut keep);
        }
        lines.finish(&mut keep);
        out
    }

    #[test]
    fn chunks_do_not_matter() {
        let whole = lines(&[b"a\r\n\nbc\nd"]);
        assert_eq!(whole[0], (1, "a".into(), true));
        assert_eq!(whole[3], (4, "d".into(), false));
        assert_eq!(whole, lines(&[b"a\r", b"\n\nb", b"c", b"\nd"]));
    }
}
