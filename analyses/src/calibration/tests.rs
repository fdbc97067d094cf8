//! What is said of readings that are right, wrong, noisy, or not there.

use super::*;
use crate::compare::Effect;
use crate::cost::{Figure, Origin, Per};

fn place() -> Place {
    Place {
        condition: "8 connections".to_owned(),
        pass: "wire".to_owned(),
        instrument: "wire".to_owned(),
    }
}

fn measured(value: f64, low: f64, high: f64) -> Amount {
    Amount::Measured(Figure { value, low, high, samples: 100 })
}

fn verdict(truth: f64, amount: &Amount, limit: Limit) -> Verdict {
    judge(place(), truth, amount, limit).verdict
}

fn truth(metric: &str, labels: &[(&str, &str)], amount: f64) -> Truth {
    let labels = labels.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
    Truth { metric: metric.to_owned(), labels, amount }
}

fn cost(metric: Metric, amount: Amount) -> Cost {
    let origin = Origin {
        subject: "reference".into(),
        variant: "one".into(),
        route: "postgres".into(),
        pass: "wire".into(),
        capture: Some("captures/wire/reference.one/postgres/wire".into()),
    };
    origin.cost(metric, Per::Request, amount)
}

#[test]
fn a_count_holds_only_where_every_lap_is_exact() {
    assert_eq!(verdict(5.0, &measured(5.0, 5.0, 5.0), Limit::Exact), Verdict::Holds);
    let reading = judge(place(), 5.0, &measured(5.0, 4.5, 5.5), Limit::Exact);
    assert_eq!(reading.verdict, Verdict::Broken, "the mean alone is right");
    assert!((reading.error.unwrap().abs() - 0.1).abs() < 1e-9);
    assert_eq!(verdict(5.0, &measured(5.001, 5.0, 5.001), Limit::Exact), Verdict::Broken);
    assert_eq!(verdict(0.0, &measured(0.1, 0.0, 0.1), Limit::Exact), Verdict::Broken);
}

#[test]
fn noisy_figures_hold_within_their_share_on_both_sides() {
    for (value, expected) in [
        (0.971, Verdict::Holds),
        (1.029, Verdict::Holds),
        (0.969, Verdict::Broken),
        (1.031, Verdict::Broken),
    ] {
        assert_eq!(
            verdict(1.0, &measured(value, 0.0, 2.0), Limit::Within(CPU)),
            expected,
            "{value}"
        );
    }
}

#[test]
fn nothing_is_shorter_than_it_slept() {
    let latency = |value| verdict(0.02, &measured(value, value, value), limit("latency"));
    assert_eq!(latency(0.0205), Verdict::Holds);
    assert_eq!(latency(0.0199), Verdict::Broken);
    assert_eq!(latency(0.05), Verdict::Holds, "it woke up late");
}

#[test]
fn a_lower_bound_cannot_tell_and_no_figure_is_not_a_wrong_one() {
    let bound = Amount::LowerBound(Figure::exact(4.0, 9), "3 calls were not counted".into());
    let said = verdict(5.0, &bound, Limit::Exact);
    assert_eq!(said, Verdict::CannotTell("at least: 3 calls were not counted".into()));
    let none = Amount::NotMeasured("the probe died".into());
    assert_eq!(verdict(5.0, &none, Limit::Exact), Verdict::NotMeasured("the probe died".into()));
}

#[test]
fn a_probe_that_failed_is_named_with_its_reason() {
    let flights = truth("postgres.flights", &[], 5.0);
    let read = |costs: &[&Cost], missing| readings(&flights, costs, "c", "wire", missing);
    let exact = cost(Metric::PostgresFlights, measured(5.0, 5.0, 5.0));
    let other = cost(Metric::PostgresFlights, measured(3.0, 3.0, 3.0)).with("reason", "user");
    assert_eq!(read(&[&other, &exact], None).len(), 1, "a labelled figure is another one");
    assert_eq!(read(&[&exact], None)[0].place.instrument, "wire");
    let failed = read(&[&other], Some("wire: no right"));
    assert_eq!(failed[0].verdict, Verdict::NotMeasured("wire: no right".into()));
    assert_eq!(failed[0].amount, None);
}

