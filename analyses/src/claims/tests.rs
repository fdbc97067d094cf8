//! Claims against figures that are known.

use assay_captures::lap::Lap;
use assay_captures::run_record::Expectation;

use super::*;
use crate::comparisons::LapCpu;
use crate::cost::{Origin, Per};
use crate::laps::tests::lap;

fn expect(metric: &str, change: Direction, by: Option<f64>) -> Expectation {
    Expectation {
        route: "detail".into(),
        metric: metric.into(),
        labels: BTreeMap::new(),
        change,
        by,
    }
}

fn claim(expectations: Vec<Expectation>) -> Claim {
    Claim {
        name: "ping".into(),
        cause: "the pool pings".into(),
        subject: "shop".into(),
        base: "on".into(),
        flipped: "off".into(),
        expectations,
    }
}

/// Laps at these rates: one round each, the base before the flipped arm.
fn laps(rates: &[(u64, u64)]) -> Vec<Lap> {
    let rounds = (0..).zip(rates);
    rounds
        .flat_map(|(round, &(base, flipped))| {
            [lap("on", round, 2 * round, base), lap("off", round, 2 * round + 1, flipped)]
        })
        .collect()
}

fn outcome_of(rates: &[(u64, u64)], expectations: Vec<Expectation>) -> Outcome {
    let (laps, cpu) = (laps(rates), LapCpu::new());
    let fair = FairLaps { laps: &laps, cpu: &cpu };
    let judged = judge(&[claim(expectations)], fair, &[]);
    judged[0].outcome
}

const FASTER: [(u64, u64); 4] = [(1000, 1290), (1010, 1300), (990, 1270), (1000, 1280)];
const EQUAL: [(u64, u64); 4] = [(1000, 1002), (1010, 1008), (990, 992), (1000, 999)];
const NOISY: [(u64, u64); 4] = [(1000, 1300), (1010, 900), (990, 1200), (1000, 1010)];

#[test]
fn a_rise_is_shown_by_its_whole_interval_and_contradicted_by_none_of_it() {
    let rises = |by| vec![expect("throughput", Direction::Rises, by)];
    assert_eq!(outcome_of(&FASTER, rises(None)), Outcome::Shown);
    assert_eq!(outcome_of(&FASTER, rises(Some(0.25))), Outcome::Shown);
    // 28 % ± 1 %: 28 % itself lies inside the interval, 40 % beyond it.
    assert_eq!(outcome_of(&FASTER, rises(Some(0.283))), Outcome::NotShown);
    assert_eq!(outcome_of(&FASTER, rises(Some(0.4))), Outcome::Contradicted);
    assert_eq!(outcome_of(&NOISY, rises(None)), Outcome::NotShown);
    let falls = vec![expect("throughput", Direction::Falls, None)];
    assert_eq!(outcome_of(&FASTER, falls), Outcome::Contradicted);
}

#[test]
fn staying_is_shown_by_an_interval_within_the_margin_not_by_noise() {
    let stays = || vec![expect("throughput", Direction::Stays, None)];
    assert_eq!(outcome_of(&EQUAL, stays()), Outcome::Shown);
    assert_eq!(outcome_of(&NOISY, stays()), Outcome::NotShown);
    assert_eq!(outcome_of(&FASTER, stays()), Outcome::Contradicted);
    assert_eq!(
        outcome_of(&FASTER, vec![expect("throughput", Direction::Stays, Some(0.5))]),
        Outcome::Shown
    );
}

#[test]
fn a_claim_is_shown_by_all_and_contradicted_by_one() {
    let rises = expect("throughput", Direction::Rises, None);
    let missing = expect("cpu.time", Direction::Falls, None);
    let wrong = expect("throughput", Direction::Stays, None);
    assert_eq!(outcome_of(&FASTER, vec![rises.clone(), missing.clone()]), Outcome::NotShown);
    assert_eq!(outcome_of(&FASTER, vec![rises, missing, wrong]), Outcome::Contradicted);
    assert_eq!(outcome_of(&FASTER, Vec::new()), Outcome::NotShown);
}

