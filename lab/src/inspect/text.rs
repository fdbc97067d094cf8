//! The inspection for people: a short head, the table, the findings, the integrity notes.

use std::fmt::Write as _;

use assay_analyses::cost::{Amount, Cost, Per};
use assay_reports::json::Inspected;

use crate::ui::printable;

/// Renders what was found. Foreign text is escaped.
#[must_use]
pub fn render(found: &Inspected) -> String {
    let mut text = String::new();
    for (file, holds) in &found.source {
        let _never = writeln!(text, "{}: {}", printable(file), holds);
    }
    let rows: Vec<(String, String)> = found.costs.iter().map(row).collect();
    let widest = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0).min(72);
    if !rows.is_empty() {
        text.push('\n');
    }
    for (name, amount) in rows {
        let _never = writeln!(text, "{name:widest$}  {amount}");
    }
    for (title, lines) in [
        ("Findings", &found.findings),
        ("Integrity", &found.integrity),
        ("Problems", &found.problems),
    ] {
        if !lines.is_empty() {
            let _never = writeln!(text, "\n{title}");
        }
        for line in lines {
            let _never = writeln!(text, "  {}", printable(line));
        }
    }
    text
}

fn row(cost: &Cost) -> (String, String) {
    let labels: Vec<String> =
        cost.labels.iter().map(|(key, value)| format!("{key} {value}")).collect();
    // Laps of a run belong to an arm and a route; foreign files to nobody.
    let origin = &cost.origin;
    let whose = match origin.subject.is_empty() {
        true => String::new(),
        false => {
            format!("{} {} · {} · {} · ", origin.subject, origin.variant, origin.route, origin.pass)
        }
    };
    let name = match labels.is_empty() {
        true => cost.metric.name().to_owned(),
        false => format!("{} · {}", cost.metric.name(), labels.join(" · ")),
    };
    let unit = match cost.metric.unit() {
        "1" => String::new(),
        unit => format!(" {unit}"),
    };
    let per = match cost.per {
        Per::Request => " per request",
        Per::Capture => " in all",
        Per::Nothing => "",
    };
    let mut amount = match &cost.amount {
        Amount::Measured(figure) => format!("{}{unit}{per}", number(figure.value)),
        Amount::LowerBound(figure, why) => {
            format!("at least {}{unit}{per}: {why}", number(figure.value))
        }
        Amount::NotMeasured(why) => format!("not measured: {why}"),
    };
    for doubt in &cost.doubts {
        amount.push_str(" · ");
        amount.push_str(doubt);
    }
    let name = whose + &name;
    (printable(&name).into_owned(), printable(&amount).into_owned())
}

/// Whole numbers as they are, others with six significant digits.
fn number(value: f64) -> String {
    if value.fract() == 0.0 && value.abs() < 1e15 {
        return format!("{value:.0}");
    }
    let before = value.abs().log10().floor().max(-9.0) as i32 + 1;
    let digits = usize::try_from((6 - before).max(0)).unwrap_or(0);
    format!("{value:.digits$}")
}
