//! CPU time by phase.

use std::collections::BTreeMap;

use assay_analyses::cost::{Cost, Origin};
use assay_analyses::costs::cpu::{CpuFold, Profile};
use assay_analyses::metric::Metric;
use assay_analyses::phases::Rules;
use assay_captures::capture;
use assay_captures::ids::Role;
use assay_captures::perf_script::{Decoder, FILE};

use super::cells::{Cell, Recorded};
use super::sheet::{Against, Sheet, lost};
use super::usage::Used;

const METRICS: [Metric; 1] = [Metric::CpuPhase];

/// How far samples × period may lie from the process clock of the same laps, beside what chance
/// does to so many samples (two standard errors).
const TOLERANCE: f64 = 0.05;

/// Reads the samples of a cell that has them. `used` has the CPU time of fair laps, which phases
/// are shares of, and of this pass's own laps, which samples are checked against.
pub(super) fn read(sheet: &mut Sheet, cell: &Cell<'_>, used: &Used, rules: &Rules) {
    let Some(recorded) = cell.recorded("cpu") else { return };
    let origin = cell.origin(&recorded.folder);
    let Some(manifest) = sheet.manifest(&origin, &METRICS) else { return };
    let per_request = used.per_request(cell.first());
    if per_request.is_empty() {
        let reason = "phases are shares of the CPU time of fair laps, which was not measured";
        return sheet.not_measured(&origin, &METRICS, reason);
    }
    let mut fold = CpuFold::new(&recorded.windows(), &manifest.targets, rules);
    let mut decoder = Decoder::default();
    let path = sheet.folder(&recorded.folder).join(FILE);
    if let Err(error) = capture::feed_file(&path, |bytes| decoder.feed(bytes, &mut fold)) {
        return sheet.not_measured(&origin, &METRICS, &lost(&error));
    }
    decoder.finish(&mut fold);
    let profile = fold.finish();
    let clocks = clocks(&recorded, used);
    check_sum(sheet, &origin, &profile, &clocks);
    let lost = manifest.integrity.get("lost_chunks").copied().unwrap_or(0);
    let against = Against::none("samples are missing: shares are doubtful");
    sheet.check(&origin, "chunks of samples lost", lost as f64, against);
    let costs = profile.costs(&origin, &per_request).into_iter();
    sheet.costs.extend(costs.map(|cost| match shifted(&cost, &profile, &clocks) {
        Some(doubt) => cost.doubted(doubt),
        None => cost,
    }));
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
