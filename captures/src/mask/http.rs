//! HTTP/1: which bytes of a connection say something about people.
//!
//! Message syntax: RFC 9112. The request line stays but for the values of a query; so do the
//! status line, the names of headers, and the headers that frame a body.

use std::collections::VecDeque;

use super::{Conversation, From, MASK};

/// A longer name is none of the headers that stay.
const NAME_MAX: usize = 32;
/// A line of a chunk's size has at most so many digits.
const CHUNK_DIGITS: u8 = 15;
/// More requests than this are not sent before an answer.
const PIPELINE_MAX: usize = 1024;
/// Headers whose values stay beside those that frame the body: they say nothing of anybody.
const OPEN: [&[u8]; 5] =
    [b"content-type", b"content-encoding", b"connection", b"upgrade", b"expect"];

/// One connection.
#[derive(Debug)]
pub(super) struct Http {
    client: Half,
    server: Half,
    /// Of each request without answer, whether it was HEAD: then its answer has no body.
    asked: VecDeque<bool>,
}

#[derive(Debug)]
struct Half {
    state: State,
    /// A request's method; the first bytes of a status line.
    word: Vec<u8>,
    /// The header's name in lower case; then the end of Transfer-Encoding's value.
    name: Vec<u8>,
    /// What the headers so far say of the body.
    length: Option<u64>,
    chunked: bool,
    /// Whether the value being read is that of Content-Length or of Transfer-Encoding.
    value: Value,
    number: u64,
    in_trailer: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Value {
    Open,
    Secret,
    Length,
    Encoding,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Before a request's method or a response's version.
    Start,
    /// In the method of a request.
    Method,
    /// In its target: before the query, in a name of it, in a value.
    Path,
    QueryName,
    QueryValue,
    /// In the rest of the first line.
    StartLine,
    /// At the start of a header's line.
    HeaderStart,
    HeaderName,
    HeaderValue,
    /// Bytes left of a body or of a chunk.
    Body(u64),
    Chunk(u64),
    /// In the line of a chunk's size: digits seen, or an extension.
    ChunkSize(u8),
    ChunkExtension,
    /// The line break behind a chunk.
    ChunkEnd,
    /// A body that only the end of the connection ends.
    UntilClose,
    Lost,
    /// Another protocol from here on.
    Opaque,
}

impl Http {
    /// A connection from its first byte, or one that is joined.
    pub(super) fn new(from_start: bool) -> Self {
        let state = if from_start { State::Start } else { State::Lost };
        Self { client: Half::new(state), server: Half::new(state), asked: VecDeque::new() }
    }

    /// The headers are over: what comes next.
    fn head_is_over(&mut self, from: From) {
        let half = if from == From::Client { &mut self.client } else { &mut self.server };
        if std::mem::take(&mut half.in_trailer) {
            half.state = State::Start;
            return;
        }
        let (length, chunked) = (half.length.take(), std::mem::take(&mut half.chunked));
        let framed = match length {
            _ if chunked => State::ChunkSize(0),
            Some(0) => State::Start,
            Some(length) => State::Body(length),
            None if from == From::Client => State::Start,
            None => State::UntilClose,
        };
        half.number = 0;
        half.state = framed;
        if from == From::Client {
            return;
        }
        // "HTTP/1.1 204"
        let status = half.word.get(9..12).unwrap_or_default().to_vec();
        if status == b"101" {
            self.client.state = State::Opaque;
            self.server.state = State::Opaque;
            return;
        }
        if status.first() == Some(&b'1') {
            self.server.state = State::Start;
            return;
        }
        let head = self.asked.pop_front().unwrap_or(false);
        if head || matches!(status.as_slice(), b"204" | b"304") {
            self.server.state = State::Start;
        }
    }
}

impl Conversation for Http {
    fn mask(&mut self, from: From, bytes: &mut [u8]) {
        let half = if from == From::Client { &mut self.client } else { &mut self.server };
        if half.state == State::Lost && fits(from, bytes) {
            *half = Half::new(State::Start);
        }
        let mut rest = bytes;
        while !rest.is_empty() {
            let half = if from == From::Client { &mut self.client } else { &mut self.server };
            let run = match half.state {
                State::Body(left) | State::Chunk(left) => {
                    usize::try_from(left).unwrap_or(usize::MAX).min(rest.len())
                }
                State::UntilClose | State::Lost | State::Opaque => rest.len(),
                _ => 0,
            };
            if run > 0 {
                let (inside, after) = rest.split_at_mut(run);
                inside.fill(MASK);
                half.masked(run as u64);
                rest = after;
                continue;
            }
            let ends_head = half.state == State::HeaderStart && rest[0] == b'\n';
            let ends_request =
                from == From::Client && half.state == State::StartLine && rest[0] == b'\n';
            if ends_request {
                let head = half.word == b"HEAD";
                if self.asked.len() == PIPELINE_MAX {
                    self.asked.clear();
                }
                self.asked.push_back(head);
            }
            if ends_head {
                self.head_is_over(from);
            } else {
                rest[0] = half.step(from, rest[0]);
            }
            rest = &mut rest[1..];
        }
    }

