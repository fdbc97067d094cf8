//! oha: JSON and text. Its success rate is about the transport: an answer 503 is a success.

use serde::Deserialize;
use std::collections::BTreeMap;

use crate::document::json_problem;
use crate::load_tools::hey;
use crate::load_tools::model::{Report, Stated, Tool};
use crate::load_tools::quantities::{good, latency, quantile, seconds};
use crate::parsed::Problem;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct File {
    summary: Summary,
    #[serde(default)]
    latency_percentiles: BTreeMap<String, Option<f64>>,
    #[serde(default)]
    status_code_distribution: BTreeMap<String, u64>,
    #[serde(default)]
    error_distribution: BTreeMap<String, u64>,
}

/// Figures that cannot be computed (no answer) are `null`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Summary {
    #[serde(default)]
    total: Option<f64>,
    #[serde(default)]
    slowest: Option<f64>,
    #[serde(default)]
    fastest: Option<f64>,
    #[serde(default)]
    average: Option<f64>,
    #[serde(default)]
    requests_per_sec: Option<f64>,
}

/// Reads `--output-format json`.
pub(super) fn json(bytes: &[u8]) -> Result<Report, Problem> {
    let file: File = serde_json::from_slice(bytes).map_err(|error| json_problem(&error, bytes))?;
    let mut report = Report::of(Tool::Oha);
    let (mut good_answers, mut answers) = (0_u64, 0_u64);
    for (status, count) in &file.status_code_distribution {
        answers = answers.saturating_add(*count);
        if status.parse().is_ok_and(good) {
            good_answers = good_answers.saturating_add(*count);
        } else {
            report.error(format!("status {status}"), *count, true);
        }
    }
    for (error, count) in &file.error_distribution {
        report.error(error.clone(), *count, false);
    }
    report.requests = Stated::Value(answers.saturating_add(report.error_count(false)));
    report.good = Stated::Value(good_answers);
    report.duration = file.summary.total.and_then(seconds).filter(|length| length.0 > 0).into();
    report.rate = file.summary.requests_per_sec.filter(|rate| rate.is_finite()).into();
    report.latency = if answers == 0 {
        Stated::refused("no request was answered")
    } else {
        let points = file.latency_percentiles.iter().filter_map(|(name, value)| {
            let time = (*value).and_then(seconds)?;
            Some(latency(quantile(name.strip_prefix('p')?)?, time))
        });
        let summary = &file.summary;
        let extremes =
            [("mean", summary.average), ("min", summary.fastest), ("max", summary.slowest)];
        let extremes = extremes
            .into_iter()
            .filter_map(|(name, value)| Some(latency(name, value.and_then(seconds)?)));
        Stated::Value(points.chain(extremes).collect())
    };
    note(&mut report);
    Ok(report)
}

/// Reads the text.
pub(super) fn text(text: &str) -> Result<Report, &'static str> {
    let mut report = Report::of(Tool::Oha);
    hey::summary(text, &mut report)?;
    note(&mut report);
    Ok(report)
}

/// What oha calls requests that it gave up itself when its time was over.
const CUT_OFF: &str = "aborted due to deadline";

fn note(report: &mut Report) {
    let cut = report.errors.iter().position(|error| error.kind == CUT_OFF);
    if let Some(cut) = cut.map(|index| report.errors.remove(index).count) {
        if let Stated::Value(requests) = &mut report.requests {
            *requests = requests.saturating_sub(cut);
        }
        let what = "requests were under way when the time was over: neither answers nor errors";
        report.notes.push(format!("{cut} {what}"));
    }
    if report.error_count(true) > 0 {
        let note = "oha's success rate counts every answer, error answers too; it is not used";
        report.notes.push(note.to_owned());
    }
}
