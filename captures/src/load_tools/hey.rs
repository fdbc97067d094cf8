//! hey: its text, and `-o csv`. Labels of its histogram are upper edges, so nothing is computed
//! from them; and it keeps only the first million results.

use crate::load_tools::histogram::Histogram;
use crate::load_tools::model::{Report, Stated, Tool};
use crate::load_tools::parse::Results;
use crate::load_tools::quantities::{count, duration, good, latency, quantile, seconds};
use crate::text_lines::Line;
use crate::units::Nanos;

/// hey's buffer of results; what comes after is counted by nobody.
const KEPT: u64 = 1_000_000;

/// Reads one run.
pub(super) fn text(text: &str) -> Result<Report, &'static str> {
    let mut report = Report::of(Tool::Hey);
    let answers = summary(text, &mut report)?;
    if answers.all() >= KEPT {
        let of_rate = match (report.rate.value(), report.duration.value()) {
            (Some(rate), Some(length)) => Some((rate * length.seconds()).round() as u64),
            _ => None,
        };
        if let Some(requests) = of_rate.filter(|&requests| requests > answers.all()) {
            report.requests = Stated::Value(requests);
            report.good = Stated::refused(
                "hey keeps only the first 1,000,000 results: the others' statuses are not known",
            );
            report.notes.push(
                "hey keeps only the first 1,000,000 results: statuses and latency are theirs; \
                 the number of requests is rate × time"
                    .to_owned(),
            );
        }
    }
    Ok(report)
}

/// What the status and error lists add up to.
#[derive(Default)]
pub(super) struct Answers {
    good: u64,
    others: u64,
}

impl Answers {
    fn all(&self) -> u64 {
        self.good.saturating_add(self.others)
    }
}

/// Reads the summary that hey and oha print nearly alike.
pub(super) fn summary(text: &str, report: &mut Report) -> Result<Answers, &'static str> {
    let mut answers = Answers::default();
    let mut latencies = Vec::new();
    let mut section = "";
    let mut below_resolution = false;
    let mut statuses_seen = false;
    for line in text.lines() {
        if !line.starts_with([' ', '\t']) {
            section = line.trim().trim_end_matches(':');
            statuses_seen |= section.starts_with("Status code") || section.starts_with("Error");
            continue;
        }
        let line = line.trim();
        if section.starts_with("Status code") || section.starts_with("Error distribution") {
            entry(line, section.starts_with("Error"), report, &mut answers);
            continue;
        }
        let point = match line.split_once(" in ") {
            Some((percent, time)) if line.contains('%') => {
                Some((quantile(percent.trim_end_matches('%')), time))
            }
            _ => line.split_once(':').and_then(|(key, value)| {
                let value = value.trim();
                match key {
                    "Total" => report.duration = duration(value).into(),
                    "Requests/sec" => report.rate = value.parse().ok().into(),
                    "Average" => return Some((Some("mean".to_owned()), value)),
                    "Fastest" => return Some((Some("min".to_owned()), value)),
                    "Slowest" => return Some((Some("max".to_owned()), value)),
                    _ => {}
                }
                None
            }),
        };
        if let Some((Some(quantile), time)) = point {
            match duration(time) {
                Some(Nanos(0)) => below_resolution = true,
                Some(time) => latencies.push(latency(quantile, time)),
                None => {}
            }
        }
    }
    if !statuses_seen {
        return Err("the status code distribution is missing: the run did not end");
    }
    report.requests = Stated::Value(answers.all());
    report.good = Stated::Value(answers.good);
    let answered = answers.good > 0 || report.error_count(true) > 0;
    report.latency = match answered {
        true => Stated::from((!latencies.is_empty()).then_some(latencies)),
        false => Stated::refused("no request was answered"),
    };
    if below_resolution {
        report.notes.push("latencies printed as 0 are below the resolution; left out".to_owned());
    }
    Ok(answers)
}

/// `[200] 357 responses`, or `[21] connection closed before message completed`.
fn entry(line: &str, error: bool, report: &mut Report, answers: &mut Answers) {
    let Some((bracket, rest)) = line.strip_prefix('[').and_then(|rest| rest.split_once(']')) else {
        return;
    };
    let rest = rest.trim();
    if error {
        let failed = count(bracket).unwrap_or(0);
        answers.others = answers.others.saturating_add(failed);
        report.error(rest, failed, false);
        return;
    }
    let number = rest.split_whitespace().next().and_then(count).unwrap_or(0);
    match count(bracket) {
        Some(status) if good(status) => answers.good = answers.good.saturating_add(number),
        _ => {
            answers.others = answers.others.saturating_add(number);
            report.error(format!("status {bracket}"), number, true);
        }
    }
}

/// `hey -o csv`: one line an answer; requests without an answer have none.
#[derive(Default)]
pub(super) struct Csv {
    latencies: Histogram,
    good: u64,
    statuses: std::collections::BTreeMap<u64, u64>,
    end: f64,
}

impl Results for Csv {
    fn line(&mut self, line: &Line<'_>) -> Result<(), String> {
        let text = String::from_utf8_lossy(line.text);
        if text.starts_with("response-time") {
            return Ok(());
        }
        let fields: Vec<&str> = text.split(',').map(str::trim).collect();
        let number = |index: usize| fields.get(index).and_then(|text| text.parse::<f64>().ok());
        let status = fields.get(6).and_then(|text| text.parse::<u64>().ok());
        let (Some(time), Some(status)) = (number(0).and_then(seconds), status) else {
            return Err("not a result of hey".to_owned());
        };
        let (Some(offset), true) = (number(7), line.ended) else {
            return Err("a result of hey without its last column".to_owned());
        };
        self.latencies.add(time);
        self.end = self.end.max(offset + time.seconds());
        if good(status) {
            self.good += 1;
        } else {
            *self.statuses.entry(status).or_default() += 1;
        }
        Ok(())
    }

    fn report(&mut self) -> Report {
        let mut report = Report::of(Tool::Hey);
        for (status, count) in &self.statuses {
            report.error(format!("status {status}"), *count, true);
        }
        let requests = self.good + report.error_count(true);
        report.requests = Stated::Value(requests);
        report.good = Stated::Value(self.good);
        report.latency = match self.latencies.latencies() {
            Some(latencies) => Stated::Value(latencies),
            None => Stated::refused("no request was answered"),
        };
        report.duration = seconds(self.end).filter(|end| end.0 > 0).into();
        if let Some(length) = report.duration.value() {
            report.rate = Stated::Value(requests as f64 / length.seconds());
        }
        report.notes.push("hey's CSV leaves out requests without an answer".to_owned());
        if requests >= KEPT {
            report.notes.push("hey keeps only the first 1,000,000 results".to_owned());
            report.rate = Stated::refused("hey keeps only the first 1,000,000 results");
        }
        report
    }
}
