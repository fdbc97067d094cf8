//! The allocations pass: each arm once more, with the counting library preloaded. The library
//! cannot be switched, so there are no laps without it.

use std::path::Path;

use assay_captures::lap::ProbeState;

use super::attached::{Attached, Attachment, Troubles};
use super::bench::{Bench, LapPlan};
use super::failure::Failure;
use super::log::LapLog;
use crate::experiment::plan::{Cell, PlannedPass};
use crate::probe::ProbeError;
use crate::ui::Progress;

/// One arm after another, so that each is started only once more.
pub(super) fn run(
    bench: &mut Bench<'_>,
    pass: &PlannedPass,
    log: &mut LapLog,
    troubles: &mut Troubles,
    progress: &Progress,
) -> Result<(), Failure> {
    let mut arms: Vec<usize> = pass.cells.iter().map(|cell| cell.arm).collect();
    arms.sort_unstable();
    arms.dedup();
    for arm in arms.into_iter().filter(|&arm| bench.takes_part(arm)).collect::<Vec<_>>() {
        bench.check_cancel()?;
        let title = bench.arm_title(arm);
        progress.now(&title);
        let counter = bench.laboratory.scratch.join(format!("allocations.{arm}"));
        let started = bench.laboratory.start_counted_subject(arm, &counter);
        // A program that runs only without the library costs this pass, not the run.
        let started = started.map_err(|error| match Failure::from(error) {
            Failure::Run(error) => Failure::Probe(not_started(&error)),
            other => other,
        });
        let Some(counted) = troubles.note(&title, started)? else { break };
        let plain = bench.exchange_arm(arm, counted)?;
        bench.losses.stand_in = Some(arm);
        let done = one_arm(bench, pass, arm, &counter, log, troubles, progress);
        bench.losses.stand_in = None;
        if let Some(plain) = plain {
            drop(bench.exchange_arm(arm, plain)?);
        }
        if !done? {
            break;
        }
    }
    Ok(())
}

fn one_arm(
    bench: &mut Bench<'_>,
    pass: &PlannedPass,
    arm: usize,
    counter: &Path,
    log: &mut LapLog,
    troubles: &mut Troubles,
    progress: &Progress,
) -> Result<bool, Failure> {
    for &cell in pass.cells.iter().filter(|cell| cell.arm == arm) {
        if !one_cell(bench, pass, cell, counter, log, troubles, progress)? {
            return Ok(false);
        }
        if !bench.is_alive(arm) {
            // Its counts went with it.
            break;
        }
    }
    Ok(true)
}

/// False where the probe cannot even start: it would fail the same way everywhere.
fn one_cell(
    bench: &mut Bench<'_>,
    pass: &PlannedPass,
    cell: Cell,
    counter: &Path,
    log: &mut LapLog,
    troubles: &mut Troubles,
    progress: &Progress,
) -> Result<bool, Failure> {
    let title = bench.cell_title(cell);
    bench.now(progress, cell);
    let attachment = Attachment {
        probe: "allocations",
        folder: bench.cell_folder("allocations", cell, "allocations"),
        targets: vec![bench.subject_target(cell.arm)?],
        options: vec!["--counter".to_owned(), counter.display().to_string()],
        recording: true,
    };
    let mut attached = match Attached::start(bench.laboratory, attachment) {
        Ok(attached) => attached,
        Err(error) => {
            troubles.add(&title, &error);
            return Ok(!error.at_start);
        }
    };
    let driven = bench.with_arm(cell, pass, |bench| {
        for round in 0..pass.rounds {
            let plan = LapPlan {
                cell,
                round,
                probe: ProbeState::On,
                load: pass.load(),
                stop: pass.stop(),
                captures: [("allocations".to_owned(), attached.folder.clone())].into(),
                statements: false,
            };
            let driven = bench.lap(plan, &mut [&mut attached.session], log)?;
            if let Some((_, error)) = driven.failed.into_iter().next() {
                return Err(error.into());
            }
            progress.step();
        }
        Ok(())
    });
    let stopped = attached.session.stop().map_err(Failure::Probe);
    if troubles.note(&title, driven)?.is_some() {
        troubles.note(&title, stopped)?;
    }
    Ok(true)
}

fn not_started(error: &anyhow::Error) -> ProbeError {
    let reason = format!("the subject does not start with the counter: {error:#}");
    ProbeError { probe: "allocations".to_owned(), reason, at_start: true }
}
