//! The reader's side of a BPF ring (kernel `Documentation/bpf/ringbuf.rst`).

use std::io;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use nix::sys::mman::{MapFlags, ProtFlags, mmap, munmap};

use super::kernel::Map;

/// Set in a record's length while the kernel writes it.
const BUSY: u32 = 1 << 31;
/// Set in a record's length when the kernel has thrown it away.
const DISCARDED: u32 = 1 << 30;
const HEADER: u64 = 8;

/// A mapped ring. One reader, which is never woken: it looks.
#[derive(Debug)]
pub struct RingBuffer {
    /// One page with the reader's place.
    consumer: NonNull<u8>,
    /// One page with the writers' place, then the ring twice, so that no record is cut.
    producer: NonNull<u8>,
    page: usize,
    size: u64,
}

impl RingBuffer {
    /// Maps a ring of `size` bytes.
    pub fn map(ring: &Map, size: u32) -> io::Result<Self> {
        // SAFETY: no pointers.
        let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096);
        let length = page + 2 * size as usize;
        let readable = ProtFlags::PROT_READ;
        let own = readable | ProtFlags::PROT_WRITE;
        // SAFETY: the descriptor is the map's, which is open for as long as it is borrowed.
        let descriptor = unsafe { BorrowedFd::borrow_raw(ring.descriptor()) };
        let map = |length: usize, rights, offset: usize| {
            let length = length.try_into().map_err(|_| io::ErrorKind::InvalidInput)?;
            let offset = i64::try_from(offset).map_err(|_| io::ErrorKind::InvalidInput)?;
            // SAFETY: a new mapping, at a place that the kernel chooses.
            unsafe { mmap(None, length, rights, MapFlags::MAP_SHARED, descriptor, offset) }
                .map(NonNull::cast)
                .map_err(io::Error::from)
        };
        let consumer: NonNull<u8> = map(page, own, 0)?;
        match map(length, readable, page) {
            Ok(producer) => Ok(Self { consumer, producer, page, size: u64::from(size) }),
            Err(error) => {
                // SAFETY: mapped above, and nobody has it.
                let _ = unsafe { munmap(consumer.cast(), page) };
                Err(error)
            }
        }
    }

    /// Hands over every record that is whole, in order.
    pub fn read(&mut self, mut record: impl FnMut(&[u8])) {
        // SAFETY: both words are in their mappings, aligned, and written whole by one side.
        let (consumed, produced) = unsafe {
            (
                AtomicU64::from_ptr(self.consumer.as_ptr().cast()),
                AtomicU64::from_ptr(self.producer.as_ptr().cast()),
            )
        };
        let mut at = consumed.load(Ordering::Acquire);
        while at < produced.load(Ordering::Acquire) {
            let place = self.page + (at & (self.size - 1)) as usize;
            // SAFETY: inside the ring; the kernel writes a length before it moves its place.
            let length = unsafe {
                AtomicU32::from_ptr(self.producer.as_ptr().add(place).cast())
                    .load(Ordering::Acquire)
            };
            if length & BUSY != 0 {
                break;
            }
            let bytes = u64::from(length & !(BUSY | DISCARDED));
            if length & DISCARDED == 0 && bytes <= self.size {
                // SAFETY: the record is whole and ours until the place is moved; the ring is
                // mapped twice, so it is in one piece.
                record(unsafe {
                    std::slice::from_raw_parts(
                        self.producer.as_ptr().add(place + HEADER as usize),
                        bytes as usize,
                    )
                });
            }
            at += (bytes + HEADER).next_multiple_of(8);
            consumed.store(at, Ordering::Release);
        }
    }
}

impl Drop for RingBuffer {
    fn drop(&mut self) {
        // SAFETY: both were mapped with these lengths, and nobody has borrowed from them.
        unsafe {
            let _ = munmap(self.consumer.cast(), self.page);
            let _ = munmap(self.producer.cast(), self.page + 2 * self.size as usize);
        }
    }
}
