//! Each rule on the smallest evidence that it speaks about, and on what it must keep silent
//! about.

use assay_captures::run_record::{Arm, Route};

use super::*;
use crate::cost::{Amount, Cost, Figure, Origin, Per};
use crate::metric::Metric;

#[derive(Default)]
struct Case {
    arms: Vec<Arm>,
    routes: Vec<Route>,
    costs: Vec<Cost>,
    statements: Vec<StatementUse>,
}

impl Case {
    fn new(variants: &[(&str, &[(&str, &str)])], budget: Option<u32>) -> Self {
        let arms = variants.iter().map(|(variant, environment)| Arm {
            subject: "shop".into(),
            variant: (*variant).into(),
            title: (*variant).into(),
            environment: environment.iter().map(|&(k, v)| (k.into(), v.into())).collect(),
        });
        let route = Route {
            name: "page".into(),
            method: "GET".into(),
            path: "/".into(),
            query_budget: budget,
        };
        Self { arms: arms.collect(), routes: vec![route], ..Self::default() }
    }

    fn cost(mut self, variant: &str, pass: &str, metric: Metric, label: &str, value: f64) -> Self {
        let origin = Origin {
            subject: "shop".into(),
            variant: variant.into(),
            route: "page".into(),
            pass: pass.into(),
            capture: None,
        };
        let amount = Amount::Measured(Figure::exact(value, 500));
        let cost = origin.cost(metric, Per::Request, amount);
        let key = if metric == Metric::Syscalls { "name" } else { "reason" };
        self.costs.push(if label.is_empty() { cost } else { cost.with(key, label) });
        self
    }

    /// User statements, pings that are awaited, pings that are not.
    fn trips(self, variant: &str, user: f64, awaited: f64, unawaited: f64) -> Self {
        use Metric::{PostgresAwaitedFlights, PostgresFlights};
        self.cost(variant, "serial", PostgresFlights, "", user + awaited + unawaited)
            .cost(variant, "serial", PostgresFlights, "user", user)
            .cost(variant, "serial", PostgresFlights, "pool ping", awaited + unawaited)
            .cost(variant, "serial", PostgresAwaitedFlights, "", user + awaited)
    }

    fn statement(mut self, sql: &str, reason: &str, per_request: f64, prepared: f64) -> Self {
        self.statements.push(StatementUse {
            told_apart: true,
            arm: ArmName { subject: "shop".into(), variant: "a".into() },
            route: "page".into(),
            pass: "serial".into(),
            sql: sql.into(),
            reason: reason.into(),
            looks_like_a_check: sql == "SELECT $1",
            per_request,
            prepared_per_request: prepared,
        });
        self
    }

    fn found(&self) -> Vec<Finding> {
        all(&Evidence {
            arms: &self.arms,
            routes: &self.routes,
            costs: &self.costs,
            statements: &self.statements,
        })
    }

    fn rules(&self) -> Vec<&'static str> {
        self.found().iter().map(|finding| finding.rule).collect()
    }
}

const ONE: [(&str, &[(&str, &str)]); 1] = [("a", &[])];

#[test]
fn a_ping_is_shown_by_the_variant_that_flips_it_alone() {
    let case = Case::new(&[("on", &[("PING", "on")]), ("off", &[("PING", "off")])], None)
        .trips("on", 3.0, 3.0, 3.0)
        .trips("off", 3.0, 0.0, 3.0);
    let found = case.found();
    assert_eq!(case.rules(), ["pool-ping", "release-ping"]);
    assert!(!found[0].hypothesis);
    assert_eq!(found[0].arms.len(), 1);
    assert!(found[0].what.ends_with("(on: 3 of 9)"), "{}", found[0].what);
    assert!(found[0].shown.contains("“off” differs from “on” in PING alone and has 3 fewer"));
    assert!(found[1].what.ends_with("no variant is without them"), "{}", found[1].what);
}

#[test]
fn a_ping_without_ablation_is_a_guess() {
    let found = Case::new(&ONE, None).trips("a", 3.0, 3.0, 0.0).found();
    assert!(found[0].hypothesis && found[0].why.starts_with("perhaps"));
}

#[test]
fn fewer_connections_taken_do_not_show_what_pings() {
    let case = Case::new(&[("query", &[("PER", "query")]), ("page", &[("PER", "page")])], None)
        .trips("query", 3.0, 3.0, 3.0)
        .trips("page", 3.0, 1.0, 1.0);
    assert!(case.found()[0].hypothesis);
}

