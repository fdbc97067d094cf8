//! A statement that is prepared again for each execution instead of once a connection.

use super::{Evidence, Finding, count, quoted};

/// Prepares per execution from which on a statement counts as prepared every time; warm
/// connections have next to none.
const OFTEN: f64 = 0.5;

pub(super) fn find(evidence: &Evidence<'_>, route: &str) -> Vec<Finding> {
    let mut findings: Vec<(&str, Finding)> = Vec::new();
    for arm in evidence.arms() {
        for used in evidence.statements(&arm, route) {
            let prepared = used.prepared_per_request;
            if used.per_request < 0.1 || prepared < OFTEN * used.per_request {
                continue;
            }
            if let Some((_, known)) = findings.iter_mut().find(|(sql, _)| *sql == used.sql) {
                known.arms.push(arm.clone());
                continue;
            }
            let finding = Finding {
                rule: "prepared-every-time",
                route: route.to_owned(),
                arms: vec![arm.clone()],
                what: format!(
                    "a statement is prepared {} times for {} executions a request: {}",
                    count(prepared),
                    count(used.per_request),
                    quoted(&used.sql)
                ),
                why: "perhaps the client keeps no prepared statements, or a pooler between \
                      forbids them"
                    .to_owned(),
                shown: format!("its Parse messages in the packets of pass {}", used.pass),
                not_shown: Some("what planning it costs Postgres".to_owned()),
                hypothesis: true,
            };
            findings.push((&used.sql, finding));
        }
    }
    findings.into_iter().map(|(_, finding)| finding).collect()
}
