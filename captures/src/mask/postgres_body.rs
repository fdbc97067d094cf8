//! Inside one PostgreSQL message: which bytes are data.

use super::sql::Lexer;
use super::{From, MASK};

/// Parameters whose values are needed to read the rest, and say nothing of anybody.
const OPEN_PARAMETERS: [&[u8]; 5] = [
    b"server_version",
    b"server_encoding",
    b"client_encoding",
    b"standard_conforming_strings",
    b"integer_datetimes",
];

/// What to do with the bytes of one message.
#[derive(Debug, Default)]
pub(super) enum Body {
    /// Nothing of it is data.
    Keep,
    /// All of it may be.
    #[default]
    Mask,
    /// Only the first so many bytes are not.
    Head(u32),
    /// So many bytes, a name and a zero byte, and then data.
    Name(u32),
    /// So many names, a statement text up to its zero byte, and then types.
    Statement(u8, Lexer),
    /// Counted values with their lengths.
    Values(Values),
    /// Fields of an error or a notice: a code, a text, a zero byte.
    Fields(Field),
    /// A parameter's name and its value.
    Parameter(Vec<u8>, bool),
    /// The first message, without type; the bytes of its version so far.
    StartUp(u8, u32),
    /// Names and values by turns; whether a value is being read.
    Pairs(bool),
    /// SSLRequest or GSSENCRequest.
    EncryptionOffer,
}

/// Where in a list of values we are.
#[derive(Debug, Default)]
pub(super) struct Values {
    /// Names that come before the counts.
    names: u8,
    /// Whether a list of formats comes before the values.
    formats: bool,
    number: u32,
    seen: u8,
    step: ValueStep,
    values: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ValueStep {
    #[default]
    Names,
    Formats,
    Count,
    Length,
    /// Bytes left of a value.
    Value(u32),
    /// Bytes left of the list of formats.
    FormatList(u32),
    Rest,
}

/// Where in a field we are.
#[derive(Clone, Copy, Debug, Default)]
pub(super) enum Field {
    #[default]
    Code,
    Open,
    Secret,
}

impl Body {
    /// The first message of a connection.
    pub(super) fn start_up() -> Self {
        Self::StartUp(0, 0)
    }

    /// The body of a message of this type; `None` for a type that nobody sends.
    pub(super) fn of(from: From, kind: u8) -> Option<Self> {
        Some(match (from, kind) {
            (From::Client, b'Q') => Self::Statement(0, Lexer::default()),
            (From::Client, b'P') => Self::Statement(1, Lexer::default()),
            (From::Client, b'B') => {
                Self::Values(Values { names: 2, formats: true, ..Values::default() })
            }
            (From::Client, b'C' | b'D' | b'E' | b'H' | b'S' | b'X' | b'c') => Self::Keep,
            // Passwords and SASL; COPY data; COPY's reason to fail; a function call's arguments.
            (From::Client, b'p' | b'd' | b'f' | b'F') => Self::Mask,
            (From::Server, b'D') => Self::Values(Values::default()),
            (
                From::Server,
                b'1' | b'2' | b'3' | b'C' | b'G' | b'H' | b'I' | b'T' | b'W' | b'Z' | b'c' | b'n'
                | b's' | b't' | b'v',
            ) => Self::Keep,
            // The method of authentication; the backend's number: then salts, proofs, the key.
            (From::Server, b'R' | b'K') => Self::Head(4),
            (From::Server, b'd' | b'V') => Self::Mask,
            (From::Server, b'E' | b'N') => Self::Fields(Field::Code),
            (From::Server, b'S') => Self::Parameter(Vec::new(), false),
            // NotificationResponse: its channel stays, its payload does not.
            (From::Server, b'A') => Self::Name(4),
            _ => return None,
        })
    }

    /// Masks the next bytes of the message in place.
    pub(super) fn mask(&mut self, bytes: &mut [u8]) {
        match self {
            Self::Keep | Self::EncryptionOffer => {}
            Self::Mask => bytes.fill(MASK),
            Self::Values(values) => values.mask(bytes),
            _ => {
                for byte in bytes {
                    *byte = self.step(*byte);
                }
            }
        }
    }

