//! Redis's protocol, RESP2 and RESP3: which bytes of a connection say something about data.
//!
//! Specification: <https://redis.io/docs/latest/develop/reference/protocol-spec/>. Names of
//! commands and of their subcommands stay, with all types, counts and lengths.

use super::{Conversation, From, MASK, digit};

/// A string is not longer (`proto-max-bulk-len`).
const STRING_MAX: u64 = 512 << 20;
/// Longer names are no commands.
const NAME_MAX: usize = 64;
/// Commands whose first argument is the name of a subcommand.
const CONTAINERS: [&[u8]; 16] = [
    b"ACL",
    b"CLIENT",
    b"CLUSTER",
    b"COMMAND",
    b"CONFIG",
    b"DEBUG",
    b"FUNCTION",
    b"LATENCY",
    b"MEMORY",
    b"MODULE",
    b"OBJECT",
    b"PUBSUB",
    b"SCRIPT",
    b"SLOWLOG",
    b"XGROUP",
    b"XINFO",
];

/// The first words of what is sent unasked, and of the answers that begin it.
const PUSHES: [&[u8]; 10] = [
    b"message",
    b"pmessage",
    b"smessage",
    b"subscribe",
    b"psubscribe",
    b"ssubscribe",
    b"unsubscribe",
    b"punsubscribe",
    b"sunsubscribe",
    b"invalidate",
];

/// One connection.
#[derive(Debug)]
pub(super) struct Redis {
    client: Half,
    server: Half,
}

#[derive(Debug)]
struct Half {
    state: State,
    /// The number in a line of a length.
    number: u64,
    /// Which element of a command comes next.
    argument: usize,
    /// The command's name, in upper case.
    name: Vec<u8>,
    /// Its second word, in upper case.
    second: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// A line's type comes next.
    Line,
    /// In a line that stays, such as a count.
    Count,
    /// In a line that holds the length of a string; whether it is null.
    Length {
        null: bool,
    },
    /// In a line of one number.
    Number,
    /// In the code of an error, which stays.
    ErrorCode,
    /// In the first word of a command without lengths.
    InlineName,
    /// In a line that is data.
    Secret,
    /// Bytes left of a string.
    Text(u64),
    /// Bytes left of the line break behind a string.
    TextEnd(u8),
    Lost,
}

impl Redis {
    /// A connection from its first byte, or one that is joined.
    pub(super) fn new(from_start: bool) -> Self {
        let state = if from_start { State::Line } else { State::Lost };
        let half = || Half { state, number: 0, argument: 0, name: Vec::new(), second: Vec::new() };
        Self { client: half(), server: half() }
    }
}

impl Conversation for Redis {
    fn mask(&mut self, from: From, bytes: &mut [u8]) {
        let half = if from == From::Client { &mut self.client } else { &mut self.server };
        if half.state == State::Lost && fits(from, bytes) {
            half.state = State::Line;
        }
        let mut rest = bytes;
        while !rest.is_empty() {
            let State::Text(left) = half.state else {
                rest[0] = half.step(from, rest[0]);
                rest = &mut rest[1..];
                continue;
            };
            let length = usize::try_from(left).unwrap_or(usize::MAX).min(rest.len());
            let (inside, after) = rest.split_at_mut(length);
            half.text(from, inside);
            let left = left - length as u64;
            half.state = if left > 0 { State::Text(left) } else { State::TextEnd(2) };
            rest = after;
        }
    }

    fn gap(&mut self, from: From) {
        let half = if from == From::Client { &mut self.client } else { &mut self.server };
        half.state = State::Lost;
    }
}

