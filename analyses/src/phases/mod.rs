//! Phases: which part of a program a stack belongs to, by rules that are data.
//!
//! Two views that never mix. **Exclusive**: the first frame from the leaf up that a rule knows
//! decides, so phases sum to the whole. **Inclusive**: every phase that stands anywhere in the
//! stack, so phases overlap.

mod home;
mod own;
mod pack;
mod rules;

pub use rules::{RuleError, Rules};

use assay_captures::perf_script::Frame;

/// What the names of phases of the kernel begin with.
pub const KERNEL: &str = "kernel: ";
/// Kernel time that no rule knows.
pub const KERNEL_OTHER: &str = "kernel: other";
/// What the program's own functions do, with what libraries without a rule do for them.
pub const OWN: &str = "own code";
/// Everything else that no rule knows.
pub const OTHER: &str = "other";

/// Names at the root of a thread's stack.
const ROOTS: [&str; 13] = [
    "start_thread",
    "thread_start",
    "clone",
    "clone3",
    "__clone",
    "__clone3",
    "_start",
    "__libc_start_main",
    "__libc_start_call_main",
    // Go's goroutines and threads.
    "runtime.goexit",
    "runtime.goexit.abi0",
    "runtime.mstart",
    "runtime.mstart.abi0",
];

/// Whether the stack reaches from the leaf to the root of its thread.
#[must_use]
pub fn reaches_root(frames: &[Frame<'_>]) -> bool {
    // Symbols may carry a version, as in `__libc_start_main@@GLIBC_2.34`.
    let name = |frame: &Frame<'_>| frame.symbol.split('@').next().unwrap_or_default().to_owned();
    frames.iter().rev().take(3).any(|frame| {
        let name = name(frame);
        ROOTS.contains(&name.as_str()) || name.starts_with("__libc_start_main_")
    })
}

/// Whether any frame is user code.
#[must_use]
pub fn has_user_code(frames: &[Frame<'_>]) -> bool {
    frames.iter().any(|frame| !frame.is_kernel())
}
