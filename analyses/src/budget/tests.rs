//! Tests of limits: what keeps them, what breaks them, and what nobody can tell.

use super::*;
use crate::cost::{Amount, Per};

/// A cost of the blog: `place` is `variant/route/pass`.
fn cost(place: &str, metric: Metric, figure: (f64, f64, f64)) -> Cost {
    let mut parts = place.split('/').map(str::to_owned);
    let mut part = || parts.next().unwrap_or_default();
    let (variant, route, pass) = (part(), part(), part());
    let capture = Some(format!("captures/{pass}/blog.{variant}/{route}/wire"));
    let origin = Origin { subject: "blog".into(), variant, route, pass, capture };
    let (value, low, high) = figure;
    let amount = Amount::Measured(Figure { value, low, high, samples: 100 });
    origin.cost(metric, Per::Request, amount)
}

fn flights(place: &str, reason: Option<&str>, value: f64) -> Cost {
    let cost = cost(place, Metric::PostgresFlights, (value, value, value));
    reason.into_iter().fold(cost, |cost, reason| cost.with("reason", reason))
}

fn limit(metric: Metric, side: Side, bound: Bound) -> Limit {
    Limit::everywhere(metric, side, bound)
}

/// Each judgement as `variant/route/pass: outcome`.
fn told(limits: &[Limit], costs: &[Cost], baseline: Option<&Baseline>) -> Vec<String> {
    judge(limits, costs, baseline)
        .into_iter()
        .map(|judgement| {
            let outcome = match &judgement.outcome {
                Outcome::NotJudged(reason) => reason.clone(),
                other => format!("{other:?}"),
            };
            match &judgement.place {
                Some((origin, _)) => {
                    format!("{}/{}/{}: {outcome}", origin.variant, origin.route, origin.pass)
                }
                None => outcome,
            }
        })
        .collect()
}

#[test]
fn an_exact_count_keeps_its_limit_or_breaks_it() {
    let costs =
        [flights("ping/detail/serial", None, 9.0), flights("page/detail/serial", None, 4.0)];
    let at_most = [limit(Metric::PostgresFlights, Side::AtMost, Bound::Amount(4.0))];
    assert_eq!(
        told(&at_most, &costs, None),
        ["ping/detail/serial: Broken", "page/detail/serial: Holds"]
    );
    let below = [limit(Metric::PostgresFlights, Side::Below, Bound::Amount(4.0))];
    assert_eq!(told(&below, &costs[1..], None), ["page/detail/serial: Broken"]);
    let judged = judge(&at_most, &costs, None);
    assert_eq!(judged[0].excess(Side::AtMost), Some(5.0));
}

#[test]
fn a_noisy_figure_breaks_a_limit_only_with_its_whole_interval() {
    // limit               300
    //            |---x---|         holds
    //                 |---x---|    cannot tell
    //                      |-x-|   broken
    let cpu = |figure| [cost("page/detail/fair", Metric::CpuTime, figure)];
    let at_most = [limit(Metric::CpuTime, Side::AtMost, Bound::Amount(300e-6))];
    let outcome = |figure| told(&at_most, &cpu(figure), None);
    assert_eq!(outcome((280e-6, 265e-6, 299e-6)), ["page/detail/fair: Holds"]);
    assert_eq!(outcome((305e-6, 290e-6, 320e-6)), ["page/detail/fair: CannotTell"]);
    assert_eq!(outcome((295e-6, 280e-6, 310e-6)), ["page/detail/fair: CannotTell"]);
    assert_eq!(outcome((320e-6, 301e-6, 340e-6)), ["page/detail/fair: Broken"]);
    let rate = |figure| [cost("page/detail/fair", Metric::Throughput, figure)];
    let at_least = [limit(Metric::Throughput, Side::AtLeast, Bound::Amount(1000.0))];
    let outcome = |figure| told(&at_least, &rate(figure), None);
    assert_eq!(outcome((1100.0, 1001.0, 1200.0)), ["page/detail/fair: Holds"]);
    assert_eq!(outcome((980.0, 900.0, 1010.0)), ["page/detail/fair: CannotTell"]);
    assert_eq!(outcome((900.0, 820.0, 980.0)), ["page/detail/fair: Broken"]);
}

