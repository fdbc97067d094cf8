//! `usage.jsonl`: what the processes of each target have used so far, one sample a line.
//!
//! ```text
//! {"moment":1796080364776693000,"took":412000,"at":"ready","groups":[{"role":"subject",
//!  "cpu":698917058,"voluntary":1204,"involuntary":388,"run_queue_wait":20119833,"processes":1,
//!  "threads":2,"exits":0,"resident":7970816,"peak":8044544,"proportional":null}],
//!  "machine":{"softirq":120000000,"steal":0,"load_average":0.41}}
//! ```
//! (one line in the file). Counters only grow, so a window's cost is a difference of two samples.

mod model;
#[cfg(test)]
mod tests;

pub use model::{At, Group, Machine, Sample};

/// Reads the samples as the file streams by.
pub type Decoder = crate::json_lines::Decoder<Sample>;

/// File name in the capture's folder.
pub const FILE: &str = "usage.jsonl";
