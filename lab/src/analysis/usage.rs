//! CPU time, context switches and memory, and the CPU time of each lap.

use std::collections::BTreeMap;

use assay_analyses::comparisons::LapCpu;
use assay_analyses::cost::{Cost, Figure};
use assay_analyses::costs::usage::{Usage, UsageFold};
use assay_analyses::metric::Metric;
use assay_captures::capture;
use assay_captures::ids::Role;
use assay_captures::lap::Lap;
use assay_captures::usage::{Decoder, FILE};

use super::cells::{Cell, Cells, Recorded};
use super::is_fair;
use super::sheet::{Sheet, lost};

const METRICS: [Metric; 3] = [Metric::CpuTime, Metric::ContextSwitches, Metric::MemoryResident];

/// CPU seconds per request.
#[derive(Debug, Default)]
pub(super) struct Used {
    /// Of fair laps, by order and process.
    pub(super) fair: LapCpu,
    /// Of every lap, by pass and order.
    laps: BTreeMap<String, BTreeMap<u32, BTreeMap<Role, f64>>>,
    /// Of fair laps, by arm, route and role.
    figures: BTreeMap<(String, String, String), BTreeMap<Role, Figure>>,
}

impl Used {
    /// The subject's CPU seconds per request in each lap of a pass, by order.
    pub(super) fn subject_of(&self, pass: &str) -> BTreeMap<u32, f64> {
        let laps = self.laps.get(pass).into_iter().flatten();
        laps.filter_map(|(&order, cpu)| Some((order, *cpu.get(&Role::Subject)?))).collect()
    }

    /// CPU seconds per request in one lap of a pass, by role.
    pub(super) fn in_lap(&self, pass: &str, order: u32) -> Option<&BTreeMap<Role, f64>> {
        self.laps.get(pass)?.get(&order)
    }

    /// CPU seconds per request in fair laps of the arm and route of this lap, by role.
    pub(super) fn per_request(&self, lap: &Lap) -> BTreeMap<Role, Figure> {
        let key = (lap.subject.clone(), lap.variant.clone(), lap.route.clone());
        self.figures.get(&key).cloned().unwrap_or_default()
    }
}

/// Reads the clocks of every pass; costs come from fair laps alone.
pub(super) fn read(sheet: &mut Sheet, laps: &[Lap]) -> Used {
    let mut used = Used::default();
    for cell in Cells::of(laps) {
        // Clocks are read in laps with and without the pass's probe.
        let covered: Vec<&Lap> =
            cell.laps.iter().copied().filter(|lap| lap.captures.contains_key("usage")).collect();
        let Some(folder) = covered.first().and_then(|lap| lap.captures.get("usage")) else {
            continue;
        };
        let recorded = Recorded { folder: folder.clone(), laps: covered };
        read_cell(sheet, &cell, &recorded, &mut used);
    }
    used
}

fn read_cell(sheet: &mut Sheet, cell: &Cell<'_>, recorded: &Recorded<'_>, used: &mut Used) {
    let origin = cell.origin(&recorded.folder);
    let fair = is_fair(&origin.pass);
    let mut fold = UsageFold::new(&recorded.windows());
    // An arm that was started anew has a capture for each start; one after another they are as
    // one, since each has readings of its own on both sides of its laps.
    let folders = recorded.laps.iter().filter_map(|lap| lap.captures.get("usage"));
    let mut folders: Vec<&String> = folders.collect();
    folders.dedup();
    for folder in folders {
        let mut decoder = Decoder::default();
        let path = sheet.folder(folder).join(FILE);
        if let Err(error) = capture::feed_file(&path, |bytes| decoder.feed(bytes, &mut fold)) {
            if fair {
                sheet.not_measured(&origin, &METRICS, &lost(&error));
            }
            return;
        }
        decoder.finish(&mut fold);
    }
    if let Some(reason) = clock_was_set(sheet, recorded) {
        if fair {
            sheet.not_measured(&origin, &METRICS, &reason);
        }
        return;
    }
    let usage = fold.finish();
    note_laps(&usage, recorded, fair, used);
    if fair {
        let costs = usage.costs(&origin);
        let lap = cell.first();
        let key = (lap.subject.clone(), lap.variant.clone(), lap.route.clone());
        used.figures.insert(key, cpu_figures(&costs));
        sheet.costs.extend(costs);
    }
}

/// Samples are found by their time, also those of a probe that failed later for another reason.
fn clock_was_set(sheet: &Sheet, recorded: &Recorded<'_>) -> Option<String> {
    let manifest = capture::manifest(&sheet.folder(&recorded.folder)).ok()?;
    let was_set = manifest.integrity.contains_key("clock_step_nanoseconds");
    was_set.then(|| manifest.reason.unwrap_or_else(|| "the machine's clock was set".to_owned()))
}

fn note_laps(usage: &Usage, recorded: &Recorded<'_>, fair: bool, used: &mut Used) {
    for (index, lap) in recorded.laps.iter().enumerate() {
        let cpu = usage.cpu_per_request(index);
        used.laps.entry(lap.pass.clone()).or_default().insert(lap.order, cpu.clone());
        if fair {
            let by_word = cpu.iter().map(|(role, &seconds)| (role.word().to_owned(), seconds));
            used.fair.insert(lap.order, by_word.collect());
        }
    }
}

fn cpu_figures(costs: &[Cost]) -> BTreeMap<Role, Figure> {
    costs
        .iter()
        .filter(|cost| cost.metric == Metric::CpuTime)
        .filter_map(|cost| {
            let role = Role::from_word(cost.labels.get("process")?)?;
            Some((role, cost.amount.figure()?))
        })
        .collect()
}
