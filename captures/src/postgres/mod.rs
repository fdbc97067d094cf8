//! The Postgres frontend/backend protocol, version 3, both directions of one connection.
//!
//! Specification: <https://www.postgresql.org/docs/current/protocol.html>.
//!
//! A cached statement as sqlx sends it, and the answer:
//!
//! ```text
//! 42 00000012 00 "sqlx_s_1" 00 …       B  Bind, portal "", statement "sqlx_s_1"
//! 45 00000009 00 00000000              E  Execute, portal "", all rows
//! 43 00000006 50 00                    C  Close, portal ""
//! 53 00000004                          S  Sync
//! 32 00000004  44 …  43 … "SELECT 1"   2  BindComplete, D DataRow, C CommandComplete
//! 33 00000004  5a 00000005 49          3  CloseComplete, Z ReadyForQuery, idle
//! ```
//!
//! [`Decoder`] takes the chunks of both directions in the order in which they were captured and
//! delivers a [`Message`] for each. Bodies that say nothing (rows, copied data) are counted and
//! passed over, whatever their length; passwords are never delivered.

mod body;
mod framing;
mod model;
mod parse;
mod recognise;
#[cfg(test)]
mod tests;

pub use model::{Backend, Body, Fault, Frontend, Message, MessageSink, Rows, Target, Transaction};
pub use parse::Decoder;
pub use recognise::{is_backend, is_frontend};
