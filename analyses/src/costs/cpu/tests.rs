//! Tests of phases per request.

use assay_captures::ids::Tid;
use assay_captures::perf_script::Frame;
use assay_captures::units::Span;

use super::*;

fn origin() -> Origin {
    Origin {
        subject: "shop".into(),
        variant: "on".into(),
        route: "detail".into(),
        pass: "cpu".into(),
        capture: None,
    }
}

/// Profiles stacks that are given by their names from the leaf up, each so many times.
fn costs(stacks: &[(&[&str], u64)], total: Figure) -> Vec<Cost> {
    let rules = Rules::shipped().unwrap();
    let window = Window { span: Span { start: Moment(0), end: Moment(100) }, requests: 10 };
    let target = Target { role: Role::Subject, pids: vec![Pid(7)], port: None, path: None };
    let mut fold = CpuFold::new(&[window], &[target], &rules);
    for (names, times) in stacks {
        let frames = names.iter().map(|symbol| Frame {
            address: 1,
            symbol,
            offset: None,
            module: "/srv/app",
        });
        let frames: Vec<Frame<'_>> = frames.collect();
        for _ in 0..*times {
            fold.record(Sample {
                thread: "app",
                pid: Some(Pid(7)),
                tid: Tid(7),
                cpu: None,
                time: Some(Nanos(50)),
                period: Some(2_004_008),
                event: "cpu-clock",
                frames: frames.clone(),
            });
        }
    }
    fold.finish().costs(&origin(), &BTreeMap::from([(Role::Subject, total)]))
}

fn find<'a>(costs: &'a [Cost], phase: &str, view: &str) -> &'a Cost {
    costs.iter().find(|cost| cost.labels["phase"] == phase && cost.labels["view"] == view).unwrap()
}

const TOTAL: Figure = Figure { value: 100e-6, low: 98e-6, high: 102e-6, samples: 6 };

#[test]
fn exclusive_phases_sum_to_the_total_and_small_ones_count_in_other() {
    let costs = costs(
        &[
            (&["malloc", "sqlx_core::row", "main", "_start"], 100),
            (&["sqlx_core::row", "main", "_start"], 280),
            (&["tera::render", "main", "_start"], 20),
        ],
        TOTAL,
    );
    let sum: f64 = costs
        .iter()
        .filter(|cost| cost.labels["view"] == "exclusive")
        .filter_map(|cost| cost.amount.figure())
        .map(|figure| figure.value)
        .sum();
    assert!((sum - 100e-6).abs() < 1e-12, "{sum}");
    let sqlx = find(&costs, "sqlx", "exclusive").amount.figure().unwrap();
    assert!((sqlx.value - 70e-6).abs() < 1e-12);
    assert_eq!(sqlx.samples, 280);
    assert!(sqlx.low < 66e-6 && sqlx.low > 64e-6, "{}", sqlx.low);
    let tera = &find(&costs, "Tera + serde", "exclusive").amount;
    assert_eq!(*tera, Amount::NotMeasured("too few samples (20); counted in other".into()));
    let other = find(&costs, OTHER, "exclusive").amount.figure().unwrap();
    assert!((other.value - 5e-6).abs() < 1e-12);
    let overlapping = find(&costs, "sqlx", "inclusive").amount.figure().unwrap();
    assert!((overlapping.value - 95e-6).abs() < 1e-12);
}

#[test]
fn broken_stacks_have_no_phases_of_user_code() {
    let costs = costs(&[(&["sqlx_core::row"], 90), (&["malloc", "main", "_start"], 10)], TOTAL);
    let sqlx = &find(&costs, "sqlx", "exclusive").amount;
    assert!(matches!(sqlx, Amount::NotMeasured(why) if why.contains("10 % reach the root")));
    let other = find(&costs, OTHER, "exclusive").amount.figure().unwrap();
    assert!((other.value - 100e-6).abs() < 1e-12);
    assert!(!costs.iter().any(|cost| cost.labels["view"] == "inclusive"));
}

/// 2,000 profiles of 800 samples each, for shares from rare to half: how often the interval holds
/// the truth. It must be 95 ± 2 %.
#[test]
fn intervals_hold_the_truth_as_often_as_they_say() {
    // A linear congruential generator is random enough to count with (Knuth's MMIX).
    let mut state = 1u64;
    let mut uniform = move || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    for truth in [0.05, 0.15, 0.5] {
        let trials = 2000;
        let mut held = 0;
        for _ in 0..trials {
            let samples = (0..800).filter(|_| uniform() < truth).count() as u64;
            let (_, low, high) = wilson(samples, 800);
            held += u32::from(low <= truth && truth <= high);
        }
        let share = f64::from(held) / f64::from(trials);
        assert!((0.93..=0.97).contains(&share), "share {truth}: held in {share}");
    }
}
