//! k6's summary, in both forms. In `--summary-export` a metric's values stand directly in it and a
//! threshold's boolean is true when it was crossed; what `handleSummary` is given has `values`,
//! and `ok` is true when the threshold held. In both, `passes` of `http_req_failed` counts the
//! requests that failed.

use serde_json::{Map, Value};

use crate::document::json_problem;
use crate::load_tools::model::{Report, Stated, Threshold, Tool};
use crate::load_tools::quantities::{latency, quantile, seconds};
use crate::parsed::{Place, Problem};

/// Reads a summary.
pub(super) fn summary(bytes: &[u8]) -> Result<Report, Problem> {
    let file: Value = serde_json::from_slice(bytes).map_err(|error| json_problem(&error, bytes))?;
    let Some(metrics) = file.get("metrics").and_then(Value::as_object) else {
        return Err(Problem::new(Place::Line(1), "a k6 summary without metrics"));
    };
    let mut report = Report::of(Tool::K6);
    for (name, metric) in metrics {
        thresholds(name, metric, &mut report);
    }
    let whole = |value: Option<f64>| value.filter(|value| *value >= 0.0).map(|value| value as u64);
    let requests = whole(number(metrics, "http_reqs", "count"));
    let rate = number(metrics, "http_reqs", "rate");
    report.requests = requests.into();
    report.rate = rate.into();
    let run = file.pointer("/state/testRunDurationMs").and_then(Value::as_f64);
    report.duration = match (run, requests, rate) {
        (Some(run), ..) => seconds(run / 1e3).into(),
        (None, Some(requests), Some(rate)) if rate > 0.0 => seconds(requests as f64 / rate).into(),
        _ => Stated::Absent,
    };
    failures(metrics, requests, &mut report);
    report.checks_failed = whole(number(metrics, "checks", "fails"));
    report.connections = whole(number(metrics, "vus_max", "max"));
    durations(metrics, requests, &mut report);
    Ok(report)
}

/// The values of a metric, wherever this form has them.
fn values<'a>(metrics: &'a Map<String, Value>, metric: &str) -> Option<&'a Map<String, Value>> {
    let metric = metrics.get(metric)?.as_object()?;
    metric.get("values").and_then(Value::as_object).or(Some(metric))
}

fn number(metrics: &Map<String, Value>, metric: &str, value: &str) -> Option<f64> {
    values(metrics, metric)?.get(value)?.as_f64().filter(|number| number.is_finite())
}

fn failures(metrics: &Map<String, Value>, requests: Option<u64>, report: &mut Report) {
    let value = |name| number(metrics, "http_req_failed", name);
    let share = value("rate").or(value("value"));
    let failed = match (value("passes"), share, requests) {
        (Some(passes), ..) if passes >= 0.0 => passes as u64,
        (None, Some(share), Some(requests)) => (share * requests as f64).round() as u64,
        _ => {
            report.good = Stated::refused("the summary has no http_req_failed");
            return;
        }
    };
    report.error("http_req_failed", failed, true);
    report.good = match requests.and_then(|requests| requests.checked_sub(failed)) {
        Some(good) => Stated::Value(good),
        None => Stated::refused("more failed requests than requests"),
    };
}

fn durations(metrics: &Map<String, Value>, requests: Option<u64>, report: &mut Report) {
    let Some(values) = values(metrics, "http_req_duration") else {
        return;
    };
    if requests == Some(0) {
        report.latency = Stated::refused("no request was answered");
        return;
    }
    let point = |(name, value): (&String, &Value)| {
        let time = seconds(value.as_f64()? / 1e3)?;
        let quantile = match name.as_str() {
            "avg" => "mean".to_owned(),
            "med" => "0.5".to_owned(),
            "min" | "max" => name.clone(),
            _ => quantile(name.strip_prefix("p(")?.strip_suffix(')')?)?,
        };
        Some(latency(quantile, time))
    };
    let points: Vec<_> = values.iter().filter_map(point).collect();
    report.latency = Stated::from((!points.is_empty()).then_some(points));
}

fn thresholds(name: &str, metric: &Value, report: &mut Report) {
    let Some(thresholds) = metric.get("thresholds").and_then(Value::as_object) else {
        return;
    };
    for (rule, outcome) in thresholds {
        let passed = match outcome {
            Value::Bool(crossed) => !crossed,
            other => match other.get("ok").and_then(Value::as_bool) {
                Some(ok) => ok,
                None => continue,
            },
        };
        report.thresholds.push(Threshold { metric: name.to_owned(), rule: rule.clone(), passed });
    }
}
