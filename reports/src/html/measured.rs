//! How it was measured: machine, versions, laps, integrity, what the probes cost, and the command
//! that repeats it.

use std::collections::BTreeMap;

use assay_captures::lap::{Lap, Load};

use super::element::{table, text};
use crate::numbers;
use crate::report::Report;
use crate::sections::{self, Section};

pub(super) fn push(page: &mut String, report: &Report, routes: &[String]) {
    page.push_str("<section id=\"measured\">\n<h2>How it was measured</h2>\n");
    push_command(page, report);
    for section in sections::all(report, routes) {
        // Findings and causes stand at the top of the page, and the files are where it lies.
        if !["Findings", "Causes put to the test", "Files"].contains(&section.title) {
            push_section(page, &section);
        }
    }
    page.push_str("<div class=\"facts\">\n");
    let run = &report.run;
    push_facts(page, "Machine", &run.machine);
    push_facts(page, "Versions", &run.versions);
    push_facts(page, "CPUs", &run.pinning);
    for service in &run.services {
        let mut facts = service.settings.clone();
        facts.insert("version".into(), service.version.clone());
        let whose = if service.private { "started for this run" } else { "was there before" };
        facts.insert("instance".into(), whose.to_owned());
        push_facts(page, &service.kind, &facts);
    }
    if let Some(time) = run.select_1 {
        let micros = format!("{} µs, median of 2,000", numbers::number(time.seconds() * 1e6, 1));
        push_facts(page, "Round trip", &[("SELECT 1".to_owned(), micros)].into());
    }
    for arm in &run.arms {
        push_facts(page, &format!("Variant “{}”", arm.title), &arm.environment);
    }
    page.push_str("</div>\n");
    push_laps(page, report);
    page.push_str("</section>\n");
}

fn push_command(page: &mut String, report: &Report) {
    let words: Vec<String> = report.run.command.iter().map(|word| quoted(word)).collect();
    page.push_str(&format!(
        "<p>The same again: <code>{}</code> (assay {})</p>\n",
        text(&words.join(" ")),
        text(&report.run.assay)
    ));
}

/// A word as a shell wants it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

fn push_section(page: &mut String, section: &Section) {
    if section.points.is_empty() {
        return;
    }
    page.push_str(&format!("<h3>{}</h3>\n<ul>\n", text(section.title)));
    for point in &section.points {
        page.push_str(&format!("<li>{}", text(&point.head)));
        if !point.details.is_empty() {
            page.push_str("<ul>");
            for (word, sentence) in &point.details {
                page.push_str(&format!("<li>{}: {}</li>", text(word), text(sentence)));
            }
            page.push_str("</ul>");
        }
        page.push_str("</li>\n");
    }
    page.push_str("</ul>\n");
}

fn push_facts(page: &mut String, title: &str, facts: &BTreeMap<String, String>) {
    if facts.is_empty() {
        return;
    }
    page.push_str(&format!("<div><h3>{}</h3>\n<dl>\n", text(title)));
    for (name, value) in facts {
        page.push_str(&format!("<dt>{}</dt><dd>{}</dd>\n", text(name), text(value)));
    }
    page.push_str("</dl></div>\n");
}

/// Every fair lap: nothing is left out.
fn push_laps(page: &mut String, report: &Report) {
    let laps: Vec<&Lap> = report.laps.iter().filter(|lap| lap.pass == "fair").collect();
    if laps.is_empty() {
        return;
    }
    let head = ["lap", "round", "route", "variant", "load", "good/s", "p50, ms", "p99, ms", "bad"];
    let rows: Vec<Vec<String>> = laps.iter().map(|lap| row(report, lap)).collect();
    page.push_str(&format!(
        "<details class=\"numbers\"><summary>All {} laps without a probe, in their order</summary>\
         \n{}</details>\n",
        laps.len(),
        table("figures", &head.map(str::to_owned), &rows)
    ));
}

fn row(report: &Report, lap: &Lap) -> Vec<String> {
    let milliseconds = |quantile: f64| {
        let time = lap.latency.quantile(quantile);
        time.map_or("–".to_owned(), |time| numbers::number(time.seconds() * 1e3, 2))
    };
    let bad = lap.non_2xx + lap.mismatched + lap.errors.values().sum::<u64>();
    let load = match lap.load {
        Load::Closed { connections } => format!("closed, {connections}"),
        Load::FixedRate { connections, rate } => {
            format!("{}/s, {connections}", numbers::number(rate, 0))
        }
        Load::Serial { .. } => "one at a time".to_owned(),
        Load::Foreign => "what others sent".to_owned(),
    };
    vec![
        lap.order.to_string(),
        lap.round.to_string(),
        lap.route.clone(),
        report.title(&assay_analyses::laps::arm(lap)).to_owned(),
        load,
        numbers::number(assay_analyses::laps::good_rate(lap), 0),
        milliseconds(0.5),
        milliseconds(0.99),
        numbers::count(bad as f64),
    ]
}
