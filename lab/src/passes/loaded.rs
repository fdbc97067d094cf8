//! Passes under load with a probe that is switched off and on in neighbouring laps: what it
//! records is divided by the requests of the laps with it, and the laps without it tell what it
//! costs.

use std::collections::BTreeMap;
use std::time::Duration;

use assay_captures::lap::ProbeState;
use assay_captures::run_dir;

use super::attached::{Attached, Attachment, Troubles};
use super::balance;
use super::bench::{Bench, LapPlan};
use super::failure::Failure;
use super::log::LapLog;
use super::usage::UsageProbes;
use crate::experiment::PassKind;
use crate::experiment::plan::{Cell, PlannedPass};
use crate::probe::ProbeError;
use crate::ui::Progress;

/// Sampling rates out of step with every kernel's tick.
const RATES: [u32; 3] = [499, 997, 1_999];

/// One cell after another, each with its own capture.
pub(super) fn run(
    bench: &mut Bench<'_>,
    pass: &PlannedPass,
    log: &mut LapLog,
    troubles: &mut Troubles,
    progress: &Progress,
) -> Result<(), Failure> {
    let mut usage = UsageProbes::default();
    let mut whole = match pass.kind {
        PassKind::Cpu => match one_for_all(bench, pass, troubles)? {
            None => return Ok(()),
            whole => whole,
        },
        _ => None,
    };
    let deaths = deaths(bench, pass);
    let mut done = Ok(());
    for &cell in &pass.cells {
        if !bench.takes_part(cell.arm) {
            continue;
        }
        bench.now(progress, cell);
        let whole = whole.as_mut();
        if whole.is_some() && deaths.get(&cell.arm) != Some(&bench.deaths(cell.arm)) {
            let reason = "it was told of a subject that has ended".to_owned();
            let error = ProbeError { probe: pass.kind.word().to_owned(), reason, at_start: false };
            troubles.add(&bench.cell_title(cell), &error);
            continue;
        }
        match one_cell(bench, pass, cell, whole, &mut usage, log, troubles, progress) {
            Ok(true) => {}
            Ok(false) => break,
            Err(failure) => {
                done = Err(failure);
                break;
            }
        }
    }
    usage.stop(bench, troubles);
    if let Some(Err(error)) = whole.map(|whole| whole.session.stop()) {
        troubles.add("closing", &error);
    }
    done
}

/// How often each arm of a pass has died so far.
fn deaths(bench: &Bench<'_>, pass: &PlannedPass) -> BTreeMap<usize, u32> {
    pass.cells.iter().map(|cell| (cell.arm, bench.deaths(cell.arm))).collect()
}

/// One capture of all cells, for a probe that takes long to close: arms are told apart by process,
/// and laps by time.
fn one_for_all(
    bench: &mut Bench<'_>,
    pass: &PlannedPass,
    troubles: &mut Troubles,
) -> Result<Option<Attached>, Failure> {
    let mut arms: Vec<usize> = pass.cells.iter().map(|cell| cell.arm).collect();
    arms.sort_unstable();
    arms.dedup();
    let mut targets = Vec::new();
    for arm in arms {
        for target in bench.targets(arm)? {
            if !targets.contains(&target) {
                targets.push(target);
            }
        }
    }
    let probe = pass.kind.word();
    // What runs on the load driver's core is no cost of the service.
    let cores = bench.laboratory.pinning.service_side().list();
    let rate = sampling_rate(pass.lap * pass.rounds).to_string();
    let options = vec!["--cpu".to_owned(), cores, "--rate".to_owned(), rate];
    let folder = run_dir::pass_capture(probe, probe);
    let attachment = Attachment { probe, folder, targets, options, recording: false };
    let started = Attached::start(bench.laboratory, attachment);
    troubles.note("all", started.map_err(Failure::Probe))
}

/// Samples a second on each core, so that a phase of one part in a hundred gets the thirty samples
/// that a share needs, where each cell is recorded for long enough.
fn sampling_rate(recorded: Duration) -> u32 {
    const ENOUGH: f64 = 4_000.0;
    let enough = |rate: &u32| f64::from(*rate) * recorded.as_secs_f64() >= ENOUGH;
    RATES.into_iter().find(enough).unwrap_or(RATES[RATES.len() - 1])
}

