//! Requests that somebody else has sent: counted on the wire, before anything is divided by them.

use assay_analyses::costs::wire::{Count, WireFold};
use assay_captures::capture;
use assay_captures::lap::{Lap, Load};
use assay_captures::manifest::Status;

use super::cells::Cells;
use super::sheet::Sheet;
use super::wire::ports;

/// Fills in the requests of laps that nobody of ours has driven. Where responses cannot be seen
/// (TLS, HTTP/2, no packets) they stay at none, and nothing is divided by them.
pub(super) fn count_requests(sheet: &Sheet, laps: &mut [Lap]) {
    let mut counted: Vec<(u32, u64)> = Vec::new();
    for cell in Cells::of(laps) {
        let Some(recorded) = cell.recorded("wire") else { continue };
        if cell.first().load != Load::Foreign {
            continue;
        }
        let folder = sheet.folder(&recorded.folder);
        let Ok(manifest) = capture::manifest(&folder) else { continue };
        if manifest.status != Status::Complete {
            continue;
        }
        let mut fold = WireFold::new(&recorded.windows(), ports(&manifest.targets));
        if capture::packets_of(&folder, &mut fold).is_err() {
            continue;
        }
        let accounts = fold.finish(&cell.origin(&recorded.folder)).windows;
        let responses = accounts.iter().map(|account| account.get(Count::HttpResponses));
        counted.extend(recorded.laps.iter().map(|lap| lap.order).zip(responses));
    }
    for lap in laps.iter_mut().filter(|lap| lap.load == Load::Foreign) {
        let responses = counted.iter().find(|(order, _)| *order == lap.order);
        let responses = responses.map_or(0, |&(_, responses)| responses);
        lap.requests = responses;
        lap.answered_in_time = responses;
        // Their statuses are not looked at: an answer is an answer.
        lap.good = responses;
    }
}
