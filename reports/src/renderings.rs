//! Tests of all renderings: how they look, and that nothing foreign breaks them.

use assay_analyses::cost::{Amount, Figure};
use assay_captures::run_record::Calibration;
use unicode_width::UnicodeWidthStr;

use crate::report::Report;
use crate::sample;
use crate::terminal::{self, View};
use crate::{cost_table, html, json, markdown};

const WIDE: View = View { width: 100, colour: false };

/// A report whose every foreign text is hostile.
fn hostile(text: &str) -> Report {
    let mut report = sample::report();
    report.run.experiment = text.to_owned();
    report.run.notes = vec![text.to_owned()];
    report.run.reason = Some(text.to_owned());
    report.run.machine.insert(text.to_owned(), text.to_owned());
    report.run.passes[2].reason = Some(text.to_owned());
    for arm in &mut report.run.arms {
        arm.title = text.to_owned();
    }
    report.run.routes[0].path = text.to_owned();
    for finding in &mut report.findings {
        finding.what = text.to_owned();
        finding.shown = text.to_owned();
    }
    for judged in &mut report.claims {
        judged.claim.cause = text.to_owned();
        judged.claim.base = text.to_owned();
        for expected in &mut judged.expectations {
            expected.expectation.metric = text.to_owned();
            expected.found = Err(text.to_owned());
        }
    }
    for check in &mut report.checks {
        check.counted = text.to_owned();
    }
    for cost in &mut report.costs {
        cost.doubts.push(text.to_owned());
        if let Some(name) = cost.labels.get_mut("name") {
            *name = text.to_owned();
        }
    }
    for request in &mut report.requests {
        request.record.trips.iter_mut().for_each(|trip| trip.text = text.to_owned());
    }
    for profile in &mut report.profiles {
        profile.tree.names.iter_mut().for_each(|name| *name = text.to_owned());
    }
    report.run.routes[0].method = text.to_owned();
    report.run.command = vec![text.to_owned()];
    report.paths.run = text.to_owned();
    report
}

#[test]
fn no_control_or_direction_character_reaches_any_rendering() {
    let text = "\u{1b}]0;owned\u{7}\u{1b}[2J\r\n\t\u{202e}gnp.exe\u{2066}\u{200b}\u{9b}31m|x";
    let report = hostile(text);
    for rendered in [
        terminal::render(&report, &[], WIDE),
        markdown::render(&report, &[]),
        html::render(&report, &[]),
    ] {
        let bad = rendered.chars().find(|&character| {
            (character.is_control() && character != '\n')
                || matches!(character, '\u{200b}' | '\u{202e}' | '\u{2066}')
        });
        assert_eq!(bad, None);
    }
}

#[test]
fn huge_names_stay_within_the_terminal() {
    for text in ["x".repeat(100_000), "字".repeat(100_000), "a b ".repeat(25_000)] {
        let report = hostile(&text);
        for width in [64, 80, 100, 200] {
            let rendered = terminal::render(&report, &[], View { width, colour: false });
            let widest = rendered.lines().max_by_key(|line| line.width()).unwrap();
            assert!(widest.width() <= width, "{width}: {widest}");
            assert!(rendered.len() < 200_000, "{}", rendered.len());
        }
        assert!(markdown::render(&report, &[]).len() < 200_000);
    }
}

#[test]
fn a_pipe_or_a_tag_breaks_no_markdown_table() {
    let rendered = markdown::render(&hostile("a|b <script>alert(1)</script> `c`"), &[]);
    assert!(!rendered.contains("<script"));
    let bars = |line: &str| line.replace("\\|", "").matches('|').count();
    let rows: Vec<&str> = rendered.lines().filter(|line| line.starts_with('|')).collect();
    assert!(rows.len() > 20);
    for row in rows {
        assert_eq!(bars(row), 7, "{row}");
    }
}

