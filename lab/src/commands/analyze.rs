//! `assay analyze`: builds the results of a run again from its captures.

use std::path::Path;

use anyhow::Result;
use assay_captures::run_dir;
use assay_reports::report::Report;
use assay_reports::{html, json, markdown};

use super::WrongUsage;
use super::run::is_run;
use crate::analysis;
use crate::cli::AnalyzeArgs;
use crate::exit::Exit;
use crate::run_directory::write_private;
use crate::ui::Ui;

/// Writes `results.json`, `tables.md` and `report.html` anew.
pub fn analyze(ui: &Ui, args: &AnalyzeArgs) -> Result<Exit> {
    let report = open(&args.run)?;
    write(&args.run, &report)?;
    for name in [run_dir::RESULTS, run_dir::TABLES, run_dir::PAGE] {
        ui.result(&format!("{}\n", args.run.join(name).display()));
    }
    Ok(Exit::Done)
}

/// Analyses a run that was named on the command line.
pub(super) fn open(run: &Path) -> Result<Report> {
    if !is_run(run) {
        let what = format!("{} is no run of assay (it has no run.json)", run.display());
        return Err(WrongUsage(what).into());
    }
    analysis::analyze(run)
}

/// Writes what a run leaves beside its captures.
pub(super) fn write(run: &Path, report: &Report) -> Result<()> {
    let rendered = [
        (run_dir::RESULTS, json::render(report)),
        (run_dir::TABLES, markdown::render(report, &[])),
        (run_dir::PAGE, html::render(report, &[])),
    ];
    for (name, text) in rendered {
        write_private(&run.join(name), text.as_bytes())?;
    }
    Ok(())
}
