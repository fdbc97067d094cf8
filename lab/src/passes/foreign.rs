//! The foreign pass: nothing is sent; what others send is watched by all probes at once, in
//! windows of equal length.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use assay_captures::lap::{Lap, Latency, Load, ProbeState};
use assay_captures::units::Span;

use super::attached::{Attached, Attachment, Troubles};
use super::bench::Bench;
use super::failure::Failure;
use super::log::LapLog;
use crate::experiment::plan::{Cell, PlannedPass};
use crate::run_directory::now;
use crate::ui::Progress;

/// Samples a second on each core; out of step with every kernel's tick.
const RATE: &str = "997";
/// Between two looks whether somebody wants to stop.
const STEP: Duration = Duration::from_millis(20);

/// The probes, in the order in which they are started: the first must not miss what others see.
const PROBES: [&str; 4] = ["wire", "usage", "syscalls", "cpu"];

/// Watches.
pub(super) fn run(
    bench: &mut Bench<'_>,
    pass: &PlannedPass,
    log: &mut LapLog,
    troubles: &mut Troubles,
    progress: &Progress,
) -> Result<(), Failure> {
    for &cell in &pass.cells {
        bench.now(progress, cell);
        let mut probes = start(bench, cell, troubles)?;
        let mut done = Ok(());
        for round in 0..pass.rounds {
            done = window(bench, cell, round, pass.lap, &mut probes, log);
            if done.is_err() {
                break;
            }
            progress.step();
        }
        for probe in probes {
            if let Err(error) = probe.session.stop() {
                troubles.add("closing", &error);
            }
        }
        troubles.note("watching", done)?;
    }
    Ok(())
}

fn start(
    bench: &mut Bench<'_>,
    cell: Cell,
    troubles: &mut Troubles,
) -> Result<Vec<Attached>, Failure> {
    let mut probes = Vec::new();
    for probe in PROBES {
        let targets = match probe {
            "syscalls" => vec![bench.subject_target(cell.arm)?],
            _ => bench.targets(cell.arm)?,
        };
        let cores = bench.laboratory.pinning.service_side().list();
        let options = match probe {
            "cpu" => ["--cpu", &cores, "--rate", RATE].map(str::to_owned).to_vec(),
            _ => Vec::new(),
        };
        let folder = bench.cell_folder("foreign", cell, probe);
        let attachment = Attachment { probe, folder, targets, options, recording: true };
        match Attached::start(bench.laboratory, attachment) {
            Ok(attached) => probes.push(attached),
            Err(error) => troubles.add("starting", &error),
        }
    }
    Ok(probes)
}

fn window(
    bench: &Bench<'_>,
    cell: Cell,
    round: u32,
    length: Duration,
    probes: &mut [Attached],
    log: &mut LapLog,
) -> Result<(), Failure> {
    mark(probes)?;
    let (start, end) = (now(), Instant::now() + length);
    while Instant::now() < end {
        bench.check_cancel()?;
        std::thread::sleep(STEP.min(end.saturating_duration_since(Instant::now())));
    }
    let span = Span { start, end: now() };
    mark(probes)?;
    let captures = probes.iter().map(|probe| (probe.name().to_owned(), probe.folder.clone()));
    log.append(&lap(bench, cell, round, span, captures.collect(), log))
}

/// Counters are read between windows, not in them.
fn mark(probes: &mut [Attached]) -> Result<(), Failure> {
    for probe in probes {
        probe.session.mark()?;
    }
    Ok(())
}

/// A lap whose requests nobody has counted yet.
fn lap(
    bench: &Bench<'_>,
    cell: Cell,
    round: u32,
    span: Span,
    captures: BTreeMap<String, String>,
    log: &LapLog,
) -> Lap {
    let (subject, variant) = bench.arm_names(cell.arm);
    Lap {
        pass: log.pass().to_owned(),
        subject: subject.to_owned(),
        variant: variant.to_owned(),
        route: bench.route_name(cell).to_owned(),
        round,
        order: log.next_order(),
        probe: ProbeState::None,
        load: Load::Foreign,
        span,
        sent_until: span.end,
        answered_in_time: 0,
        requests: 0,
        good: 0,
        non_2xx: 0,
        mismatched: 0,
        errors: BTreeMap::new(),
        body_bytes: 0,
        latency: Latency::default(),
        postgres_calls: None,
        generator: None,
        timeline: Vec::new(),
        spoiled: None,
        captures,
    }
}
