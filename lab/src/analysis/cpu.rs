//! CPU time by phase.

use std::collections::BTreeMap;

use assay_analyses::compare::ArmName;
use assay_analyses::cost::{Cost, Figure, Origin};
use assay_analyses::costs::cpu::{CpuFold, CpuFolds, Profile};
use assay_analyses::metric::Metric;
use assay_analyses::phases::Rules;
use assay_captures::capture;
use assay_captures::ids::Role;
use assay_captures::manifest::Target;
use assay_captures::perf_script::Decoder;
use assay_reports::report;

use super::cells::{Cell, Cells, Recorded};
use super::sheet::{Against, Sheet, lost};
use super::usage::Used;

const METRICS: [Metric; 1] = [Metric::CpuPhase];

/// How far samples × period may lie from the process clock of the same laps, beside what chance
/// does to so many samples (two standard errors).
const TOLERANCE: f64 = 0.05;

/// Calls with a smaller share of a process's samples count in their callers: they would be
/// narrower than a pixel.
const CALL_SHARE: f64 = 0.004;

/// A cell whose CPU time was sampled.
struct Sampled<'a> {
    origin: Origin,
    recorded: Recorded<'a>,
    targets: Vec<Target>,
    lost_chunks: u64,
    per_request: BTreeMap<Role, Figure>,
}

/// Reads the samples of all cells that have them, each capture once however many cells it holds.
/// `used` has the CPU time of fair laps, which phases are shares of, and of this pass's own laps,
/// which samples are checked against.
pub(super) fn read(sheet: &mut Sheet, cells: Cells<'_>, used: &Used, rules: &Rules) {
    let mut captures: Vec<(String, Vec<Sampled<'_>>)> = Vec::new();
    for cell in cells {
        let Some(sampled) = sampled(sheet, &cell, used) else { continue };
        let folder = &sampled.recorded.folder;
        match captures.iter_mut().find(|(known, _)| known == folder) {
            Some((_, cells)) => cells.push(sampled),
            None => captures.push((folder.clone(), vec![sampled])),
        }
    }
    for (folder, cells) in captures {
        read_capture(sheet, &folder, &cells, used, rules);
    }
}

fn sampled<'a>(sheet: &mut Sheet, cell: &Cell<'a>, used: &Used) -> Option<Sampled<'a>> {
    let recorded = cell.recorded("cpu")?;
    let origin = cell.origin(&recorded.folder);
    let manifest = sheet.manifest(&origin, &METRICS)?;
    let per_request = used.per_request(cell.first());
    if per_request.is_empty() {
        let reason = "phases are shares of the CPU time of fair laps, which was not measured";
        sheet.not_measured(&origin, &METRICS, reason);
        return None;
    }
    let lost_chunks = manifest.integrity.get("lost_chunks").copied().unwrap_or(0);
    Some(Sampled { origin, recorded, targets: manifest.targets, lost_chunks, per_request })
}

fn read_capture(
    sheet: &mut Sheet,
    folder: &str,
    cells: &[Sampled<'_>],
    used: &Used,
    rules: &Rules,
) {
    let folds = cells
        .iter()
        .map(|cell| CpuFold::new(&cell.recorded.windows(), &cell.targets, rules))
        .collect();
    let mut folds = CpuFolds(folds);
    let mut decoder = Decoder::default();
    let path = sheet.folder(folder);
    if let Err(error) = capture::feed_stacks(&path, |bytes| decoder.feed(bytes, &mut folds)) {
        for cell in cells {
            sheet.not_measured(&cell.origin, &METRICS, &lost(&error));
        }
        return;
    }
    decoder.finish(&mut folds);
    for (cell, fold) in cells.iter().zip(folds.0) {
        note(sheet, cell, &fold.finish(), used);
    }
}

fn note(sheet: &mut Sheet, cell: &Sampled<'_>, profile: &Profile, used: &Used) {
    let clocks = clocks(&cell.recorded, used);
    check_sum(sheet, &cell.origin, profile, &clocks);
    let against = Against::none("samples are missing: shares are doubtful");
    sheet.check(&cell.origin, "chunks of samples lost", cell.lost_chunks as f64, against);
    note_calls(sheet, cell, profile);
    let costs = profile.costs(&cell.origin, &cell.per_request).into_iter();
    sheet.costs.extend(costs.map(|cost| match shifted(&cost, profile, &clocks) {
        Some(doubt) => cost.doubted(doubt),
        None => cost,
    }));
}

/// Keeps the calls of the service and of Postgres for whoever wants to look at them.
fn note_calls(sheet: &mut Sheet, cell: &Sampled<'_>, profile: &Profile) {
    for role in [Role::Subject, Role::Postgres] {
        let (Some(tree), Some(figure)) =
            (profile.tree(role, CALL_SHARE), cell.per_request.get(&role))
        else {
            continue;
        };
        let origin = &cell.origin;
        sheet.profiles.push(report::Profile {
            arm: ArmName { subject: origin.subject.clone(), variant: origin.variant.clone() },
            route: origin.route.clone(),
            process: role.word().to_owned(),
            tree,
            per_request: figure.value,
        });
    }
}

/// CPU seconds by process clocks, over the recorded laps.
fn clocks(recorded: &Recorded<'_>, used: &Used) -> BTreeMap<Role, f64> {
    let mut clocks = BTreeMap::new();
    for lap in &recorded.laps {
        for (&role, seconds) in used.in_lap(&lap.pass, lap.order).into_iter().flatten() {
            if role != Role::Load {
                *clocks.entry(role).or_default() += seconds * lap.requests as f64;
            }
        }
    }
    clocks
}

/// Holds the samples of all processes together against their clocks. Not each by itself: what a
/// context switch takes is sampled in whoever runs next, but charged in part to who ran before.
fn check_sum(sheet: &mut Sheet, origin: &Origin, profile: &Profile, clocks: &BTreeMap<Role, f64>) {
    let clock: f64 = clocks.values().sum();
    if clock <= 0.0 {
        return;
    }
    let samples: u64 = clocks.keys().map(|&role| profile.samples(role)).sum();
    let sampled: f64 = clocks.keys().map(|&role| profile.sampled(role).seconds()).sum();
    let against = Against {
        expected: clock,
        tolerance: clock * tolerance(samples),
        source: "the process clocks over the same laps",
        otherwise: "samples do not add up to the CPU time that was used: shares are doubtful",
    };
    sheet.check(origin, "seconds of CPU in samples", sampled, against);
}

/// How far so many samples may be off, as a share.
fn tolerance(samples: u64) -> f64 {
    TOLERANCE + 2.0 / (samples.max(1) as f64).sqrt()
}

/// What is doubtful about a phase of a process whose samples and clock disagree.
fn shifted(cost: &Cost, profile: &Profile, clocks: &BTreeMap<Role, f64>) -> Option<String> {
    let role = Role::from_word(cost.labels.get("process")?)?;
    let clock = clocks.get(&role).copied().filter(|&clock| clock > 0.0)?;
    let off = profile.sampled(role).seconds() / clock - 1.0;
    (off.abs() > tolerance(profile.samples(role))).then(|| {
        let (percent, more) = (off.abs() * 100.0, if off > 0.0 { "more" } else { "less" });
        format!(
            "samples show {percent:.0} % {more} CPU time than the clock of the process: context \
             switches are sampled in whoever runs next"
        )
    })
}
