//! BEGIN and COMMIT around a single read, which is a transaction by itself.

use super::{Evidence, Finding, StatementUse, count};

/// Statements per transaction up to which it counts as holding a single one.
const SINGLE: f64 = 1.05;

pub(super) fn find(evidence: &Evidence<'_>, route: &str) -> Vec<Finding> {
    let mut arms = Vec::new();
    let mut most: f64 = 0.0;
    for arm in evidence.arms() {
        let statements = evidence.statements(&arm, route);
        let begun = per_request(&statements, |used| used.reason == "transaction" && begins(used));
        let control = evidence.flights(&arm, route, "transaction").unwrap_or(0.0);
        let own = |used: &StatementUse| used.reason == "user" && !used.looks_like_a_check;
        let all = per_request(&statements, own);
        let reads = per_request(&statements, |used| own(used) && is_read(used));
        let only_reads = all > 0.0 && (all - reads).abs() < 1e-9;
        if begun >= 0.5 && only_reads && all <= SINGLE * begun {
            most = most.max(control);
            arms.push(arm);
        }
    }
    if arms.is_empty() {
        return Vec::new();
    }
    vec![Finding {
        rule: "transaction-control",
        route: route.to_owned(),
        arms,
        what: format!(
            "{} round trips a request only begin and end transactions that hold one read each",
            count(most)
        ),
        why: "perhaps a transaction is opened for every request; a single statement is one by \
              itself"
            .to_owned(),
        shown: "BEGIN and COMMIT around one SELECT in the packets".to_owned(),
        not_shown: Some("whether the isolation level or a read-only mode is wanted".to_owned()),
        hypothesis: true,
    }]
}

fn per_request(statements: &[&StatementUse], wanted: impl Fn(&StatementUse) -> bool) -> f64 {
    statements.iter().filter(|used| wanted(used)).map(|used| used.per_request).sum()
}

fn first_word(used: &StatementUse) -> String {
    used.sql.split_whitespace().next().unwrap_or_default().to_ascii_lowercase()
}

fn begins(used: &StatementUse) -> bool {
    matches!(first_word(used).trim_end_matches(';'), "begin" | "start")
}

/// `WITH` may hold a write, so it does not count.
fn is_read(used: &StatementUse) -> bool {
    let upper = used.sql.to_ascii_uppercase();
    matches!(first_word(used).as_str(), "select" | "values" | "table")
        && !upper.contains(" FOR UPDATE")
        && !upper.contains(" FOR SHARE")
        && !upper.contains(" FOR NO KEY UPDATE")
        && !upper.contains(" FOR KEY SHARE")
}
