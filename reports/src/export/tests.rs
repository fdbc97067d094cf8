//! What other programs will read.

use assay_analyses::cost::Cost;
use assay_analyses::flame::{Call, Tree};
use assay_captures::parsed::Parsed;
use assay_captures::{folded as stacks, pprof as decoded};
use serde_json::Value;

use super::*;
use crate::report::Profile;
use crate::sample;

/// `main` calls `f` (2 of 10 samples, 1 of them in `g`); 5 µs a request stand for all of them.
fn profile() -> Profile {
    let call = |name, caller, samples| Call { name, caller, samples };
    Profile {
        arm: ArmName { subject: "shop".into(), variant: "plain".into() },
        route: "index".into(),
        process: "subject".into(),
        tree: Tree {
            names: ["main", "a;b<T>::f\n", "g"].map(str::to_owned).to_vec(),
            calls: vec![call(0, None, 10), call(1, Some(0), 2), call(2, Some(1), 1)],
            samples: 10,
        },
        per_request: 5e-6,
    }
}

#[test]
fn folded_stacks_weigh_nanoseconds_per_request_and_names_break_no_line() {
    assert_eq!(
        folded(&[&profile()]),
        "shop.plain index;subject;main 4000\n\
         shop.plain index;subject;main;a:b<T>::f  500\n\
         shop.plain index;subject;main;a:b<T>::f ;g 500\n"
    );
    let (mut decoder, mut read) = (stacks::Decoder::default(), Parsed::default());
    struct Sum<'a>(&'a mut Parsed<f64>);
    impl assay_captures::parsed::Sink<stacks::Stack<'_>> for Sum<'_> {
        fn record(&mut self, stack: stacks::Stack<'_>) {
            self.0.records.push(stack.weight);
        }
        fn problem(&mut self, problem: assay_captures::parsed::Problem) {
            self.0.problems.push(problem);
        }
    }
    decoder.feed(folded(&[&profile()]).as_bytes(), &mut Sum(&mut read));
    decoder.finish(&mut Sum(&mut read));
    assert_eq!(read.records.iter().sum::<f64>(), 5_000.0);
    assert!(read.problems.is_empty());
}

#[test]
fn a_pprof_file_is_read_back_with_the_same_functions_and_sums() {
    let (mut decoder, mut read) = (decoded::Decoder::default(), Parsed::default());
    decoder.feed(&pprof(&[&profile(), &profile()]), &mut read);
    decoder.finish(&mut read);
    assert_eq!(read.problems, []);
    let profile: &decoded::Profile = &read.records[0];
    assert_eq!(profile.samples, 6);
    assert_eq!(profile.totals, [10_000], "nanoseconds per request of both");
    let names: Vec<&str> = profile.functions.iter().map(|function| &*function.name).collect();
    for name in ["shop.plain index", "subject", "main", "g"] {
        assert!(names.contains(&name), "{name} is missing: {names:?}");
    }
}

#[test]
fn speedscope_has_every_stack_with_its_weight() {
    let file: Value = serde_json::from_str(&speedscope("a run", &[&profile()])).unwrap();
    let shown = &file["profiles"][0];
    assert_eq!(shown["samples"], serde_json::json!([[0], [0, 1], [0, 1, 2]]));
    assert_eq!(shown["weights"], serde_json::json!([4000, 500, 500]));
    assert_eq!((&shown["endValue"], &shown["unit"]), (&5000.into(), &"nanoseconds".into()));
    assert_eq!(file["shared"]["frames"][2]["name"], "g");
}

#[test]
fn a_trace_has_the_request_its_trips_and_the_time_between_them() {
    let report = sample::report();
    let requests: Vec<_> = report.requests.iter().take(1).collect();
    let file: Value = serde_json::from_str(&chrome_trace(&requests)).unwrap();
    let events = file["traceEvents"].as_array().unwrap();
    let of = |category: &str| -> Vec<&Value> {
        events.iter().filter(|event| event["cat"] == category).collect()
    };
    let record = &requests[0].record;
    let length = record.length.0 as f64 / 1e3;
    assert_eq!(of("request")[0]["dur"].as_f64().unwrap(), length);
    assert_eq!(of("Postgres").len() + of("Redis").len(), record.trips.len());
    // Alone and waiting make up the request.
    let alone: f64 = of("service").iter().map(|event| event["dur"].as_f64().unwrap()).sum();
    let waits = record.trips.iter().filter(|trip| trip.awaited && !trip.after_response);
    let waits: f64 = waits.map(|trip| (trip.end.0 - trip.start.0) as f64 / 1e3).sum();
    assert!((alone + waits - length).abs() < 1e-6, "{alone} + {waits} is not {length}");
}

#[test]
fn benchmarks_have_what_was_measured_and_nothing_else() {
    let report = sample::report();
    let costs: Vec<&Cost> = report.costs.iter().collect();
    let file: Value = serde_json::from_str(&bencher(&costs)).unwrap();
    let measured = costs
        .iter()
        .filter(|cost| matches!(cost.amount, assay_analyses::cost::Amount::Measured(_)))
        .count();
    let held: usize =
        file.as_object().unwrap().values().map(|of| of.as_object().unwrap().len()).sum();
    assert!(held > 20 && held <= measured, "{held} of {measured}");
    let list: Value = serde_json::from_str(&github_action_benchmark(&costs)).unwrap();
    let names: Vec<&str> =
        list.as_array().unwrap().iter().filter_map(|entry| entry["name"].as_str()).collect();
    assert!(names.len() > 20 && names.iter().all(|name| !name.contains("throughput")), "{names:?}");
}