#[test]
fn what_a_baseline_had_limits_with_its_own_noise() {
    let before = [cost("page/detail/fair", Metric::CpuTime, (100e-6, 92e-6, 108e-6))];
    let baseline = Baseline::of(&before);
    let bound = Bound::Baseline { factor: 1.02, plus: 0.0 };
    let limits = [limit(Metric::CpuTime, Side::AtMost, bound)];
    let now = |figure| {
        let now = [cost("page/detail/fair", Metric::CpuTime, figure)];
        told(&limits, &now, Some(&baseline))
    };
    // The lower end lies above 102, but not by enough for two noisy figures.
    assert_eq!(now((108e-6, 103e-6, 113e-6)), ["page/detail/fair: CannotTell"]);
    assert_eq!(now((120e-6, 115e-6, 125e-6)), ["page/detail/fair: Broken"]);
    assert_eq!(now((85e-6, 80e-6, 90e-6)), ["page/detail/fair: Holds"]);
}

#[test]
fn exact_counts_are_held_against_a_baseline_exactly() {
    let costs = [flights("page/detail/serial", None, 4.0)];
    let baseline = Baseline::of(&costs);
    let same = Bound::Baseline { factor: 1.0, plus: 0.0 };
    let limits = [limit(Metric::PostgresFlights, Side::AtMost, same)];
    assert_eq!(told(&limits, &costs, Some(&baseline)), ["page/detail/serial: Holds"]);
    let more = [flights("page/detail/serial", None, 4.01)];
    assert_eq!(told(&limits, &more, Some(&baseline)), ["page/detail/serial: Broken"]);
    let other = [flights("new/detail/serial", None, 4.0)];
    assert_eq!(
        told(&limits, &other, Some(&baseline)),
        ["new/detail/serial: the baseline has no figure for this"]
    );
    assert_eq!(told(&limits, &costs, None), ["page/detail/serial: no baseline was given"]);
}

#[test]
fn a_part_that_never_happened_is_zero_where_the_whole_was_measured() {
    let costs = [
        flights("page/detail/serial", None, 4.0),
        flights("page/detail/serial", Some("user"), 3.0),
    ];
    let mut pings = limit(Metric::PostgresFlights, Side::AtMost, Bound::Amount(0.0));
    pings.labels.insert("reason".into(), Some("pool ping".into()));
    assert_eq!(told(&[pings.clone()], &costs, None), ["page/detail/serial: Holds"]);
    // In a baseline as well: a ping where there was none is one too many.
    let pinging = [flights("page/detail/serial", None, 5.0), {
        flights("page/detail/serial", Some("pool ping"), 1.0)
    }];
    pings.bound = Bound::Baseline { factor: 1.0, plus: 0.0 };
    let baseline = Baseline::of(&costs);
    assert_eq!(told(&[pings], &pinging, Some(&baseline)), ["page/detail/serial: Broken"]);
}

#[test]
fn a_word_that_nobody_knows_is_not_zero() {
    let costs = [
        flights("page/detail/serial", None, 4.0),
        flights("page/detail/serial", Some("user"), 3.0),
    ];
    let mut pings = limit(Metric::PostgresFlights, Side::AtMost, Bound::Amount(0.0));
    pings.labels.insert("reason".into(), Some("pool pign".into()));
    assert_eq!(
        told(&[pings], &costs, None),
        ["matches nothing: postgres.flights has no figure with these labels; there are: \
          one without labels, {reason=user}"]
    );
}

#[test]
fn a_limit_that_matches_nothing_is_not_kept() {
    let costs = [flights("page/detail/serial", None, 4.0)];
    let allocations = limit(Metric::AllocationsBlocks, Side::AtMost, Bound::Amount(400.0));
    let mut elsewhere = limit(Metric::PostgresFlights, Side::AtMost, Bound::Amount(4.0));
    elsewhere.routes = vec!["detail".into(), "index".into()];
    elsewhere.arms = vec![ArmPattern { subject: "blog".into(), variant: Some("page".into()) }];
    assert_eq!(
        told(&[allocations, elsewhere], &costs, None),
        [
            "matches nothing: there is no allocations.blocks in this run",
            "matches nothing: there is no postgres.flights on route index of blog.page",
            "page/detail/serial: Holds",
        ]
    );
}