    fn step(&mut self, byte: u8) -> u8 {
        match self {
            Self::Keep | Self::EncryptionOffer => byte,
            Self::Mask | Self::Values(_) => MASK,
            Self::Head(left) => {
                *left -= 1;
                if *left == 0 {
                    *self = Self::Mask;
                }
                byte
            }
            Self::Name(before @ 1..) => {
                *before -= 1;
                byte
            }
            Self::Name(0) => {
                if byte == 0 {
                    *self = Self::Mask;
                }
                byte
            }
            Self::Statement(0, lexer) => {
                let masked = if byte == 0 { 0 } else { lexer.step(byte) };
                if byte == 0 {
                    *self = Self::Keep;
                }
                masked
            }
            Self::Statement(names, _) => {
                *names -= u8::from(byte == 0);
                byte
            }
            Self::Fields(field) => field.step(byte),
            Self::Parameter(name, in_value) => match (*in_value, byte) {
                (_, 0) => {
                    *in_value = true;
                    byte
                }
                (true, _) if OPEN_PARAMETERS.contains(&name.as_slice()) => byte,
                (true, _) => MASK,
                (false, _) => {
                    // Longer names are none of the open ones.
                    if name.len() < 64 {
                        name.push(byte);
                    }
                    byte
                }
            },
            Self::StartUp(seen, version) => {
                *version = *version << 8 | u32::from(byte);
                *seen += 1;
                if *seen == 4 {
                    *self = Self::after_version(*version);
                }
                byte
            }
            Self::Pairs(in_value) => {
                let masked = if byte != 0 && *in_value { MASK } else { byte };
                if byte == 0 {
                    *in_value = !*in_value;
                }
                masked
            }
        }
    }

    fn after_version(version: u32) -> Self {
        match (version >> 16, version & 0xffff) {
            (3, _) => Self::Pairs(false),
            (1234, 5679 | 5680) => Self::EncryptionOffer,
            // CancelRequest's key, and what nobody knows.
            _ => Self::Mask,
        }
    }
}

impl Values {
    fn mask(&mut self, bytes: &mut [u8]) {
        let mut rest = bytes;
        while !rest.is_empty() {
            let run = match self.step {
                ValueStep::Value(left) | ValueStep::FormatList(left) => left as usize,
                ValueStep::Rest => rest.len(),
                _ => 0,
            };
            if run == 0 {
                self.byte(rest[0]);
                rest = &mut rest[1..];
                continue;
            }
            let length = run.min(rest.len());
            let (inside, after) = rest.split_at_mut(length);
            // At most the number that is left.
            let left = (run - length) as u32;
            match self.step {
                ValueStep::Value(_) => {
                    inside.fill(MASK);
                    self.step = if left > 0 { ValueStep::Value(left) } else { self.next_value() };
                }
                ValueStep::FormatList(_) => {
                    self.step =
                        if left > 0 { ValueStep::FormatList(left) } else { ValueStep::Count };
                }
                // The formats of the results follow a Bind's values; nothing follows a row's.
                _ if self.formats => {}
                _ => inside.fill(MASK),
            }
            rest = after;
        }
    }

    /// One byte of a name, a count or a length: these stay.
    fn byte(&mut self, byte: u8) {
        if self.step == ValueStep::Names {
            if self.names > 0 {
                self.names -= u8::from(byte == 0);
                return;
            }
            self.step = if self.formats { ValueStep::Formats } else { ValueStep::Count };
        }
        self.number = self.number << 8 | u32::from(byte);
        self.seen += 1;
        let width = if self.step == ValueStep::Length { 4 } else { 2 };
        if self.seen < width {
            return;
        }
        self.seen = 0;
        let number = std::mem::take(&mut self.number);
        self.step = match self.step {
            ValueStep::Formats if number > 0 => ValueStep::FormatList(number * 2),
            ValueStep::Formats => ValueStep::Count,
            ValueStep::Count => {
                self.values = number;
                self.next_value()
            }
            // -1 is NULL; another negative number is no length, and as one it ends the message.
            ValueStep::Length if number == 0 || number == u32::MAX => self.next_value(),
            ValueStep::Length => ValueStep::Value(number),
            other => other,
        };
    }

    fn next_value(&mut self) -> ValueStep {
        match self.values.checked_sub(1) {
            None => ValueStep::Rest,
            Some(left) => {
                self.values = left;
                ValueStep::Length
            }
        }
    }
}

impl Field {
    /// Severity, SQLSTATE, and where in the server's source; all other texts may quote data.
    fn step(&mut self, byte: u8) -> u8 {
        match (*self, byte) {
            (Self::Code, 0) => byte,
            (Self::Code, b'S' | b'V' | b'C' | b'F' | b'L' | b'R') => {
                *self = Self::Open;
                byte
            }
            (Self::Code, _) => {
                *self = Self::Secret;
                byte
            }
            (_, 0) => {
                *self = Self::Code;
                byte
            }
            (Self::Open, _) => byte,
            (Self::Secret, _) => MASK,
        }
    }
}
