//! The cost table of one route. A small script sorts, filters, hides and copies it; without the
//! script it is whole.

use assay_captures::run_record::Route;

use super::answer::class;
use super::element::{id, text};
use crate::cost_table::{CostTable, Entry, Group, Line, cost_table};
use crate::report::Report;

pub(super) fn push(page: &mut String, report: &Report, route: &Route) {
    let content = cost_table(report, route);
    if content.groups.is_empty() {
        page.push_str("<p>It was not measured in this run.</p>\n");
        return;
    }
    let table = id("table", &content.route);
    page.push_str(&format!(
        "<div class=\"tools\" data-table=\"{table}\" hidden></div>\n\
         <div class=\"wide\"><table class=\"cost\" id=\"{table}\">\n<caption>What one request of \
         {} costs; the first column is the reference</caption>\n<thead><tr>\
         <th scope=\"col\">cost</th><th scope=\"col\" class=\"unit\">unit</th>",
        text(&content.route)
    ));
    for title in &content.titles {
        page.push_str(&format!("<th scope=\"col\">{}</th>", text(title)));
    }
    page.push_str("</tr></thead>\n");
    for group in &content.groups {
        push_group(page, &content, group);
    }
    page.push_str("</table></div>\n");
    push_notes(page, &content);
}

fn push_group(page: &mut String, content: &CostTable, group: &Group) {
    page.push_str(&format!(
        "<tbody>\n<tr class=\"group\"><th scope=\"rowgroup\" colspan=\"{}\">{} <small>{}</small>\
         </th></tr>\n",
        content.titles.len() + 2,
        text(group.title),
        text(&group.how),
    ));
    for line in &group.lines {
        push_line(page, content, line);
    }
    for remark in &group.remarks {
        page.push_str(&format!(
            "<tr class=\"remark\"><td colspan=\"{}\">{}{}</td></tr>\n",
            content.titles.len() + 2,
            text(&remark.text),
            references(content, &remark.notes),
        ));
    }
    page.push_str("</tbody>\n");
}

fn push_line(page: &mut String, content: &CostTable, line: &Line) {
    page.push_str(&format!(
        "<tr class=\"in{}\"><th scope=\"row\">{}{}</th><td class=\"unit\">{}</td>",
        line.indent.min(4),
        text(&line.name),
        references(content, &line.notes),
        text(line.unit),
    ));
    for (column, entry) in line.entries.iter().enumerate() {
        page.push_str(&cell(content, line, entry, column > 0));
    }
    page.push_str("</tr>\n");
}

/// A cell; those of variants keep room for a change, so that figures stand below each other.
fn cell(content: &CostTable, line: &Line, entry: &Entry, variant: bool) -> String {
    let value = text(&entry.value);
    let room = if variant { " <span></span>" } else { "" };
    if entry.value == "n/a" {
        let reasons: Vec<&str> = line
            .notes
            .iter()
            .filter_map(|number| content.notes.get(number - 1))
            .filter(|note| note.starts_with("not measured"))
            .map(String::as_str)
            .collect();
        let reasons = text(&reasons.join("; "));
        return format!("<td class=\"none\"><abbr title=\"{reasons}\">n/a</abbr>{room}</td>");
    }
    if entry.words {
        return format!("<td class=\"words\">{value}</td>");
    }
    if entry.change.is_empty() {
        return format!("<td>{value}{room}</td>");
    }
    let mark = entry.change.rsplit(' ').next().unwrap_or_default();
    format!("<td>{value} <span class=\"{}\">{}</span></td>", class(mark), text(&entry.change))
}

fn references(content: &CostTable, notes: &[usize]) -> String {
    if notes.is_empty() {
        return String::new();
    }
    let link =
        |number: &usize| format!("<a href=\"#{}\">{number}</a>", note(&content.route, *number));
    let links: Vec<String> = notes.iter().map(link).collect();
    format!("<sup>{}</sup>", links.join(", "))
}

fn note(route: &str, number: usize) -> String {
    format!("{}-{number}", id("note", route))
}

fn push_notes(page: &mut String, content: &CostTable) {
    if content.notes.is_empty() {
        return;
    }
    page.push_str("<ol class=\"notes\">\n");
    for (index, sentence) in content.notes.iter().enumerate() {
        page.push_str(&format!(
            "<li id=\"{}\">{}</li>\n",
            note(&content.route, index + 1),
            text(sentence)
        ));
    }
    page.push_str("</ol>\n");
}
