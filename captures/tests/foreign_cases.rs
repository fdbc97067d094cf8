//! Profiles and load reports that other people's tools wrote, against what those tools and an
//! independent reader say of them. Reads the folder that `ASSAY_CASES` names; prints a table of
//! file, question, expected and got, and fails where the last two differ.

#![expect(clippy::print_stdout, reason = "the table is what this test is for")]
#![expect(clippy::unwrap_used, reason = "a case that cannot be read is a failed test")]

use std::fs;
use std::path::{Path, PathBuf};

use assay_captures::load_tools::{Report, Stated};
use assay_captures::parsed::Parsed;
use assay_captures::{callgrind, dhat, load_tools, pprof};
use serde_json::Value;

/// What one question about one file was answered.
struct Row {
    file: String,
    question: String,
    expected: String,
    got: String,
}

#[derive(Default)]
struct Table(Vec<Row>);

impl Table {
    fn row(&mut self, file: &str, question: &str, expected: impl ToString, got: impl ToString) {
        self.0.push(Row {
            file: file.to_owned(),
            question: question.to_owned(),
            expected: expected.to_string(),
            got: got.to_string(),
        });
    }

    fn check(&self) {
        let mut wrong = 0;
        for row in &self.0 {
            let mark = if row.expected == row.got { "  " } else { "✗ " };
            wrong += usize::from(row.expected != row.got);
            println!("{mark}{} · {}: {} · {}", row.file, row.question, row.expected, row.got);
        }
        println!("{} of {} agree", self.0.len() - wrong, self.0.len());
        assert_eq!(wrong, 0, "see the lines marked ✗");
    }
}

fn cases() -> Option<PathBuf> {
    std::env::var_os("ASSAY_CASES").map(PathBuf::from)
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

fn present(cases: &Path, oracle: &str) -> Vec<(String, Value, Vec<u8>)> {
    let Value::Array(rows) = json(&cases.join(oracle)) else { panic!("{oracle} is no list") };
    let read = |row: Value| {
        let file = row["file"].as_str()?.to_owned();
        let bytes = fs::read(cases.join(&file)).ok()?;
        Some((file, row, bytes))
    };
    rows.into_iter().filter_map(read).collect()
}

fn read_callgrind(bytes: &[u8]) -> callgrind::Profile {
    let (mut decoder, mut profile) = Default::default();
    callgrind::Decoder::feed(&mut decoder, bytes, &mut profile);
    decoder.finish(&mut profile);
    profile
}

fn read_dhat(bytes: &[u8]) -> Parsed<dhat::Profile> {
    let mut plain = Vec::new();
    let bytes = if bytes.starts_with(&[0x1f, 0x8b]) {
        std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(bytes), &mut plain).unwrap();
        &plain
    } else {
        bytes
    };
    let (mut decoder, mut parsed) = (dhat::Decoder::default(), Parsed::default());
    decoder.feed(bytes, &mut parsed);
    decoder.finish(&mut parsed);
    parsed
}

fn read_pprof(bytes: &[u8]) -> Parsed<pprof::Profile> {
    let (mut decoder, mut parsed) = (pprof::Decoder::default(), Parsed::default());
    decoder.feed(bytes, &mut parsed);
    decoder.finish(&mut parsed);
    parsed
}

fn read_load(bytes: &[u8]) -> Parsed<Report> {
    let (mut decoder, mut parsed) = (load_tools::Decoder::default(), Parsed::default());
    decoder.feed(bytes, &mut parsed);
    decoder.finish(&mut parsed);
    parsed
}

#[test]
fn callgrind_totals_are_callgrind_annotates() {
    let Some(cases) = cases() else { return };
    let mut table = Table::default();
    for (file, row, bytes) in present(&cases, "oracle-callgrind.json") {
        let profile = read_callgrind(&bytes);
        let totals = row["callgrind_annotate_totals"][0].as_str().unwrap_or_default();
        let columns = totals.split_whitespace().filter(|word| !word.contains(['(', ')', '%', '.']));
        let expected: Vec<String> = columns
            .take_while(|word| word.bytes().all(|byte| byte.is_ascii_digit() || byte == b','))
            .map(|word| word.replace(',', ""))
            .collect();
        for (event, expected) in expected.iter().enumerate() {
            // The tool's claim at the head can be below what its own lines add up to.
            let total = profile.total(event);
            let expected = expected.parse::<u64>().unwrap().max(total.lines);
            table.row(&file, &profile.events()[event], expected, total.spent);
        }
        let functions = profile.functions();
        for top in row["annotate_top5"].as_array().into_iter().flatten() {
            own_cost(&file, top.as_str().unwrap_or_default(), &functions, &mut table);
        }
        let lines = profile.total(0).lines;
        let own: u64 = functions.iter().filter_map(|of| of.own.first()).sum();
        table.row(&file, "functions add up", lines, own);
        let above = functions
            .iter()
            .filter(|of| of.inclusive.first().is_some_and(|cost| cost.least() > lines))
            .count();
        table.row(&file, "inclusive above the total", 0, above);
        table.row(&file, "problems", 0, profile.problems.len());
    }
    table.check();
}

