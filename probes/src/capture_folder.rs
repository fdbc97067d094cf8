//! The folder of a capture while it is being recorded: its files and its manifest.

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use assay_captures::manifest::{Manifest, Status};
use assay_captures::run_dir;
use assay_captures::version::FormatVersion;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

use crate::cli::{Description, SessionArgs};
use crate::clock;

/// Room kept for the last manifest, so that a full disk can still be told of.
const RESERVED: i64 = 64 * 1024;
/// How long a pipe waits for somebody to read it.
const READER_MAX: Duration = Duration::from_secs(5);

/// A folder, 0700, that a probe writes its capture to.
pub struct CaptureFolder {
    path: PathBuf,
    reserve: File,
    /// What will be in `manifest.json`. The session fills in status and window; the recorder
    /// fills in `backend`, `tool`, `command` (if it starts one), `integrity` and `notes`.
    pub manifest: Manifest,
}

impl CaptureFolder {
    /// Makes the folder and writes the first manifest, with status `recording`.
    pub fn begin(path: &Path, probe: &Description, args: &SessionArgs) -> Result<Self> {
        make_private(path)?;
        let manifest = Manifest {
            version: FormatVersion::CURRENT,
            probe: probe.question.into(),
            backend: None,
            probe_version: env!("CARGO_PKG_VERSION").into(),
            status: Status::Recording,
            reason: None,
            tool: None,
            command: std::env::args_os().map(|arg| arg.to_string_lossy().into()).collect(),
            clock: clock::anchor(),
            window: None,
            targets: args.targets.clone(),
            files: Vec::new(),
            integrity: [].into(),
            notes: Vec::new(),
        };
        let reserve = create(&path.join(run_dir::MANIFEST))?;
        let mut folder = Self { path: path.to_path_buf(), reserve, manifest };
        folder.reserve_room();
        folder.write_manifest()?;
        Ok(folder)
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Creates a file, 0600, and lists it in the manifest.
    pub fn create(&mut self, name: &str) -> Result<File> {
        let file = create(&self.path.join(name))?;
        self.list(name);
        Ok(file)
    }

    /// Makes a pipe, 0600, lists it, and waits for somebody to read it.
    pub fn pipe(&mut self, name: &str) -> Result<File> {
        let path = self.path.join(name);
        mkfifo(&path, Mode::S_IRUSR | Mode::S_IWUSR)
            .with_context(|| format!("cannot make the pipe {}", path.display()))?;
        self.list(name);
        let until = Instant::now() + READER_MAX;
        // Without a reader, opening for writing alone is refused; waiting for one in `open` would
        // hold off every signal.
        let file = loop {
            let mut options = File::options();
            match options.write(true).custom_flags(libc::O_NONBLOCK).open(&path) {
                Ok(file) => break file,
                Err(_) if Instant::now() < until => std::thread::sleep(Duration::from_millis(5)),
                Err(error) => {
                    let what = format!("nobody reads the pipe {}", path.display());
                    return Err(anyhow::Error::from(error).context(what));
                }
            }
        };
        // From here on a full pipe is waited for; a reader that goes away is an error.
        fcntl(&file, FcntlArg::F_SETFL(OFlag::empty())).context("cannot set up a pipe")?;
        Ok(file)
    }

    /// Lists a file in the manifest that somebody else wrote, such as an outside tool.
    pub fn list(&mut self, name: &str) {
        if !self.manifest.files.iter().any(|file| file == name) {
            self.manifest.files.push(name.into());
        }
    }

    /// Takes a file out of the manifest that is no longer there.
    pub fn unlist(&mut self, name: &str) {
        self.manifest.files.retain(|file| file != name);
    }

    /// Writes the manifest as it stands.
    pub fn write_manifest(&mut self) -> Result<()> {
        let mut text = serde_json::to_vec_pretty(&self.manifest).context("write the manifest")?;
        text.push(b'\n');
        let path = self.path.join(run_dir::MANIFEST);
        match self.manifest.status {
            Status::Recording => self.overwrite(&text),
            // A reader that comes along meanwhile sees the old manifest or the new one, whole.
            // On a full disk there is only the room that was kept, in place.
            _ => replace(&path, &text).or_else(|_| self.overwrite(&text)),
        }
        .with_context(|| format!("cannot write {}", path.display()))
    }

    fn overwrite(&self, text: &[u8]) -> io::Result<()> {
        self.reserve.write_all_at(text, 0)?;
        // Cutting the file gives back the room behind it, so it is cut only at the end.
        let length = self.reserve.metadata()?.len();
        if length > text.len() as u64 {
            self.reserve.set_len(text.len() as u64)?;
        }
        Ok(())
    }

    /// Not every file system can; then a full disk is told of on standard output alone.
    fn reserve_room(&self) {
        // SAFETY: the descriptor is open for as long as `self`.
        unsafe {
            libc::fallocate(self.reserve.as_raw_fd(), libc::FALLOC_FL_KEEP_SIZE, 0, RESERVED);
        }
    }
}

/// Makes a folder that only its owner can enter. One that is there must be empty: a capture is
/// never mixed with another, and nobody's full folder has its mode changed.
fn make_private(path: &Path) -> Result<()> {
    let failed = || format!("cannot make the capture's folder {}", path.display());
    match std::fs::read_dir(path) {
        Ok(mut entries) => {
            if entries.next().is_some() {
                bail!("{} is not empty: give --out a new folder", path.display());
            }
            std::fs::set_permissions(path, Permissions::from_mode(0o700)).with_context(failed)
        }
        Err(_) => DirBuilder::new().recursive(true).mode(0o700).create(path).with_context(failed),
    }
}

fn create(path: &Path) -> Result<File> {
    OpenOptions::new()
        .create_new(true)
        .read(true)
        .write(true)
        .mode(0o600)
        .open(path)
        .with_context(|| format!("cannot create {}", path.display()))
}

fn replace(path: &Path, text: &[u8]) -> io::Result<()> {
    let beside = path.with_extension("json.new");
    let written = (|| {
        let mut file =
            OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(&beside)?;
        file.write_all(text)?;
        std::fs::rename(&beside, path)
    })();
    if written.is_err() {
        // Best effort: the old manifest still stands.
        let _ = std::fs::remove_file(&beside);
    }
    written
}
