//! The same statement several times in one request: N + 1 queries.

use super::{Evidence, Finding, StatementUse, count, quoted};

/// Executions per request from which on a statement counts as repeated. Not 2: a page that runs
/// it in most requests only, or a lap's edge, lowers the mean.
const REPEATED: f64 = 1.9;

pub(super) fn find(evidence: &Evidence<'_>, route: &str) -> Vec<Finding> {
    let mut findings: Vec<(&str, Finding)> = Vec::new();
    for arm in evidence.arms() {
        for used in evidence.statements(&arm, route).into_iter().filter(|used| repeated(used)) {
            // The arms of one subject run the same pages: one finding, several arms.
            if let Some((_, known)) = findings.iter_mut().find(|(sql, _)| *sql == used.sql) {
                known.arms.push(arm.clone());
                continue;
            }
            let finding = Finding {
                rule: "repeated-statement",
                route: route.to_owned(),
                arms: vec![arm.clone()],
                what: format!(
                    "one statement runs {} times in a request: {}",
                    count(used.per_request),
                    quoted(&used.sql)
                ),
                why: "perhaps a query inside a loop, one for each row of another".to_owned(),
                shown: format!("its executions in the packets of pass {}", used.pass),
                not_shown: Some("where in the code it is sent from".to_owned()),
                hypothesis: true,
            };
            findings.push((&used.sql, finding));
        }
    }
    findings.into_iter().map(|(_, finding)| finding).collect()
}

fn repeated(used: &StatementUse) -> bool {
    used.told_apart
        && used.reason == "user"
        && !used.looks_like_a_check
        && used.per_request >= REPEATED
}