/// One line of callgrind_annotate. It splits a function by the file of inlined code, and charges
/// calls that were entered before a reset of the counters (`calls=0`) to the caller itself; such
/// lines say too much and are passed over.
fn own_cost(file: &str, line: &str, functions: &[callgrind::FunctionCosts], table: &mut Table) {
    let (cost, rest) = line.split_once(' ').unwrap_or_default();
    let place = rest.split(" [").next().unwrap_or_default();
    let Some((_, name)) = place.rsplit_once([' ', '/']).unwrap_or(("", place)).1.split_once(':')
    else {
        return;
    };
    let expected: u64 = cost.replace(',', "").parse().unwrap_or(0);
    let named = functions.iter().filter(|of| of.function.name == name);
    let got: u64 = named.map(|of| of.own[0]).sum();
    let (more, less) = (got > expected, got < expected);
    if more || (less && got == 0) {
        return;
    }
    table.row(file, name, expected, got);
}

#[test]
fn dhat_totals_are_the_tools() {
    let Some(cases) = cases() else { return };
    let mut table = Table::default();
    for (file, row, bytes) in present(&cases, "oracle-dhat.json") {
        let parsed = read_dhat(&bytes);
        let Some(profile) = parsed.records.first() else {
            table.row(&file, "read", "yes", format!("{:?}", parsed.problems));
            continue;
        };
        let totals = profile.totals();
        let or_null = |value: Option<u64>| value.map_or("null".to_owned(), |at| at.to_string());
        let got = [
            ("total_bytes", or_null(Some(totals.total.bytes))),
            ("total_blocks", or_null(Some(totals.total.blocks))),
            ("peak_bytes_sum_gb", or_null(totals.at_peak.map(|at| at.bytes))),
            ("peak_blocks_sum_gbk", or_null(totals.at_peak.map(|at| at.blocks))),
            ("end_bytes", or_null(totals.at_end.map(|at| at.bytes))),
            ("end_blocks", or_null(totals.at_end.map(|at| at.blocks))),
            ("reads", or_null(totals.read)),
            ("writes", or_null(totals.written)),
            ("tg", or_null(profile.peak)),
            ("te", or_null(Some(profile.end))),
            ("points", or_null(Some(profile.points.len() as u64))),
            ("frames", or_null(Some(profile.frames.len() as u64))),
        ];
        for (question, got) in got {
            table.row(&file, question, &row[question], got);
        }
    }
    table.check();
}

#[test]
fn pprof_sums_are_go_tool_pprofs_and_older_forms_are_refused() {
    let Some(cases) = cases() else { return };
    let mut table = Table::default();
    for (file, row, bytes) in present(&cases, "oracle-pprof.json") {
        let parsed = read_pprof(&bytes);
        let legacy = row["format"].as_str().is_some_and(|format| format.starts_with("legacy"));
        if legacy {
            let refused = parsed.problems.iter().any(|problem| problem.message.contains("older"));
            table.row(&file, "refused in words", true, refused && parsed.records.is_empty());
            continue;
        }
        let Some(profile) = parsed.records.first() else {
            table.row(&file, "read", "yes", format!("{:?}", parsed.problems));
            continue;
        };
        let kind = |(index, of): (usize, &pprof::SampleType)| {
            let default = if profile.default_type == Some(index) { "[dflt]" } else { "" };
            Value::String(format!("{}/{}{default}", of.kind, of.unit))
        };
        let kinds = profile.sample_types.iter().enumerate().map(kind).collect();
        table.row(&file, "sample types", &row["sample_types"], Value::Array(kinds));
        table.row(&file, "sums", &row["sums"], Value::from(profile.totals.clone()));
        // go tool pprof merges equal stacks and drops samples of zeros before it counts.
        let merged = row["samples"].as_u64().unwrap_or(0);
        table.row(&file, "samples at least", true, profile.samples >= merged);
        let functions = profile.functions.iter();
        let own: i64 = functions.map(|of| of.own.first().copied().unwrap_or(0)).sum();
        table.row(&file, "functions add up", profile.totals[0], own);
    }
    table.check();
}

