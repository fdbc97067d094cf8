//! From records to costs per request: one file for each question.

pub mod allocations;
pub mod collector;
pub mod cpu;
pub mod foreign;
mod programs;
pub mod strace;
pub mod syscalls;
pub mod usage;
pub mod whole_file;
pub mod whole_trace;
pub mod wire;
