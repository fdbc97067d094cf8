//! What reports come out as, and that no input breaks the readers.

use super::*;
use crate::hostile::{chunks, cuts, flips};
use crate::parsed::Parsed;

fn read(bytes: &[u8]) -> Parsed<Report> {
    let (mut decoder, mut parsed) = (Decoder::default(), Parsed::default());
    chunks(bytes, 50, |chunk| decoder.feed(chunk, &mut parsed));
    decoder.finish(&mut parsed);
    parsed
}

fn show<T: std::fmt::Display>(stated: &Stated<T>) -> String {
    match stated {
        Stated::Value(value) => value.to_string(),
        Stated::Refused(why) => format!("refused: {why}"),
        Stated::Absent => "-".to_owned(),
    }
}

fn line(report: &Report) -> String {
    let errors: Vec<_> =
        report.errors.iter().map(|error| format!("{} {}", error.kind, error.count)).collect();
    let latency = match &report.latency {
        Stated::Value(points) => points
            .iter()
            .map(|point| format!("{} {:.4}", point.quantile, point.time.seconds() * 1e3))
            .collect::<Vec<_>>()
            .join(", "),
        Stated::Refused(why) => format!("refused: {why}"),
        Stated::Absent => "-".to_owned(),
    };
    format!(
        "{}: {} requests, {} good; errors: {}; good/s {}; ms {latency}",
        report.tool.name(),
        show(&report.requests),
        show(&report.good),
        errors.join(", "),
        match &report.good_rate {
            Stated::Value(rate) => format!("{rate:.2}"),
            other => show(other),
        },
    )
}

fn check(text: &str, expected: &str) {
    let parsed = read(text.as_bytes());
    let mut got: Vec<String> = parsed.records.iter().map(line).collect();
    got.extend(parsed.problems.iter().map(ToString::to_string));
    assert_eq!(got.join("\n"), expected);
}

const WRK: &str = "Running 10s test @ http://localhost:5000\n  2 threads and 10 connections\n\
    \x20 Thread Stats   Avg      Stdev     Max   +/- Stdev\n\
    \x20   Latency     7.99ms    1.70ms  12.71ms   93.85%\n\
    \x20   Req/Sec   626.25    236.30     3.13k    99.00%\n\
    \x20 12479 requests in 10.01s, 1.34MB read\n\
    \x20 Socket errors: connect 1, read 20, write 0, timeout 4\n\
    \x20 Non-2xx or 3xx responses: 12000\n\
    Requests/sec:   1246.57\nTransfer/sec:    137.56KB\n";

#[test]
fn wrk_counts_error_answers_in_its_rate() {
    check(
        WRK,
        "wrk: 12479 requests, 479 good; errors: connect 1, read 20, timeout 4, \
         non-2xx or 3xx 12000; good/s 47.85; ms mean 7.9900, max 12.7100",
    );
    let report = &read(WRK.as_bytes()).records[0];
    assert_eq!((report.threads, report.connections), (Some(2), Some(10)));
    assert_eq!(report.target.as_deref(), Some("http://localhost:5000"));
}

#[test]
fn two_runs_in_one_file_are_two_reports() {
    let parsed = read([WRK, WRK].concat().as_bytes());
    assert_eq!(parsed.records.len(), 2);
    assert_eq!(parsed.records[0], parsed.records[1]);
}

#[test]
fn wrk_without_units_or_with_an_impossible_time_is_refused() {
    check(
        "Running 2m test @ u\n  8 threads and 400 connections\n\
         \x20   Latency   1531867 122203062 30744573    84.20%\n\
         \x20 69967 requests in 2.00m, 2.60GB read\nRequests/sec:    583.25\n",
        "wrk: 69967 requests, 69967 good; errors: ; good/s 583.06; \
         ms refused: latency 1531867 has no unit or cannot be true",
    );
    check(
        "Running 1m test @ u\n    Latency   210.88ms  289.85ms   3.79s    84.62%\n\
         \x20 Latency Distribution\n     50%   41.40ms\n     99%    1.18s \n\
         \x20 35951 requests in 307445734491.24m, 5.51MB read\nRequests/sec:      0.00\n\
         \x20 8 threads and 128 connections\n",
        "wrk: 35951 requests, 35951 good; errors: ; \
         good/s refused: a run time of 307445734491.24m cannot be true; \
         ms 0.5 41.4000, 0.99 1180.0000, mean 210.8800, max 3790.0000",
    );
}

