//! Redis: a private throwaway server, or a real one given by URL.

use super::RunningService;

/// A running Redis.
#[derive(Debug)]
pub struct Redis {
    /// What probes and records need.
    pub service: RunningService,
    /// For subjects: with password.
    pub url: String,
}
