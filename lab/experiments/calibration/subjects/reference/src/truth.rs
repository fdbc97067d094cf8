//! What a request costs, by construction: one JSON record a line, in Assay's own metrics.

use std::fmt::{Display, Write};

use crate::calls;
use crate::work::Work;
use crate::{postgres, redis};

/// The records of this work.
pub fn lines(work: &Work) -> String {
    let mut truth = Truth { text: String::new() };
    in_postgres(work, &mut truth);
    in_redis(work, &mut truth);
    in_the_kernel(work, &mut truth);
    if work.blocks > 0 {
        truth.add("allocations.blocks", &[], work.blocks);
        truth.add("allocations.bytes", &[], u64::from(work.blocks) * u64::from(work.block));
    }
    truth.text
}

struct Truth {
    text: String,
}

impl Truth {
    fn add(&mut self, metric: &str, labels: &[(&str, &str)], amount: impl Display) {
        let labels: Vec<String> =
            labels.iter().map(|(name, value)| format!("\"{name}\":\"{value}\"")).collect();
        let labels = labels.join(",");
        let record =
            format!("{{\"metric\":\"{metric}\",\"labels\":{{{labels}}},\"amount\":{amount}}}");
        let _never = writeln!(self.text, "{record}");
    }
}

fn in_postgres(work: &Work, truth: &mut Truth) {
    let (trips, prepares) = (u64::from(work.trips), u64::from(work.prepares));
    let executions = u64::from(work.executions);
    let with_statement = executions.min(trips);
    let (sent, received) = postgres::bytes(work);
    truth.add("postgres.flights", &[], trips + prepares);
    let reasons =
        [("user", with_statement), ("pool ping", trips - with_statement), ("prepare", prepares)];
    for (reason, amount) in reasons {
        truth.add("postgres.flights", &[("reason", reason)], amount);
    }
    truth.add("postgres.ready_for_query", &[], trips + prepares);
    truth.add("postgres.executions", &[], executions);
    truth.add("postgres.rows", &[], executions);
    truth.add("postgres.parses", &[], prepares);
    truth.add("postgres.bytes_sent", &[], sent as u64);
    truth.add("postgres.bytes_received", &[], received as u64);
}

fn in_redis(work: &Work, truth: &mut Truth) {
    let (sent, received) = redis::bytes(work);
    truth.add("redis.commands", &[], work.redis);
    truth.add("redis.flights", &[], work.flights);
    truth.add("redis.bytes_sent", &[], sent as u64);
    truth.add("redis.bytes_received", &[], received as u64);
}

fn in_the_kernel(work: &Work, truth: &mut Truth) {
    let pings = u64::from(work.pings);
    let naps = pings * u64::from(work.naps);
    let sleeps = u64::from(work.sleep > 0);
    let clocks = 1 + if work.burns() { 1 + work.burn.len() as u64 } else { 0 };
    let conversations = u64::from(work.trips + work.prepares + work.flights);
    let mut counts: Vec<(&str, u64)> = calls::made(&work.calls, work.failing)
        .into_iter()
        .map(|(name, times)| (name, times.into()))
        .collect();
    counts.extend([
        ("recvfrom", 1 + conversations),
        ("sendto", 1 + conversations),
        ("clock_gettime", clocks),
        ("read", 2 * pings),
        ("write", 2 * pings),
        ("nanosleep", naps + sleeps),
    ]);
    counts.retain(|&(_, count)| count > 0);
    // The C library asks the kernel for memory when it likes to.
    if work.blocks == 0 {
        truth.add("syscalls", &[], counts.iter().map(|(_, count)| count).sum::<u64>());
    }
    for (name, count) in counts {
        truth.add("syscalls", &[("name", name)], count);
    }
    if work.failing > 0 {
        let labels = [("name", "close"), ("errno", "other")];
        truth.add("syscalls.errors", &labels, work.failing);
    }
    // Whether one waits for another process depends on who runs first; for a nap it does not.
    if conversations == 0 && naps > 0 {
        let labels = [("process", "subject"), ("kind", "voluntary")];
        truth.add("context_switches", &labels, 1 + 2 * pings + naps + sleeps);
    }
    if conversations == 0 && sleeps > 0 && naps == 0 && !work.burns() {
        let seconds = f64::from(work.sleep) / 1e6;
        truth.add("latency", &[("quantile", "0.5")], seconds);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, expected: &[&str]) {
        let lines = lines(&Work::parse(path).unwrap());
        for part in expected {
            assert!(lines.contains(part), "{path} does not say {part}:\n{lines}");
        }
    }

    #[test]
    fn trips_without_a_statement_are_pings() {
        check(
            "/work?trips=3&executions=2&prepares=1",
            &[
                r#""postgres.flights","labels":{},"amount":4"#,
                r#"{"reason":"user"},"amount":2"#,
                r#"{"reason":"pool ping"},"amount":1"#,
                r#"{"reason":"prepare"},"amount":1"#,
                r#"{"name":"sendto"},"amount":5"#,
            ],
        );
    }

    #[test]
    fn a_ping_is_two_switches_and_four_calls_beside_its_naps() {
        check(
            "/work?pings=2&naps=3",
            &[
                r#""kind":"voluntary"},"amount":11"#,
                r#"{"name":"read"},"amount":4"#,
                r#"{"name":"nanosleep"},"amount":6"#,
                // and recvfrom, sendto, clock_gettime
                r#""syscalls","labels":{},"amount":17"#,
            ],
        );
    }

    #[test]
    fn each_dup_is_closed_and_failures_are_calls_too() {
        check(
            "/work?calls=dup:2,getpid:3&failing=1",
            &[
                r#"{"name":"close"},"amount":3"#,
                r#"{"name":"dup"},"amount":2"#,
                r#"{"name":"close","errno":"other"},"amount":1"#,
                r#"{"name":"getpid"},"amount":3"#,
            ],
        );
    }
}
