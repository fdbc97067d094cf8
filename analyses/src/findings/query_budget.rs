//! A page that runs more statements than its experiment allows.

use super::evidence::SAME;
use super::{Evidence, Finding, count, quoted};
use crate::compare::ArmName;
use crate::metric::Metric;

pub(super) fn find(evidence: &Evidence<'_>, route: &str) -> Vec<Finding> {
    let Some(budget) = evidence.route(route).and_then(|route| route.query_budget) else {
        return Vec::new();
    };
    let over: Vec<(ArmName, f64)> = evidence
        .arms()
        .filter_map(|arm| Some((arm.clone(), statements(evidence, &arm, route)?)))
        .filter(|(_, used)| *used > f64::from(budget) + SAME)
        .collect();
    let Some((first, _)) = over.first() else { return Vec::new() };
    // With a budget of nothing and a cache in use, the better name is the cached page's.
    if budget == 0 && super::cached_page::uses_redis(evidence, first, route) {
        return Vec::new();
    }
    let told: Vec<String> = over
        .iter()
        .map(|(arm, used)| format!("{}: {}", evidence.title(arm), count(*used)))
        .collect();
    let mut texts: Vec<_> = evidence.statements(first, route);
    texts.retain(|used| used.reason == "user");
    texts.sort_by(|a, b| b.per_request.total_cmp(&a.per_request));
    let most = texts.first().map_or_else(String::new, |used| {
        format!(", the most frequent {} times: {}", count(used.per_request), quoted(&used.sql))
    });
    vec![Finding {
        rule: "query-budget",
        route: route.to_owned(),
        arms: over.iter().map(|(arm, _)| arm.clone()).collect(),
        what: format!(
            "a request runs more statements than the {budget} that it may ({})",
            told.join("; ")
        ),
        why: format!("the page sends them{most}"),
        shown: "statements that completed, in the packets".to_owned(),
        not_shown: None,
        hypothesis: false,
    }]
}

/// Statements of the page itself per request: without transaction control, pings and checks
/// where the texts are known, all that completed otherwise.
fn statements(evidence: &Evidence<'_>, arm: &ArmName, route: &str) -> Option<f64> {
    let texts = evidence.statements(arm, route);
    if texts.is_empty() {
        return evidence.counted(arm, route, Metric::PostgresExecutions);
    }
    let own = texts.iter().filter(|used| used.reason == "user" && !used.looks_like_a_check);
    Some(own.map(|used| used.per_request).sum())
}
