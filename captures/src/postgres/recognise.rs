//! Whether bytes are Postgres: for finding connections by content, and for getting into step
//! after a gap or in the middle of a connection.

/// Longest message that the server accepts or sends.
pub(super) const LONGEST: u32 = 0x3fff_ffff;

/// Whether `bytes` can be the start of what a client sends: one or more whole messages, the last
/// of which may be cut.
#[must_use]
pub fn is_frontend(bytes: &[u8]) -> bool {
    startup(bytes).is_some() || series(bytes, frontend)
}

/// Whether `bytes` can be the start of what a server sends.
#[must_use]
pub fn is_backend(bytes: &[u8]) -> bool {
    series(bytes, backend)
}

/// An untyped message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Untyped {
    Startup,
    Tls,
    Gss,
    Cancel,
}

/// The untyped message that starts here, if its first eight bytes are there.
pub(super) fn startup(bytes: &[u8]) -> Option<(Untyped, u32)> {
    let head = bytes.first_chunk::<8>()?;
    let length = u32::from_be_bytes([head[0], head[1], head[2], head[3]]);
    let code = u32::from_be_bytes([head[4], head[5], head[6], head[7]]);
    let kind = match (code, length) {
        (80_877_103, 8) => Untyped::Tls,
        (80_877_104, 8) => Untyped::Gss,
        // Protocol 3.2 has longer cancel keys.
        (80_877_102, 16..=268) => Untyped::Cancel,
        // The server itself refuses more than 10,000 bytes.
        _ if code >> 16 == 3 && (8..=10_004).contains(&length) => Untyped::Startup,
        _ => return None,
    };
    Some((kind, length))
}

/// Whether a first byte and length can be a client's message.
pub(super) fn frontend(kind: u8, length: u32) -> bool {
    match kind {
        b'S' | b'H' | b'X' | b'c' => length == 4,
        b'Q' | b'f' => (5..=LONGEST).contains(&length),
        b'P' => (8..=LONGEST).contains(&length),
        b'B' => (12..=LONGEST).contains(&length),
        b'C' | b'D' => (6..=65_536).contains(&length),
        b'E' => (9..=65_536).contains(&length),
        b'd' => (4..=LONGEST).contains(&length),
        b'p' => (4..=65_536).contains(&length),
        b'F' => (14..=LONGEST).contains(&length),
        _ => false,
    }
}

/// Whether a first byte and length can be a server's message.
pub(super) fn backend(kind: u8, length: u32) -> bool {
    match kind {
        b'Z' => length == 5,
        b'1' | b'2' | b'3' | b'n' | b's' | b'I' | b'c' => length == 4,
        b'K' => (12..=268).contains(&length),
        b'R' => (8..=65_536).contains(&length),
        b'T' | b't' => (6..=LONGEST).contains(&length),
        b'D' => (6..=LONGEST).contains(&length),
        b'C' | b'S' => (5..=1 << 20).contains(&length),
        b'E' | b'N' => (5..=1 << 24).contains(&length),
        b'A' => (10..=1 << 20).contains(&length),
        b'G' | b'H' | b'W' => (7..=1 << 20).contains(&length),
        b'd' => (4..=LONGEST).contains(&length),
        b'V' => (8..=LONGEST).contains(&length),
        b'v' => (12..=65_536).contains(&length),
        _ => false,
    }
}

/// Whether `bytes` are messages one after another, at least one of them with its whole head.
pub(super) fn series(bytes: &[u8], fits: fn(u8, u32) -> bool) -> bool {
    let mut rest = bytes;
    while let Some(&[kind, a, b, c, d]) = rest.first_chunk::<5>() {
        let length = u32::from_be_bytes([a, b, c, d]);
        if !fits(kind, length) {
            return false;
        }
        match rest.get(1 + length as usize..) {
            Some(after) => rest = after,
            None => return true,
        }
    }
    match rest.first() {
        Some(_) if rest.len() == bytes.len() => false,
        Some(&kind) => fits_any(kind, fits),
        None => !bytes.is_empty(),
    }
}

/// Whether a lone type byte can start a message of some length.
fn fits_any(kind: u8, fits: fn(u8, u32) -> bool) -> bool {
    [4, 5, 8, 12, 14].into_iter().any(|length| fits(kind, length))
}
