//! The report as a Markdown document: the same content as in the terminal, one table a route.

use std::fmt::Write as _;

use crate::cost_table::{self, CostTable, Entry, LEGEND, Line, Remark, cost_table};
use crate::plain;
use crate::report::Report;
use crate::sections::{self, Section};

/// Renders the routes named, or all where none is.
#[must_use]
pub fn render(report: &Report, routes: &[String]) -> String {
    let mut out = String::new();
    line(&mut out, &format!("# {}", escape(&report.run.experiment)));
    push_section(&mut out, &sections::setting(report));
    for route in cost_table::routes(report, routes) {
        push_table(&mut out, &cost_table(report, route));
    }
    for section in sections::all(report, routes) {
        push_section(&mut out, &section);
    }
    line(&mut out, "\n## How to read this\n");
    for (sign, meaning) in LEGEND {
        line(&mut out, &format!("- **{}**: {}", escape(sign), escape(meaning)));
    }
    out
}

fn escape(text: &str) -> String {
    plain::markdown(text, plain::SENTENCE)
}

fn line(out: &mut String, text: &str) {
    out.push_str(text.trim_end_matches(' '));
    out.push('\n');
}

fn push_table(out: &mut String, content: &CostTable) {
    line(out, &format!("\n## {}: {}\n", escape(&content.route), escape(&content.request)));
    if content.groups.is_empty() {
        return line(out, "It was not measured in this run.");
    }
    let mut head = "| | unit |".to_owned();
    let mut rule = "| :--- | :--- |".to_owned();
    for title in &content.titles {
        let _ = write!(head, " {} |", plain::markdown(title, 60));
        rule.push_str(" ---: |");
    }
    line(out, &head);
    line(out, &rule);
    for group in &content.groups {
        let how = if group.how.is_empty() { String::new() } else { format!("({})", group.how) };
        let empty = " |".repeat(content.titles.len() + 1);
        line(out, &format!("| **{}** {} |{empty}", escape(group.title), escape(&how)));
        for content in &group.lines {
            line(out, &row(content));
        }
    }
    let remarks: Vec<&Remark> = content.groups.iter().flat_map(|group| &group.remarks).collect();
    if !remarks.is_empty() || !content.notes.is_empty() {
        out.push('\n');
    }
    for remark in remarks {
        let notes = references(&remark.notes);
        line(out, &format!("- → {}{notes}", escape(&remark.text)));
    }
    for (note, number) in content.notes.iter().zip(1..) {
        line(out, &format!("- ({number}) {}", escape(note)));
    }
}

fn row(content: &Line) -> String {
    let indent = "&emsp;".repeat(content.indent.saturating_sub(1));
    let notes = references(&content.notes);
    let mut row =
        format!("| {indent}{}{notes} | {} |", plain::markdown(&content.name, 60), content.unit);
    for entry in &content.entries {
        let _ = write!(row, " {} |", cell(entry));
    }
    row
}

fn references(notes: &[usize]) -> String {
    notes.iter().map(|number| format!(" ({number})")).collect()
}

fn cell(entry: &Entry) -> String {
    let value = escape(&entry.value);
    if entry.change.is_empty() { value } else { format!("{value} ({})", escape(&entry.change)) }
}

fn push_section(out: &mut String, section: &Section) {
    if section.points.is_empty() {
        return;
    }
    line(out, &format!("\n## {}\n", escape(section.title)));
    for point in &section.points {
        line(out, &format!("- {}", escape(&point.head)));
        for (word, text) in &point.details {
            line(out, &format!("  - {}: {}", escape(word), escape(text)));
        }
    }
}