    fn gap(&mut self, from: From) {
        let half = if from == From::Client { &mut self.client } else { &mut self.server };
        if half.state != State::Opaque {
            *half = Half::new(State::Lost);
        }
        self.asked.clear();
    }
}

impl Half {
    fn new(state: State) -> Self {
        Self {
            state,
            word: Vec::new(),
            name: Vec::new(),
            length: None,
            chunked: false,
            value: Value::Secret,
            number: 0,
            in_trailer: false,
        }
    }

    /// So many bytes of a body have been masked.
    fn masked(&mut self, run: u64) {
        self.state = match self.state {
            State::Body(left) if left == run => State::Start,
            State::Body(left) => State::Body(left - run),
            State::Chunk(left) if left == run => State::ChunkEnd,
            State::Chunk(left) => State::Chunk(left - run),
            other => other,
        };
    }

    fn step(&mut self, from: From, byte: u8) -> u8 {
        match self.state {
            State::Start => self.start(from, byte),
            State::Method => match byte {
                b'A'..=b'Z' | b'-' if self.word.len() < NAME_MAX => self.push(byte),
                b' ' => self.turn(State::Path, byte),
                _ => self.turn(State::Lost, MASK),
            },
            State::Path => match byte {
                b'?' => self.turn(State::QueryName, byte),
                // A target with a host may hold a password; nobody but a proxy gets one.
                b'@' => self.turn(State::Lost, MASK),
                _ => self.target(byte),
            },
            State::QueryName if byte == b'=' => self.turn(State::QueryValue, byte),
            State::QueryName => self.target(byte),
            State::QueryValue => match byte {
                b'&' => self.turn(State::QueryName, byte),
                b' ' | b'\r' | b'\n' => self.target(byte),
                _ => MASK,
            },
            State::StartLine => {
                if byte == b'\n' {
                    self.state = State::HeaderStart;
                } else if from == From::Server && self.word.len() < 12 {
                    self.word.push(byte);
                }
                byte
            }
            State::HeaderStart | State::HeaderName | State::HeaderValue => self.header(byte),
            State::ChunkSize(digits) => self.chunk_size(byte, digits),
            State::ChunkExtension | State::ChunkEnd => match byte {
                b'\n' if self.state == State::ChunkEnd => self.turn(State::ChunkSize(0), byte),
                b'\n' => self.chunk(byte),
                b'\r' => byte,
                _ if self.state == State::ChunkEnd => self.turn(State::Lost, MASK),
                _ => MASK,
            },
            _ => MASK,
        }
    }

    fn turn(&mut self, state: State, byte: u8) -> u8 {
        self.state = state;
        byte
    }

    fn push(&mut self, byte: u8) -> u8 {
        self.word.push(byte);
        byte
    }

    fn start(&mut self, from: From, byte: u8) -> u8 {
        match (from, byte) {
            (_, b'\r' | b'\n') => byte,
            (From::Client, b'A'..=b'Z') => {
                self.word.clear();
                self.push(byte);
                self.turn(State::Method, byte)
            }
            (From::Server, b'H') => {
                self.word.clear();
                self.push(byte);
                self.turn(State::StartLine, byte)
            }
            _ => self.turn(State::Lost, MASK),
        }
    }

