//! What an HTTP connection says.

use crate::tcp::Side;
use crate::units::Moment;

/// One step of a request or response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// When it could be read.
    pub moment: Moment,
    /// What it says.
    pub said: Said<'a>,
}

/// What a step says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said<'a> {
    /// The head of a request is there.
    Request {
        /// Its method.
        method: &'a [u8],
        /// Its target, such as `/post/a`.
        target: &'a [u8],
    },
    /// The last byte of a request is there.
    RequestEnd,
    /// The head of a response is there.
    Response {
        /// Its status.
        status: u16,
    },
    /// An interim response: the final one follows.
    Interim {
        /// Its status, 100 to 199 but not 101.
        status: u16,
    },
    /// The last byte of a final response is there.
    ResponseEnd,
    /// Nothing that was sent: what the reader must know.
    Fault(Fault),
}

/// Why messages may be missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// TLS: nothing can be read.
    Encrypted,
    /// HTTP/2: not read.
    Http2,
    /// Upgraded to another protocol, or a tunnel: what follows is not HTTP.
    Upgraded,
    /// Bytes within a body were not captured; it is known where the body ends.
    HoleInBody(Side, u64),
    /// Bytes were not captured; messages in them are unknown.
    Gap(Side),
    /// This side does not speak HTTP/1, or it cannot be seen where a message starts.
    OutOfStep(Side),
    /// In step again, after bytes that could not be read.
    Resumed(Side),
}