#[test]
fn no_ping_no_finding() {
    assert!(Case::new(&ONE, None).trips("a", 3.0, 0.0, 0.0).found().is_empty());
    assert!(Case::new(&ONE, None).found().is_empty());
}

#[test]
fn the_same_statement_twenty_times_is_found_whoever_sends_it() {
    let case = Case::new(&ONE, None)
        .statement("SELECT name FROM author WHERE id = $1", "user", 20.0, 0.0)
        .statement("SELECT $1", "user", 20.0, 0.0)
        .statement("SELECT 2", "user", 1.0, 0.0);
    let found = case.found();
    assert_eq!(case.rules(), ["repeated-statement"]);
    assert!(found[0].what.contains("20 times in a request: “SELECT name"));
}

#[test]
fn a_transaction_around_one_read_is_found_and_around_a_write_is_not() {
    let around = |sql: &str| {
        Case::new(&ONE, None)
            .cost("a", "serial", Metric::PostgresFlights, "", 3.0)
            .cost("a", "serial", Metric::PostgresFlights, "transaction", 2.0)
            .statement("BEGIN", "transaction", 1.0, 0.0)
            .statement(sql, "user", 1.0, 0.0)
            .statement("COMMIT", "transaction", 1.0, 0.0)
    };
    assert_eq!(around("SELECT x FROM y").rules(), ["transaction-control"]);
    assert!(around("SELECT x FROM y").found()[0].what.starts_with("2 round trips"));
    assert!(around("UPDATE y SET x = $1").rules().is_empty());
    assert!(around("SELECT x FROM y FOR UPDATE").rules().is_empty());
    assert!(around("SELECT a").statement("SELECT b", "user", 1.0, 0.0).rules().is_empty());
}

#[test]
fn a_statement_prepared_for_each_execution_is_found() {
    let case = |prepared| Case::new(&ONE, None).statement("SELECT 1", "user", 1.0, prepared);
    assert_eq!(case(1.0).rules(), ["prepared-every-time"]);
    assert!(case(0.02).rules().is_empty());
}

#[test]
fn the_budget_counts_the_pages_own_statements() {
    let case = |budget| {
        Case::new(&ONE, Some(budget))
            .statement("SELECT a", "user", 1.0, 0.0)
            .statement("SELECT b", "user", 1.0, 0.0)
            .statement("SELECT $1", "user", 1.0, 0.0)
            .statement("BEGIN", "transaction", 0.1, 0.0)
    };
    assert!(case(2).rules().is_empty());
    assert_eq!(case(1).rules(), ["query-budget"]);
    assert!(case(1).found()[0].what.contains("more statements than the 1 that it may"));
}

#[test]
fn a_cached_page_that_asks_postgres_is_found() {
    let case = |flights| {
        Case::new(&ONE, Some(0))
            .cost("a", "serial", Metric::RedisCommands, "", 1.0)
            .cost("a", "serial", Metric::PostgresFlights, "", flights)
            .cost("a", "serial", Metric::PostgresExecutions, "", flights)
    };
    assert_eq!(case(1.0).rules(), ["cached-page"]);
    assert!(case(0.0).rules().is_empty());
}

#[test]
fn a_short_response_in_two_packets_is_found_and_a_run_time_that_wakes_itself_is_not() {
    let case = |pieces, bytes| {
        Case::new(&ONE, None)
            .cost("a", "serial", Metric::HttpResponses, "", 1.0)
            .cost("a", "serial", Metric::HttpPieces, "", pieces)
            .cost("a", "serial", Metric::HttpBytesReceived, "", bytes)
            // One for each wake-up, and none on the wire.
            .cost("a", "syscalls", Metric::Syscalls, "write", 12.0)
    };
    assert_eq!(case(2.0, 300.0).rules(), ["small-writes"]);
    assert!(case(1.0, 300.0).rules().is_empty());
    assert!(case(3.0, 100_000.0).rules().is_empty(), "a long one takes several");
}

#[test]
fn long_statements_are_cut_at_a_character() {
    assert_eq!(quoted("SELECT\n  1"), "“SELECT 1”");
    let cut = quoted(&"ї".repeat(500));
    assert_eq!(cut.chars().count(), 123);
}
