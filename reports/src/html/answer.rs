//! The answer: findings, each one line that opens to its evidence, then what the comparison says.

use std::collections::BTreeSet;

use assay_analyses::compare::Comparison;
use assay_analyses::findings::Finding;
use assay_analyses::metric::Metric;
use assay_captures::run_record::{Arm, Route};

use super::element::{escape, id, text};
use crate::cost_table::{mark, words};
use crate::numbers;
use crate::report::Report;
use crate::sections::claims;

/// Captures that one finding links to.
const LINKS: usize = 4;

pub(super) fn push(page: &mut String, report: &Report, routes: &[&Route], named: &[String]) {
    page.push_str("<section id=\"answer\">\n<h2>The answer</h2>\n");
    let wanted = |route: &String| named.is_empty() || named.contains(route);
    let findings: Vec<&Finding> =
        report.findings.iter().filter(|finding| wanted(&finding.route)).collect();
    if findings.is_empty() {
        page.push_str("<p>No rule found anything to say about these figures.</p>\n");
    }
    for finding in findings {
        push_finding(page, report, finding);
    }
    push_claims(page, report, named);
    for (metric, label, title) in [
        (Metric::Throughput, None, "Throughput against the reference"),
        (Metric::CpuTime, Some(("process", "subject")), "CPU time of the service per request"),
    ] {
        push_verdicts(page, report, routes, (metric, label), title);
    }
    page.push_str("</section>\n");
}

fn push_finding(page: &mut String, report: &Report, finding: &Finding) {
    let arms: Vec<&str> = finding.arms.iter().map(|arm| report.title(arm)).collect();
    let whose = if arms.len() == report.run.arms.len() {
        String::new()
    } else {
        format!(" <span class=\"whose\">({})</span>", text(&arms.join("; ")))
    };
    page.push_str(&format!(
        "<details class=\"finding\"><summary><strong>{}</strong>{whose}: {}</summary>\n<dl>\n",
        text(&finding.route),
        text(&finding.what)
    ));
    let why = if finding.hypothesis { "Perhaps" } else { "Why" };
    let cause = finding.why.strip_prefix("perhaps ").unwrap_or(&finding.why);
    let mut points = vec![("What", &*finding.what), (why, cause), ("How shown", &finding.shown)];
    points.extend(finding.not_shown.as_deref().map(|left| ("Not shown", left)));
    for (word, sentence) in points {
        page.push_str(&format!("<dt>{word}</dt><dd>{}</dd>\n", text(sentence)));
    }
    let chart = id("chart", &format!("{} {}", finding.route, chart(finding)));
    page.push_str(&format!(
        "<dt>See</dt><dd><a href=\"#{chart}\">the chart</a>, <a href=\"#{}\">the table</a>{}</dd>\n\
         </dl>\n<div class=\"copy\" data-chart=\"{chart}\"></div></details>\n",
        id("route", &finding.route),
        captures(report, finding),
    ));
}

/// The causes that the experiment names: each one line that opens to its figures.
fn push_claims(page: &mut String, report: &Report, named: &[String]) {
    let points = claims::points(report, named);
    if points.is_empty() {
        return;
    }
    page.push_str("<h3>Causes put to the test</h3>\n");
    for point in points {
        page.push_str(&format!(
            "<details class=\"finding\"><summary>{}</summary>\n<dl>\n",
            text(&point.head)
        ));
        for (word, sentence) in &point.details {
            page.push_str(&format!("<dt>{word}</dt><dd>{}</dd>\n", text(sentence)));
        }
        page.push_str("</dl></details>\n");
    }
}

/// The chart that shows it best.
fn chart(finding: &Finding) -> &'static str {
    match finding.rule {
        "small-writes" => "System calls",
        _ => "Round trips to Postgres",
    }
}

/// Links to the captures that it rests on, relative to the run directory, where the page lies.
fn captures(report: &Report, finding: &Finding) -> String {
    let wire = [Metric::PostgresFlights, Metric::Syscalls];
    let folders: BTreeSet<&str> = report
        .costs
        .iter()
        .filter(|cost| wire.contains(&cost.metric) && cost.origin.route == finding.route)
        .filter(|cost| {
            finding
                .arms
                .iter()
                .any(|arm| arm.subject == cost.origin.subject && arm.variant == cost.origin.variant)
        })
        .filter_map(|cost| cost.origin.capture.as_deref())
        .collect();
    let links = folders.iter().take(LINKS).map(|folder| {
        let place: Vec<String> = folder.split('/').map(percent).collect();
        format!(", <a href=\"{}/\">{}</a>", escape(&place.join("/")), text(folder))
    });
    links.collect()
}

/// A part of a relative address.
fn percent(part: &str) -> String {
    let mut out = String::new();
    for byte in part.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

/// Routes down, variants across: the change, its mark and the verdict in words.
fn push_verdicts(
    page: &mut String,
    report: &Report,
    routes: &[&Route],
    (metric, label): (Metric, Option<(&str, &str)>),
    title: &str,
) {
    let judged = |route: &Route, arm: &Arm| -> Option<&Comparison> {
        report.comparisons.iter().find(|comparison| {
            let cell = &comparison.cell;
            let labels: Vec<(&str, &str)> =
                cell.labels.iter().map(|(key, value)| (*key, value.as_str())).collect();
            cell.metric == metric
                && cell.route == route.name
                && labels == label.into_iter().collect::<Vec<_>>()
                && comparison.effect.is_some()
                && comparison.arm.subject == arm.subject
                && comparison.arm.variant == arm.variant
        })
    };
    let arms: Vec<&Arm> = report
        .run
        .arms
        .iter()
        .filter(|arm| routes.iter().any(|route| judged(route, arm).is_some()))
        .collect();
    let Some(reference) = report.run.arms.first().filter(|_| !arms.is_empty()) else { return };
    page.push_str(&format!(
        "<h3>{title}</h3>\n<div class=\"wide\"><table class=\"verdicts\"><caption>against “{}”, \
         with the 95 % interval</caption>\n<thead><tr><th scope=\"col\">route</th>",
        text(&reference.title)
    ));
    for arm in &arms {
        page.push_str(&format!("<th scope=\"col\">{}</th>", text(&arm.title)));
    }
    page.push_str("</tr></thead>\n<tbody>\n");
    for route in routes {
        let name = text(&route.name);
        if !arms.iter().any(|arm| judged(route, arm).is_some()) {
            continue;
        }
        page.push_str(&format!("<tr><th scope=\"row\">{name}</th>"));
        for arm in &arms {
            match judged(route, arm) {
                Some(comparison) => page.push_str(&verdict(comparison)),
                None => page.push_str("<td>–</td>"),
            }
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</tbody></table></div>\n");
}

fn verdict(comparison: &Comparison) -> String {
    let half = comparison.effect.map(|effect| effect.half_width());
    let change = comparison.change().map_or_else(String::new, |c| numbers::percent(c, half));
    format!(
        "<td><span class=\"{}\">{change} {}</span><br><small>{}</small></td>",
        class(mark(comparison.verdict)),
        mark(comparison.verdict),
        text(&words(comparison.verdict, half)),
    )
}

/// The class of a mark, for its colour.
pub(super) fn class(mark: &str) -> &'static str {
    match mark {
        "▲" => "faster",
        "▼" => "slower",
        _ => "level",
    }
}
