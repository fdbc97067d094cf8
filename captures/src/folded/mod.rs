//! Folded stacks: one stack a line, its frames from the root on, and how much it weighs.
//!
//! ```text
//! axum-sqlx;tokio::runtime::run;TcpStream::try_io;send;__x64_sys_sendto_[k] 12
//! axum-sqlx;tokio::runtime::run;std::io::Write for Vec<u8>::write 3.5
//! ```
//!
//! Names may hold anything but a semicolon and a line feed, so the weight is the last word of
//! the line. A file that compares two profiles has two weights a line, the earlier one first. The
//! format has no specification; this is what its readers and writers agree on.

mod model;
mod parse;
#[cfg(test)]
mod tests;

pub use model::Stack;
pub use parse::Decoder;
