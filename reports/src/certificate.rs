//! The certificate of a calibration, for the terminal and as Markdown: one content, two dresses.

mod content;
#[cfg(test)]
mod tests;

use assay_analyses::calibration::Certificate;
use assay_captures::run_record::Calibration;

use crate::plain;
use crate::table::{self, Align, Cell, Column, Row};
use content::{Line, Sheet};

/// A certificate and what a reader must know beside it.
#[derive(Clone, Debug)]
pub struct Calibrated {
    /// When, on what, and what it came to.
    pub about: Calibration,
    /// Everything that was found out.
    pub certificate: Certificate,
    /// Circumstances, one sentence each: load of the machine, places on cores.
    pub circumstances: Vec<String>,
    /// Where the captures are; empty for nowhere.
    pub folder: String,
}

/// For a terminal of `width` columns.
#[must_use]
pub fn terminal(calibrated: &Calibrated, width: usize) -> String {
    let mut out = format!("{}\n", content::TITLE);
    for point in content::about(calibrated) {
        hanging(&mut out, "  ", &point, width);
    }
    for sheet in content::sheets(calibrated) {
        out.push('\n');
        hanging(&mut out, "", &sheet.title, width);
        let mut rows = vec![cells(sheet.head)];
        rows.extend(sheet.lines.iter().map(|line| match line {
            Line::Group(text) => Row::Text(plain::cut(text, width)),
            Line::Cells(texts) => {
                let first = plain::cut(&format!("  {}", texts[0]), content::NAMES);
                let rest = texts[1..].iter().map(Cell::new);
                Row::Cells(std::iter::once(Cell::new(first)).chain(rest).collect())
            }
        }));
        out.push_str(&table::render(&columns(&sheet), &rows));
        for remark in &sheet.remarks {
            hanging(&mut out, "  → ", remark, width);
        }
    }
    out.push('\n');
    hanging(&mut out, "", &content::summary(calibrated), width);
    if !calibrated.folder.is_empty() {
        hanging(&mut out, "", &format!("captures: {}", calibrated.folder), width);
    }
    out
}

fn cells(texts: &[&str]) -> Row {
    Row::Cells(texts.iter().map(|&text| Cell::new(text)).collect())
}

fn columns(sheet: &Sheet) -> Vec<Column> {
    let last = sheet.head.len() - 1;
    let column = |index: usize| Column {
        // Names and verdicts are words, all between are numbers.
        align: if index == 0 || index == last { Align::Left } else { Align::Right },
        gap: if index == 0 { 0 } else { 2 },
        least: 0,
    };
    (0..sheet.head.len()).map(column).collect()
}

fn hanging(out: &mut String, prefix: &str, text: &str, width: usize) {
    let hang = prefix.chars().count();
    let text = plain::line(text, 4 * plain::SENTENCE);
    for (index, line) in plain::wrap(&text, width.saturating_sub(hang)).iter().enumerate() {
        let before = if index == 0 { prefix.to_owned() } else { " ".repeat(hang) };
        out.push_str(&format!("{before}{line}\n"));
    }
}

/// As a Markdown document.
#[must_use]
pub fn markdown(calibrated: &Calibrated) -> String {
    let escape = |text: &str| plain::markdown(text, 4 * plain::SENTENCE);
    let mut out = format!("# {}\n\n", content::TITLE);
    for point in content::about(calibrated) {
        out.push_str(&format!("- {}\n", escape(&point)));
    }
    out.push_str(&format!("\n{}\n", escape(&content::summary(calibrated))));
    for sheet in content::sheets(calibrated) {
        out.push_str(&format!("\n## {}\n\n", escape(&sheet.title)));
        out.push_str(&format!("| {} |\n|", sheet.head.join(" | ")));
        let last = sheet.head.len() - 1;
        for index in 0..=last {
            out.push_str(if index == 0 || index == last { " :--- |" } else { " ---: |" });
        }
        out.push('\n');
        for line in &sheet.lines {
            match line {
                Line::Group(text) => {
                    let empty = " |".repeat(last);
                    out.push_str(&format!("| **{}** |{empty}\n", escape(text)));
                }
                Line::Cells(texts) => {
                    let texts: Vec<String> = texts.iter().map(|text| escape(text)).collect();
                    out.push_str(&format!("| {} |\n", texts.join(" | ")));
                }
            }
        }
        if !sheet.remarks.is_empty() {
            out.push('\n');
        }
        for remark in &sheet.remarks {
            out.push_str(&format!("- {}\n", escape(remark)));
        }
    }
    out
}
