//! Calibration: every instrument against the reference subject, whose costs are known by
//! construction.
//!
//! It is a few ordinary runs of one experiment, under loads of its own; what they say is held
//! against what the subject says of itself.

mod gather;
mod ledger;
mod sampled;
pub mod stages;
pub mod store;
mod truth;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};
use assay_analyses::calibration::Certificate;
use assay_captures::run_record::RunRecord;
use assay_reports::report::Report;

use crate::analysis;
use crate::experiment::Experiment;
use crate::passes::{self, Ended};
use crate::run::{Interrupted, Laboratory};
use crate::run_directory::{RunDirectory, now};
use crate::ui::Ui;
use crate::unmasked;
use gather::Gathering;
use ledger::Ledger;
use stages::Stage;

/// Name of the variable that tells the subject where to keep what it truly used.
const LEDGER: &str = "LEDGER";

/// Runs every stage in the folder `out` and holds what came of it against the truth.
pub fn run(laboratory: &mut Laboratory, stages: &[Stage], out: &Path) -> Result<Certificate> {
    let truths = truth::all(&laboratory.experiment)?;
    let mut certificate = Certificate::default();
    for (index, stage) in stages.iter().enumerate() {
        let ui = laboratory.ui.clone();
        ui.say(&format!("stage {} of {}: {}", index + 1, stages.len(), stage.title));
        let ledgers = laboratory.scratch.join(format!("ledger-{}", stage.name));
        let report = one_stage(laboratory, stage, &out.join(stage.name), &ledgers, index > 0)?;
        let ledger = Ledger::read(&ledgers)
            .with_context(|| format!("the subject's ledger of stage {}", stage.name))?;
        let run = out.join(stage.name);
        let gathering =
            Gathering { run: &run, stage, report: &report, truths: &truths, ledger: &ledger };
        gathering.into(&laboratory.experiment, &mut certificate)?;
    }
    Ok(certificate)
}

/// One run. The first stage has its directory from the preparation already.
fn one_stage(
    laboratory: &mut Laboratory,
    stage: &Stage,
    folder: &Path,
    ledger: &Path,
    make: bool,
) -> Result<Report> {
    laboratory.plan = stage.plan.clone();
    laboratory.environment = vec![(LEDGER.to_owned(), ledger.display().to_string())];
    if make {
        let record = fresh(&laboratory.run.record, stage);
        let run = directory(folder, &laboratory.experiment, record)?;
        unmasked::remember(&laboratory.scratch, run.path());
        laboratory.run = run;
    }
    match passes::run(laboratory) {
        Ok(lost) => laboratory.run.finish(lost.as_deref())?,
        Err(ended) => {
            let error = match ended {
                Ended::Cancelled => anyhow!(Interrupted),
                Ended::Failed(error) => error,
            };
            laboratory.run.finish(Some(&format!("{error:#}")))?;
            return Err(error);
        }
    }
    tell_incomplete(&laboratory.ui, &laboratory.run.record);
    analysis::analyze(folder)
}

/// A run directory of one stage.
pub fn directory(
    folder: &Path,
    experiment: &Experiment,
    record: RunRecord,
) -> Result<RunDirectory> {
    let run = RunDirectory::create(folder, &experiment.text, record)?;
    run.keep_phases(&experiment.phases)?;
    Ok(run)
}

/// The record of the next stage: services and machine are the same, passes are not.
fn fresh(before: &RunRecord, stage: &Stage) -> RunRecord {
    RunRecord {
        status: assay_captures::manifest::Status::Recording,
        reason: None,
        started: now(),
        ended: None,
        connections: stage.connections,
        passes: Vec::new(),
        ..before.clone()
    }
}

fn tell_incomplete(ui: &Ui, record: &RunRecord) {
    for pass in &record.passes {
        if let Some(reason) = &pass.reason {
            ui.warn(&format!("pass {}: {reason}", pass.name));
        }
    }
}

/// The experiment that ships, in the source checkout.
#[must_use]
pub fn experiment_file() -> Option<PathBuf> {
    let checkout = crate::probes_build::checkout()?;
    let file = checkout.join("lab/experiments/calibration/experiment.toml");
    fs::metadata(&file).is_ok_and(|found| found.is_file()).then_some(file)
}
