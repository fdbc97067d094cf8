//! `allocations.jsonl`: what the preloaded counter has counted so far, one sample a line.
//!
//! ```text
//! {"moment":1796080364776693000,"at":"mark","blocks":1155857,"bytes":148992310,"frees":1155201}
//! {"moment":1796080365279114000,"at":"mark","blocks":1529607,"bytes":197104411,"frees":1528951}
//! ```
//!
//! Counters only grow, so a window's cost is a difference of two samples.

#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use crate::units::Moment;
use crate::usage::At;

/// File name in the capture's folder.
pub const FILE: &str = "allocations.jsonl";

/// Reads the samples as the file streams by.
pub type Decoder = crate::json_lines::Decoder<Sample>;

/// One reading of the counters, summed over threads and processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sample {
    /// When it was read.
    pub moment: Moment,
    /// What it was read for.
    pub at: At,
    /// Blocks handed out; a `realloc` hands out one.
    pub blocks: u64,
    /// Bytes asked for; a `realloc` asks for its whole new size.
    pub bytes: u64,
    /// Blocks given back; a `realloc` gives back one.
    pub frees: u64,
}
