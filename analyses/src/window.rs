//! The windows that costs are counted in.

use assay_captures::lap::Lap;
use assay_captures::units::Span;

/// A stretch of time in which a known number of requests was answered, and nothing else was
/// asked of the subject. Before and after it everything was quiet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// When.
    pub span: Span,
    /// How many requests were sent; each was answered.
    pub requests: u64,
}

impl From<&Lap> for Window {
    fn from(lap: &Lap) -> Self {
        Self { span: lap.span, requests: lap.requests }
    }
}
