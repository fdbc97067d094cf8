//! The serial pass: one request at a time, with packets and system calls recorded all along; and
//! the same again, shorter, under strace, whose counts are held against the kernel's own.

use std::collections::BTreeMap;

use assay_captures::lap::{Load, ProbeState};
use assay_captures::run_dir;
use assay_captures::units::Nanos;

use super::attached::{Attached, Attachment, Troubles};
use super::bench::{Bench, Driven, LapPlan};
use super::failure::Failure;
use super::log::{LapLog, write_slots};
use crate::experiment::plan::{Cell, PlannedPass};
use crate::load::Stop;
use crate::ui::Progress;

/// Name of the second half.
pub(super) const UNDER_STRACE: &str = "serial-strace";

/// strace makes a request several times slower; a fifth of the requests shows each call as well.
const STRACE_SHARE: u32 = 5;
/// So many requests at least.
const STRACE_MIN: u32 = 20;

/// Requests of a cell in the half under strace.
#[must_use]
pub(super) fn strace_requests(pass: &PlannedPass) -> u32 {
    (pass.requests / STRACE_SHARE).max(STRACE_MIN).min(pass.requests)
}

/// The half with packets and the kernel's own counts.
pub(super) fn run(
    bench: &mut Bench<'_>,
    pass: &PlannedPass,
    log: &mut LapLog,
    troubles: &mut Troubles,
    progress: &Progress,
) -> Result<(), Failure> {
    each_cell(bench, pass, log, troubles, progress, pass.requests, |bench, cell| {
        let pass = "serial";
        let wire = Attachment {
            probe: "wire",
            folder: bench.cell_folder(pass, cell, "wire"),
            targets: bench.targets(cell.arm)?,
            options: Vec::new(),
            recording: true,
        };
        Ok(vec![("wire", wire), ("syscalls", counting(bench, pass, cell)?)])
    })
}

/// The half under strace.
pub(super) fn run_under_strace(
    bench: &mut Bench<'_>,
    pass: &PlannedPass,
    log: &mut LapLog,
    troubles: &mut Troubles,
    progress: &Progress,
) -> Result<(), Failure> {
    let requests = strace_requests(pass);
    each_cell(bench, pass, log, troubles, progress, requests, |bench, cell| {
        let cores = bench.laboratory.pinning.app.cores();
        let core = cores.first().copied().unwrap_or_default().to_string();
        let strace = Attachment {
            probe: "syscalls",
            folder: bench.cell_folder(UNDER_STRACE, cell, "strace"),
            targets: vec![bench.subject_target(cell.arm)?],
            // On the subject's own core each stop costs a third of what it costs from another.
            options: ["--backend", "strace", "--cpu", &core].map(str::to_owned).to_vec(),
            recording: true,
        };
        Ok(vec![("strace", strace), ("syscalls", counting(bench, UNDER_STRACE, cell)?)])
    })
}

fn counting(bench: &mut Bench<'_>, pass: &str, cell: Cell) -> Result<Attachment<'static>, Failure> {
    Ok(Attachment {
        probe: "syscalls",
        folder: bench.cell_folder(pass, cell, "syscalls"),
        targets: vec![bench.subject_target(cell.arm)?],
        options: ["--backend", "bpf"].map(str::to_owned).to_vec(),
        recording: true,
    })
}

/// The probes of a cell, by the name under which its lap lists them.
type Wanted = Vec<(&'static str, Attachment<'static>)>;

fn each_cell(
    bench: &mut Bench<'_>,
    pass: &PlannedPass,
    log: &mut LapLog,
    troubles: &mut Troubles,
    progress: &Progress,
    requests: u32,
    mut wanted: impl FnMut(&mut Bench<'_>, Cell) -> Result<Wanted, Failure>,
) -> Result<(), Failure> {
    // A probe that cannot start would fail the same way everywhere: it is asked once.
    let mut hopeless: Vec<&str> = Vec::new();
    for &cell in &pass.cells {
        if !bench.takes_part(cell.arm) {
            progress.step();
            continue;
        }
        bench.now(progress, cell);
        let title = bench.cell_title(cell);
        let probes = wanted(bench, cell)?;
        let driven = bench.with_arm(cell, pass, |bench| {
            let mut attached = BTreeMap::new();
            for (name, attachment) in probes {
                if hopeless.contains(&name) {
                    continue;
                }
                match Attached::start(bench.laboratory, attachment) {
                    Ok(probe) => {
                        attached.insert(name, probe);
                    }
                    Err(error) => {
                        troubles.add(&title, &error);
                        hopeless.push(name);
                    }
                }
            }
            let driven = if attached.is_empty() {
                Ok(())
            } else {
                one_lap(bench, pass, cell, requests, &mut attached, log, troubles)
            };
            // While the subject still runs: strace lets go of it only when it moves.
            for (_, probe) in attached {
                if let Err(error) = probe.session.stop() {
                    troubles.add(&title, &error);
                }
            }
            driven
        });
        troubles.note(&title, driven)?;
        progress.step();
    }
    Ok(())
}

fn one_lap(
    bench: &mut Bench<'_>,
    pass: &PlannedPass,
    cell: Cell,
    requests: u32,
    attached: &mut BTreeMap<&'static str, Attached>,
    log: &mut LapLog,
    troubles: &mut Troubles,
) -> Result<(), Failure> {
    let captures =
        attached.iter().map(|(&name, probe)| (name.to_owned(), probe.folder.clone())).collect();
    let gap = Nanos(u64::try_from(pass.gap.as_nanos()).unwrap_or(u64::MAX));
    let plan = LapPlan {
        cell,
        round: 0,
        probe: ProbeState::On,
        load: Load::Serial { gap },
        stop: Stop::Requests(u64::from(requests)),
        captures,
        statements: true,
    };
    let mut marked: Vec<_> = attached.values_mut().map(|probe| &mut probe.session).collect();
    let Driven { lap, slots, failed } = bench.lap(plan, &mut marked, log)?;
    // What the other probes have recorded is worth the slots.
    let names: Vec<&str> = attached.keys().copied().collect();
    for (place, error) in failed {
        troubles.add(&bench.cell_title(cell), &error);
        if let Some(failed) = names.get(place).and_then(|name| attached.remove(name)) {
            drop(failed);
        }
    }
    let folder = run_dir::route(&lap.pass, &lap.subject, &lap.variant, &lap.route);
    write_slots(&bench.laboratory.run.path().join(folder), &slots)
}
