//! Samples, laps and logs in, costs out.

use assay_analyses::cost::{Amount, Cost, Origin};
use assay_analyses::costs::foreign::View;
use assay_analyses::costs::whole_file::{
    Ends, LapTotals, RequestTotals, allocation_counts, syscall_counts, usage,
};
use assay_captures::json_lines::Decoder;
use assay_captures::parsed::Sink;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

fn view() -> View {
    let text = String::new;
    let pass = "inspect".to_owned();
    let origin = Origin { subject: text(), variant: text(), route: text(), pass, capture: None };
    View { origin, requests: None, top: 10 }
}

fn read<R: DeserializeOwned, S: Sink<R> + Default>(lines: &[Value]) -> S {
    let (mut decoder, mut sink) = (Decoder::<R>::default(), S::default());
    for line in lines {
        decoder.feed(format!("{line}\n").as_bytes(), &mut sink);
    }
    decoder.finish(&mut sink);
    sink
}

/// Costs as lines: metric, values of labels, amount.
fn lines(costs: &[Cost]) -> Vec<String> {
    let line = |cost: &Cost| {
        let labels: Vec<&str> = cost.labels.values().map(String::as_str).collect();
        let amount = match &cost.amount {
            Amount::Measured(figure) => figure.value.to_string(),
            Amount::LowerBound(figure, why) => format!("at least {}: {why}", figure.value),
            Amount::NotMeasured(why) => format!("not measured: {why}"),
        };
        format!("{} {} {amount}", cost.metric.name(), labels.join(" "))
    };
    costs.iter().map(line).collect()
}

fn used(moment: u64, cpu: u64, voluntary: u64, exits: u64) -> Value {
    json!({
        "moment": moment, "took": 1, "at": "mark",
        "groups": [{
            "role": "subject", "cpu": cpu, "voluntary": voluntary, "involuntary": 1,
            "run_queue_wait": 0, "processes": 1, "threads": 2, "exits": exits,
            "resident": 10, "peak": 20, "proportional": null
        }],
        "machine": {"softirq": 0, "steal": 0, "load_average": 0.5}
    })
}

#[test]
fn usage_is_the_last_sample_less_the_first() {
    let ends: Ends<assay_captures::usage::Sample> =
        read(&[used(1, 2_000_000_000, 5, 0), used(2, 9, 9, 0), used(3, 5_000_000_000, 25, 0)]);
    assert_eq!(ends.records, 3);
    assert_eq!(
        lines(&usage(&ends, &view())),
        [
            "cpu.time subject 3",
            "context_switches voluntary subject 20",
            "context_switches involuntary subject 0",
            "memory.resident subject peak 20",
        ]
    );
}

#[test]
fn threads_that_have_exited_make_switches_lower_bounds() {
    let ends: Ends<assay_captures::usage::Sample> = read(&[used(1, 1, 5, 0), used(3, 2, 25, 1)]);
    let lines = lines(&usage(&ends, &view()));
    let expected = "context_switches voluntary subject at least 20: threads that have exited are \
                    missing";
    assert_eq!(lines[1], expected);
}

#[test]
fn counters_that_went_backwards_are_not_measured() {
    let ends: Ends<assay_captures::usage::Sample> = read(&[used(1, 7, 5, 0), used(3, 2, 25, 0)]);
    let lines = lines(&usage(&ends, &view()));
    assert!(lines[0].starts_with("cpu.time subject not measured: the counters went"), "{lines:?}");
}

#[test]
fn one_sample_of_a_counter_is_no_figure() {
    let usages: Ends<assay_captures::usage::Sample> = read(&[used(1, 7, 5, 0)]);
    let calls: Ends<assay_captures::bpf_counts::Sample> = Ends::default();
    let blocks: Ends<assay_captures::allocation_counts::Sample> = Ends::default();
    for costs in [
        usage(&usages, &view()),
        syscall_counts(&calls, &view()),
        allocation_counts(&blocks, &view()),
    ] {
        assert!(matches!(&costs[..], [Cost { amount: Amount::NotMeasured(_), .. }]));
    }
}

