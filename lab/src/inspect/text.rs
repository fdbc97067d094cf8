//! The inspection for people: a short head, the table, the findings, the integrity notes.

use std::fmt::Write as _;

use assay_analyses::cost::{Amount, Cost, Per};
use assay_analyses::metric::Metric;
use assay_reports::json::Inspected;

use crate::ui::printable;

/// Widest name of a row; longer ones are cut in the middle.
const WIDEST: usize = 68;
/// Width of all, where there is no terminal to ask.
const COLUMNS: usize = 100;

/// Labels whose values are rows below their metric; others stand beside the metric's name.
const ROWS: [&str; 14] = [
    "program",
    "name",
    "errno",
    "reason",
    "function",
    "thread",
    "statement",
    "status",
    "quantile",
    "kind",
    "encryption",
    "of",
    "on",
    "why",
];

/// Renders what was found. Foreign text is escaped.
#[must_use]
pub fn render(found: &Inspected) -> String {
    let mut text = String::new();
    for source in &found.source {
        let _never = writeln!(text, "{}: {}", printable(&source.file), source.holds);
        for line in &source.about {
            wrapped(&mut text, "  ", &printable(line));
        }
    }
    table(&mut text, &found.costs);
    // Where all files are one capture, or there is one, its name says nothing.
    let names: Vec<&str> = found.source.iter().map(|source| source.file.as_str()).collect();
    let only = format!("{}: ", names.join(" "));
    for (title, lines) in [
        ("Findings", &found.findings),
        ("Integrity", &found.integrity),
        ("Problems", &found.problems),
    ] {
        if !lines.is_empty() {
            let _never = writeln!(text, "\n{title}");
        }
        for line in lines {
            wrapped(&mut text, "  ", &printable(line.strip_prefix(&only).unwrap_or(line)));
        }
    }
    text
}

/// One row of the table.
struct Row {
    name: String,
    amount: String,
    notes: Vec<usize>,
}

fn table(text: &mut String, costs: &[Cost]) {
    let per_request = costs.iter().any(|cost| cost.per == Per::Request);
    let mut notes: Vec<String> = Vec::new();
    let mut rows = Vec::new();
    let mut heading = String::new();
    for cost in costs.iter().filter(|cost| is_shown(cost, costs)) {
        let (title, part) = name(cost);
        if title != heading {
            // A metric that has parts only gets a line to stand below.
            if part.is_some() {
                rows.push(Row { name: title.clone(), amount: String::new(), notes: Vec::new() });
            }
            heading.clone_from(&title);
        }
        let name = part.map_or(title, |part| format!("  {part}"));
        rows.push(row(cost, name, per_request, &mut notes));
    }
    merge_unmeasured(&mut rows);
    if rows.is_empty() {
        return;
    }
    let name = |row: &Row| row.name.chars().count();
    let widest = rows.iter().map(name).max().unwrap_or(0).min(WIDEST);
    let amount = |row: &Row| row.amount.chars().count();
    let digits = rows.iter().map(amount).filter(|&long| long < 24).max().unwrap_or(0);
    let head = if per_request { "per request" } else { "in all" };
    let digits = digits.max(head.len());
    let _never = writeln!(text, "\n{:widest$}  {head:>digits$}", "");
    for row in rows {
        let name = shortened(&row.name);
        let marks: String = row.notes.iter().map(|note| format!(" [{note}]")).collect();
        let line = if row.amount.chars().count() > digits {
            format!("{name:widest$}  {}{marks}", row.amount)
        } else {
            format!("{name:widest$}  {:>digits$}{marks}", row.amount)
        };
        wrapped(text, "", line.trim_end());
    }
    for (index, note) in notes.iter().enumerate() {
        wrapped(text, "", &format!("[{}] {}", index + 1, printable(note)));
    }
}

/// Parts that are 0 for each reason say nothing, nor do parts of what was not measured.
fn is_shown(cost: &Cost, costs: &[Cost]) -> bool {
    if !cost.labels.contains_key("reason") {
        return true;
    }
    let total = costs
        .iter()
        .find(|of| of.metric == cost.metric && of.labels.is_empty() && of.origin == cost.origin);
    let measured = total.is_none_or(|total| total.amount.figure().is_some());
    measured && cost.amount.figure().is_none_or(|figure| figure.value != 0.0)
}

/// The title of a cost's block, and its own name within.
fn name(cost: &Cost) -> (String, Option<String>) {
    // Laps of a run belong to an arm and a route; foreign files to nobody.
    let origin = &cost.origin;
    let mut title = match origin.subject.is_empty() {
        true => String::new(),
        false => {
            format!("{} {} · {} · {} · ", origin.subject, origin.variant, origin.route, origin.pass)
        }
    };
    title.push_str(cost.metric.name());
    for (label, value) in &cost.labels {
        if !ROWS.contains(label) && *label != "unit" {
            let _never = write!(title, " · {value}");
        }
    }
    match (cost.labels.get("unit").map(String::as_str), cost.metric.unit()) {
        (Some("1"), _) | (None, "1") => {}
        (Some("By"), _) | (None, "By") if title.contains("bytes") => {}
        (Some("By"), _) | (None, "By") => title.push_str(", bytes"),
        (Some(unit), _) | (None, unit) => {
            let _never = write!(title, ", {unit}");
        }
    }
    for label in ["program", "statement"] {
        if cost.labels.contains_key(label) {
            let _never = write!(title, " by {label}");
        }
    }
    let parts = ROWS.iter().filter_map(|label| cost.labels.get(label));
    let parts: Vec<&str> = parts.map(String::as_str).collect();
    let part = (!parts.is_empty()).then(|| printable(&parts.join(" · ")).into_owned());
    (printable(&title).into_owned(), part)
}