#[test]
fn wrk2_gives_the_latency_from_when_requests_were_due() {
    check(
        "Running 30s test @ u\n  2 threads and 100 connections\n  Thread calibration: mean lat.: \
         1.1ms, rate sampling interval: 10ms\n    Latency     1.23ms    0.50ms  19.68ms   99.17%\n\
         \x20 Latency Distribution (HdrHistogram - Recorded Latency)\n 50.000%    1.10ms\n\
         100.000%   19.70ms\n\n  Detailed Percentile spectrum:\n       Value   Percentile   \
         TotalCount 1/(1-Percentile)\n       0.109     0.000000            1         1.00\n\
         \x20 Latency Distribution (HdrHistogram - Uncorrected Latency (measured without taking \
         delayed starts into account))\n 50.000%    0.50ms\n  60000 requests in 30.00s, 20MB read\n\
         Requests/sec:   2000.00\n",
        "wrk2: 60000 requests, 60000 good; errors: ; good/s 2000.00; \
         ms 0.5 1.1000, max 19.7000, mean 1.2300",
    );
}

const OHA: &str = r#"{"summary":{"successRate":1.0,"total":2.0,"slowest":0.2,"fastest":null,
    "average":0.01,"requestsPerSec":25.0},"latencyPercentiles":{"p50":0.004,"p99.9":0.2},
    "statusCodeDistribution":{"503":50},"errorDistribution":{"timeout":2}}"#;

#[test]
fn success_in_oha_is_not_a_good_answer() {
    check(
        OHA,
        "oha: 52 requests, 0 good; errors: status 503 50, timeout 2; good/s 0.00; \
         ms 0.5 4.0000, 0.999 200.0000, mean 10.0000, max 200.0000",
    );
    let notes = &read(OHA.as_bytes()).records[0].notes;
    assert!(notes.iter().any(|note| note.starts_with("latency is that of error answers")));
}

const K6: &str = r#"{"metrics":{"http_reqs":{"count":400,"rate":20},
    "http_req_failed":{"passes":3,"fails":397,"value":0.0075},
    "checks":{"passes":390,"fails":10,"value":0.975},
    "http_req_duration":{"avg":164.9,"med":132.4,"p(99.9)":245.6,
        "thresholds":{"p(95)<1000":false,"p(95)<200":true}}}}"#;

#[test]
fn passes_of_http_req_failed_are_failures() {
    check(
        K6,
        "k6: 400 requests, 397 good; errors: http_req_failed 3; good/s 19.85; \
         ms mean 164.9000, 0.5 132.4000, 0.999 245.6000",
    );
    assert_eq!(read(K6.as_bytes()).records[0].checks_failed, Some(10));
}

#[test]
fn a_threshold_of_true_was_crossed_and_one_of_ok_was_not() {
    let handled = r#"{"metrics":{"http_reqs":{"type":"counter","values":{"count":1,"rate":1}},
        "d":{"values":{},"thresholds":{"p(95)<1000":{"ok":true},"p(95)<200":{"ok":false}}}}}"#;
    for text in [K6, handled] {
        let passed: Vec<_> = read(text.as_bytes()).records[0]
            .thresholds
            .iter()
            .map(|threshold| (threshold.rule.clone(), threshold.passed))
            .collect();
        assert_eq!(passed, [("p(95)<1000".to_owned(), true), ("p(95)<200".to_owned(), false)]);
    }
}

