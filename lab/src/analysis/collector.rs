//! Garbage collections of subjects that print them, from the lines of each fair lap.

use assay_analyses::costs::collector::{self, Collections};
use assay_analyses::metric::Metric;
use assay_captures::capture;
use assay_captures::gctrace::Decoder;

use super::cells::Cell;
use super::is_fair;
use super::sheet::{Sheet, lost};

const METRICS: [Metric; 3] =
    [Metric::GcCollectionsPerSecond, Metric::GcStopTheWorldShare, Metric::GcCpuShare];

/// Reads the lines of one cell.
pub(super) fn read(sheet: &mut Sheet, cell: &Cell<'_>) {
    if !is_fair(&cell.first().pass) {
        return;
    }
    let Some(recorded) = cell.recorded("gctrace") else { return };
    let origin = cell.origin(&recorded.folder);
    let mut laps = Vec::new();
    for lap in &recorded.laps {
        let path = sheet.folder(&recorded.folder).join(format!("lap-{}.txt", lap.order));
        let mut collections = Collections::default();
        let mut decoder = Decoder::default();
        let read = capture::feed_file(&path, |bytes| decoder.feed(bytes, &mut collections));
        if let Err(error) = read {
            return sheet.not_measured(&origin, &METRICS, &lost(&error));
        }
        decoder.finish(&mut collections);
        laps.push((lap.span.length(), collections));
    }
    sheet.costs.extend(collector::costs(&origin, &laps));
}
