//! Records → costs per request → comparisons → verdicts → findings.
//!
//! Pure: no file, clock, process, or formatting. Analyses are folds with bounded state, fed by
//! the decoders of `assay-captures`.

pub mod cost;
pub mod costs;
pub mod metric;
pub mod window;
