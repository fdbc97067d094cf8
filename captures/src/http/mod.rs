//! HTTP/1.1, both directions of one connection.
//!
//! Specification: RFC 9112.
//!
//! ```text
//! GET /post/a HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n
//! HTTP/1.1 200 OK\r\ncontent-length: 2938\r\n\r\n<!doctype html>…
//! ```
//!
//! [`Decoder`] delivers the start and the end of each request and response. Interim responses
//! (100, 103) answer nothing; a response to HEAD has no body; holes in a body of known length
//! cost nothing but their bytes. TLS and HTTP/2 are recognised and said.

mod body;
mod model;
mod parse;
#[cfg(test)]
mod tests;

pub use model::{Fault, Message, Said};
pub use parse::{Decoder, is_request, is_response};
