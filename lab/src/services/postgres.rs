//! Postgres: a private throwaway cluster, or a real one given by URL.

use super::RunningService;

/// A running Postgres with the experiment's rows in it.
#[derive(Debug)]
pub struct Postgres {
    /// What probes and records need.
    pub service: RunningService,
    /// For subjects: with user and password.
    pub url: String,
}
