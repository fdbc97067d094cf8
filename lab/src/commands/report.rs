//! `assay report`: shows a run, in one dress or another.

use std::path::Path;

use anyhow::Result;
use assay_captures::run_dir;
use assay_reports::report::{Paths, Report};
use assay_reports::terminal::View;
use assay_reports::{html, json, markdown, terminal};

use super::WrongUsage;
use super::analyze::open;
use crate::cli::{Format, ReportArgs};
use crate::exit::Exit;
use crate::ui::Ui;

/// Renders a run on standard output.
pub fn report(ui: &Ui, args: &ReportArgs) -> Result<Exit> {
    let mut report = open(&args.run)?;
    for route in &args.route {
        if !report.run.routes.iter().any(|known| known.name == *route) {
            let known: Vec<&str> =
                report.run.routes.iter().map(|route| route.name.as_str()).collect();
            let what = format!("there is no route {route:?} (there are: {})", known.join(", "));
            return Err(WrongUsage(what).into());
        }
    }
    if args.format == Format::Table {
        report.paths = paths(&args.run);
    }
    ui.result(&rendered(&report, &args.route, args.format, ui));
    Ok(Exit::Done)
}

/// A report in its dress.
pub(super) fn rendered(report: &Report, routes: &[String], format: Format, ui: &Ui) -> String {
    match format {
        Format::Table => terminal::render(report, routes, view(ui)),
        Format::Md => markdown::render(report, routes),
        Format::Html => html::render(report, routes),
        Format::Json => json::render(report),
    }
}

/// Where things are, as the user named the run. Files are the same wherever they lie, so only
/// the terminal is told.
pub(super) fn paths(run: &Path) -> Paths {
    let of = |name: &str| {
        let file = run.join(name);
        if file.exists() { file.display().to_string() } else { String::new() }
    };
    Paths {
        run: run.display().to_string(),
        results: of(run_dir::RESULTS),
        tables: of(run_dir::TABLES),
        page: of(run_dir::PAGE),
    }
}

/// What the terminal can show.
fn view(ui: &Ui) -> View {
    View { width: ui.columns(), colour: ui.colour() }
}
