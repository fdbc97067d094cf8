//! How a judged budget looks.

use assay_analyses::budget::{Baseline, BaselineFigure, judge};
use assay_analyses::cost::{Amount, Cost, Figure, Origin, Per};
use assay_analyses::metric::{Kind, Metric};

use super::*;

fn cost(variant: &str, metric: Metric, (value, low, high): (f64, f64, f64)) -> Cost {
    let pass = metric.passes()[0];
    let origin = Origin {
        subject: "blog".into(),
        variant: variant.into(),
        route: "detail".into(),
        pass: pass.into(),
        capture: Some(format!("captures/{pass}/blog.{variant}/detail")),
    };
    let amount = Amount::Measured(Figure { value, low, high, samples: 100 });
    origin.cost(metric, Per::Request, amount)
}

fn costs() -> Vec<Cost> {
    vec![
        cost("ping", Metric::PostgresFlights, (9.0, 9.0, 10.0)),
        cost("page", Metric::PostgresFlights, (4.0, 4.0, 4.0)),
        cost("page", Metric::Throughput, (1339.0, 1212.0, 1715.0)),
        cost("ping", Metric::CpuTime, (389e-6, 380e-6, 398e-6)),
    ]
}

fn limit(text: &str, metric: Metric, side: Side, bound: Bound) -> Limit {
    Limit { text: text.into(), ..Limit::everywhere(metric, side, bound) }
}

fn limits() -> Vec<Limit> {
    let four = Bound::Amount(4.0);
    let baseline = Bound::Baseline { factor: 1.02, plus: 0.0 };
    vec![
        limit("postgres.flights <= 4", Metric::PostgresFlights, Side::AtMost, four),
        limit("throughput >= 1,300", Metric::Throughput, Side::AtLeast, Bound::Amount(1300.0)),
        limit("cpu.time <= +2 % of baseline", Metric::CpuTime, Side::AtMost, baseline),
        limit("redis.flights <= 4", Metric::RedisFlights, Side::AtMost, four),
        limit("postgres.flights < 20", Metric::PostgresFlights, Side::Below, Bound::Amount(20.0)),
    ]
}

fn baseline() -> Baseline {
    let figure = BaselineFigure {
        route: "detail".into(),
        subject: "blog".into(),
        variant: "ping".into(),
        pass: "fair".into(),
        metric: Metric::CpuTime,
        labels: BTreeMap::new(),
        kind: Kind::Noisy,
        figure: Figure { value: 300e-6, low: 295e-6, high: 305e-6, samples: 4 },
    };
    Baseline { figures: vec![figure] }
}

fn places(count: usize) -> Vec<String> {
    (1..=count).map(|line| format!("budget.toml:{line}")).collect()
}

#[test]
fn what_broke_is_shown_with_reading_excess_and_capture() {
    let limits = limits();
    let places = places(limits.len());
    let judgements = judge(&limits, &costs(), Some(&baseline()));
    let budget =
        JudgedBudget { limits: &limits, places: &places, judgements: &judgements, strict: false };
    insta::assert_snapshot!(render(&budget, 90), @r"
    broken       postgres.flights <= 4                                           budget.toml:1
                   blog.ping · detail: 9, at most 4; 5 too much (+125 %)
                     captures/serial/blog.ping/detail
                   1 more figure keeps it
    cannot tell  throughput >= 1,300                                             budget.toml:2
                   blog.page · detail: 1,339 req/s (1,212 – 1,715), at least 1,300 req/s
                     captures/fair/blog.page/detail
    broken       cpu.time <= +2 % of baseline                                    budget.toml:3
                   blog.ping · detail: 389 µs (380 – 398), at most 306 µs (301 – 311) by the
                     baseline; 83 µs too much (+27.1 %)
                     captures/fair/blog.ping/detail
    not judged   redis.flights <= 4                                              budget.toml:4
                   matches nothing: there is no redis.flights in this run
    kept         postgres.flights < 20                                           budget.toml:5
                   nearest of 2: blog.ping · detail: 9, less than 20
    5 limits: 2 broken, 1 not judged, 1 cannot tell, 1 kept
    ");
}

#[test]
fn json_has_one_record_for_each_limit_and_each_figure() {
    let limits = &limits()[..1];
    let places = places(1);
    let judgements = judge(limits, &costs(), None);
    let budget = JudgedBudget { limits, places: &places, judgements: &judgements, strict: true };
    let json: serde_json::Value = serde_json::from_str(&render_json(&budget)).unwrap();
    assert_eq!(json["outcome"], "broken");
    assert_eq!(json["limits"][0]["place"], "budget.toml:1");
    assert_eq!(json["judgements"][0]["excess"], 5.0);
    assert_eq!(json["judgements"][0]["capture"], "captures/serial/blog.ping/detail");
    assert_eq!(json["judgements"][1]["outcome"], "kept");
}
