//! System calls per request, and the two instruments against each other.

use assay_analyses::cost::{Cost, Origin};
use assay_analyses::costs::strace::StraceFold;
use assay_analyses::costs::syscalls::{self, SyscallsFold};
use assay_analyses::metric::{Kind, Metric};
use assay_captures::bpf_counts::{Decoder, FILE};
use assay_captures::capture;
use assay_captures::lap::Load;

use super::cells::{Cell, Recorded};
use super::sheet::{Against, Sheet, lost};

const METRICS: [Metric; 1] = [Metric::Syscalls];

/// How far two instruments may lie apart, in calls per request: a lap's first and last calls can
/// fall on either side of a mark.
const TOLERANCE: f64 = 0.05;

/// The pass in which both instruments watch the same requests.
const BOTH: &str = "serial-strace";

/// Reads the counters and the trace of a cell that has them.
pub(super) fn read(sheet: &mut Sheet, cell: &Cell<'_>) {
    if let Some(recorded) = cell.recorded("syscalls") {
        counted(sheet, cell, &recorded);
    }
    if let Some(recorded) = cell.recorded("strace") {
        traced(sheet, cell, &recorded);
    }
}

fn counted(sheet: &mut Sheet, cell: &Cell<'_>, recorded: &Recorded<'_>) {
    let origin = cell.origin(&recorded.folder);
    let Some(manifest) = sheet.manifest(&origin, &METRICS) else { return };
    if let Some(reason) = recorded.spoiled() {
        return sheet.not_measured(&origin, &METRICS, &reason);
    }
    let mut fold = SyscallsFold::new(&recorded.windows());
    let mut decoder = Decoder::default();
    let path = sheet.folder(&recorded.folder).join(FILE);
    if let Err(error) = capture::feed_file(&path, |bytes| decoder.feed(bytes, &mut fold)) {
        return sheet.not_measured(&origin, &METRICS, &lost(&error));
    }
    decoder.finish(&mut fold);
    if let Some(&lost @ 1..) = manifest.integrity.get("processes_not_followed") {
        let reason = format!("{lost} processes could not be followed: too many lived at once");
        return sheet.not_measured(&origin, &METRICS, &reason);
    }
    let misses = manifest.integrity.get("recursion_misses").copied().unwrap_or(0);
    let kind = kind(cell);
    let against = Against::none("system calls are lower bounds");
    sheet.check(&origin, "system calls missed", misses as f64, against);
    sheet.costs.extend(fold.costs(&origin, kind, misses));
}

fn traced(sheet: &mut Sheet, cell: &Cell<'_>, recorded: &Recorded<'_>) {
    let origin = cell.origin(&recorded.folder);
    if sheet.manifest(&origin, &METRICS).is_none() {
        return;
    }
    if let Some(reason) = recorded.spoiled() {
        return sheet.not_measured(&origin, &METRICS, &reason);
    }
    let mut fold = StraceFold::new(&recorded.windows());
    if let Err(error) = capture::strace(&sheet.folder(&recorded.folder), &mut fold) {
        return sheet.not_measured(&origin, &METRICS, &lost(&error));
    }
    sheet.costs.extend(fold.costs(&origin, kind(cell)));
}

/// One request at a time makes the same calls each time; under load they depend on the load.
fn kind(cell: &Cell<'_>) -> Kind {
    match cell.first().load {
        Load::Serial { .. } => Kind::Exact,
        _ => Kind::Noisy,
    }
}

/// Holds counters and traces of the same requests against each other.
pub(super) fn compare_instruments(sheet: &mut Sheet) {
    let mut origins: Vec<Origin> = sheet
        .costs
        .iter()
        .filter(|cost| cost.metric == Metric::Syscalls && cost.origin.pass == BOTH)
        .map(|cost| cost.origin.clone())
        .collect();
    origins.sort();
    origins.dedup();
    let of = |sheet: &Sheet, origin: &Origin| -> Vec<Cost> {
        sheet.costs.iter().filter(|cost| cost.origin == *origin).cloned().collect()
    };
    for pair in origins.chunk_by(|one, other| {
        (&one.subject, &one.variant, &one.route) == (&other.subject, &other.variant, &other.route)
    }) {
        let [one, other] = pair else { continue };
        let agreement = syscalls::agreement(&of(sheet, one), &of(sheet, other));
        for call in agreement {
            let against = Against {
                expected: call.other,
                tolerance: TOLERANCE,
                source: "the other instrument over the same requests",
                otherwise: "the two instruments disagree: believe neither",
            };
            sheet.check(one, &format!("{} a request", call.name), call.one, against);
        }
    }
}
