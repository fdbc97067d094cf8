//! Parts of a report in the formats of other programs.
//!
//! Stacks as folded lines, speedscope and pprof, a single request as a Chrome trace, and totals as
//! Bencher and github-action-benchmark read them. Figures are per request, as in the report.

mod benchmarks;
mod chrome_trace;
mod folded;
mod pprof;
mod speedscope;
mod stacks;
#[cfg(test)]
mod tests;

pub use benchmarks::{bencher, github_action_benchmark};
pub use chrome_trace::chrome_trace;
pub use folded::folded;
pub use pprof::pprof;
pub use speedscope::speedscope;

use assay_analyses::compare::ArmName;

/// `subject.variant route`, as exports name what they hold.
fn title(arm: &ArmName, route: &str) -> String {
    format!("{}.{} {route}", arm.subject, arm.variant)
}