fn stated(value: &Stated<u64>) -> String {
    match value {
        Stated::Value(value) => value.to_string(),
        Stated::Refused(_) => "refused".to_owned(),
        Stated::Absent => "not said".to_owned(),
    }
}

#[test]
fn load_reports_agree_with_what_the_servers_counted() {
    let Some(cases) = cases() else { return };
    let mut table = Table::default();
    let mut files: Vec<_> =
        fs::read_dir(cases.join("loadgen")).unwrap().flatten().map(|file| file.path()).collect();
    files.sort();
    for path in files {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if name.contains("server-truth") || name.contains("schema") {
            continue;
        }
        let parsed = read_load(&fs::read(&path).unwrap());
        let Some(report) = parsed.records.first() else {
            table.row(&name, "read", "yes", format!("{:?}", parsed.problems));
            continue;
        };
        table.row(&name, "problems", 0, parsed.problems.len());
        let truth = path.with_file_name(format!("{name}.server-truth.json"));
        if !truth.exists() {
            continue;
        }
        let truth = json(&truth);
        let status = |status: &str| truth[format!("status {status}")].as_u64().unwrap_or(0);
        let (good, bad) = (status("200"), status("500") + status("503"));
        // wrk stops counting before the server does: answers after its deadline are cut off.
        let near = |expected: u64, got: String| match got.parse::<u64>() {
            Ok(got) if name.contains("wrk") && got <= expected && got + 10 >= expected => {
                expected.to_string()
            }
            _ => got,
        };
        table.row(&name, "good answers", good, near(good, stated(&report.good)));
        table.row(&name, "error answers", bad, near(bad, report.error_count(true).to_string()));
        let positive = report.latency.value().is_some_and(|points| {
            points.iter().all(|point| point.time.0 > 0) && !points.is_empty()
        });
        table.row(&name, "latency", true, positive);
    }
    table.check();
}

/// The figures that `bugs/*/expected.json` names and that these formats have.
#[test]
fn faults_of_other_tools_are_not_ours() {
    let Some(cases) = cases() else { return };
    let mut table = Table::default();
    let mut folders: Vec<_> =
        fs::read_dir(cases.join("bugs")).unwrap().flatten().map(|folder| folder.path()).collect();
    folders.sort();
    for folder in folders {
        let expected = json(&folder.join("expected.json"));
        let id = expected["id"].as_str().unwrap_or_default().to_owned();
        for input in expected["inputs"].as_array().into_iter().flatten() {
            let input = input.as_str().unwrap_or_default();
            let bytes = fs::read(folder.join(input)).unwrap();
            let right = &expected["right_answer"];
            let right = right.get(input).unwrap_or(right);
            let file = format!("{id}/{input}");
            match expected["kind"].as_str().unwrap_or_default() {
                "callgrind" => callgrind_fault(&file, right, &bytes, &mut table),
                "dhat" => dhat_fault(&file, right, &bytes, &mut table),
                "pprof" => pprof_fault(&file, right, &bytes, &mut table),
                "loadgen" => load_fault(&file, right, &bytes, &mut table),
                _ => {}
            }
        }
    }
    table.check();
}

fn callgrind_fault(file: &str, right: &Value, bytes: &[u8], table: &mut Table) {
    let profile = read_callgrind(bytes);
    if let Some(lines) = right["names_the_line"].as_array() {
        let expected: Vec<_> = lines.iter().map(|line| format!("line {line}")).collect();
        let got: Vec<_> = profile.refused.iter().map(ToString::to_string).collect();
        return table.row(file, "refused", expected.join(", "), got.join(", "));
    }
    let event = |name: &str| profile.events().iter().position(|event| event == name);
    for key in ["total", "total_Ir"] {
        match &right[key] {
            Value::Object(totals) => {
                for (name, total) in totals {
                    table.row(file, name, total, profile.total(event(name).unwrap()).spent);
                }
            }
            Value::Null => {}
            total => table.row(file, key, total, profile.total(0).spent),
        }
    }
    if let Some(parts) = right["parts"].as_u64() {
        table.row(file, "parts", parts, profile.parts().count());
        let per_part: Vec<u64> = profile.parts().map(|part| part.lines[0]).collect();
        table.row(file, "per part", &right["per_part"], Value::from(per_part));
    }
    for costs in profile.functions() {
        let name = costs.function.name.as_str();
        if let Some(own) = right["self"].get(name) {
            let own = own.get("Ir").unwrap_or(own);
            table.row(file, &format!("self {name}"), own, costs.own[0]);
        }
        if let Some(inclusive) = right["inclusive"].get(name) {
            let got = costs.inclusive[0].least();
            table.row(file, &format!("inclusive {name}"), inclusive, got);
        }
        if let Some(calls) = right["calls"].get(name) {
            table.row(file, &format!("calls {name}"), calls, costs.calls);
        }
        if let Some(source) = right["file"].get(name) {
            let got = Value::from(costs.function.file);
            table.row(file, &format!("file {name}"), source, got);
        }
    }
}

