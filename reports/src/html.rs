//! The report as one page that needs nothing else: no network, no other file.
//!
//! The answer stands first, then the tables and charts of each route, then how all of it was
//! measured. It is a rendering like the others: what stands here stands there.

mod answer;
mod cost_table;
mod element;
mod figures;
mod flames;
mod measured;

use assay_captures::manifest::Status;
use assay_captures::run_record::Route;
use assay_captures::utc::Utc;

use crate::cost_table::{LEGEND, routes};
use crate::report::Report;
use crate::svg;

pub use element::escape;
use element::{id, text};

const STYLE: &str = include_str!("html/style.css");
const SCRIPT: &str = include_str!("html/page.js");
const FLAMES: &str = include_str!("html/flame.js");

/// Nothing is loaded from anywhere, and nothing may be.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; \
                      base-uri 'none'; form-action 'none'";

/// Renders the routes named, or all where none is.
#[must_use]
pub fn render(report: &Report, named: &[String]) -> String {
    let routes: Vec<&Route> = routes(report, named).collect();
    let name = text(&report.run.experiment);
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <title>Assay · {name}</title>\n<style>\n{STYLE}{}</style>\n</head>\n<body>\n",
        dark()
    );
    push_head(&mut page, report, &routes);
    page.push_str("<main>\n");
    answer::push(&mut page, report, &routes, named);
    for route in &routes {
        push_route(&mut page, report, route);
    }
    measured::push(&mut page, report, named);
    push_legend(&mut page);
    page.push_str("</main>\n");
    flames::push_data(&mut page, report, &routes);
    page.push_str("<script>\n");
    page.push_str(SCRIPT);
    page.push_str("</script>\n<script>\n");
    page.push_str(FLAMES);
    page.push_str("</script>\n</body>\n</html>\n");
    page
}

/// Swaps the colours of charts on a dark screen; paper is always light.
fn dark() -> String {
    let mut rules = String::from("@media screen and (prefers-color-scheme: dark) {\n");
    for (light, dark) in svg::DARK {
        rules.push_str(&format!(
            "svg [fill=\"{light}\"] {{ fill: {dark}; }} \
             svg [stroke=\"{light}\"] {{ stroke: {dark}; }}\n"
        ));
    }
    rules.push_str("}\n");
    rules
}

fn push_head(page: &mut String, report: &Report, routes: &[&Route]) {
    let run = &report.run;
    let started = Utc::of(run.started);
    page.push_str(&format!(
        "<header>\n<p class=\"brand\">Assay</p>\n<h1>{}: what does one request cost?</h1>\n\
         <p>{} {} UTC, {}, {}, {} connections</p>\n",
        text(&run.experiment),
        started.date(),
        started.time(),
        plural(run.arms.len(), "variant"),
        plural(routes.len(), "route"),
        run.connections,
    ));
    if run.status != Status::Complete {
        let reason = run.reason.as_deref().unwrap_or("it was ended before its last step");
        page.push_str(&format!(
            "<p class=\"broken\"><strong>This run is not complete:</strong> {}</p>\n",
            text(reason)
        ));
    }
    page.push_str("<nav aria-label=\"Contents\"><ul>\n<li><a href=\"#answer\">Answer</a></li>\n");
    for route in routes {
        let name = text(&route.name);
        page.push_str(&format!("<li><a href=\"#{}\">{name}</a></li>\n", id("route", &route.name)));
    }
    page.push_str(
        "<li><a href=\"#measured\">How it was measured</a></li>\n</ul></nav>\n</header>\n",
    );
}

fn push_route(page: &mut String, report: &Report, route: &Route) {
    page.push_str(&format!(
        "<section id=\"{}\">\n<h2>{} <code>{} {}</code></h2>\n",
        id("route", &route.name),
        text(&route.name),
        text(&route.method),
        text(&route.path),
    ));
    cost_table::push(page, report, route);
    figures::push(page, report, route);
    page.push_str("</section>\n");
}

fn push_legend(page: &mut String) {
    page.push_str("<section id=\"legend\">\n<h2>How to read this</h2>\n<dl class=\"legend\">\n");
    for (sign, meaning) in LEGEND {
        page.push_str(&format!("<dt>{}</dt><dd>{}</dd>\n", text(sign), text(meaning)));
    }
    page.push_str("</dl>\n</section>\n");
}

fn plural(count: usize, noun: &str) -> String {
    let end = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{end}")
}
