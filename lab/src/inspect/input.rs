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
    /// What is missing of it.
    pub(super) flaw: Option<String>,
    path: PathBuf,
    /// Holds what was unpacked or came in by standard input until all is read.
    _kept: Option<NamedTempFile>,
}

impl Input {
    /// Hands the whole content over, chunk by chunk.
    pub(super) fn feed(&self, feed: impl FnMut(&[u8])) -> Result<()> {
        Ok(capture::feed_file(&self.path, feed)?)
    }

    /// The first bytes: enough for the first packet of a capture.
    pub(super) fn head(&self) -> Result<Vec<u8>> {
        first_bytes(&self.path, PACKET)
    }
}

/// A packet and what stands before the first one, generously.
const PACKET: usize = 512 * 1024;

/// Opens a file, or standard input for `-`.
pub(super) fn open(path: &Path) -> Result<Input> {
    let mut input = if path == Path::new("-") {
        let (input, error) = kept(io::stdin().lock())?;
        if let Some(error) = error {
            return Err(error).context("cannot read standard input");
        }
        input
    } else {
        Input { kind: head(path)?, flaw: None, path: path.to_path_buf(), _kept: None }
    };
    if input.kind == Kind::Gzip {
        let packed =
            File::open(&input.path).with_context(|| format!("cannot read {}", path.display()))?;
        let (unpacked, error) = kept(MultiGzDecoder::new(packed))?;
        input = unpacked;
        // What could be unpacked before the cut is worth reading.
        if let Some(error) = error {
            if input.kind == Kind::Empty {
                return Err(error).with_context(|| format!("{} is broken gzip", path.display()));
            }
            input.flaw = Some(format!("the gzip data is broken or cut: {error}"));
        }
    }
    Ok(input)
}

/// Keeps what can be read, and why it ended early if it did.
fn kept(mut from: impl Read) -> Result<(Input, Option<io::Error>)> {
    let mut file = NamedTempFile::new()?;
    let error = io::copy(&mut from, file.as_file_mut()).err();
    let path = file.path().to_path_buf();
    let input = Input { kind: head(&path)?, flaw: None, path, _kept: Some(file) };
    Ok((input, error))
}

fn head(path: &Path) -> Result<Kind> {
    Ok(kind(&first_bytes(path, HEAD)?))
}

fn first_bytes(path: &Path, most: usize) -> Result<Vec<u8>> {
    let unreadable = || format!("cannot read {}", path.display());
    let file = File::open(path).with_context(unreadable)?;
    let mut head = Vec::new();
    file.take(most as u64).read_to_end(&mut head).with_context(unreadable)?;
    Ok(head)
}
