//! Cuts one direction into messages without copying those that lie whole in a chunk.

/// Bytes of a body that are kept when it comes in several chunks; the rest is passed over.
const KEPT: usize = 64 * 1024;
/// Room that stays reserved between messages.
const SPARE: usize = 4 * 1024;

/// A message, or as much of it as is kept.
pub(super) struct Frame<'a> {
    /// The type; 0 for the untyped messages of the start.
    pub(super) kind: u8,
    /// Without type and length.
    pub(super) body: &'a [u8],
    /// On the wire.
    pub(super) length: u64,
}

/// The unfinished message of one direction.
#[derive(Debug, Default)]
pub(super) struct Framing {
    /// Its head and the kept start of its body.
    kept: Vec<u8>,
    /// Bytes of the body that are still to come.
    remaining: u64,
    /// Bytes of the message so far, 0 between messages.
    seen: u64,
}

/// What the next bytes are.
pub(super) enum Next<'f, 'b> {
    /// A whole message, and the bytes after it.
    Whole(Frame<'f>, &'b [u8]),
    /// All bytes belong to an unfinished message.
    Unfinished,
    /// The head cannot be one.
    Bad,
}

impl Framing {
    pub(super) fn is_between(&self) -> bool {
        self.seen == 0 && self.kept.is_empty()
    }

    pub(super) fn reset(&mut self) {
        self.kept.clear();
        self.remaining = 0;
        self.seen = 0;
    }

    /// Passes over `length` bytes that were not captured; false when the place is lost, because
    /// they reach beyond the message.
    pub(super) fn pass_gap(&mut self, length: u64) -> bool {
        if self.remaining > length {
            self.remaining -= length;
            self.seen += length;
            true
        } else {
            self.reset();
            false
        }
    }

    /// Takes the next message from `bytes`. `fits` says whether a type and length can be one,
    /// `hollow` whether the body of a type says nothing that is delivered. `untyped` is for the
    /// start of a session, where messages have no type.
    #[inline]
    pub(super) fn next<'f, 'b: 'f>(
        &'f mut self,
        bytes: &'b [u8],
        untyped: bool,
        fits: impl Fn(u8, u32) -> bool,
        hollow: impl Fn(u8) -> bool,
    ) -> Next<'f, 'b> {
        let head = if untyped { 4 } else { 5 };
        if self.seen == 0 && self.kept.is_empty() {
            return self.fresh(bytes, head, fits, hollow);
        }
        let mut rest = bytes;
        if self.seen == 0 {
            // The head itself was cut.
            let lacking = head.saturating_sub(self.kept.len()).min(rest.len());
            self.kept.extend_from_slice(&rest[..lacking]);
            rest = &rest[lacking..];
            if self.kept.len() < head {
                return Next::Unfinished;
            }
            let (kind, length) = read_head(&self.kept, head);
            if !fits(kind, length) {
                return Next::Bad;
            }
            self.seen = head as u64;
            self.remaining = u64::from(length.max(4)) - 4;
        }
        let take = self.remaining.min(rest.len() as u64) as usize;
        self.keep(&rest[..take], head, hollow);
        self.remaining -= take as u64;
        self.seen += take as u64;
        if self.remaining > 0 {
            return Next::Unfinished;
        }
        let length = std::mem::take(&mut self.seen);
        let (kind, _) = read_head(&self.kept, head);
        Next::Whole(Frame { kind, body: &self.kept[head..], length }, &rest[take..])
    }

    /// Forgets the message that was just taken; to be called before the next one.
    pub(super) fn done(&mut self) {
        if self.seen == 0 {
            self.kept.clear();
            // One long text in each of thousands of connections would be much.
            if self.kept.capacity() > SPARE {
                self.kept = Vec::new();
            }
        }
    }

    #[inline]
    fn fresh<'f, 'b: 'f>(
        &'f mut self,
        bytes: &'b [u8],
        head: usize,
        fits: impl Fn(u8, u32) -> bool,
        hollow: impl Fn(u8) -> bool,
    ) -> Next<'f, 'b> {
        if bytes.len() < head {
            self.kept.extend_from_slice(bytes);
            return Next::Unfinished;
        }
        let (kind, length) = read_head(bytes, head);
        if !fits(kind, length) {
            return Next::Bad;
        }
        let whole = head + length.max(4) as usize - 4;
        if let Some(body) = bytes.get(head..whole) {
            return Next::Whole(Frame { kind, body, length: whole as u64 }, &bytes[whole..]);
        }
        self.kept.extend_from_slice(&bytes[..head]);
        self.seen = bytes.len() as u64;
        self.remaining = (whole - bytes.len()) as u64;
        self.keep(&bytes[head..], head, hollow);
        Next::Unfinished
    }

    fn keep(&mut self, bytes: &[u8], head: usize, hollow: impl Fn(u8) -> bool) {
        let kind = if head == 4 { 0 } else { self.kept[0] };
        if hollow(kind) {
            return;
        }
        let room = (KEPT + head).saturating_sub(self.kept.len()).min(bytes.len());
        self.kept.extend_from_slice(&bytes[..room]);
    }
}

/// Type and length of a head that is there.
fn read_head(bytes: &[u8], head: usize) -> (u8, u32) {
    let kind = if head == 4 { 0 } else { bytes.first().copied().unwrap_or(0) };
    let at = head - 4;
    let length = bytes
        .get(at..)
        .and_then(<[u8]>::first_chunk::<4>)
        .map_or(0, |four| u32::from_be_bytes(*four));
    (kind, length)
}