#[test]
fn calls_and_failures_grow_by_name() {
    let sample = |moment: u64, reads: u64, again: u64| {
        json!({"moment": moment, "took": 1, "at": "mark", "roles": [{
            "role": "subject", "calls": {"read": reads, "write": 4},
            "failures": {"read": {"EAGAIN": again, "other": 0}}
        }]})
    };
    let ends: Ends<assay_captures::bpf_counts::Sample> =
        read(&[sample(1, 10, 1), sample(2, 17, 3)]);
    assert_eq!(
        lines(&syscall_counts(&ends, &view())),
        ["syscalls  7", "syscalls read 7", "syscalls write 0", "syscalls.errors EAGAIN read 2",]
    );
}

#[test]
fn requests_with_an_answer_have_a_latency_and_empty_slots_are_no_requests() {
    let slot = |start: u64, answered: Option<u64>, kind: &str, status: Option<u16>| {
        json!({"start": start, "answered": answered, "end": start + 90, "kind": kind,
               "status": status})
    };
    let totals: RequestTotals = read(&[
        slot(0, Some(1_000_000_000), "request", Some(200)),
        slot(100, Some(3_000_000_100), "request", Some(500)),
        slot(200, None, "request", None),
        slot(300, None, "empty", None),
    ]);
    assert_eq!(totals.empty, 1);
    assert_eq!(
        lines(&totals.costs(&view())),
        [
            "load.requests  3",
            "load.good  1",
            "load.errors  2",
            "load.errors non-2xx 1",
            "load.errors no answer 1",
            "load.latency 0.5 1",
            "load.latency 0.9 3",
            "load.latency 0.99 3",
            "load.latency max 3",
        ]
    );
}

fn lap(route: &str, seconds: u64, good: u64, non_2xx: u64) -> Value {
    json!({
        "pass": "fair", "subject": "s", "variant": "v", "route": route, "round": 0, "order": 0,
        "probe": "none", "load": {"mode": "closed", "connections": 2},
        "span": {"start": 0, "end": seconds * 1_000_000_000},
        "sent_until": seconds * 1_000_000_000, "answered_in_time": good + non_2xx,
        "requests": good + non_2xx, "good": good, "non_2xx": non_2xx, "mismatched": 0,
        "errors": {}, "body_bytes": 0, "postgres_calls": null, "captures": {},
        "latency": {"min": 1, "max": 2_000_000_000, "mean": 1.0,
                    "buckets": [[1_000_000_000, good], [2_000_000_000, non_2xx]]}
    })
}

#[test]
fn laps_of_a_route_are_one_and_their_rate_is_the_median() {
    let totals: LapTotals =
        read(&[lap("a", 1, 10, 0), lap("a", 1, 30, 0), lap("a", 1, 20, 0), lap("b", 1, 1, 1)]);
    let costs = totals.costs(&view());
    let of = |route: &str| -> Vec<String> {
        let of = costs.iter().filter(|cost| cost.origin.route == route);
        lines(&of.cloned().collect::<Vec<_>>())
    };
    assert_eq!(
        of("a")[..4],
        ["load.requests  60", "load.good  60", "load.errors  0", "throughput  20"]
    );
    assert!(of("a").contains(&"load.latency max 1".to_owned()));
    // An answer that was not good spoils a rate: error pages are quick.
    let spoilt = "throughput  not measured: 1 of 1 laps had answers not good";
    assert!(of("b").contains(&spoilt.to_owned()), "{:?}", of("b"));
    assert!(of("b").contains(&"load.errors non-2xx 1".to_owned()));
}

#[test]
fn what_is_no_record_is_a_problem_with_its_line() {
    let totals: LapTotals = read(&[lap("a", 1, 10, 0), json!({"pass": 1})]);
    assert_eq!(totals.problems.len(), 1);
    assert!(totals.problems[0].to_string().starts_with("line 2: "));
}