/// False where the probe cannot even start: it would fail the same way everywhere. `whole` is the
/// probe of all cells, where there is one; without, the cell gets a probe of its own.
#[expect(clippy::too_many_arguments, reason = "what a pass hands to each of its cells")]
fn one_cell(
    bench: &mut Bench<'_>,
    pass: &PlannedPass,
    cell: Cell,
    whole: Option<&mut Attached>,
    usage: &mut UsageProbes,
    log: &mut LapLog,
    troubles: &mut Troubles,
    progress: &Progress,
) -> Result<bool, Failure> {
    let title = bench.cell_title(cell);
    // The probe that reads clocks cannot be switched and be the meter as well: its own readings at
    // marks, which are taken whether it is on or off, are the meter then.
    if !pass.kind.switched().contains(&"usage") {
        usage.of(bench, log.pass(), cell.arm, troubles)?;
    }
    if let Some(whole) = whole {
        let whole = std::slice::from_mut(whole);
        let driven = bench.with_arm(cell, pass, |bench| {
            laps(bench, pass, cell, whole, usage, log, troubles, progress)
        });
        let ended = matches!(driven, Err(Failure::Probe(_)));
        if troubles.note(&title, driven)?.is_none() && !ended {
            usage.give_up(cell.arm);
        }
        return Ok(!ended);
    }
    let mut attached = Vec::new();
    let mut refused = None;
    for probe in pass.kind.switched() {
        let attachment = attachment(bench, pass.kind, probe, cell)?;
        match Attached::start(bench.laboratory, attachment) {
            Ok(probe) => attached.push(probe),
            Err(error) => {
                troubles.add(&title, &error);
                refused = Some(!error.at_start);
                break;
            }
        }
    }
    let driven = match refused {
        Some(_) => Ok(()),
        None => bench.with_arm(cell, pass, |bench| {
            laps(bench, pass, cell, &mut attached, usage, log, troubles, progress)
        }),
    };
    if matches!(driven, Err(Failure::Lost(_))) {
        // It watches a subject that is no more.
        usage.give_up(cell.arm);
    }
    let driven = troubles.note(&title, driven)?;
    // They are closed while their arm stands still, and whatever happened.
    for probe in attached {
        let stopped = probe.session.stop().map_err(Failure::Probe);
        if driven.is_some() {
            troubles.note(&title, stopped)?;
        }
    }
    Ok(refused.unwrap_or(true))
}

#[expect(clippy::too_many_arguments, reason = "what a pass hands to each of its cells")]
fn laps(
    bench: &mut Bench<'_>,
    pass: &PlannedPass,
    cell: Cell,
    attached: &mut [Attached],
    usage: &mut UsageProbes,
    log: &mut LapLog,
    troubles: &mut Troubles,
    progress: &Progress,
) -> Result<(), Failure> {
    for (round, recording) in balance::off_on(pass.rounds) {
        switch(attached, recording)?;
        let mut captures = BTreeMap::new();
        let beside = usage.running(cell.arm);
        if let Some(usage) = &beside {
            captures.insert("usage".to_owned(), usage.folder.clone());
        }
        for probe in attached.iter().filter(|probe| recording || probe.probe == "usage") {
            captures.insert(probe.probe.clone(), probe.folder.clone());
        }
        let plan = LapPlan {
            cell,
            round,
            probe: if recording { ProbeState::On } else { ProbeState::Off },
            load: pass.load(),
            stop: pass.stop(),
            captures,
            statements: recording && pass.kind.switched().contains(&"wire"),
        };
        let own = attached.len();
        let beside = beside.map(|usage| &mut usage.session);
        let mut marked: Vec<_> =
            attached.iter_mut().map(|probe| &mut probe.session).chain(beside).collect();
        for (place, error) in bench.lap(plan, &mut marked, log)?.failed {
            if place < own {
                return Err(error.into());
            }
            // The pass's own probes go on without the clocks.
            troubles.add(&bench.cell_title(cell), &error);
            usage.give_up(cell.arm);
        }
        progress.step();
    }
    switch(attached, false)
}

fn switch(attached: &mut [Attached], recording: bool) -> Result<(), Failure> {
    for probe in attached {
        probe.session.switch(recording)?;
    }
    Ok(())
}

fn attachment(
    bench: &mut Bench<'_>,
    kind: PassKind,
    probe: &'static str,
    cell: Cell,
) -> Result<Attachment<'static>, Failure> {
    let targets = match probe {
        // The services' system calls are not what a request of the subject costs.
        "syscalls" => vec![bench.subject_target(cell.arm)?],
        _ => bench.targets(cell.arm)?,
    };
    let folder = bench.cell_folder(kind.word(), cell, probe);
    Ok(Attachment { probe, folder, targets, options: Vec::new(), recording: false })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_recordings_are_sampled_more_often() {
        assert_eq!(sampling_rate(Duration::from_secs(20)), 499);
        assert_eq!(sampling_rate(Duration::from_secs(5)), 997);
        assert_eq!(sampling_rate(Duration::from_secs(1)), 1_999);
    }
}