fn dhat_fault(file: &str, right: &Value, bytes: &[u8], table: &mut Table) {
    let parsed = read_dhat(bytes);
    let totals = parsed.records[0].totals();
    table.row(file, "bytes", &right["total_bytes"], totals.total.bytes);
    table.row(file, "blocks", &right["total_blocks"], totals.total.blocks);
    match right["peak_bytes"].as_u64() {
        Some(peak) => table.row(file, "peak", peak, totals.at_peak.unwrap().bytes),
        None => table.row(file, "peak unknown", true, totals.at_peak.is_none()),
    }
    if let Some(end) = right["end_bytes"].as_u64() {
        table.row(file, "end", end, totals.at_end.unwrap().bytes);
    }
}

fn pprof_fault(file: &str, right: &Value, bytes: &[u8], table: &mut Table) {
    let parsed = read_pprof(bytes);
    let profile = &parsed.records[0];
    table.row(file, "totals", &right["totals"], Value::from(profile.totals.clone()));
    for function in &profile.functions {
        let name = function.name.as_str();
        let last = |values: &[i64]| values.last().copied().unwrap_or(0);
        if let Some(own) = right["self"].get(name) {
            table.row(file, &format!("self {name}"), own, last(&function.own));
        }
        if let Some(inclusive) = right["cumulative"].get(name) {
            let got = last(&function.inclusive);
            table.row(file, &format!("cumulative {name}"), inclusive, got);
        }
    }
    if let Some(time) = right["time_if_shown_s"].as_f64() {
        let got = profile.time_of(0).map_or(0.0, |time| time.seconds());
        table.row(file, "time", format!("{time:.6}"), format!("{got:.6}"));
    }
}

fn load_fault(file: &str, right: &Value, bytes: &[u8], table: &mut Table) {
    let parsed = read_load(bytes);
    let report = &parsed.records[0];
    for key in ["requests", "requests_answered"] {
        if let Some(requests) = right[key].as_u64() {
            table.row(file, key, requests, stated(&report.requests));
        }
    }
    if let Some(requests) = right["requests_from_rate"].as_u64() {
        let off = report.requests.value().unwrap().abs_diff(requests);
        table.row(file, "requests by rate within 2", true, off <= 2);
    }
    if let Some(good) = right["ok"].as_u64() {
        table.row(file, "good", good, stated(&report.good));
    }
    for key in ["failed", "http_errors", "non_2xx", "non_2xx_3xx"] {
        if let Some(failed) = right[key].as_u64() {
            table.row(file, key, failed, report.error_count(true));
        }
    }
    if let Some(errors) = right["transport_errors"].as_u64() {
        table.row(file, "transport errors", errors, report.error_count(false));
    }
    if let Some(rate) = right["ok_rate"].as_f64() {
        let got = report.good_rate.value().copied().unwrap_or(f64::NAN);
        table.row(file, "rate of good answers", format!("{rate:.2}"), format!("{got:.2}"));
    }
    let latency = |quantile: &str| {
        let points = report.latency.value()?;
        let point = points.iter().find(|point| point.quantile == quantile)?;
        Some(format!("{:.2}", point.time.seconds() * 1e3))
    };
    let ms =
        |key: &str| right[key].as_f64().map(|ms| if key.ends_with("_s") { ms * 1e3 } else { ms });
    let keys = [
        ("p50_ms", "0.5"),
        ("p99_ms", "0.99"),
        ("p50_s", "0.5"),
        ("p99_s", "0.99"),
        ("average_s", "mean"),
        ("latency_avg_ms", "mean"),
        ("latency_mean_ms", "mean"),
    ];
    for (key, quantile) in keys {
        if let Some(expected) = ms(key) {
            let got = latency(quantile).unwrap_or("none".to_owned());
            table.row(file, key, format!("{expected:.2}"), got);
        }
    }
    if right["latency"].is_string() {
        table.row(file, "latency refused", true, report.latency.value().is_none());
    }
    if right["rate"].is_string() {
        table.row(file, "rate refused", true, report.rate.value().is_none());
    }
    for (key, passed) in [("passed", true), ("failed", false)] {
        if right[key].is_array() {
            let held = report.thresholds.iter().filter(|threshold| threshold.passed == passed);
            let rules: Vec<_> = held.map(|threshold| Value::from(threshold.rule.clone())).collect();
            table.row(file, key, &right[key], Value::Array(rules));
        }
    }
}
