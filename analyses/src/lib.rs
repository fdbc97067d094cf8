//! Records → costs per request → comparisons → verdicts → findings.
//!
//! Pure: no file, clock, process, or formatting. Analyses are folds with bounded state, fed by
//! the decoders of `assay-captures`.

pub mod cost;
pub mod costs;
pub mod metric;
pub mod window;

pub mod bootstrap;
pub mod interval;
pub mod verdict;

pub mod bounds;
pub mod brackets;
pub mod laps;

pub mod aa;
pub mod ablation;
pub mod budget;
pub mod calibration;
pub mod claims;
pub mod compare;
pub mod comparisons;
pub mod findings;
pub mod flame;
pub mod holm;
pub mod observer;
pub mod phases;
pub mod ping_price;
pub mod regression;
pub mod spread;

pub mod attribute;
pub mod sql;
pub mod timeline;
pub mod trips;