    fn target(&mut self, byte: u8) -> u8 {
        match byte {
            b' ' => self.turn(State::StartLine, byte),
            b'\n' => self.turn(State::HeaderStart, byte),
            _ => byte,
        }
    }

    fn header(&mut self, byte: u8) -> u8 {
        match (self.state, byte) {
            (State::HeaderStart, b'\r') => byte,
            // A folded line goes on with the value before.
            (State::HeaderStart, b' ' | b'\t') => self.turn(State::HeaderValue, byte),
            (State::HeaderStart, _) => {
                self.number = 0;
                self.name.clear();
                self.remember(byte);
                self.turn(State::HeaderName, byte)
            }
            (State::HeaderName, b':') => {
                self.value = value_of(&self.name);
                self.name.clear();
                self.turn(State::HeaderValue, byte)
            }
            (State::HeaderName | State::HeaderValue, b'\n') => {
                let value = std::mem::replace(&mut self.value, Value::Secret);
                // The last coding is the one that frames.
                self.chunked |= value == Value::Encoding && self.name.ends_with(b"chunked");
                self.turn(State::HeaderStart, byte)
            }
            (State::HeaderName, _) => {
                self.remember(byte);
                byte
            }
            (_, b' ' | b'\t' | b'\r') => byte,
            _ => self.value(byte),
        }
    }

    fn value(&mut self, byte: u8) -> u8 {
        match self.value {
            Value::Secret => return MASK,
            Value::Open => {}
            Value::Length => match byte {
                b'0'..=b'9' if self.number < u64::MAX / 16 => {
                    self.number = self.number * 10 + u64::from(byte - b'0');
                    self.length = Some(self.number);
                }
                _ => self.state = State::Lost,
            },
            Value::Encoding => {
                if self.name.len() == NAME_MAX {
                    self.name.remove(0);
                }
                self.name.push(byte.to_ascii_lowercase());
            }
        }
        byte
    }

    /// Too long a name is cut, and then is none of those that stay.
    fn remember(&mut self, byte: u8) {
        if self.name.len() < NAME_MAX {
            self.name.push(byte.to_ascii_lowercase());
        }
    }

    fn chunk_size(&mut self, byte: u8, digits: u8) -> u8 {
        let value = match byte {
            b'0'..=b'9' => byte - b'0',
            b'a'..=b'f' => byte - b'a' + 10,
            b'A'..=b'F' => byte - b'A' + 10,
            b'\r' => return byte,
            b'\n' if digits > 0 => return self.chunk(byte),
            b';' | b' ' if digits > 0 => return self.turn(State::ChunkExtension, byte),
            _ => return self.turn(State::Lost, MASK),
        };
        if digits == CHUNK_DIGITS {
            return self.turn(State::Lost, MASK);
        }
        self.number = self.number << 4 | u64::from(value);
        self.turn(State::ChunkSize(digits + 1), byte)
    }

    /// The line of a chunk's size is over.
    fn chunk(&mut self, byte: u8) -> u8 {
        let size = std::mem::take(&mut self.number);
        self.in_trailer = size == 0;
        let next = if size == 0 { State::HeaderStart } else { State::Chunk(size) };
        self.turn(next, byte)
    }
}

fn value_of(name: &[u8]) -> Value {
    match name {
        b"content-length" => Value::Length,
        b"transfer-encoding" => Value::Encoding,
        _ if OPEN.contains(&name) => Value::Open,
        _ => Value::Secret,
    }
}

/// Whether a segment is, beyond doubt, the beginning of a request or of a response.
fn fits(from: From, segment: &[u8]) -> bool {
    if from == From::Server {
        return segment.starts_with(b"HTTP/1.");
    }
    let line = segment.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let mut words = line.split(|&byte| byte == b' ');
    let method = words.next().unwrap_or_default();
    let target = words.next().unwrap_or_default();
    (3..=NAME_MAX).contains(&method.len())
        && method.iter().all(u8::is_ascii_uppercase)
        && matches!(target.first(), Some(b'/' | b'*'))
        && words.next().is_some_and(|version| version.starts_with(b"HTTP/1."))
}