#[test]
fn the_worst_reading_speaks_for_its_figure() {
    let flights = truth("postgres.flights", &[], 5.0);
    let mut certificate = Certificate::default();
    for value in [5.0, 5.5, 4.0] {
        let reading = judge(place(), 5.0, &measured(value, value, value), Limit::Exact);
        certificate.add("postgres", &flights, vec![reading]);
    }
    certificate.add("redis", &flights, vec![]);
    certificate.add("postgres", &truth("postgres.rows", &[], 5.0), vec![]);
    let [row, together, unread] = &certificate.rows[..] else { panic!("{certificate:?}") };
    assert_eq!(together.route, "postgres");
    assert_eq!((row.readings.len(), row.verdict()), (3, Verdict::Broken));
    assert!((row.worst().unwrap().error.unwrap() + 0.2).abs() < 1e-9);
    assert!(matches!(unread.verdict(), Verdict::NotMeasured(_)));
    let summary = certificate.summary();
    assert_eq!(summary.broken, ["postgres.flights of postgres"]);
    let not_measured = ["postgres.rows of postgres", "postgres.flights of redis"];
    assert_eq!(summary.not_measured, not_measured);
    assert_eq!(summary.hold, 0);
}

fn effect(pass: &str, of: Metric, low: f64, high: f64) -> PassEffect {
    let change = f64::midpoint(low, high);
    let effect = Effect { change, low, high, rounds: 30, p_value: 0.5 };
    PassEffect { pass: pass.to_owned(), of, effect }
}

#[test]
fn a_cost_is_broken_only_where_its_whole_interval_lies_above_the_limit() {
    let effects = [
        // A rate that falls by 6.5 to 9.5 % costs as much; the limit is 6 %.
        effect("wire", Metric::Throughput, -0.095, -0.065),
        effect("wire", Metric::CpuTime, 0.05, 0.09),
        effect("syscalls", Metric::Throughput, -0.02, 0.05),
    ];
    let costs = probe_costs(&effects, |pass| (pass == "cpu").then(|| "perf is missing".into()));
    let of = |probe: &str, of: &str| {
        costs.iter().find(|cost| cost.probe == probe && cost.of == of).unwrap()
    };
    let rate = of("wire", "rate");
    assert_eq!(rate.verdict, Verdict::Broken);
    assert!((rate.cost.unwrap().value - 0.08).abs() < 1e-9);
    assert!((rate.cost.unwrap().least_seen() - 0.015).abs() < 1e-9);
    assert_eq!(
        of("wire", "CPU per request").verdict,
        Verdict::CannotTell("between 5.0 and 9.0 %".into())
    );
    assert_eq!(of("syscalls", "rate").verdict, Verdict::Holds);
    assert_eq!(of("cpu", "rate").verdict, Verdict::NotMeasured("perf is missing".into()));
    assert!(
        matches!(&of("usage", "rate").verdict, Verdict::NotMeasured(why) if why.contains("two"))
    );
}

#[test]
fn seventeen_of_twenty_intervals_must_hold_the_true_share() {
    let recording = |inside: bool| SampledShare {
        truth: if inside { 0.5 } else { 0.7 },
        value: 0.52,
        low: 0.45,
        high: 0.6,
    };
    let of = |inside: usize, runs: usize| {
        let recordings: Vec<_> = (0..runs).map(|run| recording(run < inside)).collect();
        share("alder", &recordings)
    };
    assert_eq!((of(17, 20).inside, of(17, 20).verdict), (17, Verdict::Holds));
    assert_eq!(of(16, 20).verdict, Verdict::Broken);
    assert!(matches!(of(19, 19).verdict, Verdict::NotMeasured(_)));
}

#[test]
fn each_metric_is_looked_for_where_it_is_measured() {
    assert!(measures("serial-strace", "syscalls.errors"));
    assert!(measures("wire", "redis.flights") && !measures("syscalls", "redis.flights"));
    assert!(measures("fair", "cpu.time") && !measures("cpu", "cpu.time"));
    assert_eq!(limit("context_switches"), Limit::Within(SWITCHES));
    assert_eq!(limit("allocations.bytes"), Limit::Exact);
}
