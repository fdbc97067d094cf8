//! What a certificate says: titles, cells and remarks, without a dress.

use std::collections::BTreeMap;

use assay_analyses::calibration::{
    CostInterval, Limit, ProbeCost, Reading, Row, Share, Verdict, WireRate,
};

use super::Calibrated;
use crate::numbers::{Scale, count, number};

/// Heading of the whole.
pub(super) const TITLE: &str = "Calibration: every instrument against a service of known costs";
/// Columns for names.
pub(super) const NAMES: usize = 40;

/// One table.
pub(super) struct Sheet {
    pub(super) title: String,
    pub(super) head: &'static [&'static str],
    pub(super) lines: Vec<Line>,
    /// What must be said of single lines.
    pub(super) remarks: Vec<String>,
}

/// One line of a table.
pub(super) enum Line {
    /// A heading inside it.
    Group(String),
    /// Cells of all columns.
    Cells(Vec<String>),
}

/// When, on what, under which circumstances.
pub(super) fn about(calibrated: &Calibrated) -> Vec<String> {
    let about = &calibrated.about;
    let length = if about.quick { "quick run" } else { "full run" };
    let mut points = vec![format!("{}, assay {}, {length}", about.made, about.assay)];
    let machine: Vec<String> =
        about.machine.iter().map(|(name, value)| format!("{name} {value}")).collect();
    points.push(machine.join(" · "));
    points.extend(calibrated.circumstances.iter().cloned());
    points
}

/// One sentence of what it came to.
pub(super) fn summary(calibrated: &Calibrated) -> String {
    let about = &calibrated.about;
    let mut text = format!("{} of {} figures are within their limits", about.hold, about.figures());
    for (what, names) in [
        ("outside", &about.broken),
        ("too noisy to tell", &about.cannot_tell),
        ("not measured", &about.not_measured),
    ] {
        if !names.is_empty() {
            text.push_str(&format!("; {} {what}: {}", names.len(), names.join(", ")));
        }
    }
    text.push('.');
    text
}

/// All tables.
pub(super) fn sheets(calibrated: &Calibrated) -> Vec<Sheet> {
    let certificate = &calibrated.certificate;
    vec![
        figures(&certificate.rows),
        shares(&certificate.shares),
        costs(&certificate.costs, certificate.wire.as_ref()),
    ]
}

fn figures(rows: &[Row]) -> Sheet {
    let mut lines = Vec::new();
    let mut remarks = Vec::new();
    let mut route = "";
    for row in rows {
        if row.route != route {
            route = &row.route;
            lines.push(Line::Group(route.to_owned()));
        }
        let scale = Scale::of(unit(&row.metric), "", &amounts(row));
        let worst = row.worst();
        let amount = |of: fn(&Reading) -> Option<f64>| match worst.and_then(of) {
            Some(amount) => with_unit(&scale, amount),
            None => "n/a".to_owned(),
        };
        lines.push(Line::Cells(vec![
            name(&row.metric, &row.labels),
            amount(|reading| Some(reading.truth)),
            amount(|reading| reading.amount),
            error(row),
            limit(row.limit),
            count(row.readings.len() as f64),
            word(&row.verdict()).to_owned(),
        ]));
        remarks.extend(remarks_of(row));
    }
    let title = "Figures, per request, as the worst of all readings has them".to_owned();
    let head = &["", "truth", "read", "error", "limit", "readings", "verdict"];
    Sheet { title, head, lines, remarks }
}

fn amounts(row: &Row) -> Vec<(f64, f64)> {
    row.readings.iter().map(|reading| (reading.truth, 0.0)).collect()
}

fn with_unit(scale: &Scale, amount: f64) -> String {
    let unit = if scale.unit.is_empty() { String::new() } else { format!(" {}", scale.unit) };
    format!("{}{unit}", scale.show(amount))
}

fn error(row: &Row) -> String {
    match row.worst().and_then(|reading| reading.error) {
        None => "n/a".to_owned(),
        Some(error) if error == 0.0 || error.abs() < 1e-12 => "0".to_owned(),
        Some(error) => signed(error),
    }
}

/// A share as a percentage with two decimals and its sign.
fn signed(share: f64) -> String {
    let text = number(share * 100.0, 2);
    format!("{}{text} %", if share > 0.0 { "+" } else { "" })
}

fn percent(share: f64) -> String {
    format!("{} %", number(share * 100.0, 1))
}

fn limit(limit: Limit) -> String {
    match limit {
        Limit::Exact => "exact".to_owned(),
        Limit::Within(share) => format!("±{} %", number(share * 100.0, 0)),
        Limit::AtLeast => "≥ truth".to_owned(),
    }
}

fn word(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Holds => "✓ holds",
        Verdict::CannotTell(_) => "? cannot tell",
        Verdict::NotMeasured(_) => "? n/a",
        Verdict::Broken => "✗ outside",
    }
}

