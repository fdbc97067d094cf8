//! Passes: the ways of running that a plan asks for, one after another over the same subjects.
//!
//! One subject under test runs at a time: all arms are started once and stopped where they are
//! (SIGSTOP), and only the one under load goes on. A probe that fails costs its own figures; a
//! subject that dies costs its lap and is started anew, or left out when it dies again and again;
//! a service that dies ends the run, and what was recorded until then is kept.

mod acquaint;
mod allocations;
mod attached;
pub mod balance;
mod bench;
mod collector;
pub mod estimate;
mod failure;
mod fair;
mod follow;
mod foreign;
mod loaded;
mod log;
mod losses;
mod serial;
mod set_up;
mod usage;

use assay_captures::manifest::Status;
use assay_captures::run_record::Pass;

pub use follow::{Onlooker, follow};

use attached::Troubles;
use bench::Bench;
use failure::Failure;
use log::LapLog;

use crate::experiment::PassKind;
use crate::experiment::plan::PlannedPass;
use crate::run::Laboratory;

/// Why a run did not reach its end.
#[derive(Debug)]
pub enum Ended {
    /// Somebody wanted to stop.
    Cancelled,
    /// Nothing more could be measured.
    Failed(anyhow::Error),
}

/// Runs every pass of the plan, and records in `run.json` what became of each. Returns what was
/// lost on the way, in one line, where anything was.
pub fn run(laboratory: &mut Laboratory) -> Result<Option<String>, Ended> {
    let estimate = estimate::of_plan(&laboratory.plan);
    laboratory.ui.say(&format!("measuring will take {}", estimate::in_words(estimate)));
    let passes = laboratory.plan.passes.clone();
    let mut rest = passes.iter();
    let done = all_passes(laboratory, &mut rest);
    let ended = match done {
        Ok(lost) => return Ok(lost),
        Err(Failure::Cancelled) => Ended::Cancelled,
        Err(Failure::Probe(error)) => Ended::Failed(error.into()),
        Err(Failure::Run(error) | Failure::Lost(error)) => Ended::Failed(error),
    };
    let reason = "not begun: the run ended before it";
    for pass in rest {
        laboratory.run.record.passes.push(Pass {
            name: pass.kind.word().to_owned(),
            status: Status::Failed,
            reason: Some(reason.to_owned()),
        });
    }
    Err(ended)
}

fn all_passes(
    laboratory: &mut Laboratory,
    passes: &mut std::slice::Iter<'_, PlannedPass>,
) -> Result<Option<String>, Failure> {
    let mut bench = Bench::set_up(laboratory)?;
    for pass in passes {
        one_pass(&mut bench, pass, pass.kind.word())?;
        // Nobody else's process is stopped at each of its system calls.
        if pass.kind == PassKind::Serial && bench.laboratory.attached.is_none() {
            one_pass(&mut bench, pass, serial::UNDER_STRACE)?;
        }
    }
    Ok(bench.losses.reason())
}

/// Runs one pass and records what became of it, also when it ends the run.
fn one_pass(bench: &mut Bench<'_>, pass: &PlannedPass, name: &str) -> Result<(), Failure> {
    let mut log = LapLog::create(bench.laboratory.run.path(), name)?;
    let mut troubles = Troubles::default();
    let progress = bench.laboratory.ui.steps(name, estimate::laps(pass));
    let (laps, found) = (&mut log, &mut troubles);
    let done = match pass.kind {
        PassKind::Fair => fair::run(bench, pass, laps, found, &progress),
        PassKind::Serial if name == serial::UNDER_STRACE => {
            serial::run_under_strace(bench, pass, laps, found, &progress)
        }
        PassKind::Serial => serial::run(bench, pass, laps, found, &progress),
        PassKind::Foreign => foreign::run(bench, pass, laps, found, &progress),
        PassKind::Allocations => allocations::run(bench, pass, laps, found, &progress),
        PassKind::Wire
        | PassKind::Syscalls
        | PassKind::Cpu
        | PassKind::Usage
        | PassKind::Together => loaded::run(bench, pass, laps, found, &progress),
    };
    let mut record = troubles.record(name, log.next_order());
    if let Err(failure) = &done {
        record.status = Status::Incomplete;
        record.reason = Some(failure.line());
    }
    let outcome = match &record.reason {
        None => format!("{} laps", log.next_order()),
        Some(reason) => format!("{} laps; incomplete: {reason}", log.next_order()),
    };
    progress.done(&outcome);
    bench.laboratory.run.record.passes.push(record);
    bench.laboratory.run.save().map_err(Failure::Run)?;
    done
}
