//! CPU time by phase.

use assay_analyses::costs::cpu::CpuFold;
use assay_analyses::metric::Metric;
use assay_analyses::phases::Rules;
use assay_captures::capture;
use assay_captures::ids::Role;
use assay_captures::perf_script::{Decoder, FILE};

use super::cells::Cell;
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
    let clock: f64 = recorded
        .laps
        .iter()
        .filter_map(|lap| Some(used.of_subject(&lap.pass, lap.order)? * lap.requests as f64))
        .sum();
    if clock > 0.0 {
        let chance = 2.0 / (profile.samples(Role::Subject).max(1) as f64).sqrt();
        let against = Against {
            expected: clock,
            tolerance: clock * (TOLERANCE + chance),
            source: "the subject's process clock over the same laps",
            otherwise: "samples do not add up to the CPU time that was used: shares are doubtful",
        };
        let sampled = profile.sampled(Role::Subject).seconds();
        sheet.check(&origin, "seconds of CPU in samples", sampled, against);
    }
    let lost = manifest.integrity.get("lost_chunks").copied().unwrap_or(0);
    let against = Against::none("samples are missing: shares are doubtful");
    sheet.check(&origin, "chunks of samples lost", lost as f64, against);
    sheet.costs.extend(profile.costs(&origin, &per_request));
}
