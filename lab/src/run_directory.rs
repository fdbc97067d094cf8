//! The run directory: made, its record kept, ended as complete or incomplete.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, anyhow, bail};
use assay_analyses::phases::Rules;
use assay_captures::manifest::Status;
use assay_captures::run_dir;
use assay_captures::run_record::RunRecord;
use assay_captures::units::Moment;
use assay_captures::utc::Utc;
use nix::libc;

use crate::experiment::copy;

/// Several times what a record takes.
const ROOM: libc::off_t = 128 * 1024;

/// The directory of a run and its record.
#[derive(Debug)]
pub struct RunDirectory {
    path: PathBuf,
    /// Room on the disk for the last record; given back before that is written.
    room: Option<File>,
    /// What `run.json` will say; call [`RunDirectory::save`] after a change.
    pub record: RunRecord,
}

impl RunDirectory {
    /// Makes the directory, with a copy of the experiment and a record that says `recording`.
    pub fn create(path: &Path, experiment: &str, record: RunRecord) -> Result<Self> {
        if path.read_dir().is_ok_and(|mut entries| entries.next().is_some()) {
            bail!("{} is not empty; give another folder to --out", path.display());
        }
        let mut folder = fs::DirBuilder::new();
        let made = folder.recursive(true).mode(0o700).create(path);
        made.map_err(|error| unwritten(path, &error))?;
        let run = Self { path: path.to_path_buf(), room: keep_room(path), record };
        let copy = copy::without_secrets(experiment);
        run.write(run_dir::EXPERIMENT, copy.as_bytes())?;
        run.save()?;
        Ok(run)
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the record. It is replaced whole, so that a reader never sees half of it.
    pub fn save(&self) -> Result<()> {
        let mut text = serde_json::to_vec_pretty(&self.record)?;
        text.push(b'\n');
        self.write(run_dir::RUN_RECORD, &text)
    }

    /// Keeps copies of the experiment's own phase rules, which must be right: results are built
    /// from them.
    pub fn keep_phases(&self, files: &[PathBuf]) -> Result<()> {
        let read = |file: &PathBuf| {
            fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))
        };
        let texts: Vec<String> = files.iter().map(read).collect::<Result<_>>()?;
        let packs: Vec<&str> = texts.iter().map(String::as_str).collect();
        Rules::with(&packs).context("the experiment's phase rules")?;
        for (index, text) in texts.iter().enumerate() {
            self.write(&run_dir::phase_pack(index), text.as_bytes())?;
        }
        Ok(())
    }

    /// Ends the record: `complete`, or `incomplete` for a reason.
    pub fn finish(&mut self, reason: Option<&str>) -> Result<()> {
        self.record.status = if reason.is_some() { Status::Incomplete } else { Status::Complete };
        self.record.reason = reason.map(|reason| reason.lines().next().unwrap_or("").to_owned());
        self.record.ended = Some(now());
        self.room = None;
        self.save()
    }

    /// Writes a file that only its owner reads, replacing what was there.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<()> {
        write_private(&self.path.join(name), bytes)
    }
}

/// Takes room in a folder for as long as the file is open, so that a full disk can still be told
/// of. Nobody sees it, and it is gone with this process. Not every file system can.
fn keep_room(folder: &Path) -> Option<File> {
    let path = folder.join("room");
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path).ok()?;
    let _unlinked = fs::remove_file(&path);
    // SAFETY: the descriptor is open.
    let kept = unsafe { libc::fallocate(file.as_raw_fd(), 0, 0, ROOM) };
    (kept == 0).then_some(file)
}

/// Writes a file that only its owner reads. It is replaced whole, so that a reader never sees half
/// of it.
pub fn write_private(path: &Path, bytes: &[u8]) -> Result<()> {
    let draft = path.with_added_extension("draft");
    let write = || -> io::Result<()> {
        let mut file =
            OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
        file.write_all(bytes)?;
        fs::rename(&draft, path)
    };
    write().map_err(|error| {
        let _draft = fs::remove_file(&draft);
        unwritten(path, &error)
    })
}

/// One line for what could not be written, with what to do where that is known.
fn unwritten(path: &Path, error: &io::Error) -> anyhow::Error {
    let hint = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "; make room and run it again (what was recorded is kept)"
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "; give a folder that may be written: --out DIR"
        }
        _ => "",
    };
    anyhow!("cannot write {}: {error}{hint}", path.display())
}

/// Now, on CLOCK_REALTIME.
#[must_use]
pub fn now() -> Moment {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Moment(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
}

/// A folder name that sorts by time: `2026-12-01T10-02-11-blog`, in UTC.
#[must_use]
pub fn stamped(moment: Moment, name: &str) -> String {
    let utc = Utc::of(moment);
    format!("{}T{:02}-{:02}-{:02}-{name}", utc.date(), utc.hour, utc.minute, utc.second)
}

/// A moment as people read it: `2026-12-01 10:02 UTC`.
#[must_use]
pub fn stamped_minute(moment: Moment) -> String {
    let utc = Utc::of(moment);
    format!("{} {} UTC", utc.date(), utc.time())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_sort_by_time() {
        let name = |seconds: u64| stamped(Moment(seconds * 1_000_000_000), "blog");
        assert_eq!(name(0), "1970-01-01T00-00-00-blog");
        assert_eq!(name(951_782_399), "2000-02-28T23-59-59-blog");
        assert_eq!(name(951_782_400), "2000-02-29T00-00-00-blog");
        assert_eq!(name(1_796_119_331), "2026-12-01T10-02-11-blog");
        let minute = stamped_minute(Moment(1_796_119_331_000_000_000));
        assert_eq!(minute, "2026-12-01 10:02 UTC");
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_one_line_with_advice() {
        let error = unwritten(Path::new("/x"), &io::Error::from(io::ErrorKind::StorageFull));
        assert!(error.to_string().contains("make room"));
        assert_eq!(error.to_string().lines().count(), 1);
    }
}