/// `postgres.flights (prepare)`.
fn name(metric: &str, labels: &BTreeMap<String, String>) -> String {
    let labels: Vec<&str> = labels.values().map(String::as_str).collect();
    if labels.is_empty() { metric.to_owned() } else { format!("{metric} ({})", labels.join(", ")) }
}

fn unit(metric: &str) -> &'static str {
    match metric {
        "cpu.time" | "latency" => "s",
        _ if metric.contains("bytes") => "By",
        _ => "1",
    }
}

/// One remark for each way in which readings of a row do not hold.
fn remarks_of(row: &Row) -> Vec<String> {
    let mut said: Vec<(String, Vec<String>)> = Vec::new();
    for reading in &row.readings {
        let why = match &reading.verdict {
            Verdict::Holds => continue,
            Verdict::CannotTell(reason) | Verdict::NotMeasured(reason) => reason.clone(),
            Verdict::Broken => "outside its limit".to_owned(),
        };
        let off = reading.error.map(|error| format!(" ({})", signed(error))).unwrap_or_default();
        let place = &reading.place;
        let by = if place.instrument == place.pass {
            String::new()
        } else {
            format!(" by {}", place.instrument)
        };
        let place = format!("{}, pass {}{by}{off}", place.condition, place.pass);
        match said.iter_mut().find(|(known, _)| *known == why) {
            Some((_, places)) => places.push(place),
            None => said.push((why, vec![place])),
        }
    }
    let name = name(&row.metric, &row.labels);
    said.into_iter()
        .map(|(why, places)| format!("{name} of {}: {why}: {}", row.route, places.join("; ")))
        .collect()
}

fn shares(shares: &[Share]) -> Sheet {
    let lines = shares.iter().map(|share| {
        Line::Cells(vec![
            share.function.clone(),
            percent(share.truth),
            percent(share.reading),
            format!("{} of {}", share.inside, share.runs),
            "17 of 20".to_owned(),
            word(&share.verdict).to_owned(),
        ])
    });
    let remarks = shares
        .iter()
        .filter_map(|share| match &share.verdict {
            Verdict::NotMeasured(reason) => Some(format!("{}: {reason}", share.function)),
            _ => None,
        })
        .collect();
    Sheet {
        title: "Shares of CPU samples: recordings whose interval holds the true share".to_owned(),
        head: &["", "truth", "samples", "inside", "limit", "verdict"],
        lines: lines.collect(),
        remarks,
    }
}

fn costs(costs: &[ProbeCost], wire: Option<&WireRate>) -> Sheet {
    let mut lines = Vec::new();
    let mut remarks = Vec::new();
    let mut probe = "";
    for cost in costs {
        if cost.probe != probe {
            probe = &cost.probe;
            let all = if probe == "together" { " (wire, syscalls and usage)" } else { "" };
            lines.push(Line::Group(format!("{probe}{all}")));
        }
        let cell = |of: &dyn Fn(&CostInterval) -> String| {
            cost.cost.as_ref().map_or_else(|| "n/a".to_owned(), of)
        };
        lines.push(Line::Cells(vec![
            cost.of.to_owned(),
            cell(&|cost| signed(cost.value)),
            cell(&|cost| {
                format!("{} to {} %", number(cost.low * 100.0, 1), number(cost.high * 100.0, 1))
            }),
            cell(&|cost| percent(cost.least_seen())),
            cell(&|cost| count(f64::from(cost.pairs))),
            percent(cost.limit),
            word(&cost.verdict).to_owned(),
        ]));
        if let Verdict::NotMeasured(reason) = &cost.verdict {
            remarks.push(format!("{} of {}: {reason}", cost.of, cost.probe));
        }
    }
    remarks.dedup();
    remarks.push(match wire {
        None => "the wire was not recorded".to_owned(),
        Some(wire) => wire_rate(wire),
    });
    Sheet {
        title: "What a probe costs the service, in neighbouring laps with it off and on; outside \
                its limit is what lies above it with its whole interval"
            .to_owned(),
        head: &["", "cost", "interval", "least seen", "pairs", "limit", "verdict"],
        lines,
        remarks,
    }
}

fn wire_rate(wire: &WireRate) -> String {
    let mut text = format!(
        "highest rate that the wire recorded without a drop: {} requests and {} packets a second \
         ({})",
        number(wire.requests, 0),
        number(wire.packets, 0),
        wire.condition,
    );
    match wire.dropped.first() {
        None => text.push_str("; nothing was dropped, also not at the fastest that could be sent"),
        Some((rate, packets)) => text.push_str(&format!(
            "; at {} requests a second {} packets were dropped",
            number(*rate, 0),
            count(*packets as f64)
        )),
    }
    text
}