impl Half {
    fn step(&mut self, from: From, byte: u8) -> u8 {
        let ends = byte == b'\n';
        match self.state {
            State::Line => {
                self.state = self.line(from, byte);
                if self.state == State::Lost { MASK } else { byte }
            }
            State::Length { null } => {
                match byte {
                    b'0'..=b'9' => {
                        self.number = self.number * 10 + u64::from(byte - b'0');
                        if self.number > STRING_MAX {
                            self.state = State::Lost;
                        }
                    }
                    b'-' => self.state = State::Length { null: true },
                    b'\r' => {}
                    b'\n' => self.begin_text(null),
                    _ => self.state = State::Lost,
                }
                byte
            }
            State::TextEnd(left) => {
                self.state = if left > 1 { State::TextEnd(left - 1) } else { State::Line };
                if matches!(byte, b'\r' | b'\n') {
                    byte
                } else {
                    self.state = State::Lost;
                    MASK
                }
            }
            State::Lost | State::Text(_) => MASK,
            _ if ends || byte == b'\r' => {
                if ends {
                    self.state = State::Line;
                }
                byte
            }
            State::Count if byte.is_ascii_digit() || byte == b'-' => byte,
            // RESP3: `#t`, `_`; a count of unknown length.
            State::Count if matches!(byte, b't' | b'f' | b'?') => byte,
            State::Number if byte.is_ascii_digit() => digit(byte),
            State::Number if matches!(byte, b'+' | b'-' | b'.' | b'e' | b'E') => byte,
            State::ErrorCode if byte.is_ascii_uppercase() => byte,
            State::InlineName if is_name(byte) => byte,
            State::Count | State::Number | State::ErrorCode | State::InlineName => {
                self.state = State::Secret;
                if byte == b' ' { byte } else { MASK }
            }
            State::Secret => MASK,
        }
    }

    fn line(&mut self, from: From, byte: u8) -> State {
        self.number = 0;
        match (from, byte) {
            (From::Client, b'*') => {
                self.argument = 0;
                self.name.clear();
                self.second.clear();
                State::Count
            }
            (From::Server, b'*' | b'>') => {
                self.argument = 0;
                State::Count
            }
            (_, b'$') => State::Length { null: false },
            (From::Client, b'a'..=b'z' | b'A'..=b'Z') => State::InlineName,
            (_, b'\r' | b'\n') => State::Line,
            (From::Server, b'=' | b'!' | b';') => State::Length { null: false },
            (From::Server, b'%' | b'~' | b'|' | b'#' | b'_' | b'.') => State::Count,
            (From::Server, b':' | b',' | b'(') => State::Number,
            (From::Server, b'-') => State::ErrorCode,
            (From::Server, b'+') => State::Secret,
            _ => State::Lost,
        }
    }

    fn begin_text(&mut self, null: bool) {
        self.state = match self.number {
            _ if null => State::Line,
            0 => State::TextEnd(2),
            length => State::Text(length),
        };
        if self.state != State::Line {
            self.argument += 1;
        }
    }

    fn text(&mut self, from: From, bytes: &mut [u8]) {
        let whole = bytes.len() as u64 == self.number;
        if from == From::Server {
            // What kind of push it is; a word that is cut in two is not looked for.
            if !(whole && self.argument == 1 && PUSHES.contains(&&*bytes)) {
                bytes.fill(MASK);
            }
            return;
        }
        let named = match self.argument {
            1 => true,
            2 => CONTAINERS.contains(&self.name.as_slice()),
            // Whether replies are sent at all decides what is a reply.
            3 => self.name == b"CLIENT" && self.second == b"REPLY",
            _ => false,
        };
        for byte in bytes {
            let word = if self.argument == 1 { &mut self.name } else { &mut self.second };
            if self.argument < 3 && word.len() < NAME_MAX {
                word.push(byte.to_ascii_uppercase());
            }
            if !named || !is_name(*byte) || word.len() >= NAME_MAX {
                *byte = MASK;
            }
        }
    }
}

/// Names of commands, those of modules with them: `FT.SEARCH`, `RESTORE-ASKING`.
fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || matches!(byte, b'.' | b'-' | b'_')
}

/// Whether a segment is, beyond doubt, the beginning of a command or of a reply.
fn fits(from: From, segment: &[u8]) -> bool {
    let Some((&kind, rest)) = segment.split_first() else { return false };
    let Some(end) = rest.windows(2).take(64).position(|two| two == b"\r\n") else {
        // A longer line can only be a text.
        return from == From::Server && matches!(kind, b'+' | b'-');
    };
    let (line, after) = (&rest[..end], &rest[end + 2..]);
    let number = !line.is_empty() && line.iter().all(|byte| byte.is_ascii_digit() || *byte == b'-');
    match (from, kind) {
        (From::Client, b'*') => number && after.first().is_none_or(|&next| next == b'$'),
        (From::Server, b'$' | b'*' | b'%' | b'~' | b'>' | b':' | b'|' | b'=' | b'!') => number,
        (From::Server, b'+' | b'-' | b'_' | b'#' | b',' | b'(') => true,
        _ => false,
    }
}
