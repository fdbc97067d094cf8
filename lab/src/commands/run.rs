//! `assay run`: one experiment, from its file to a complete run directory.

use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow};
use assay_captures::manifest::Status;
use assay_captures::run_record::{Pass, RunRecord};
use assay_captures::version::FormatVersion;

use super::{analyze, blame, report};
use crate::analysis;
use crate::calibration::store;
use crate::cli::{Format, RunArgs};
use crate::exit::Exit;
use crate::experiment::plan::{Choice, Plan};
use crate::experiment::{self, Experiment, ablations, copy};
use crate::guardian::{self, Worker};
use crate::machine;
use crate::passes::{self, Ended};
use crate::pinning::{Pinning, usable_cores};
use crate::run::{
    GivenServices, Interrupted, Laboratory, Materials, Unprepared, arm_records, route_records,
    runs_folder,
};
use crate::run_directory::{RunDirectory, now, stamped};
use crate::ui::Ui;
use crate::unmasked;

/// What is to be measured, and where it is kept.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) experiment: PathBuf,
    pub(super) choice: Choice,
    /// Whether a second copy of the reference is measured.
    pub(super) aa: bool,
    pub(super) given: GivenServices,
    pub(super) out: Option<PathBuf>,
}

/// Measures an experiment.
pub fn run(ui: &Ui, args: &RunArgs) -> Result<Exit> {
    let request = Request {
        experiment: file(&args.experiment),
        choice: args.choice(),
        aa: args.aa || args.rigorous,
        given: args.measure.given(),
        out: args.measure.out.clone(),
    };
    guarded_run(ui, &request)
}

/// The experiment file of what was typed: a folder stands for the one in it.
fn file(typed: &Path) -> PathBuf {
    if typed.is_dir() { typed.join("experiment.toml") } else { typed.to_path_buf() }
}

/// Adds a second copy of the first arm that is measured.
fn copy_reference(experiment: &mut Experiment, choice: &Choice) -> Result<()> {
    let plan = Plan::make(experiment, choice)?;
    let Some(&reference) = plan.arms().first() else { return Ok(()) };
    let mut copy = experiment.arms[reference].clone();
    copy.variant.name.push_str("-again");
    copy.variant.title.push_str(", again");
    experiment.copy = Some(experiment.arms.len());
    experiment.arms.push(copy);
    Ok(())
}

/// Checks the request here, so that wrong usage starts nothing; the rest is done under guard.
pub(super) fn guarded_run(ui: &Ui, request: &Request) -> Result<Exit> {
    let mut experiment = experiment::load(&request.experiment)?;
    if request.aa {
        copy_reference(&mut experiment, &request.choice)?;
    }
    let plan = Plan::make(&experiment, &request.choice)?;
    let pinning = Pinning::choose(&experiment.pinning, &usable_cores()?)
        .map_err(|reason| anyhow!("{}: {reason}", request.experiment.display()))?;
    guardian::guarded(ui, |worker| {
        let measured = measure(ui, request, experiment, plan, pinning, worker);
        measured.unwrap_or_else(|error| blame(ui, &error))
    })
}

fn measure(
    ui: &Ui,
    request: &Request,
    experiment: Experiment,
    plan: Plan,
    pinning: Pinning,
    worker: Worker,
) -> Result<Exit> {
    let record = record(&experiment, &plan, &pinning, &request.given);
    let prepared = Prepared { experiment, plan, pinning, record };
    let materials = start(ui, prepared, request.out.as_deref(), worker)?;
    conclude(ui, Laboratory::prepare(materials, &request.given), Format::Table)
}

/// What is known before the run directory is made.
pub(super) struct Prepared {
    pub(super) experiment: Experiment,
    pub(super) plan: Plan,
    pub(super) pinning: Pinning,
    pub(super) record: RunRecord,
}

/// Makes the run directory.
pub(super) fn start(
    ui: &Ui,
    prepared: Prepared,
    out: Option<&Path>,
    worker: Worker,
) -> Result<Materials> {
    let Prepared { experiment, plan, pinning, record } = prepared;
    let path = match out {
        Some(path) => path.to_path_buf(),
        None => runs_folder().join(stamped(record.started, &experiment.name)),
    };
    let run = RunDirectory::create(&path, &experiment.text, record)?;
    run.keep_phases(&experiment.phases)?;
    unmasked::remember(worker.scratch.path(), run.path());
    ui.say(&format!("run {}", path.display()));
    Ok(Materials {
        experiment,
        plan,
        pinning,
        run,
        scratch: worker.scratch.path().to_path_buf(),
        ui: ui.clone(),
        cancel: worker.cancel.clone(),
    })
}