#[test]
fn what_was_not_measured_keeps_no_limit_and_a_lower_bound_only_breaks() {
    let mut lost = flights("page/detail/serial", None, 0.0);
    lost.amount = Amount::NotMeasured("9 packets were dropped".into());
    let four = [limit(Metric::PostgresFlights, Side::AtMost, Bound::Amount(4.0))];
    assert_eq!(
        told(&four, &[lost], None),
        ["page/detail/serial: not measured: 9 packets were dropped"]
    );
    let bound = |value| {
        let mut cost = flights("page/detail/serial", None, value);
        cost.amount = Amount::LowerBound(Figure::exact(value, 1), "calls were missed".into());
        told(&four, &[cost], None)
    };
    assert_eq!(bound(5.0), ["page/detail/serial: Broken"]);
    assert_eq!(bound(4.0), ["page/detail/serial: known only as a lower bound: calls were missed"]);
}

#[test]
fn the_figure_that_tables_show_is_judged_and_another_pass_on_request() {
    let costs = [
        flights("page/detail/wire", None, 4.2),
        flights("page/detail/serial", None, 4.0),
        flights("page/tag/wire", None, 6.0),
    ];
    let mut five = limit(Metric::PostgresFlights, Side::AtMost, Bound::Amount(4.0));
    assert_eq!(
        told(&[five.clone()], &costs, None),
        ["page/detail/serial: Holds", "page/tag/wire: Broken"]
    );
    five.pass = Some("wire".into());
    five.routes = vec!["detail".into()];
    assert_eq!(told(&[five], &costs, None), ["page/detail/wire: Broken"]);
}

#[test]
fn a_star_judges_each_part_by_itself() {
    let costs = [
        flights("page/detail/serial", None, 9.0),
        flights("page/detail/serial", Some("pool ping"), 6.0),
        flights("page/detail/serial", Some("user"), 3.0),
    ];
    let mut each = limit(Metric::PostgresFlights, Side::AtMost, Bound::Amount(3.0));
    each.labels.insert("reason".into(), None);
    assert_eq!(
        told(&[each], &costs, None),
        ["page/detail/serial: Broken", "page/detail/serial: Holds"]
    );
}

#[test]
fn a_baseline_keeps_what_the_limits_are_about_in_one_order() {
    let mut costs = vec![
        flights("page/detail/serial", Some("user"), 3.0),
        flights("page/detail/serial", None, 4.0),
        cost("page/detail/fair", Metric::CpuTime, (1e-4, 9e-5, 11e-5)),
        flights("a/detail/serial", None, 9.0),
    ];
    let limits = [limit(Metric::PostgresFlights, Side::AtMost, Bound::Amount(4.0))];
    let kept = save_baseline(&limits, &costs);
    let names: Vec<&str> = kept.figures.iter().map(|figure| figure.variant.as_str()).collect();
    assert_eq!(names, ["a", "page"]);
    costs.reverse();
    assert_eq!(save_baseline(&limits, &costs), kept);
    assert_eq!(save_baseline(&[], &costs).figures.len(), 4);
}

#[test]
fn one_lap_of_something_noisy_is_not_exact() {
    let mut costs = [cost("page/detail/fair", Metric::Throughput, (1_000.0, 1_000.0, 1_000.0))];
    let at_least = |amount| [limit(Metric::Throughput, Side::AtLeast, Bound::Amount(amount))];
    let set = |costs: &mut [Cost; 1], samples| {
        let Amount::Measured(figure) = &mut costs[0].amount else { panic!("it was") };
        figure.samples = samples;
    };
    set(&mut costs, 1);
    for amount in [900.0, 1_100.0] {
        assert_eq!(told(&at_least(amount), &costs, None), ["page/detail/fair: CannotTell"]);
    }
    // Several laps that are all the same are no accident.
    set(&mut costs, 6);
    assert_eq!(told(&at_least(900.0), &costs, None), ["page/detail/fair: Holds"]);
    assert_eq!(told(&at_least(1_100.0), &costs, None), ["page/detail/fair: Broken"]);
}
