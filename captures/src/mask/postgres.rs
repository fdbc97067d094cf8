//! PostgreSQL's protocol 3: which bytes of a connection say something about data.
//!
//! Messages: <https://www.postgresql.org/docs/current/protocol-message-formats.html>.

use super::postgres_body::Body;
use super::{Conversation, From, MASK};

/// A start-up packet is not longer (`MAX_STARTUP_PACKET_LENGTH`).
const START_UP_MAX: u32 = 10_000;
/// A message is not longer (`PQ_LARGE_MESSAGE_LIMIT`, 1 GB).
const MESSAGE_MAX: u32 = 1 << 30;

/// One connection.
#[derive(Debug)]
pub(super) struct Postgres {
    client: Half,
    server: Half,
    /// The client has offered encryption, and the answer of one byte is due.
    offered: bool,
}

#[derive(Debug)]
struct Half {
    state: State,
    /// The length field as far as it has come, then the bytes left of the message.
    left: u32,
    body: Body,
    /// An offer of encryption has just been made.
    offers: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Bytes seen of the length of a message without type.
    StartUp(u8),
    /// A message's type comes next.
    Type,
    /// Bytes seen of its length.
    Length(u8),
    /// Inside it.
    Body,
    /// Not understood, until a segment that is.
    Lost,
    /// Encrypted from here on.
    Opaque,
}

impl Postgres {
    /// A connection from its first byte, or one that is joined.
    pub(super) fn new(from_start: bool) -> Self {
        let half = |state| Half { state, left: 0, body: Body::Mask, offers: false };
        if from_start {
            Self { client: half(State::StartUp(0)), server: half(State::Type), offered: false }
        } else {
            Self { client: half(State::Lost), server: half(State::Lost), offered: false }
        }
    }

    /// The answer to an offer of encryption has no length; true when this byte was it.
    fn answers_offer(&mut self, byte: u8) -> bool {
        if !std::mem::take(&mut self.offered) || byte == b'E' {
            return false;
        }
        if byte != b'N' {
            self.client.state = State::Opaque;
            self.server.state = State::Opaque;
        }
        true
    }
}

impl Conversation for Postgres {
    fn mask(&mut self, from: From, bytes: &mut [u8]) {
        let answered =
            from == From::Server && bytes.first().is_some_and(|&first| self.answers_offer(first));
        let rest = &mut bytes[usize::from(answered)..];
        let half = if from == From::Client { &mut self.client } else { &mut self.server };
        if half.state == State::Lost && fits(from, rest) {
            half.state = State::Type;
        }
        half.mask(from, rest);
        self.offered |= std::mem::take(&mut half.offers);
    }

    fn gap(&mut self, from: From) {
        let half = if from == From::Client { &mut self.client } else { &mut self.server };
        if half.state != State::Opaque {
            half.state = State::Lost;
        }
        self.offered = false;
    }
}

impl Half {
    fn mask(&mut self, from: From, bytes: &mut [u8]) {
        let mut rest = bytes;
        while !rest.is_empty() {
            if matches!(self.state, State::Lost | State::Opaque) {
                rest.fill(MASK);
                return;
            }
            if self.state == State::Body {
                let length = rest.len().min(self.left as usize);
                let (inside, after) = rest.split_at_mut(length);
                self.body.mask(inside);
                // At most `left`, which fits.
                self.left -= length as u32;
                self.end_if_over();
                rest = after;
            } else {
                self.head(from, &mut rest[0]);
                rest = &mut rest[1..];
            }
        }
    }

    /// One byte of a type or of a length.
    fn head(&mut self, from: From, byte: &mut u8) {
        match self.state {
            State::Type => match Body::of(from, *byte) {
                Some(body) => {
                    self.body = body;
                    self.left = 0;
                    self.state = State::Length(0);
                }
                None => {
                    self.state = State::Lost;
                    *byte = MASK;
                }
            },
            State::Length(seen) => {
                self.left = self.left << 8 | u32::from(*byte);
                self.state = State::Length(seen + 1);
                if seen == 3 {
                    self.begin_body(4..=MESSAGE_MAX);
                }
            }
            State::StartUp(seen) => {
                self.left = self.left << 8 | u32::from(*byte);
                self.state = State::StartUp(seen + 1);
                if seen == 3 {
                    self.body = Body::start_up();
                    self.begin_body(8..=START_UP_MAX);
                }
            }
            State::Body | State::Lost | State::Opaque => {}
        }
    }

    /// The length counts itself.
    fn begin_body(&mut self, lengths: std::ops::RangeInclusive<u32>) {
        if lengths.contains(&self.left) {
            self.left -= 4;
            self.state = State::Body;
            self.end_if_over();
        } else {
            self.state = State::Lost;
        }
    }

    fn end_if_over(&mut self) {
        if self.left == 0 {
            // After an offer of encryption comes another message without type.
            self.offers = matches!(self.body, Body::EncryptionOffer);
            self.state = if self.offers { State::StartUp(0) } else { State::Type };
        }
    }
}

/// Whether a segment is, beyond doubt, the beginning of a message: messages of known type follow
/// each other to its very end, or at least one whole one stands before one that is cut.
fn fits(from: From, segment: &[u8]) -> bool {
    let mut rest = segment;
    let mut whole = 0;
    while let [kind, a, b, c, d, body @ ..] = rest {
        let length = u32::from_be_bytes([*a, *b, *c, *d]);
        if Body::of(from, *kind).is_none() || !(4..=MESSAGE_MAX).contains(&length) {
            return false;
        }
        match body.get(length as usize - 4..) {
            Some(after) => rest = after,
            None => return whole > 0,
        }
        whole += 1;
    }
    whole > 0
}
