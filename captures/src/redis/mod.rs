//! The Redis protocol, RESP2 and RESP3, both directions of one connection.
//!
//! Specification: <https://redis.io/docs/latest/develop/reference/protocol-spec/>.
//!
//! ```text
//! *2\r\n$3\r\nGET\r\n$4\r\npage\r\n        a command: an array of bulk strings
//! $5\r\nhello\r\n                          its reply
//! PING\r\n                                 an inline command
//! >3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nx\r\n    a push: nobody asked for it now
//! |1\r\n+ttl\r\n:3600\r\n                  an attribute: belongs to the reply that follows
//! ```
//!
//! [`Decoder`] delivers one [`Message`] for each command, reply and push. Values are passed over,
//! whatever their length.

mod commands;
mod model;
mod parse;
mod replies;
#[cfg(test)]
mod tests;

pub use model::{Command, Fault, Message, Reply, Said};
pub use parse::{Decoder, is_client, is_server};