#[test]
fn nothing_foreign_becomes_markup_or_script_of_the_page() {
    let ours = html::render(&sample::report(), &[]);
    let tags = |page: &str, tag: &str| page.matches(tag).count();
    for text in [
        "</script><script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "\"><b onmouseover='alert(1)'>",
        "</style></title></svg><i>",
        "javascript:alert(1)",
        "--> <!-- ]]>",
    ] {
        let page = html::render(&hostile(text), &[]);
        for tag in ["<script", "<img", "<b", "<i>", "<style", "<title", "<!--", "</svg", "</script"]
        {
            assert_eq!(tags(&page, tag), tags(&ours, tag), "{tag} by {text}");
        }
        assert!(!page.contains("href=\"javascript"), "{text}");
        assert!(!page.contains("onerror=alert(1)>"), "{text}");
    }
}

#[test]
fn huge_names_do_not_swell_the_page() {
    let page = html::render(&hostile(&"x".repeat(100_000)), &[]);
    assert!(page.len() < 400_000, "{}", page.len());
}

#[test]
fn the_page_needs_nothing_from_anywhere() {
    let page = html::render(&sample::report(), &[]);
    let page = page.replace("http://www.w3.org/2000/svg", "");
    for address in ["http:", "https:", "url(", "@import", "src=", "<link"] {
        assert!(!page.contains(address), "{address}");
    }
    assert!(page.contains("default-src 'none'"));
}

#[test]
fn every_figure_of_the_terminal_stands_on_the_page_too() {
    let report = sample::report();
    let page = html::render(&report, &[]);
    for route in cost_table::routes(&report, &[]) {
        for line in cost_table::cost_table(&report, route).groups.iter().flat_map(|g| &g.lines) {
            assert!(page.contains(&html::escape(&line.name)), "{}", line.name);
            for entry in &line.entries {
                assert!(page.contains(&html::escape(&entry.value)), "{}", entry.value);
                assert!(page.contains(&html::escape(&entry.change)), "{}", entry.change);
            }
        }
    }
}

#[test]
fn every_chart_has_a_name_and_its_numbers() {
    let page = html::render(&sample::report(), &[]);
    let figures: Vec<&str> = page.split("<figure id=").skip(1).collect();
    assert!(figures.len() >= 12, "{}", figures.len());
    for figure in figures {
        let figure = figure.split("</figure>").next().unwrap();
        assert!(figure.contains("role=\"img\" aria-label=\""), "{figure}");
        assert!(figure.contains("Show the numbers as a table"), "{figure}");
        let rows = figure.matches("<tr>").count();
        assert!(rows >= 2, "{figure}");
    }
}

#[test]
fn every_line_fits_the_terminal_and_ends_without_spaces() {
    for width in [80, 100, 120] {
        let rendered = terminal::render(&sample::report(), &[], View { width, colour: false });
        for line in rendered.lines() {
            assert!(line.width() <= width, "{width}: {line}");
            assert_eq!(line.trim_end(), line);
        }
    }
}

#[test]
fn the_same_report_gives_the_same_bytes_everywhere() {
    let render = || {
        let report = sample::report();
        terminal::render(&report, &[], WIDE)
            + &markdown::render(&report, &[])
            + &html::render(&report, &[])
            + &json::render(&report)
    };
    assert_eq!(render(), render());
}

#[test]
fn colour_adds_nothing_but_colour() {
    let plain = terminal::render(&sample::report(), &[], WIDE);
    let mut coloured = terminal::render(&sample::report(), &[], View { colour: true, ..WIDE });
    assert_ne!(plain, coloured);
    for code in ["\u{1b}[1m", "\u{1b}[22m", "\u{1b}[31m", "\u{1b}[32m", "\u{1b}[39m"] {
        coloured = coloured.replace(code, "");
    }
    assert_eq!(plain, coloured);
}

#[test]
fn only_the_routes_asked_for_are_shown() {
    let rendered = terminal::render(&sample::report(), &["cached".into()], WIDE);
    assert!(rendered.contains("toy · cached"));
    assert!(!rendered.contains("toy · detail"));
    assert!(!rendered.contains("Findings"), "the finding is about the other route");
}

