//! Opening what is on disk: the only file of this crate that reads it.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;
use serde::de::DeserializeOwned;

use crate::ids::Tid;
use crate::lap::Lap;
use crate::manifest::Manifest;
use crate::parsed::Sink;
use crate::pcap;
use crate::perf_script;
use crate::request_log::Slot;
use crate::run_dir;
use crate::run_record::RunRecord;
use crate::strace;
use crate::version::UnknownVersion;

/// Why a file of a run or of a capture could not be read.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The file cannot be read at all.
    #[error("cannot read {}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A line is not what it should be; the last line of a killed writer is forgiven.
    #[error("{} line {line} is not a valid record", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// 1-based.
        line: u64,
        /// What was expected.
        #[source]
        source: serde_json::Error,
    },
    /// Written by an Assay whose format this one does not read.
    #[error("{}: {source}", path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// Too old or too new.
        #[source]
        source: UnknownVersion,
    },
}

/// How much is read at once: as much as `cat` reads, and small enough to stay in cache.
const CHUNK: usize = 128 * 1024;

/// Reads a file once, front to back, and hands each chunk to `feed`; one that ends in `.gz` is
/// unpacked on the way.
pub fn feed_file(path: &Path, mut feed: impl FnMut(&[u8])) -> Result<(), OpenError> {
    let unreadable = |source| OpenError::Unreadable { path: path.to_path_buf(), source };
    let file = File::open(path).map_err(unreadable)?;
    let packed = path.extension().is_some_and(|end| end == "gz");
    let mut file: Box<dyn Read> =
        if packed { Box::new(MultiGzDecoder::new(file)) } else { Box::new(file) };
    let mut chunk = vec![0; CHUNK];
    loop {
        match file.read(&mut chunk) {
            Ok(0) => return Ok(()),
            Ok(length) => feed(&chunk[..length]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(unreadable(error)),
        }
    }
}

/// Streams a packet capture into a sink, down to TCP segments.
pub fn packets<S>(path: &Path, sink: &mut S) -> Result<(), OpenError>
where
    S: for<'a> Sink<pcap::Record<'a>>,
{
    let mut decoder = pcap::Decoder::new();
    feed_file(path, |chunk| decoder.feed(chunk, sink))?;
    decoder.finish(sink);
    Ok(())
}

/// Streams the packets of a capture folder into a sink, down to TCP segments.
pub fn packets_of<S>(folder: &Path, sink: &mut S) -> Result<(), OpenError>
where
    S: for<'a> Sink<pcap::Record<'a>>,
{
    packets(&present(folder, pcap::PLAIN_FILE, pcap::FILE), sink)
}

/// Reads the packets of a capture folder as they stand in the file, unpacked.
pub fn feed_packets(folder: &Path, feed: impl FnMut(&[u8])) -> Result<(), OpenError> {
    feed_file(&present(folder, pcap::PLAIN_FILE, pcap::FILE), feed)
}

/// Reads the stacks of a capture folder.
pub fn feed_stacks(folder: &Path, feed: impl FnMut(&[u8])) -> Result<(), OpenError> {
    feed_file(&present(folder, perf_script::PLAIN_FILE, perf_script::FILE), feed)
}

/// The plain file where there is one: it goes when it has been packed whole.
fn present(folder: &Path, plain: &str, packed: &str) -> PathBuf {
    let plain = folder.join(plain);
    if plain.exists() { plain } else { folder.join(packed) }
}

/// Reads `run.json` of a run directory.
pub fn run_record(run: &Path) -> Result<RunRecord, OpenError> {
    let path = run.join(run_dir::RUN_RECORD);
    let record: RunRecord = json(&path)?;
    record.version.check().map_err(|source| OpenError::Version { path, source })?;
    Ok(record)
}

/// Reads the manifest of a capture folder.
pub fn manifest(folder: &Path) -> Result<Manifest, OpenError> {
    let path = folder.join(run_dir::MANIFEST);
    let manifest: Manifest = json(&path)?;
    manifest.version.check().map_err(|source| OpenError::Version { path, source })?;
    Ok(manifest)
}

/// Reads the laps of one pass of a run directory; none where the pass did not begin.
pub fn laps(run: &Path, pass: &str) -> Result<Vec<Lap>, OpenError> {
    json_lines(&run.join(run_dir::pass(pass)).join(run_dir::LAPS))
}

/// Reads the request log in a route's folder.
pub fn requests(folder: &Path) -> Result<Vec<Slot>, OpenError> {
    json_lines(&folder.join(run_dir::REQUESTS))
}

/// Reads the experiment's own phase rules, which a run keeps beside its captures, in the order in
/// which the experiment lists them.
pub fn phase_packs(run: &Path) -> Result<Vec<String>, OpenError> {
    let mut packs = Vec::new();
    loop {
        let path = run.join(run_dir::phase_pack(packs.len()));
        if !path.exists() {
            return Ok(packs);
        }
        packs.push(String::from_utf8_lossy(&read(&path)?).into_owned());
    }
}

/// Reads a trace: of a capture folder, or any of strace's. Of a file of `-ff` its name tells the
/// thread (`trace.1234`).
pub fn strace(
    path: &Path,
    sink: &mut impl for<'a> Sink<strace::Record<'a>>,
) -> Result<(), OpenError> {
    let within = path.join(strace::FILE);
    let path = if path.is_dir() { within.as_path() } else { path };
    let thread = path.extension().and_then(|end| end.to_str()?.parse().ok());
    let mut decoder =
        thread.map_or_else(strace::Decoder::new, |tid| strace::Decoder::for_thread(Tid(tid)));
    feed_file(path, |bytes| decoder.feed(bytes, sink))?;
    decoder.finish(sink);
    Ok(())
}

fn json<T: DeserializeOwned>(path: &Path) -> Result<T, OpenError> {
    let text = read(path)?;
    serde_json::from_slice(&text).map_err(|source| OpenError::Malformed {
        path: path.to_path_buf(),
        line: source.line() as u64,
        source,
    })
}

/// One record a line. A file that is not there has none; a torn last line is left out.
pub fn json_lines<T: DeserializeOwned>(path: &Path) -> Result<Vec<T>, OpenError> {
    if !path.exists() {
        return Ok(Vec::new());
    }
    let text = read(path)?;
    let whole = text.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
    let mut records = Vec::new();
    for (index, line) in text[..whole].split(|&byte| byte == b'\n').enumerate() {
        if line.is_empty() {
            continue;
        }
        let record = serde_json::from_slice(line).map_err(|source| OpenError::Malformed {
            path: path.to_path_buf(),
            line: index as u64 + 1,
            source,
        })?;
        records.push(record);
    }
    Ok(records)
}

fn read(path: &Path) -> Result<Vec<u8>, OpenError> {
    std::fs::read(path).map_err(|source| OpenError::Unreadable { path: path.to_path_buf(), source })
}
