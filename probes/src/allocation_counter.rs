//! The memory that the preloaded counter shares with us.

use std::fs::OpenOptions;
use std::io;
use std::num::NonZeroUsize;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use nix::sys::mman::{MapFlags, ProtFlags, mmap, munmap};

/// Shards of the file and 64-bit words of a shard, as the counter library lays them out.
const SHARDS: usize = 64;
const SHARD_WORDS: usize = 8;

/// The counter file, mapped.
#[derive(Debug)]
pub struct CounterFile {
    memory: NonNull<AtomicU64>,
}

/// The sum over all shards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Blocks handed out.
    pub blocks: u64,
    /// Bytes asked for.
    pub bytes: u64,
    /// Blocks given back.
    pub frees: u64,
}

impl CounterFile {
    const WORDS: usize = SHARDS * SHARD_WORDS;
    const LENGTH: usize = Self::WORDS * size_of::<u64>();

    /// Maps the file, making it where the subject has not done so yet.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(path)?;
        file.set_len(Self::LENGTH as u64)?;
        let length = NonZeroUsize::MIN.saturating_add(Self::LENGTH - 1);
        // SAFETY: a fresh shared mapping of a file of exactly this length; nothing else holds it.
        let memory =
            unsafe { mmap(None, length, ProtFlags::PROT_READ, MapFlags::MAP_SHARED, &file, 0)? };
        Ok(Self { memory: memory.cast() })
    }

    /// What has been counted so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for shard in 0..SHARDS {
            counts.blocks += self.word(shard, 0);
            counts.bytes += self.word(shard, 1);
            counts.frees += self.word(shard, 2);
        }
        counts
    }

    fn word(&self, shard: usize, word: usize) -> u64 {
        // SAFETY: both indices lie inside the mapping, which is page-aligned and lives as long as
        // `self`; other processes write it with atomic additions only.
        unsafe { self.memory.add(shard * SHARD_WORDS + word).as_ref() }.load(Ordering::Relaxed)
    }
}

impl Drop for CounterFile {
    fn drop(&mut self) {
        // SAFETY: it was mapped with this length and nobody else knows its address.
        let _unmapped = unsafe { munmap(self.memory.cast(), Self::LENGTH) };
    }
}