/// Runs all passes and shows what came of them.
pub(super) fn conclude(
    ui: &Ui,
    laboratory: Result<Laboratory, Box<Unprepared>>,
    format: Format,
) -> Result<Exit> {
    let mut laboratory = match laboratory {
        Ok(laboratory) => laboratory,
        Err(unprepared) => {
            let mut unprepared = *unprepared;
            return ended_early(ui, &mut unprepared.run, unprepared.error);
        }
    };
    let ended = passes::run(&mut laboratory);
    let mut run = close(laboratory);
    match ended {
        Ok(lost) => {
            run.finish(lost.as_deref())?;
            tell_incomplete_passes(ui, &run);
            let progress = ui.work("analyse");
            let mut report = analysis::analyze(run.path())?;
            analyze::write(run.path(), &report)?;
            report.paths = report::paths(run.path());
            progress.done("done");
            ui.result(&report::rendered(&report, &[], format, ui));
            let path = run.path().display();
            ui.say(&format!("captures, report.html, results.json and tables.md are in {path}"));
            let Some(lost) = lost else { return Ok(measured(ui, &run.record.passes)) };
            tell_incomplete(ui, &run);
            Err(anyhow!(lost))
        }
        Err(Ended::Cancelled) => ended_early(ui, &mut run, Interrupted.into()),
        Err(Ended::Failed(error)) => ended_early(ui, &mut run, error),
    }
}

/// A pass that was asked for and gave nothing could not be measured, whatever the others gave.
fn measured(ui: &Ui, passes: &[Pass]) -> Exit {
    let failed = passes.iter().filter(|pass| pass.status == Status::Failed);
    let failed: Vec<&str> = failed.map(|pass| pass.name.as_str()).collect();
    if failed.is_empty() {
        return Exit::Done;
    }
    let passes = if failed.len() == 1 { "pass" } else { "passes" };
    let names = failed.join(", ");
    ui.fail(&format!("{passes} {names} gave nothing (the reasons stand above and in the report)"));
    Exit::CannotMeasure
}

/// Stops services, and keeps what was recorded.
fn close(laboratory: Laboratory) -> RunDirectory {
    let (what, done) = match &laboratory.attached {
        Some(_) => ("let go", "the service runs on as it was"),
        None => ("stop services", "stopped"),
    };
    let progress = laboratory.ui.work(what);
    let mut run = laboratory.close();
    progress.done(done);
    remove_unmasked(&mut run);
    run
}

/// Removes packets that a killed probe has left, and says so where their pass is told of.
fn remove_unmasked(run: &mut RunDirectory) {
    for capture in unmasked::remove(run.path()) {
        let pass = run
            .record
            .passes
            .iter_mut()
            .find(|pass| capture.starts_with(assay_captures::run_dir::pass(&pass.name)));
        let Some(pass) = pass else { continue };
        if pass.status == Status::Complete {
            pass.status = Status::Incomplete;
        }
        let told = pass.reason.as_deref().is_some_and(|reason| reason.ends_with(unmasked::REMOVED));
        if !told {
            let reason = pass.reason.take().unwrap_or_else(|| "its probe was killed".to_owned());
            pass.reason = Some(format!("{reason}; {}", unmasked::REMOVED));
        }
    }
}

/// Marks the run incomplete for a reason; the reason is also what the command fails with.
fn ended_early(ui: &Ui, run: &mut RunDirectory, error: anyhow::Error) -> Result<Exit> {
    let reason = format!("{error:#}");
    if let Err(also) = run.finish(Some(&reason)) {
        ui.warn(&format!("{also:#}"));
    }
    tell_incomplete(ui, run);
    Err(error)
}

fn tell_incomplete(ui: &Ui, run: &RunDirectory) {
    ui.say(&format!("the run is incomplete; what was recorded is in {}", run.path().display()));
}

fn tell_incomplete_passes(ui: &Ui, run: &RunDirectory) {
    for pass in &run.record.passes {
        if pass.status != Status::Complete {
            let reason = pass.reason.as_deref().unwrap_or("it did not reach its end");
            ui.warn(&format!("pass {}: {reason}", pass.name));
        }
    }
}

pub(super) fn record(
    experiment: &Experiment,
    plan: &Plan,
    pinning: &Pinning,
    given: &GivenServices,
) -> RunRecord {
    let mut notes: Vec<String> = pinning.note().into_iter().collect();
    if given.postgres.is_some() || given.redis.is_some() {
        notes.push("services were given by URL; others may have used them meanwhile".to_owned());
    }
    let connections = plan.passes.first().map_or(experiment.load.connections, |p| p.connections);
    RunRecord {
        version: FormatVersion::CURRENT,
        assay: env!("CARGO_PKG_VERSION").to_owned(),
        status: Status::Recording,
        reason: None,
        experiment: experiment.name.clone(),
        command: copy::words(std::env::args()),
        started: now(),
        ended: None,
        arms: arm_records(experiment, plan),
        routes: route_records(experiment),
        services: Vec::new(),
        connections,
        pinning: pinning.record(),
        machine: machine::facts(),
        versions: machine::versions(),
        copy: experiment.copy.map(|copy| experiment.arms[copy].variant.name.clone()),
        claims: ablations::of_plan(experiment, plan),
        passes: Vec::new(),
        select_1: None,
        calibration: store::stored(),
        notes,
    }
}

/// Whether a run directory lies at `path`.
#[must_use]
pub(super) fn is_run(path: &Path) -> bool {
    path.join(assay_captures::run_dir::RUN_RECORD).is_file()
}
