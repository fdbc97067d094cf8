//! Masking of captured traffic: what people sent is overwritten; framing, lengths, message types
//! and the shapes of statements stay, so that every decoder reads the same structure afterwards.
//!
//! ```text
//! before   Q····select * from users where mail = 'ann@example.org' and age > 42·
//! after    Q····select * from users where mail = 'xxxxxxxxxxxxxxx' and age > 11·
//!
//! before   *3··$3··SET··$6··user:7··$5··Ann B··      GET /find?name=ann HTTP/1.1··Cookie: id=7··
//! after    *3··$3··SET··$6··xxxxxx··$5··xxxxx··      GET /find?name=xxx HTTP/1.1··Cookie: xxxx··
//! ```
//!
//! Each direction of a connection is a state machine that is fed bytes in order. Whatever it does
//! not understand is masked whole, and so is everything behind a gap until a segment begins that
//! is beyond doubt the beginning of a message.

mod flows;
mod http;
mod postgres;
mod postgres_body;
mod redis;
mod sql;
#[cfg(test)]
mod tests;

pub use flows::{Flows, Protocol};

/// What stands where something was: printable, and no token of any protocol.
const MASK: u8 = b'x';
/// What stands where a digit was, so that a number stays one and `SELECT 1` stays itself.
const DIGIT: u8 = b'1';

/// One connection's two state machines.
trait Conversation {
    /// Masks the next bytes of one direction in place.
    fn mask(&mut self, from: From, bytes: &mut [u8]);
    /// Bytes of one direction are missing before the next ones.
    fn gap(&mut self, from: From);
}

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum From {
    Client,
    Server,
}

/// A number or a letter of a number, made harmless.
fn digit(byte: u8) -> u8 {
    if byte.is_ascii_digit() { DIGIT } else { byte }
}
