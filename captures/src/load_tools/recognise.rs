//! Which tool printed this, by its first bytes.

use crate::json_keys::Keys;

/// A tool's form of output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// `oha --output-format json`
    OhaJson,
    /// oha's text.
    OhaText,
    /// `k6 run --summary-export`, or what `handleSummary` is given.
    K6Summary,
    /// `k6 run --out json`
    K6Stream,
    /// wrk and wrk2.
    Wrk,
    /// hey's text.
    Hey,
    /// `hey -o csv`
    HeyCsv,
    /// ab.
    Ab,
    /// `vegeta report -type=json`
    VegetaJson,
    /// `vegeta report`
    VegetaText,
    /// `vegeta encode`: one JSON object a result.
    VegetaResults,
}

/// Recognises a tool's output by its head.
#[must_use]
pub fn form(head: &[u8]) -> Option<Form> {
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start();
    let has = |needle: &str| memchr::memmem::find(head, needle.as_bytes()).is_some();
    if head.starts_with(b"{") {
        return json(&Keys::of(&String::from_utf8_lossy(head)));
    }
    if head.starts_with(b"response-time,DNS+dialup") {
        return Some(Form::HeyCsv);
    }
    if has("This is ApacheBench") || (has("Concurrency Level:") && has("Complete requests:")) {
        return Some(Form::Ab);
    }
    if has("Running ") && has(" test @ ") && (has(" threads and ") || has("connections")) {
        return Some(Form::Wrk);
    }
    if has("Latencies     [") && has("Requests      [") {
        return Some(Form::VegetaText);
    }
    if has("Summary:") && has("Success rate:") {
        return Some(Form::OhaText);
    }
    (has("Summary:") && has("Requests/sec:")).then_some(Form::Hey)
}

fn json(keys: &Keys<'_>) -> Option<Form> {
    let has = |key: &str| keys.has(key);
    if has("metric") && has("type") && has("data") {
        return Some(Form::K6Stream);
    }
    if has("code") && has("latency") && has("timestamp") {
        return Some(Form::VegetaResults);
    }
    if keys.has_in("summary", |key| key == "successRate") {
        return Some(Form::OhaJson);
    }
    if has("latencies") && (has("status_codes") || has("throughput")) {
        return Some(Form::VegetaJson);
    }
    let of_k6 = |key: &str| {
        key.starts_with("http_req") || key.starts_with("iteration") || key.starts_with("vus")
    };
    let run = keys.has_in("state", |key| key == "testRunDurationMs");
    let k6 = has("root_group") || run || keys.has_in("metrics", of_k6);
    (has("metrics") && k6).then_some(Form::K6Summary)
}
