//! What the subject truly used, in memory that is a file: keeping it costs no system call.
//!
//! ```text
//! bytes 0..8     moment of slot 0, nanoseconds of CLOCK_REALTIME
//! bytes 64..     one slot a millisecond, eight native 64-bit numbers each:
//!                requests, CPU of their threads (ns), CPU in each burning function (4, ns), 0, 0
//! ```
//!
//! A request counts in the slot in which it ended. Several processes share one file.

use std::fs::OpenOptions;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::burn::FUNCTIONS;

const NUMBERS: usize = 8;
/// Half an hour; the file has holes where nothing was written.
const SLOTS: usize = 1_800_000;
const LENGTH: usize = (1 + SLOTS) * NUMBERS * size_of::<u64>();
const SLOT_NANOSECONDS: u64 = 1_000_000;

/// The open ledger.
pub struct Ledger {
    numbers: &'static [AtomicU64],
}

impl Ledger {
    /// Opens the ledger at `path`, or begins it.
    pub fn open(path: &str) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let file = file.open(path)?;
        file.set_len(LENGTH as u64)?;
        // SAFETY: a fresh shared mapping of a file that is as long as the mapping.
        let memory = unsafe {
            let access = libc::PROT_READ | libc::PROT_WRITE;
            libc::mmap(ptr::null_mut(), LENGTH, access, libc::MAP_SHARED, file.as_raw_fd(), 0)
        };
        if memory == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let count = LENGTH / size_of::<u64>();
        // SAFETY: the mapping is never unmapped, aligned to pages, and only used by atomics.
        let numbers = unsafe { std::slice::from_raw_parts(memory.cast::<AtomicU64>(), count) };
        // Who comes first says when slot 0 is.
        let _another = numbers[0].compare_exchange(0, now(), Relaxed, Relaxed);
        Ok(Self { numbers })
    }

    /// Notes a request that has just ended.
    pub fn note(&self, cpu: u64, burnt: &[u64; FUNCTIONS.len()]) {
        let since = now().saturating_sub(self.numbers[0].load(Relaxed));
        let slot = usize::try_from(since / SLOT_NANOSECONDS).unwrap_or(SLOTS).min(SLOTS - 1);
        let slot = &self.numbers[(1 + slot) * NUMBERS..][..NUMBERS];
        slot[0].fetch_add(1, Relaxed);
        slot[1].fetch_add(cpu, Relaxed);
        for (number, &burnt) in slot[2..].iter().zip(burnt) {
            number.fetch_add(burnt, Relaxed);
        }
    }
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
