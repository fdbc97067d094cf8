//! A file as it is inspected: recognised, unpacked, readable more than once.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use assay_captures::capture;
use assay_captures::recognise::{HEAD, Kind, kind};
use flate2::read::MultiGzDecoder;
use tempfile::NamedTempFile;

/// A file that was recognised.
pub(super) struct Input {
    /// What it holds.
    pub(super) kind: Kind,
    path: PathBuf,
    /// Holds what was unpacked or came in by standard input until all is read.
    _kept: Option<NamedTempFile>,
}

impl Input {
    /// Hands the whole content over, chunk by chunk.
    pub(super) fn feed(&self, feed: impl FnMut(&[u8])) -> Result<()> {
        Ok(capture::feed_file(&self.path, feed)?)
    }
}

/// Opens a file, or standard input for `-`.
pub(super) fn open(path: &Path) -> Result<Input> {
    let mut input = if path == Path::new("-") {
        kept(io::stdin().lock()).context("cannot read standard input")?
    } else {
        Input { kind: head(path)?, path: path.to_path_buf(), _kept: None }
    };
    if input.kind == Kind::Gzip {
        let packed =
            File::open(&input.path).with_context(|| format!("cannot read {}", path.display()))?;
        let unpacked = kept(MultiGzDecoder::new(packed));
        input = unpacked.with_context(|| format!("{} is broken gzip", path.display()))?;
    }
    Ok(input)
}

fn kept(mut from: impl Read) -> Result<Input> {
    let mut file = NamedTempFile::new()?;
    io::copy(&mut from, file.as_file_mut())?;
    let path = file.path().to_path_buf();
    Ok(Input { kind: head(&path)?, path, _kept: Some(file) })
}

fn head(path: &Path) -> Result<Kind> {
    let unreadable = || format!("cannot read {}", path.display());
    let file = File::open(path).with_context(unreadable)?;
    let mut head = Vec::new();
    file.take(HEAD as u64).read_to_end(&mut head).with_context(unreadable)?;
    Ok(kind(&head))
}
