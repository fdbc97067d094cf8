//! Puts a recorded file into less room.

use std::fs::{self, File};
use std::io::{self, BufReader, Write};

use anyhow::{Context, Result};
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::capture_folder::CaptureFolder;

/// How much of the file is read at once.
const CHUNK: usize = 256 * 1024;

/// Gzips the file `plain` of the folder as `packed`, and removes it.
///
/// # Errors
/// When there is no room for it, or the file cannot be read: then `plain` stays and `packed` is
/// not there.
pub fn pack(folder: &mut CaptureFolder, plain: &str, packed: &str) -> Result<()> {
    let from = folder.path().join(plain);
    let to = folder.path().join(packed);
    let source = File::open(&from).with_context(|| format!("cannot read {plain}"))?;
    let file = folder.create(packed)?;
    if let Err(error) = copy(source, file) {
        folder.unlist(packed);
        let _not_there = fs::remove_file(to);
        return Err(error).with_context(|| format!("cannot write {packed}"));
    }
    fs::remove_file(from).with_context(|| format!("cannot remove {plain}"))?;
    folder.unlist(plain);
    Ok(())
}

fn copy(source: File, file: File) -> io::Result<()> {
    let mut packed = GzEncoder::new(file, Compression::fast());
    io::copy(&mut BufReader::with_capacity(CHUNK, source), &mut packed)?;
    packed.finish()?.flush()
}