#[test]
fn many_expectations_need_more_to_contradict() {
    // By itself the interval excludes a rise; over forty expectations it does not.
    let falling = [(1000, 986), (1000, 974), (1000, 991), (1000, 972)];
    let rises = expect("throughput", Direction::Rises, None);
    assert_eq!(outcome_of(&falling, vec![rises.clone()]), Outcome::Contradicted);
    assert_eq!(outcome_of(&falling, vec![rises; 40]), Outcome::NotShown);
}

fn count(variant: &str, metric: Metric, label: Option<(&'static str, &str)>, value: f64) -> Cost {
    let origin = Origin {
        subject: "shop".into(),
        variant: variant.into(),
        route: "detail".into(),
        pass: metric.passes()[0].into(),
        capture: Some(format!("captures/{}/shop.{variant}/detail/wire", metric.passes()[0])),
    };
    let figure = Figure { value, low: value * 0.9, high: value * 1.1, samples: 500 };
    let cost = origin.cost(metric, Per::Request, Amount::Measured(figure));
    label.into_iter().fold(cost, |cost, (key, value)| cost.with(key, value))
}

fn by_costs(costs: &[Cost], expectation: Expectation) -> JudgedExpectation {
    let cpu = LapCpu::new();
    let mut judged = judge(&[claim(vec![expectation])], FairLaps { laps: &[], cpu: &cpu }, costs);
    judged.remove(0).expectations.remove(0)
}

#[test]
fn exact_counts_are_held_exactly_and_a_part_that_never_happened_is_none() {
    let pings = |mut expectation: Expectation| {
        expectation.labels.insert("reason".into(), "pool ping".into());
        expectation
    };
    let costs = [
        count("on", Metric::PostgresFlights, None, 9.0),
        count("on", Metric::PostgresFlights, Some(("reason", "pool ping")), 3.0),
        count("off", Metric::PostgresFlights, None, 6.0),
    ];
    let name = Metric::PostgresFlights.name();
    let gone = by_costs(&costs, pings(expect(name, Direction::Falls, Some(1.0))));
    assert_eq!(gone.outcome, Outcome::Shown);
    let found = gone.found.unwrap();
    assert_eq!((found.base, found.flipped, found.change, found.by), (3.0, 0.0, -1.0, By::Counts));
    let third = by_costs(&costs, expect(name, Direction::Falls, Some(0.33)));
    assert_eq!(third.outcome, Outcome::Shown);
    let half = by_costs(&costs, expect(name, Direction::Falls, Some(0.5)));
    assert_eq!(half.outcome, Outcome::Contradicted);
}

#[test]
fn intervals_beside_each_other_show_only_what_their_far_ends_allow() {
    let costs = |off| {
        [
            count("on", Metric::ContextSwitches, None, 4.0),
            count("off", Metric::ContextSwitches, None, off),
        ]
    };
    let falls = expect(Metric::ContextSwitches.name(), Direction::Falls, None);
    assert_eq!(by_costs(&costs(1.5), falls.clone()).outcome, Outcome::Shown);
    // 3.6 ± 10 % and 4 ± 10 % overlap.
    let near = by_costs(&costs(3.6), falls.clone());
    assert_eq!(near.outcome, Outcome::NotShown);
    assert!(near.found.unwrap().high > 0.0);
    assert_eq!(by_costs(&costs(6.0), falls).outcome, Outcome::Contradicted);
}

#[test]
fn what_was_not_measured_shows_nothing_and_says_why() {
    let falls = || expect(Metric::Syscalls.name(), Direction::Falls, None);
    assert_eq!(by_costs(&[], falls()).found.unwrap_err(), "not measured in this run for both");
    let mut costs =
        [count("on", Metric::Syscalls, None, 4.0), count("off", Metric::Syscalls, None, 2.0)];
    costs[1].amount = Amount::NotMeasured("the probe failed".into());
    let judged = by_costs(&costs, falls());
    assert_eq!(judged.outcome, Outcome::NotShown);
    assert_eq!(judged.found.unwrap_err(), "the probe failed");
}