#[test]
fn a_report_without_anything_is_rendered_all_the_same() {
    let mut report = sample::report();
    report.costs.clear();
    report.comparisons.clear();
    report.laps.clear();
    report.run.arms.clear();
    report.run.routes.truncate(1);
    assert!(!terminal::render(&report, &[], WIDE).contains("toy · detail"));
    let asked = ["detail".to_owned()];
    assert!(terminal::render(&report, &asked, WIDE).contains("not measured in this run"));
    assert!(markdown::render(&report, &asked).contains("not measured in this run"));
    assert!(html::render(&report, &asked).contains("not measured in this run"));
    assert!(json::render(&report).contains("\"costs\": []"));
}

#[test]
fn what_was_not_measured_is_never_a_number() {
    let mut report = sample::report();
    report.comparisons.clear();
    for cost in &mut report.costs {
        cost.amount = Amount::NotMeasured("the probe died".into());
    }
    let rendered = terminal::render(&report, &["cached".into()], WIDE);
    assert!(rendered.contains("n/a"));
    assert!(rendered.contains("not measured: the probe died"));
    assert!(!rendered.contains("commands                   cmds         0"));
}

#[test]
fn a_lower_bound_says_so_in_its_cell() {
    let mut report = sample::report();
    for cost in &mut report.costs {
        let figure = cost.amount.figure().unwrap_or(Figure::exact(1.0, 1));
        cost.amount = Amount::LowerBound(figure, "a backend ended".into());
    }
    let rendered = terminal::render(&report, &["cached".into()], WIDE);
    assert!(rendered.contains("≥1"));
    assert!(rendered.contains("at least: a backend ended"));
}

#[test]
fn a_run_says_whether_its_machine_was_calibrated_and_what_lay_outside() {
    let mut report = sample::report();
    assert!(terminal::render(&report, &[], WIDE).contains("? calibration: none of this machine"));
    assert!(json::render(&report).contains("\"calibration\": null"));
    report.run.calibration = Some(Calibration {
        made: "2000-01-01 00:00 UTC".into(),
        assay: "0.0.0".into(),
        machine: report.run.machine.clone(),
        quick: true,
        hold: 7,
        cannot_tell: vec!["cost of wire in rate".into()],
        not_measured: Vec::new(),
        broken: vec!["cpu.time (subject) of burn".into()],
    });
    for rendered in [terminal::render(&report, &[], WIDE), markdown::render(&report, &[])] {
        let told = "✗ calibration of 2000-01-01 00:00 UTC (quick): 7 of 9 figures within their";
        assert!(rendered.contains(told), "{rendered}");
        assert!(rendered.contains("of burn"), "{rendered}");
    }
    assert!(json::render(&report).contains("\"broken\":[\"cpu.time (subject) of burn\"]"));
    report.run.calibration.as_mut().unwrap().broken.clear();
    assert!(terminal::render(&report, &[], WIDE).contains("✓ calibration of 2000-01-01"));
}

#[test]
fn a_cause_is_told_with_its_figures_in_every_rendering() {
    let report = sample::report();
    let text = terminal::render(&report, &[], WIDE);
    assert!(text.contains("Causes put to the test"), "{text}");
    assert!(text.contains("postgres.flights falls by at least 30 %: 9 → 6 (−33.3 %)"), "{text}");
    for rendered in [text, markdown::render(&report, &[]), html::render(&report, &[])] {
        assert!(rendered.contains("the pool pings Postgres whenever a connection is taken"));
        assert!(rendered.contains("allocations.bytes stays within 3 %"));
    }
    let json: serde_json::Value = serde_json::from_str(&crate::json::render(&report)).unwrap();
    let expectations = &json["ablations"][0]["expectations"];
    assert_eq!(expectations[0]["outcome"], "shown");
    assert_eq!(expectations[0]["flipped_amount"], 6.0);
}
