//! Allocations per request.

use assay_analyses::costs::allocations::AllocationsFold;
use assay_analyses::metric::Metric;
use assay_captures::allocation_counts::{Decoder, FILE};
use assay_captures::capture;
use assay_captures::lap::Load;

use super::cells::Cell;
use super::sheet::{Sheet, lost};

const METRICS: [Metric; 2] = [Metric::AllocationsBlocks, Metric::AllocationsBytes];

/// Reads the counters of a cell that has them.
pub(super) fn read(sheet: &mut Sheet, cell: &Cell<'_>) {
    let Some(recorded) = cell.recorded("allocations") else { return };
    let origin = cell.origin(&recorded.folder);
    if sheet.manifest(&origin, &METRICS).is_none() {
        return;
    }
    if let Some(reason) = recorded.spoiled() {
        return sheet.not_measured(&origin, &METRICS, &reason);
    }
    let mut fold = AllocationsFold::new(&recorded.windows());
    let mut decoder = Decoder::default();
    let path = sheet.folder(&recorded.folder).join(FILE);
    if let Err(error) = capture::feed_file(&path, |bytes| decoder.feed(bytes, &mut fold)) {
        return sheet.not_measured(&origin, &METRICS, &lost(&error));
    }
    decoder.finish(&mut fold);
    let connections = match cell.first().load {
        Load::Closed { connections } | Load::FixedRate { connections, .. } => connections,
        Load::Serial { .. } => 1,
        Load::Foreign => 0,
    };
    sheet.costs.extend(fold.costs(&origin, connections));
}
