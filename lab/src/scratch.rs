//! The private temporary directory of a run, and the sweeping of those that dead runs left.
//!
//! A lock file in it is held for as long as any process of its run lives. A directory whose lock
//! is free belongs to nobody any more.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use nix::unistd::Uid;

use crate::teardown;

const PREFIX: &str = "assay-";
const LOCK: &str = "lock";

/// A private temporary directory, locked.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    /// Processes that are forked share the lock; it is free when the last of them has ended.
    _lock: File,
}

impl Scratch {
    /// Makes one under `$TMPDIR`.
    pub fn create() -> Result<Self> {
        let parent = std::env::temp_dir();
        let name = format!("{PREFIX}{}-{:08x}", std::process::id(), random()?);
        let path = parent.join(&name);
        // Under a name that is not swept until the lock is held.
        let draft = parent.join(format!(".{name}"));
        let make = || -> io::Result<File> {
            DirBuilder::new().mode(mode()).create(&draft)?;
            let lock = OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(draft.join(LOCK))?;
            lock.try_lock()?;
            fs::rename(&draft, &path)?;
            Ok(lock)
        };
        let lock = make()
            .with_context(|| format!("cannot make a temporary folder in {}", parent.display()))?;
        Ok(Self { path, _lock: lock })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// As root, services run as another user, who must be able to pass through to a folder of their
/// own but not to look around.
fn mode() -> u32 {
    if Uid::effective().is_root() { 0o711 } else { 0o700 }
}

fn random() -> Result<u32> {
    let mut bytes = [0; 4];
    let mut source = File::open("/dev/urandom").context("cannot open /dev/urandom")?;
    source.read_exact(&mut bytes)?;
    Ok(u32::from_ne_bytes(bytes))
}

/// Removes what dead runs of this user left in `$TMPDIR`; returns how many there were.
pub fn sweep() -> usize {
    let Ok(entries) = fs::read_dir(std::env::temp_dir()) else { return 0 };
    let ours = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let owner = fs::symlink_metadata(path).map(|meta| (meta.is_dir(), meta.uid()));
        name.starts_with(PREFIX)
            && owner.is_ok_and(|owner| owner == (true, Uid::effective().as_raw()))
    };
    entries.flatten().map(|entry| entry.path()).filter(ours).filter(|path| swept(path)).count()
}

/// Whether `path` belonged to nobody and was removed.
fn swept(path: &Path) -> bool {
    let Ok(lock) = OpenOptions::new().write(true).open(path.join(LOCK)) else { return false };
    match lock.try_lock() {
        Ok(()) => {
            teardown::end_postmaster_of(path);
            teardown::remove(path);
            true
        }
        Err(TryLockError::WouldBlock | TryLockError::Error(_)) => false,
    }
}