const STREAM: &str = concat!(
    r#"{"type":"Metric","data":{"name":"http_reqs","type":"counter"},"metric":"http_reqs"}"#,
    "\n",
    r#"{"type":"Point","metric":"http_reqs","data":{"time":"2024-01-01T00:00:00Z","value":1,"#,
    r#""tags":{"status":"200","expected_response":"true"}}}"#,
    "\n",
    r#"{"type":"Point","metric":"http_req_duration","data":{"time":"2024-01-01T00:00:00Z","#,
    r#""value":4,"tags":null}}"#,
    "\n",
    r#"{"type":"Point","metric":"http_reqs","data":{"time":"2024-01-01T00:00:02Z","value":1,"#,
    r#""tags":{"status":"500","expected_response":"false"}}}"#,
    "\n",
    r#"{"metric":"http_reqs","type":"Point","data":{"time":"2024-01-01T00:00:01Z","value":1,"#,
    r#""tags":{"status":"0","error":"EOF"}}}"#,
    "\n",
    r#"{"type":"Poi"#,
);

#[test]
fn a_stream_of_k6_is_added_up_and_its_torn_end_is_a_problem() {
    check(
        STREAM,
        "k6: 3 requests, 1 good; errors: EOF 1, status 500 1; good/s 0.50; \
         ms 0.5 4.0000, 0.9 4.0000, 0.95 4.0000, 0.99 4.0000, 0.999 4.0000, mean 4.0000, \
         min 4.0000, max 4.0000\n\
         line 6: not a sample of k6's JSON output: the file was cut",
    );
}

const HEY: &str = "\nSummary:\n  Total:\t10.0000 secs\n  Slowest:\t0.0285 secs\n\
    \x20 Fastest:\t0.0000 secs\n  Average:\t0.0006 secs\n  Requests/sec:\t140000.0000\n\n\
    Response time histogram:\n  0.000 [1]\t|\n  0.003 [999999]\t|\n\n\
    Latency distribution:\n  50% in 0.0003 secs\n  99% in 0.0029 secs\n\n\
    Status code distribution:\n  [200]\t1000000 responses\n";

#[test]
fn hey_stops_counting_at_a_million() {
    check(
        HEY,
        "hey: 1400000 requests, refused: hey keeps only the first 1,000,000 results: the others' \
         statuses are not known good; errors: ; good/s refused: hey keeps only the first \
         1,000,000 results: the others' statuses are not known; \
         ms max 28.5000, mean 0.6000, 0.5 0.3000, 0.99 2.9000",
    );
}

#[test]
fn hey_lists_statuses_and_errors() {
    check(
        &HEY.replace(
            "[200]\t1000000 responses\n",
            "[200]\t357 responses\n  [500]\t42 responses\n\n\
            Error distribution:\n  [1]\tGet \"http://x\": EOF\n",
        ),
        "hey: 400 requests, 357 good; errors: status 500 42, Get \"http://x\": EOF 1; \
         good/s 35.70; ms max 28.5000, mean 0.6000, 0.5 0.3000, 0.99 2.9000",
    );
}

const CSV: &str = "response-time,DNS+dialup,DNS,Request-write,Response-delay,Response-read,\
    status-code,offset\n0.0027,0.0013,0.0000,0.0002,0.0008,0.0003,200,0.0002\n\
    0.0017,0.0002,0.0000,0.0001,0.0014,0.0000,500,0.9983\n";

#[test]
fn heys_csv_is_added_up() {
    let report = &read(CSV.as_bytes()).records[0];
    assert!(line(report).starts_with("hey: 2 requests, 1 good; errors: status 500 1; good/s 1.00"));
}

