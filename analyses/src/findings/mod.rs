//! Conclusions with their evidence: one rule a file.

use crate::compare::ArmName;

/// A conclusion.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// Name of the rule, for machines: `pool-ping`.
    pub rule: &'static str,
    /// Name of the route.
    pub route: String,
    /// The arms that it holds for.
    pub arms: Vec<ArmName>,
    /// The figure, one sentence.
    pub what: String,
    /// The cause, one sentence; worded as a guess when `hypothesis` is set.
    pub why: String,
    /// How it was shown: captures, and the variant that flips only this cause, if there is one.
    pub shown: String,
    /// What was not shown, if something was left open.
    pub not_shown: Option<String>,
    /// No ablation flips only this cause: `why` is a guess.
    pub hypothesis: bool,
}
