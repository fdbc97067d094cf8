//! Laps, sorted into the cells that figures are made of: one pass, one arm, one route.

use assay_analyses::cost::Origin;
use assay_analyses::window::Window;
use assay_captures::lap::{Lap, ProbeState};

/// The laps of one arm on one route in one pass, in their order.
#[derive(Debug)]
pub(super) struct Cell<'a> {
    pub(super) laps: Vec<&'a Lap>,
}

/// All cells of a run.
pub(super) struct Cells<'a>(Vec<Cell<'a>>);

impl<'a> Cells<'a> {
    /// Sorts laps into cells; cells stand in the order of their first laps.
    pub(super) fn of(laps: &'a [Lap]) -> Self {
        let mut cells: Vec<Cell<'a>> = Vec::new();
        for lap in laps {
            match cells.iter_mut().find(|cell| cell.holds(lap)) {
                Some(cell) => cell.laps.push(lap),
                None => cells.push(Cell { laps: vec![lap] }),
            }
        }
        Self(cells)
    }
}

impl<'a> IntoIterator for Cells<'a> {
    type Item = Cell<'a>;
    type IntoIter = std::vec::IntoIter<Cell<'a>>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a> Cell<'a> {
    fn holds(&self, lap: &Lap) -> bool {
        let first = self.laps[0];
        first.pass == lap.pass
            && first.subject == lap.subject
            && first.variant == lap.variant
            && first.route == lap.route
    }

    /// The first lap: what all have in common, it has.
    pub(super) fn first(&self) -> &'a Lap {
        self.laps[0]
    }

    /// The folder of a probe's capture and the laps that it covers; `None` where the probe did
    /// not record this cell. A pass gives each cell one capture of each probe.
    pub(super) fn recorded(&self, probe: &str) -> Option<Recorded<'a>> {
        let laps: Vec<&Lap> = self
            .laps
            .iter()
            .copied()
            .filter(|lap| lap.probe != ProbeState::Off && lap.captures.contains_key(probe))
            .collect();
        let folder = laps.first()?.captures.get(probe)?.clone();
        Some(Recorded { folder, laps })
    }

    /// Where costs of this cell belong.
    pub(super) fn origin(&self, capture: &str) -> Origin {
        let lap = self.first();
        Origin {
            subject: lap.subject.clone(),
            variant: lap.variant.clone(),
            route: lap.route.clone(),
            pass: lap.pass.clone(),
            capture: Some(capture.to_owned()),
        }
    }
}

/// A capture with the laps that it covers.
#[derive(Debug)]
pub(super) struct Recorded<'a> {
    /// Relative to the run directory.
    pub(super) folder: String,
    /// Never empty.
    pub(super) laps: Vec<&'a Lap>,
}

impl Recorded<'_> {
    /// The windows of the laps.
    pub(super) fn windows(&self) -> Vec<Window> {
        self.laps.iter().map(|&lap| Window::from(lap)).collect()
    }

    /// Requests of all laps.
    pub(super) fn requests(&self) -> u64 {
        self.laps.iter().map(|lap| lap.requests).sum()
    }

    /// Why no figure may be made of these laps: a request that got no answer may have caused
    /// anything or nothing.
    pub(super) fn spoiled(&self) -> Option<String> {
        let unanswered: u64 = self.laps.iter().flat_map(|lap| lap.errors.values()).sum();
        (unanswered > 0).then(|| format!("{unanswered} requests got no answer"))
    }
}
