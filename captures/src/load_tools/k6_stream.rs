//! `k6 run --out json`: one JSON object a line, a metric's definition or one sample of it.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::load_tools::histogram::Histogram;
use crate::load_tools::model::{Report, Stated, Tool};
use crate::load_tools::parse::Results;
use crate::load_tools::quantities::{good, moment, seconds};
use crate::text_lines::Line;
use crate::units::Nanos;

#[derive(Deserialize)]
struct Entry<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    #[serde(borrow)]
    metric: std::borrow::Cow<'a, str>,
    #[serde(default)]
    data: Option<Data>,
}

#[derive(Deserialize)]
struct Data {
    #[serde(default)]
    time: Option<String>,
    #[serde(default)]
    value: Option<f64>,
    #[serde(default)]
    tags: Option<Tags>,
}

#[derive(Default, Deserialize)]
struct Tags {
    #[serde(default)]
    status: Option<String>,
    #[serde(default)]
    expected_response: Option<String>,
    #[serde(default)]
    error: Option<String>,
}

/// How many kinds of errors are kept apart; a script can make up any number of messages.
const KINDS_MOST: usize = 200;

/// Adds samples up.
#[derive(Default)]
pub(super) struct K6Stream {
    requests: u64,
    good: u64,
    errors: BTreeMap<(bool, String), u64>,
    checks_failed: u64,
    latencies: Histogram,
    first: Option<u64>,
    last: u64,
}

impl Results for K6Stream {
    fn line(&mut self, line: &Line<'_>) -> Result<(), String> {
        let entry: Entry<'_> = serde_json::from_slice(line.text)
            .map_err(|_| "not a sample of k6's JSON output".to_owned())?;
        let Some(data) = entry.data.filter(|_| entry.kind == "Point") else {
            return Ok(());
        };
        if let Some(at) = data.time.as_deref().and_then(moment) {
            self.first = Some(self.first.map_or(at, |first| first.min(at)));
            self.last = self.last.max(at);
        }
        let value = data.value.unwrap_or(0.0);
        match entry.metric.as_ref() {
            "http_reqs" => self.request(value.max(0.0) as u64, data.tags.unwrap_or_default()),
            "http_req_duration" => {
                let time = seconds(value / 1e3).ok_or("a duration that cannot be true")?;
                self.latencies.add(time);
            }
            "checks" => self.checks_failed += u64::from(value == 0.0),
            _ => {}
        }
        Ok(())
    }

    fn report(&mut self) -> Report {
        let mut report = Report::of(Tool::K6);
        report.requests = Stated::Value(self.requests);
        report.good = Stated::Value(self.good);
        for ((answered, kind), count) in &self.errors {
            report.error(kind.clone(), *count, *answered);
        }
        report.checks_failed = Some(self.checks_failed);
        report.latency = match self.latencies.latencies() {
            Some(latencies) => Stated::Value(latencies),
            None => Stated::refused("no request was answered"),
        };
        let length = self.first.and_then(|first| self.last.checked_sub(first));
        report.duration = length.filter(|&length| length > 0).map(Nanos).into();
        if let Some(length) = report.duration.value() {
            report.rate = Stated::Value(self.requests as f64 / length.seconds());
        }
        report
    }
}

impl K6Stream {
    fn request(&mut self, count: u64, tags: Tags) {
        self.requests = self.requests.saturating_add(count);
        let status: u64 = tags.status.as_deref().and_then(|text| text.parse().ok()).unwrap_or(0);
        let expected = match tags.expected_response.as_deref() {
            Some(expected) => expected == "true",
            None => good(status),
        };
        if expected {
            self.good = self.good.saturating_add(count);
            return;
        }
        let kind = match status {
            0 => tags.error.filter(|error| !error.is_empty()).unwrap_or("transport".to_owned()),
            status => format!("status {status}"),
        };
        let key = (status != 0, kind);
        let full = self.errors.len() >= KINDS_MOST && !self.errors.contains_key(&key);
        let key = if full { (key.0, "other".to_owned()) } else { key };
        let errors = self.errors.entry(key).or_default();
        *errors = errors.saturating_add(count);
    }
}
