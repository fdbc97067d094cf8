//! The little of BPF that counting needs: instructions put together by hand, maps and programs
//! loaded through bpf(2). No compiler, no library, nothing to detach: closing the descriptors
//! removes everything.
//!
//! Numbers are the kernel's ABI (`include/uapi/linux/bpf.h`), which never changes.

pub mod btf;
pub mod instructions;
pub mod kernel;
pub mod programs;
mod reading;
pub mod ring_buffer;
pub mod socket_layout;
pub mod socket_programs;
