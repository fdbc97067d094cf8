//! The charts of one route, each with its numbers as a table below it.

use assay_captures::run_record::Route;

use super::element::{id, table, text};
use super::flames;
use crate::charts::{self, Chart};
use crate::report::Report;
use crate::svg;

pub(super) fn push(page: &mut String, report: &Report, route: &Route) {
    push_all(page, route, "Under load", &charts::of_route(report, route));
    flames::push(page, report, route);
    let single = charts::of_requests(report, route);
    push_all(page, route, "Single requests on an idle machine", &single);
}

fn push_all(page: &mut String, route: &Route, title: &str, charts: &[Chart]) {
    if charts.is_empty() {
        return;
    }
    page.push_str(&format!("<h3 class=\"part\">{title}</h3>\n<div class=\"charts\">\n"));
    for chart in charts {
        push_chart(page, route, chart);
    }
    page.push_str("</div>\n");
}

fn push_chart(page: &mut String, route: &Route, chart: &Chart) {
    // A link knows a chart by its title without the unit.
    let name = chart.title.split(',').next().unwrap_or_default();
    page.push_str(&format!(
        "<figure id=\"{}\">\n<h4>{}</h4>\n{}\n<figcaption>{}</figcaption>\n\
         <details class=\"numbers\"><summary>Show the numbers as a table</summary>\n{}</details>\n\
         </figure>\n",
        id("chart", &format!("{} {name}", route.name)),
        text(&chart.title),
        svg::draw(chart),
        text(&chart.says),
        table("figures", &chart.numbers.head, &chart.numbers.rows),
    ));
}
