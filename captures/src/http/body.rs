//! How far a body reaches.

/// What is left of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Body {
    /// So many bytes.
    Length(u64),
    /// Chunks, each after a line with its length.
    Chunked(Chunked),
    /// All bytes until the connection closes.
    UntilClose,
}

/// Where in a chunked body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Chunked {
    /// In the line with the length; `digits` so far, and whether they are over.
    Size { size: u64, digits: u8, over: bool },
    /// In the data, and the two bytes behind it.
    Data { left: u64 },
    /// In the trailer; how many bytes its current line has.
    Trailer { line: u64 },
}

impl Chunked {
    pub(super) const START: Self = Self::Size { size: 0, digits: 0, over: false };
}

/// What came of some bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// All belong to the body, which goes on.
    Inside,
    /// The body ends after so many of them.
    Ends(usize),
    /// Not a chunked body.
    Bad,
}

impl Body {
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Progress {
        match self {
            Self::UntilClose => Progress::Inside,
            Self::Length(left) => {
                if *left > bytes.len() as u64 {
                    *left -= bytes.len() as u64;
                    Progress::Inside
                } else {
                    Progress::Ends(*left as usize)
                }
            }
            Self::Chunked(chunked) => chunked.feed(bytes),
        }
    }

    /// Passes over bytes that were not captured; false when the place is lost.
    pub(super) fn pass_gap(&mut self, gap: u64) -> bool {
        let left = match self {
            Self::UntilClose => return true,
            Self::Length(left) => left,
            // The line end behind the data must be seen.
            Self::Chunked(Chunked::Data { left }) if *left > 2 => left,
            Self::Chunked(_) => return false,
        };
        if gap > *left {
            return false;
        }
        *left -= gap;
        true
    }
}

impl Chunked {
    fn feed(&mut self, bytes: &[u8]) -> Progress {
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            match self {
                Self::Data { left } => {
                    let take = (*left).min((bytes.len() - at) as u64);
                    *left -= take;
                    at += take as usize;
                    if *left == 0 {
                        *self = Self::START;
                    }
                    continue;
                }
                Self::Size { size, digits, over } => match (byte, *over) {
                    (b'\n', _) if *digits == 0 => return Progress::Bad,
                    (b'\n', _) if *size == 0 => *self = Self::Trailer { line: 0 },
                    (b'\n', _) => *self = Self::Data { left: *size + 2 },
                    (_, true) => {}
                    (b';' | b' ' | b'\t' | b'\r', false) => *over = true,
                    (_, false) => {
                        let Some(digit) = char::from(byte).to_digit(16) else {
                            return Progress::Bad;
                        };
                        *digits += 1;
                        if *digits > 15 {
                            return Progress::Bad;
                        }
                        *size = *size << 4 | u64::from(digit);
                    }
                },
                Self::Trailer { line } => match byte {
                    b'\n' if *line == 0 => return Progress::Ends(at + 1),
                    b'\n' => *line = 0,
                    b'\r' => {}
                    _ => *line += 1,
                },
            }
            at += 1;
        }
        Progress::Inside
    }
}
