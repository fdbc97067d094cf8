//! The report as a terminal shows it: a table for each route, findings, what was checked, and a
//! legend.

use crate::cost_table::{self, CostTable, Entry, Group, LEGEND, Line, cost_table};
use crate::plain;
use crate::report::Report;
use crate::sections::{self, Section};
use crate::table::{self, Align, Cell, Column, Row};

/// How much room there is, and whether colours are understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct View {
    /// Columns of the terminal; variants that do not fit beside each other follow below.
    pub width: usize,
    /// Whether to colour marks and titles. Marks are always beside figures or words.
    pub colour: bool,
}

/// The narrowest terminal that is served: room for the reference and one variant.
const NARROWEST: usize = 64;
/// Columns for what a line counts.
const NAMES: usize = 27;
/// Notes below a table; more would bury it.
const NOTES: usize = 6;
/// Columns of a unit.
const UNIT: usize = 5;
/// Columns of a figure, and of a change with its mark.
const FIGURE: usize = 7;
const CHANGE: usize = 9;

/// Renders the routes named, or all where none is.
#[must_use]
pub fn render(report: &Report, routes: &[String], view: View) -> String {
    let width = view.width.max(NARROWEST);
    let mut out = String::new();
    push_section(&mut out, &sections::setting(report), width);
    for route in cost_table::routes(report, routes) {
        push_table(&mut out, report, &cost_table(report, route), width);
    }
    for section in sections::all(report, routes) {
        push_section(&mut out, &section, width);
    }
    push_legend(&mut out, width);
    if view.colour { coloured(&out) } else { out }
}

fn push_table(out: &mut String, report: &Report, content: &CostTable, width: usize) {
    let title = format!("{} · {}", report.run.experiment, content.route);
    let title = format!("{}   {}", plain::line(&title, 40), plain::line(&content.request, 60));
    push_line(out, &title, width);
    if content.groups.is_empty() {
        push_line(out, "  not measured in this run\n", width);
        return;
    }
    let others = content.titles.len().saturating_sub(1);
    let fixed = NAMES + 1 + UNIT + 2 + FIGURE;
    let fit = (width.saturating_sub(fixed) / (2 + FIGURE + 1 + CHANGE)).max(1);
    let mut first = 1;
    loop {
        let last = (first + fit).min(others + 1);
        push_variants(out, content, first..last, width);
        first = last;
        if first > others {
            break;
        }
        out.push('\n');
    }
    let shown = shown(content);
    for (note, number) in content.notes.iter().zip(1..).take(shown) {
        push_hanging(
            out,
            &format!("{} ", superscript(number)),
            &plain::line(note, plain::SENTENCE),
            width,
        );
    }
    if content.notes.len() > shown {
        push_line(out, "⁺ more notes stand beside their figures in results.json", width);
    }
    out.push('\n');
}

/// The reference and the variants of `shown` side by side.
fn push_variants(
    out: &mut String,
    content: &CostTable,
    shown: std::ops::Range<usize>,
    width: usize,
) {
    let mut columns = vec![
        Column { align: Align::Left, gap: 0, least: NAMES },
        Column { align: Align::Left, gap: 1, least: UNIT },
        Column { align: Align::Right, gap: 2, least: FIGURE },
    ];
    for _ in shown.clone() {
        columns.push(Column { align: Align::Right, gap: 2, least: FIGURE });
        columns.push(Column { align: Align::Right, gap: 1, least: CHANGE });
    }
    let mut rows = titles(content, shown.clone());
    for group in &content.groups {
        push_group(&mut rows, group, shown.clone(), self::shown(content), width);
    }
    out.push_str(&table::render(&columns, &rows));
}

/// The titles of the columns, broken into lines and standing on the same ground.
fn titles(content: &CostTable, shown: std::ops::Range<usize>) -> Vec<Row> {
    let title = |index: usize| content.titles.get(index).map_or("", String::as_str);
    let reference = plain::wrap(&plain::line(title(0), 60), UNIT + 2 + FIGURE);
    let others = shown.map(|index| plain::wrap(&plain::line(title(index), 60), FIGURE + CHANGE));
    let titles: Vec<Vec<String>> = std::iter::once(reference).chain(others).collect();
    let height = titles.iter().map(Vec::len).max().unwrap_or(0);
    (0..height)
        .map(|row| {
            let mut cells = vec![Cell::new("")];
            for lines in &titles {
                let above = height - lines.len();
                let text = row.checked_sub(above).map_or("", |line| lines[line].as_str());
                cells.push(Cell::across(text, 2));
            }
            Row::Cells(cells)
        })
        .collect()
}

