//! The laboratory: experiments, services, subjects, load driver, and the supervision of probes.
//!
//! It starts probe programs and never links them; what they recorded is read back from the run
//! directory only.

pub mod analysis;
pub mod budget;
pub mod calibration;
pub mod child;
pub mod cli;
pub mod commands;
pub mod exit;
pub mod experiment;
pub mod guardian;
pub mod inspect;
pub mod keys;
pub mod load;
pub mod machine;
pub mod observe;
pub mod passes;
pub mod pinning;
pub mod probe;
pub mod probes_build;
pub mod processes;
pub mod run;
pub mod run_directory;
pub mod scratch;
pub mod services;
pub mod subject;
pub mod teardown;
pub mod tools;
pub mod ui;
pub mod unmasked;
