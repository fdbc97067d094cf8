//! Which tool printed this, by its first bytes.

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
        let line = head.split(|&byte| byte == b'\n').next().unwrap_or_default();
        return json(line, has);
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

fn json(line: &[u8], has: impl Fn(&str) -> bool) -> Option<Form> {
    let in_line = |needle: &str| memchr::memmem::find(line, needle.as_bytes()).is_some();
    let point = in_line("\"type\":\"Point\"") || in_line("\"type\":\"Metric\"");
    if in_line("\"metric\"") && point {
        return Some(Form::K6Stream);
    }
    if in_line("\"code\"") && in_line("\"latency\"") && in_line("\"timestamp\"") {
        return Some(Form::VegetaResults);
    }
    if has("\"successRate\"") {
        return Some(Form::OhaJson);
    }
    if has("\"latencies\"") && (has("\"status_codes\"") || has("\"throughput\"")) {
        return Some(Form::VegetaJson);
    }
    let k6 = ["\"http_req", "\"iteration", "\"root_group\"", "\"testRunDurationMs\"", "\"vus\""];
    (has("\"metrics\"") && k6.into_iter().any(has)).then_some(Form::K6Summary)
}