fn row(cost: &Cost, name: String, per_request: bool, notes: &mut Vec<String>) -> Row {
    let mut marks = Vec::new();
    let mut note = |text: &str| {
        let known = notes.iter().position(|known| known == text);
        let index = known.unwrap_or_else(|| {
            notes.push(text.to_owned());
            notes.len() - 1
        });
        if !marks.contains(&(index + 1)) {
            marks.push(index + 1);
        }
    };
    let per = if per_request && cost.per == Per::Capture { " in all" } else { "" };
    let amount = match &cost.amount {
        Amount::Measured(figure) => format!("{}{per}", number(cost.metric, figure.value)),
        Amount::LowerBound(figure, why) => {
            note(why);
            format!("≥ {}{per}", number(cost.metric, figure.value))
        }
        Amount::NotMeasured(why) => format!("not measured: {why}"),
    };
    cost.doubts.iter().for_each(|doubt| note(doubt));
    Row { name, amount: printable(&amount).into_owned(), notes: marks }
}

/// Neighbours that were not measured for one reason are one row: `postgres.*`.
fn merge_unmeasured(rows: &mut Vec<Row>) {
    let mut merged: Vec<Row> = Vec::with_capacity(rows.len());
    for row in rows.drain(..) {
        if let Some(last) = merged.last_mut()
            && row.amount.starts_with("not measured")
            && row.amount == last.amount
        {
            let family = row.name.split('.').next().unwrap_or_default();
            if last.name.starts_with(family) && !row.name.starts_with(' ') {
                last.name = format!("{family}.*");
            }
            last.notes.clear();
            continue;
        }
        merged.push(row);
    }
    *rows = merged;
}

/// The name, with its middle cut out where it is too wide: both ends of a symbol tell something.
fn shortened(name: &str) -> String {
    let length = name.chars().count();
    if length <= WIDEST {
        return name.to_owned();
    }
    let half = (WIDEST - 1) / 2;
    let start: String = name.chars().take(half).collect();
    let end: String = name.chars().skip(length - (WIDEST - 1 - half)).collect();
    format!("{start}…{end}")
}

/// Writes a line, broken at blanks where it is wider than the page.
fn wrapped(text: &mut String, indent: &str, line: &str) {
    let mut rest = line;
    let mut lead = indent.to_owned();
    loop {
        let room = COLUMNS - lead.chars().count();
        let Some((limit, _)) = rest.char_indices().nth(room) else { break };
        let Some(cut) = rest[..limit].rfind(' ').filter(|&cut| cut * 3 > limit) else { break };
        let _never = writeln!(text, "{lead}{}", rest[..cut].trim_end());
        rest = rest[cut..].trim_start();
        lead = format!("{indent}    ");
    }
    let _never = writeln!(text, "{lead}{rest}");
}

/// Whole numbers as they are, others with up to six significant digits.
fn number(metric: Metric, value: f64) -> String {
    if value.fract() == 0.0 && value.abs() < 1e15 {
        return grouped(&format!("{value:.0}"));
    }
    let before = value.abs().log10().floor().max(-9.0) as i32 + 1;
    let digits = usize::try_from((6 - before).max(0)).unwrap_or(0);
    let text = format!("{value:.digits$}");
    match metric.unit() {
        // Digits of a time that are 0 were measured no better.
        "s" => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        _ => text,
    }
}

/// Thousands apart: `1 234 567`.
fn grouped(digits: &str) -> String {
    let (sign, digits) = digits.strip_prefix('-').map_or(("", digits), |rest| ("-", rest));
    if digits.len() < 5 {
        return format!("{sign}{digits}");
    }
    let mut text = sign.to_owned();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index) % 3 == 0 {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_no_more_digits_than_they_need() {
        assert_eq!(number(Metric::Syscalls, 1_234_567.0), "1 234 567");
        assert_eq!(number(Metric::Syscalls, 1_234.0), "1234");
        assert_eq!(number(Metric::Syscalls, 1.375), "1.37500");
        assert_eq!(number(Metric::Latency, 0.0034), "0.0034");
        assert_eq!(number(Metric::Latency, -0.5), "-0.5");
    }

    #[test]
    fn no_line_is_wider_than_the_page_if_it_can_be_broken() {
        let mut text = String::new();
        wrapped(&mut text, "  ", &"word ".repeat(50));
        assert!(text.lines().count() > 2 && text.lines().all(|line| line.len() <= COLUMNS));
        let mut text = String::new();
        wrapped(&mut text, "", &"x".repeat(150));
        assert_eq!(text.trim_end().len(), 150);
    }

    #[test]
    fn long_names_keep_both_ends() {
        let name = shortened(&format!("start{}end", "x".repeat(200)));
        assert_eq!(name.chars().count(), WIDEST);
        assert!(name.starts_with("start") && name.ends_with("end"));
    }
}
