//! Counts heap allocations of any dynamically linked program of the C library: load it with
//! `LD_PRELOAD` and name the counter file in `ASSAY_ALLOCATION_COUNTER`. Without that variable
//! it only forwards.
//!
//! The file is shared memory: a page of counters in 64 shards, a cache line each, so that threads
//! do not fight for one. Every process that inherits the environment adds to the same file. A
//! shard holds three native 64-bit numbers: blocks, bytes, frees. `realloc` counts as one block of
//! its whole new size and one free; bytes are those asked for, without the allocator's rounding.
//!
//! Nothing in the hooks allocates, locks or calls back into the loader: the C library's own
//! entry points (`__libc_malloc` and its kin) are bound at link time.

#![allow(missing_docs, reason = "the exported names are the C library's, documented there")]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering::Relaxed};

/// How many shards there are; a power of two.
pub const SHARDS: usize = 64;

/// One thread's counters, alone in its cache line.
#[repr(C, align(64))]
pub struct Shard {
    blocks: AtomicU64,
    bytes: AtomicU64,
    frees: AtomicU64,
}

/// Length of the counter file in bytes.
pub const FILE_LENGTH: usize = SHARDS * size_of::<Shard>();

const VARIABLE: &CStr = c"ASSAY_ALLOCATION_COUNTER";

static SHARED: AtomicPtr<Shard> = AtomicPtr::new(ptr::null_mut());

unsafe extern "C" {
    fn __libc_malloc(size: usize) -> *mut c_void;
    fn __libc_calloc(count: usize, size: usize) -> *mut c_void;
    fn __libc_realloc(block: *mut c_void, size: usize) -> *mut c_void;
    fn __libc_memalign(alignment: usize, size: usize) -> *mut c_void;
    fn __libc_free(block: *mut c_void);
}

/// Runs when the loader has loaded this library, before the program's own code.
#[used]
#[unsafe(link_section = ".init_array")]
static ATTACH: extern "C" fn() = attach;

extern "C" fn attach() {
    // SAFETY: plain system calls on a path that the environment holds; the mapping lives as long
    // as the process, and every failure leaves `SHARED` null, which means "forward only".
    unsafe {
        let path: *const c_char = libc::getenv(VARIABLE.as_ptr());
        if path.is_null() {
            return;
        }
        let file = libc::open(path, libc::O_RDWR | libc::O_CREAT | libc::O_CLOEXEC, 0o600);
        if file < 0 {
            return;
        }
        if libc::ftruncate(file, FILE_LENGTH as libc::off_t) == 0 {
            let access = libc::PROT_READ | libc::PROT_WRITE;
            let memory =
                libc::mmap(ptr::null_mut(), FILE_LENGTH, access, libc::MAP_SHARED, file, 0);
            if memory != libc::MAP_FAILED {
                SHARED.store(memory.cast(), Relaxed);
            }
        }
        libc::close(file);
    }
}

/// The shard of this thread: stacks lie megabytes apart, so a local's address tells threads
/// apart without thread-local storage, which may itself allocate.
#[inline]
fn shard() -> Option<&'static Shard> {
    let shared = SHARED.load(Relaxed);
    if shared.is_null() {
        return None;
    }
    let local = 0u8;
    let address = ptr::from_ref(&local) as usize;
    let index = (address >> 20).wrapping_mul(0x9e37_79b9) >> 7 & (SHARDS - 1);
    // SAFETY: the mapping holds SHARDS shards and is never unmapped.
    Some(unsafe { &*shared.add(index) })
}

#[inline]
fn count_block(block: *mut c_void, size: usize) -> *mut c_void {
    if !block.is_null()
        && let Some(shard) = shard()
    {
        shard.blocks.fetch_add(1, Relaxed);
        shard.bytes.fetch_add(size as u64, Relaxed);
    }
    block
}

#[inline]
fn count_free() {
    if let Some(shard) = shard() {
        shard.frees.fetch_add(1, Relaxed);
    }
}

/// # Safety
/// As `malloc(3)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn malloc(size: usize) -> *mut c_void {
    // SAFETY: the caller's contract is the callee's.
    count_block(unsafe { __libc_malloc(size) }, size)
}

/// # Safety
/// As `calloc(3)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn calloc(count: usize, size: usize) -> *mut c_void {
    // SAFETY: the caller's contract is the callee's.
    count_block(unsafe { __libc_calloc(count, size) }, count.saturating_mul(size))
}

/// # Safety
/// As `realloc(3)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn realloc(block: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: the caller's contract is the callee's.
    let moved = unsafe { __libc_realloc(block, size) };
    // With size 0 the C library frees and returns null; a failed realloc leaves the block alone.
    if !block.is_null() && (!moved.is_null() || size == 0) {
        count_free();
    }
    count_block(moved, size)
}

/// # Safety
/// As `reallocarray(3)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn reallocarray(
    block: *mut c_void,
    count: usize,
    size: usize,
) -> *mut c_void {
    match count.checked_mul(size) {
        // SAFETY: the caller's contract is the callee's.
        Some(size) => unsafe { realloc(block, size) },
        None => ptr::null_mut(),
    }
}

/// # Safety
/// As `memalign(3)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn memalign(alignment: usize, size: usize) -> *mut c_void {
    // SAFETY: the caller's contract is the callee's.
    count_block(unsafe { __libc_memalign(alignment, size) }, size)
}

/// # Safety
/// As `aligned_alloc(3)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aligned_alloc(alignment: usize, size: usize) -> *mut c_void {
    // SAFETY: the caller's contract is the callee's.
    unsafe { memalign(alignment, size) }
}

/// # Safety
/// As `posix_memalign(3)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_memalign(
    place: *mut *mut c_void,
    alignment: usize,
    size: usize,
) -> c_int {
    if !alignment.is_power_of_two() || !alignment.is_multiple_of(size_of::<*mut c_void>()) {
        return libc::EINVAL;
    }
    // SAFETY: the alignment was checked as posix_memalign asks.
    let block = unsafe { memalign(alignment, size) };
    if block.is_null() {
        return libc::ENOMEM;
    }
    // SAFETY: the caller's contract: `place` can be written.
    unsafe { place.write(block) };
    0
}

/// # Safety
/// As `free(3)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free(block: *mut c_void) {
    if !block.is_null() {
        count_free();
    }
    // SAFETY: the caller's contract is the callee's.
    unsafe { __libc_free(block) };
}
