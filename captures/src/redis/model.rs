//! What a Redis connection says.

use crate::tcp::Side;
use crate::units::Moment;

/// One message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// When its last byte could be read.
    pub moment: Moment,
    /// Bytes on the wire.
    pub length: u64,
    /// What it says.
    pub said: Said<'a>,
}

/// What a message says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said<'a> {
    /// From the client.
    Command(Command<'a>),
    /// From the server, in answer to a command.
    Reply(Reply<'a>),
    /// From the server, unasked (RESP3).
    Push(Reply<'a>),
    /// Nothing that was sent: what the reader must know.
    Fault(Fault),
}

/// A command. Its words are as sent: servers take either case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command<'a> {
    /// The first word, cut at 64 bytes.
    pub name: &'a [u8],
    /// The second word, cut at 64 bytes; empty where there is none.
    pub second: &'a [u8],
    /// The third word, cut at 64 bytes; empty where there is none.
    pub third: &'a [u8],
    /// How many words it has.
    pub words: u64,
    /// Whether it was sent as a line of text.
    pub inline: bool,
}

/// A reply or a push.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply<'a> {
    /// The type byte: `+ - : $ * _ , # ! = ( % ~ >`.
    pub kind: u8,
    /// Whether it is null, in any of its three spellings.
    pub null: bool,
    /// The start of a simple value, or of the first element of an aggregate; cut at 64 bytes.
    pub start: &'a [u8],
}

impl Reply<'_> {
    /// Whether it is an error.
    #[must_use]
    pub fn is_error(&self) -> bool {
        matches!(self.kind, b'-' | b'!')
    }
}

/// Why messages may be missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// TLS: nothing can be read.
    Encrypted,
    /// Bytes were not captured; messages in them are unknown.
    Gap(Side),
    /// This side does not speak RESP, or it cannot be seen where a message starts.
    OutOfStep(Side),
    /// In step again, after bytes that could not be read.
    Resumed(Side),
}
