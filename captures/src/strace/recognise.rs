//! What a line of a trace looks like, to tell traces from other text.

use super::grammar::{self, Body};
use super::summary::Table;

/// Whether strace prints such lines. Of a `torn` one the end is out of sight.
#[must_use]
pub fn is_line(line: &[u8], torn: bool) -> bool {
    let (_, rest) = grammar::prefix(line);
    match grammar::body(rest) {
        Some(Body::Call { name, rest }) => {
            let has = |needle: &[u8]| memchr::memmem::find(rest, needle).is_some();
            // Names of system calls have no capitals; functions of other logs have.
            let named = !name.bytes().any(|byte| byte.is_ascii_uppercase());
            named && (torn || has(b" = ") || has(b"<unfinished") || has(b"<detached"))
        }
        Some(_) => true,
        None => false,
    }
}

/// Whether it is the header of a table of `-c`, with whatever columns were asked for.
#[must_use]
pub fn is_table(line: &[u8]) -> bool {
    Table::of_header(line).is_some()
}
