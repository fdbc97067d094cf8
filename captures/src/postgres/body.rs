//! What the body of a message says.

use super::model::{Backend, Frontend, Target, Transaction};

/// A client's typed message. `None` for a type that clients do not send.
#[inline]
pub(super) fn frontend(kind: u8, body: &[u8]) -> Option<Frontend<'_>> {
    Some(match kind {
        b'Q' => Frontend::Query { sql: string(body).0 },
        b'P' => {
            let (name, rest) = string(body);
            Frontend::Parse { name, sql: string(rest).0 }
        }
        b'B' => {
            let (portal, rest) = string(body);
            Frontend::Bind { portal, statement: string(rest).0 }
        }
        b'D' => Frontend::Describe(target(body)),
        b'E' => Frontend::Execute { portal: string(body).0 },
        b'C' => Frontend::Close(target(body), string(body.get(1..).unwrap_or(&[])).0),
        b'S' => Frontend::Sync,
        b'H' => Frontend::Flush,
        b'F' => Frontend::FunctionCall,
        b'd' => Frontend::CopyData,
        b'c' => Frontend::CopyDone,
        b'f' => Frontend::CopyFail,
        b'p' => Frontend::Password,
        b'X' => Frontend::Terminate,
        _ => return None,
    })
}

/// A server's message. `None` for a type that servers do not send.
#[inline]
pub(super) fn backend(kind: u8, body: &[u8]) -> Option<Backend<'_>> {
    Some(match kind {
        b'R' => Backend::Authentication(
            body.first_chunk::<4>().map_or(u32::MAX, |four| u32::from_be_bytes(*four)),
        ),
        b'S' => Backend::ParameterStatus,
        b'K' => Backend::BackendKeyData,
        b'Z' => Backend::ReadyForQuery(match body.first() {
            Some(b'T') => Transaction::Open,
            Some(b'E') => Transaction::Failed,
            _ => Transaction::Idle,
        }),
        b'T' => Backend::RowDescription,
        b'D' => Backend::DataRow,
        b'C' => Backend::CommandComplete { tag: string(body).0 },
        b'I' => Backend::EmptyQuery,
        b'E' => error(body),
        b'N' => Backend::Notice,
        b'A' => Backend::Notification,
        b'1' => Backend::ParseComplete,
        b'2' => Backend::BindComplete,
        b'3' => Backend::CloseComplete,
        b'n' => Backend::NoData,
        b't' => Backend::ParameterDescription,
        b's' => Backend::PortalSuspended,
        b'G' => Backend::CopyIn,
        b'H' => Backend::CopyOut,
        b'W' => Backend::CopyBoth,
        b'd' => Backend::CopyData,
        b'c' => Backend::CopyDone,
        b'V' => Backend::FunctionResult,
        b'v' => Backend::NegotiateVersion,
        _ => return None,
    })
}

/// Whether a client's message of this type is known by its type alone.
pub(super) fn frontend_is_hollow(kind: u8) -> bool {
    matches!(kind, b'd' | b'c' | b'f' | b'p' | b'F' | b'S' | b'H' | b'X')
}

/// Whether a server's message of this type is known by its type alone.
pub(super) fn backend_is_hollow(kind: u8) -> bool {
    !matches!(kind, b'R' | b'Z' | b'C' | b'E')
}

/// Whether a startup message asks for replication.
pub(super) fn asks_for_replication(body: &[u8]) -> bool {
    let mut rest = body.get(4..).unwrap_or(&[]);
    while !rest.is_empty() {
        let (name, after) = string(rest);
        let (value, after) = string(after);
        if name.is_empty() {
            return false;
        }
        if name == b"replication" {
            return !matches!(value, b"false" | b"off" | b"no" | b"0");
        }
        rest = after;
    }
    false
}

fn error(body: &[u8]) -> Backend<'_> {
    let (mut code, mut severity): (&[u8], &[u8]) = (&[], &[]);
    let mut rest = body;
    while let Some((&field, after)) = rest.split_first() {
        if field == 0 {
            break;
        }
        let (value, after) = string(after);
        match field {
            b'C' => code = value,
            b'V' => severity = value,
            b'S' if severity.is_empty() => severity = value,
            _ => {}
        }
        rest = after;
    }
    Backend::Error { code, severity }
}

fn target(body: &[u8]) -> Target {
    if body.first() == Some(&b'P') { Target::Portal } else { Target::Statement }
}

/// A string up to its zero byte, and what follows; all there is where the body was cut.
fn string(bytes: &[u8]) -> (&[u8], &[u8]) {
    match memchr::memchr(0, bytes) {
        Some(end) => (&bytes[..end], &bytes[end + 1..]),
        None => (bytes, &[]),
    }
}
