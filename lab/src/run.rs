//! A run: its directory, its record, and everything that passes work with.

use std::path::{Path, PathBuf};

use assay_captures::run_record::RunRecord;

use crate::experiment::Experiment;
use crate::experiment::plan::{Plan, PlannedRoute};
use crate::pinning::Pinning;
use crate::probes_build::ProbePrograms;
use crate::services::Services;
use crate::ui::Ui;

/// What passes work with. Services are running and seeded, subjects are built, probes exist.
#[derive(Debug)]
pub struct Laboratory {
    /// The experiment.
    pub experiment: Experiment,
    /// What to do.
    pub plan: Plan,
    /// The routes with their requests; the same indices as the experiment's.
    pub routes: Vec<PlannedRoute>,
    /// The services.
    pub services: Services,
    /// Who runs on which cores.
    pub pinning: Pinning,
    /// Where the probe programs are.
    pub probes: ProbePrograms,
    /// The run directory.
    pub run: RunDirectory,
    /// The private temporary directory; removed when everything has ended.
    pub scratch: PathBuf,
    /// The mouth.
    pub ui: Ui,
}

/// The directory of a run and its record.
#[derive(Debug)]
pub struct RunDirectory {
    path: PathBuf,
    /// What `run.json` will say; call [`RunDirectory::save`] after a change.
    pub record: RunRecord,
}

impl RunDirectory {
    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}