fn push_group(
    rows: &mut Vec<Row>,
    group: &Group,
    shown: std::ops::Range<usize>,
    notes: usize,
    width: usize,
) {
    let title = if group.how.is_empty() {
        group.title.to_owned()
    } else {
        format!("{:<31}  {}", group.title, group.how)
    };
    rows.push(Row::Text(plain::cut(&title, width)));
    for line in &group.lines {
        let mut cells = vec![Cell::new(name(line, notes)), Cell::new(line.unit)];
        let reference = line.entries.first().cloned().unwrap_or_default();
        // Words of the reference, such as its range of laps, reach into the unit's column.
        if reference.words && !reference.value.is_empty() {
            cells.pop();
            cells.push(Cell::across(reference.value, 2));
        } else {
            cells.push(Cell::new(reference.value));
        }
        for entry in line.entries.get(shown.clone()).into_iter().flatten() {
            push_entry(&mut cells, entry);
        }
        rows.push(Row::Cells(cells));
    }
    for remark in &group.remarks {
        let notes = references(&remark.notes, notes);
        let remark = format!("{}{notes}", plain::line(&remark.text, plain::SENTENCE));
        for (index, line) in plain::wrap(&remark, width.saturating_sub(4)).iter().enumerate() {
            rows.push(Row::Text(format!("  {} {line}", if index == 0 { "→" } else { " " })));
        }
    }
}

fn push_entry(cells: &mut Vec<Cell>, entry: &Entry) {
    if entry.words {
        cells.push(Cell::across(entry.value.clone(), 2));
        return;
    }
    cells.push(Cell::new(entry.value.clone()));
    let marked = entry.change.ends_with(['▲', '▼', '≈', '?', '~', '=']);
    // A change without mark ends where the figures of marked ones end.
    let gap = if marked || entry.change.is_empty() { "" } else { "  " };
    cells.push(Cell::new(format!("{}{gap}", entry.change)));
}

fn name(line: &Line, shown: usize) -> String {
    let notes = references(&line.notes, shown);
    let indent = "  ".repeat(line.indent);
    let room = NAMES.saturating_sub(indent.len() + notes.chars().count());
    format!("{indent}{}{notes}", plain::line(&line.name, room))
}

/// How many notes are printed: one more takes no more room than saying that there is one more.
fn shown(content: &CostTable) -> usize {
    if content.notes.len() == NOTES + 1 { NOTES + 1 } else { NOTES }
}

/// References to notes, as small as they can be; those that are not printed are one sign.
fn references(notes: &[usize], shown: usize) -> String {
    let mut signs: Vec<String> = notes
        .iter()
        .filter(|number| **number <= shown)
        .map(|number| superscript(*number))
        .collect();
    if signs.len() < notes.len() {
        signs.push("⁺".to_owned());
    }
    if signs.is_empty() { String::new() } else { format!(" {}", signs.join(" ")) }
}

fn superscript(number: usize) -> String {
    let digit = |digit: char| match digit {
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        '4' => '⁴',
        '5' => '⁵',
        '6' => '⁶',
        '7' => '⁷',
        '8' => '⁸',
        '9' => '⁹',
        _ => '⁰',
    };
    number.to_string().chars().map(digit).collect()
}

fn push_section(out: &mut String, section: &Section, width: usize) {
    if section.points.is_empty() {
        return;
    }
    push_line(out, section.title, width);
    let words = section.points.iter().flat_map(|point| &point.details);
    let widest = words.map(|(word, _)| word.len()).max().unwrap_or(0).max(10);
    for point in &section.points {
        push_hanging(out, "  ", &plain::line(&point.head, plain::SENTENCE), width);
        for (word, text) in &point.details {
            let prefix = format!("    {word:<widest$} ");
            push_hanging(out, &prefix, &plain::line(text, plain::SENTENCE), width);
        }
    }
    out.push('\n');
}

fn push_legend(out: &mut String, width: usize) {
    push_line(out, "How to read this", width);
    let above = out.clone();
    for (index, (sign, meaning)) in LEGEND.into_iter().enumerate() {
        // The first one is about all tables; what does not occur needs no explanation.
        let occurs = |part: &str| !part.is_empty() && above.contains(part);
        if index == 0 || sign.split([' ', ',']).any(occurs) {
            push_hanging(out, &format!("  {sign:<13} "), meaning, width);
        }
    }
}

fn push_line(out: &mut String, text: &str, width: usize) {
    out.push_str(&plain::cut(text, width));
    out.push('\n');
}

/// A text behind a prefix; its further lines stand under the first.
fn push_hanging(out: &mut String, prefix: &str, text: &str, width: usize) {
    let hang = prefix.chars().count();
    for (index, line) in plain::wrap(text, width.saturating_sub(hang)).iter().enumerate() {
        if index == 0 {
            out.push_str(prefix);
        } else {
            out.extend(std::iter::repeat_n(' ', hang));
        }
        out.push_str(line);
        out.push('\n');
    }
}

/// Colours the marks, and makes lines that stand at the margin bold: only titles do.
fn coloured(text: &str) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let title = line.starts_with(|first: char| first.is_alphanumeric());
        let line = line.replace('▲', "\u{1b}[32m▲\u{1b}[39m").replace('▼', "\u{1b}[31m▼\u{1b}[39m");
        if title {
            out.push_str(&format!("\u{1b}[1m{line}\u{1b}[22m\n"));
        } else {
            out.push_str(&line);
            out.push('\n');
        }
    }
    out
}
