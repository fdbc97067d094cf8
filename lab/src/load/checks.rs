//! Compares an answer's body with the expected one while it streams in.

/// Compares chunk by chunk: cheaper than a hash, and it cannot collide.
#[derive(Debug)]
pub(super) struct BodyCheck<'a> {
    /// What is still to come; `None` when any body will do.
    rest: Option<&'a [u8]>,
    same: bool,
    length: u64,
}

impl<'a> BodyCheck<'a> {
    /// Expects exactly `expected`, or anything where it is `None`.
    pub(super) fn new(expected: Option<&'a [u8]>) -> Self {
        Self { rest: expected, same: true, length: 0 }
    }

    /// Takes the next chunk.
    pub(super) fn feed(&mut self, chunk: &[u8]) {
        self.length += chunk.len() as u64;
        if let Some(rest) = self.rest {
            match rest.split_at_checked(chunk.len()) {
                Some((head, tail)) if head == chunk => self.rest = Some(tail),
                _ => self.same = false,
            }
        }
    }

    /// Bytes seen.
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// Whether the body, now whole, was the expected one.
    pub(super) fn is_expected(&self) -> bool {
        self.same && self.rest.is_none_or(<[u8]>::is_empty)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(expected: Option<&[u8]>, chunks: &[&[u8]]) -> bool {
        let mut check = BodyCheck::new(expected);
        chunks.iter().for_each(|chunk| check.feed(chunk));
        check.is_expected()
    }

    #[test]
    fn the_same_bytes_in_any_chunks_are_expected() {
        assert!(check(Some(b"hello"), &[b"hello"]));
        assert!(check(Some(b"hello"), &[b"he", b"", b"llo"]));
        assert!(check(Some(b""), &[]));
        assert!(check(None, &[b"anything"]));
    }

    #[test]
    fn shorter_longer_and_other_bodies_are_not_expected() {
        assert!(!check(Some(b"hello"), &[b"hell"]));
        assert!(!check(Some(b"hello"), &[b"hello", b"!"]));
        assert!(!check(Some(b"hello"), &[b"jello"]));
        assert!(!check(Some(b"hello"), &[b"x", b"hello"]));
    }
}
