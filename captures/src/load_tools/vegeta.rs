//! vegeta: its report in JSON and in text, and the results of `vegeta encode`. Status 0 is a
//! request without an answer.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::document::json_problem;
use crate::load_tools::histogram::Histogram;
use crate::load_tools::model::{Latency, Report, Stated, Tool};
use crate::load_tools::parse::Results;
use crate::load_tools::quantities::{count, go_duration, good, latency, moment, quantile};
use crate::parsed::Problem;
use crate::text_lines::Line;
use crate::units::Nanos;

#[derive(Deserialize)]
struct File {
    latencies: BTreeMap<String, u64>,
    #[serde(default)]
    requests: Option<u64>,
    #[serde(default)]
    rate: Option<f64>,
    #[serde(default)]
    duration: Option<u64>,
    #[serde(default)]
    wait: u64,
    #[serde(default)]
    status_codes: BTreeMap<String, u64>,
}

/// Reads `vegeta report -type=json`; its times are nanoseconds.
pub(super) fn json(bytes: &[u8]) -> Result<Report, Problem> {
    let file: File = serde_json::from_slice(bytes).map_err(|error| json_problem(&error, bytes))?;
    let mut report = Report::of(Tool::Vegeta);
    report.rate = file.rate.filter(|rate| rate.is_finite()).into();
    // vegeta's duration is that of the attack; answers came in until `wait` after it.
    let length = file.duration.and_then(|duration| duration.checked_add(file.wait));
    report.duration = length.filter(|&length| length > 0).map(Nanos).into();
    let answered = statuses(&mut report, file.status_codes.iter());
    if let Some(requests) = file.requests {
        report.requests = Stated::Value(requests);
    }
    let points = file.latencies.iter().filter_map(|(name, &nanos)| {
        let quantile = match name.as_str() {
            "mean" | "min" | "max" => name.clone(),
            _ => quantile(name.strip_suffix("th")?)?,
        };
        Some(latency(quantile, Nanos(nanos)))
    });
    report.latency = distribution(answered, points.collect());
    Ok(report)
}

/// Counts statuses; the answered ones are returned.
fn statuses<'a>(report: &mut Report, codes: impl Iterator<Item = (&'a String, &'a u64)>) -> u64 {
    let (mut good_answers, mut all) = (0_u64, 0_u64);
    for (code, &number) in codes {
        all = all.saturating_add(number);
        match code.parse() {
            Ok(status) if good(status) => good_answers = good_answers.saturating_add(number),
            Ok(0) => report.error("no answer", number, false),
            _ => report.error(format!("status {code}"), number, true),
        }
    }
    report.requests = Stated::Value(all);
    report.good = Stated::Value(good_answers);
    all.saturating_sub(report.error_count(false))
}

fn distribution(answered: u64, points: Vec<Latency>) -> Stated<Vec<Latency>> {
    match answered {
        0 => Stated::refused("no request was answered"),
        _ => Stated::from((!points.is_empty()).then_some(points)),
    }
}

/// Reads `vegeta report`.
pub(super) fn text(text: &str) -> Result<Report, &'static str> {
    let mut report = Report::of(Tool::Vegeta);
    let mut points = Vec::new();
    let mut codes = BTreeMap::new();
    let mut total = None;
    for line in text.lines() {
        let Some((name, rest)) = line.split_once('[') else { continue };
        let Some((columns, values)) = rest.split_once(']') else { continue };
        let columns = columns.split(", ");
        let values: Vec<&str> = values.split(',').map(str::trim).collect();
        match name.trim() {
            "Requests" => {
                total = values.first().and_then(|text| count(text));
                report.rate = values.get(1).and_then(|text| text.parse().ok()).into();
            }
            "Duration" => report.duration = values.first().and_then(|at| go_duration(at)).into(),
            "Latencies" => points.extend(columns.zip(&values).filter_map(|(column, value)| {
                let quantile = match column {
                    "mean" | "min" | "max" => column.to_owned(),
                    _ => quantile(column)?,
                };
                Some(latency(quantile, go_duration(value)?))
            })),
            "Status Codes" => {
                for code in values.iter().flat_map(|values| values.split_whitespace()) {
                    if let Some((code, number)) = code.split_once(':') {
                        codes.insert(code.to_owned(), count(number).unwrap_or(0));
                    }
                }
            }
            _ => {}
        }
    }
    let total = total.ok_or("the number of requests is missing: the report was cut")?;
    let answered = statuses(&mut report, codes.iter());
    report.requests = Stated::Value(total);
    if codes.is_empty() && total > 0 {
        report.good = Stated::refused("the status codes are missing: the report was cut");
    }
    report.latency = distribution(answered, points);
    Ok(report)
}

#[derive(Deserialize)]
struct Entry {
    code: u64,
    latency: u64,
    timestamp: String,
}

/// `vegeta encode`: one JSON object a result.
#[derive(Default)]
pub(super) struct Encoded {
    codes: BTreeMap<String, u64>,
    latencies: Histogram,
    first: Option<u64>,
    end: u64,
}

impl Results for Encoded {
    fn line(&mut self, line: &Line<'_>) -> Result<(), String> {
        let entry: Entry = serde_json::from_slice(line.text)
            .map_err(|_| "not a result of vegeta encode".to_owned())?;
        // Statuses have three digits; anything else would let the map grow without bound.
        let code = entry.code.min(1000);
        *self.codes.entry(code.to_string()).or_default() += 1;
        if code != 0 {
            self.latencies.add(Nanos(entry.latency));
        }
        if let Some(at) = moment(&entry.timestamp) {
            self.first = Some(self.first.map_or(at, |first| first.min(at)));
            self.end = self.end.max(at.saturating_add(entry.latency));
        }
        Ok(())
    }

    fn report(&mut self) -> Report {
        let mut report = Report::of(Tool::Vegeta);
        statuses(&mut report, self.codes.iter());
        report.latency = match self.latencies.latencies() {
            Some(latencies) => Stated::Value(latencies),
            None => Stated::refused("no request was answered"),
        };
        let length = self.first.and_then(|first| self.end.checked_sub(first));
        report.duration = length.filter(|&length| length > 0).map(Nanos).into();
        report
    }
}
