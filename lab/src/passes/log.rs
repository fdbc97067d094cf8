//! `laps.jsonl` and `requests.jsonl`: written as laps end, so that what was measured before a
//! failure is kept.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use assay_captures::lap::Lap;
use assay_captures::request_log::Slot;
use assay_captures::run_dir;

use super::failure::{Failure, unwritten};

/// The laps of one pass.
pub(super) struct LapLog {
    pass: String,
    path: PathBuf,
    file: File,
    laps: u32,
}

impl LapLog {
    /// An empty log for `pass` in the run directory `run`.
    pub(super) fn create(run: &Path, pass: &str) -> Result<Self, Failure> {
        let folder = run.join(run_dir::pass(pass));
        let path = folder.join(run_dir::LAPS);
        let file = make_folder(&folder).and_then(|()| create(&path));
        let file = file.map_err(|error| unwritten(&path, &error))?;
        Ok(Self { pass: pass.to_owned(), path, file, laps: 0 })
    }

    /// Name of the pass.
    #[must_use]
    pub(super) fn pass(&self) -> &str {
        &self.pass
    }

    /// The place of the next lap in the order of the pass.
    #[must_use]
    pub(super) fn next_order(&self) -> u32 {
        self.laps
    }

    /// Appends a lap, whole or not at all.
    pub(super) fn append(&mut self, lap: &Lap) -> Result<(), Failure> {
        let mut line = serde_json::to_vec(lap).map_err(|error| Failure::Run(error.into()))?;
        line.push(b'\n');
        self.file.write_all(&line).map_err(|error| unwritten(&self.path, &error))?;
        self.laps += 1;
        Ok(())
    }
}

/// Writes the slots of a serial lap into the route's folder.
pub(super) fn write_slots(folder: &Path, slots: &[Slot]) -> Result<(), Failure> {
    let path = folder.join(run_dir::REQUESTS);
    let written = || -> io::Result<()> {
        make_folder(folder)?;
        let mut file = io::BufWriter::new(create(&path)?);
        for slot in slots {
            serde_json::to_writer(&mut file, slot)?;
            file.write_all(b"\n")?;
        }
        file.flush()
    };
    written().map_err(|error| unwritten(&path, &error))
}

pub(super) fn make_folder(path: &Path) -> io::Result<()> {
    if fs::metadata(path).is_ok_and(|found| found.is_dir()) {
        return Ok(());
    }
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

pub(super) fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}
