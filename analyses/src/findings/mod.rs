//! Conclusions with their evidence: one rule a file.
//!
//! A cause is only stated where a variant flips it alone; elsewhere it is worded as a guess.

pub mod evidence;

mod cached_page;
mod pool_ping;
mod prepared_every_time;
mod query_budget;
mod release_ping;
mod repeated_statement;
mod small_writes;
mod transaction_control;

#[cfg(test)]
mod tests;

use crate::compare::ArmName;

pub use evidence::{Evidence, StatementUse};

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

/// What a rule makes of one route.
type Rule = fn(&Evidence<'_>, &str) -> Vec<Finding>;

/// All rules, those whose cure is worth most first.
const RULES: [Rule; 8] = [
    cached_page::find,
    query_budget::find,
    repeated_statement::find,
    pool_ping::find,
    release_ping::find,
    transaction_control::find,
    prepared_every_time::find,
    small_writes::find,
];

/// All findings, route by route in the experiment's order.
#[must_use]
pub fn all(evidence: &Evidence<'_>) -> Vec<Finding> {
    let routes = evidence.routes.iter();
    routes.flat_map(|route| RULES.iter().flat_map(|rule| rule(evidence, &route.name))).collect()
}

/// A count as a sentence has it: whole where it is nearly whole, else two decimals.
fn count(value: f64) -> String {
    if (value - value.round()).abs() < 0.005 {
        format!("{value:.0}")
    } else {
        format!("{value:.2}")
    }
}

/// An SQL text in quotes, cut where it gets too long for a sentence.
pub(crate) fn quoted(sql: &str) -> String {
    const MOST: usize = 120;
    let mut text: String = sql.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((cut, _)) = text.char_indices().nth(MOST) {
        text.truncate(cut);
        text.push('…');
    }
    format!("“{text}”")
}
