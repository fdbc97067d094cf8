//! Hostile input for tests: every cut of a fixture, and flipped bits from a fixed seed.

/// Calls `read` with every prefix of `bytes`; of long ones, with every prefix that ends in the
/// first or last 400 bytes, and a spread between.
pub(crate) fn cuts(bytes: &[u8], mut read: impl FnMut(&[u8])) {
    let edge = if bytes.len() <= 4_000 { bytes.len() } else { 400 };
    let step = (bytes.len() / 200).max(1);
    let ends =
        (0..edge).chain((edge..bytes.len()).step_by(step)).chain(bytes.len() - edge..=bytes.len());
    for end in ends {
        read(&bytes[..end]);
    }
}

/// Calls `read` with copies of `bytes` that have one to eight bits flipped.
pub(crate) fn flips(bytes: &[u8], rounds: u32, mut read: impl FnMut(&[u8])) {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = |below: usize| {
        // xorshift64*: any sequence will do, as long as it is the same one each time.
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        (state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % below.max(1)
    };
    for _ in 0..rounds {
        let mut broken = bytes.to_vec();
        for _ in 0..=next(8) {
            let at = next(broken.len());
            if let Some(byte) = broken.get_mut(at) {
                *byte ^= 1 << next(8);
            }
        }
        read(&broken);
    }
}

/// Calls `feed` with `bytes` in chunks of `size`.
pub(crate) fn chunks(bytes: &[u8], size: usize, feed: impl FnMut(&[u8])) {
    bytes.chunks(size.max(1)).for_each(feed);
}