const AB: &str = "This is ApacheBench, Version 2.3\n\nServer Hostname:        127.0.0.1\n\
    Server Port:            80\nDocument Path:          /varlen\nConcurrency Level:      5\n\
    Time taken for tests:   0.080 seconds\nComplete requests:      100\n\
    Failed requests:        85\n   (Connect: 0, Receive: 0, Length: 85, Exceptions: 0)\n\
    Requests per second:    1246.93 [#/sec] (mean)\nTime per request:       4.010 [ms] (mean)\n\
    Time per request:       0.802 [ms] (mean, across all concurrent requests)\n\n\
    Percentage of the requests served within a certain time (ms)\n  50%      0\n  99%      8\n\
    \x20100%      8 (longest request)\n";

#[test]
fn answers_of_another_length_are_no_errors_in_ab() {
    check(
        AB,
        "ab: 100 requests, 100 good; errors: ; good/s 1250.00; \
         ms mean 4.0100, 0.99 8.0000, max 8.0000",
    );
    let unexplained = AB.replace("   (Connect: 0, Receive: 0, Length: 85, Exceptions: 0)\n", "");
    assert!(matches!(read(unexplained.as_bytes()).records[0].good, Stated::Refused(_)));
}

const VEGETA: &str = r#"{"latencies":{"total":9,"mean":113172398,"50th":108272568,"95th":140189238,
    "max":264438129,"min":90438129},"earliest":"2024-01-01T00:00:00Z","duration":9949883921,
    "wait":50116079,"requests":1200,"rate":120.0,"throughput":65.87,"success":0.55,
    "status_codes":{"0":535,"200":665},"errors":["dial tcp"]}"#;

#[test]
fn vegeta_in_json_and_in_text_is_the_same() {
    let rest = "1200 requests, 665 good; errors: no answer 535; good/s 66.50; ms ";
    check(
        VEGETA,
        &format!(
            "vegeta: {rest}0.5 108.2726, 0.95 140.1892, max 264.4381, mean 113.1724, min 90.4381"
        ),
    );
    check(
        "Requests      [total, rate, throughput]         1200, 120.00, 65.87\n\
         Duration      [total, attack, wait]             10s, 9.949883921s, 50.116079ms\n\
         Latencies     [min, mean, 50, 95, max]          90.438129ms, 113.172398ms, \
         108.272568ms, 140.189238ms, 264.438129ms\n\
         Success       [ratio]                           55.42%\n\
         Status Codes  [code:count]                      0:535  200:665\nError Set:\nGet x\n",
        &format!(
            "vegeta: {rest}min 90.4381, mean 113.1724, 0.5 108.2726, 0.95 140.1892, max 264.4381"
        ),
    );
}

#[test]
fn colours_are_not_part_of_the_text() {
    let coloured = HEY.replace("[200]\t1000000 responses", "\u{1b}[32m[200] 3 responses\u{1b}[0m");
    assert_eq!(read(coloured.as_bytes()).records[0].good, Stated::Value(3));
}

#[test]
fn something_else_is_said_to_be_unknown() {
    check("hello\n", "line 1: not the output of oha, k6, wrk, wrk2, hey, ab or vegeta");
}

#[test]
fn no_cut_or_flipped_bit_breaks_anything() {
    for text in [WRK, OHA, K6, STREAM, HEY, CSV, AB, VEGETA] {
        cuts(text.as_bytes(), |prefix| drop(read(prefix)));
        flips(text.as_bytes(), 500, |broken| drop(read(broken)));
    }
}

#[test]
fn what_oha_gave_up_itself_at_the_end_is_no_error() {
    let file = r#"{"summary":{"successRate":1.0,"total":2.0,"average":0.25},"latencyPercentiles":{"p50":0.25},
        "statusCodeDistribution":{"200":28},
        "errorDistribution":{"aborted due to deadline":4,"connection refused":1}}"#;
    let parsed = read(file.as_bytes());
    let report = &parsed.records[0];
    assert_eq!(report.requests, Stated::Value(29));
    assert_eq!(report.good, Stated::Value(28));
    assert_eq!(report.error_count(false), 1);
    assert!(report.notes[0].starts_with("4 requests were under way"), "{:?}", report.notes);
}
