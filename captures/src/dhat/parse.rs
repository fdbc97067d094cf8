//! Bytes → profile.

use serde::Deserialize;

use crate::dhat::model::{Amount, Mode, Point, Profile};
use crate::document::{Document, json_problem};
use crate::parsed::{Place, Problem, Sink};

/// The version of the format that both tools write.
const VERSION: u64 = 2;

/// Collects the file and delivers its one profile at the end.
#[derive(Debug, Default)]
pub struct Decoder {
    document: Document,
}

impl Decoder {
    /// Takes the next bytes of the file.
    pub fn feed(&mut self, bytes: &[u8], _sink: &mut impl Sink<Profile>) {
        self.document.feed(bytes);
    }

    /// Reads what was collected.
    pub fn finish(&mut self, sink: &mut impl Sink<Profile>) {
        let read = self.document.whole().and_then(|bytes| {
            let file: File =
                serde_json::from_slice(bytes).map_err(|error| json_problem(&error, bytes))?;
            profile(file)
        });
        match read {
            Ok(profile) => {
                unknown_frames(&profile, sink);
                sink.record(profile);
            }
            Err(problem) => sink.problem(problem),
        }
    }
}

/// Stacks that name a frame beyond the table lose it, and the totals still hold.
fn unknown_frames(profile: &Profile, sink: &mut impl Sink<Profile>) {
    let frames = profile.frames.len();
    let stacks = profile.points.iter().flat_map(|point| &point.stack);
    let mut unknown = stacks.filter(|&&frame| frame as usize >= frames);
    if let Some(first) = unknown.next() {
        let count = unknown.count() + 1;
        let message = format!("{count} frames of stacks are not in the table, such as {first}");
        sink.problem(Problem::new(Place::Line(1), message));
    }
}

/// The file as it is written; `acc`, how often each byte was accessed, is passed over.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct File {
    dhat_file_version: u64,
    #[serde(default)]
    mode: String,
    #[serde(default)]
    bklt: bool,
    #[serde(default)]
    bkacc: bool,
    #[serde(default)]
    bu: Option<String>,
    #[serde(default)]
    bksu: Option<String>,
    #[serde(default)]
    tu: String,
    #[serde(default)]
    cmd: String,
    #[serde(default)]
    pid: u64,
    #[serde(default)]
    te: u64,
    #[serde(default)]
    tg: Option<u64>,
    #[serde(default)]
    pps: Vec<FilePoint>,
    #[serde(default)]
    ftbl: Vec<String>,
}

#[derive(Deserialize)]
struct FilePoint {
    tb: u64,
    tbk: u64,
    #[serde(default)]
    tl: Option<u64>,
    #[serde(default)]
    mb: Option<u64>,
    #[serde(default)]
    mbk: Option<u64>,
    #[serde(default)]
    gb: Option<u64>,
    #[serde(default)]
    gbk: Option<u64>,
    #[serde(default)]
    eb: Option<u64>,
    #[serde(default)]
    ebk: Option<u64>,
    #[serde(default)]
    rb: Option<u64>,
    #[serde(default)]
    wb: Option<u64>,
    #[serde(default)]
    fs: Vec<u32>,
}

fn profile(file: File) -> Result<Profile, Problem> {
    if file.dhat_file_version != VERSION {
        let message = format!(
            "version {} of DHAT's format is not read, only {VERSION}; record it again with \
             valgrind 3.17 or later, or the dhat crate",
            file.dhat_file_version
        );
        return Err(Problem::new(Place::Line(1), message));
    }
    let (lifetimes, accesses) = (file.bklt, file.bkacc);
    let point = |point: FilePoint| {
        let amount = |bytes: Option<u64>, blocks: Option<u64>| {
            lifetimes.then_some(())?;
            Some(Amount { bytes: bytes?, blocks: blocks? })
        };
        Point {
            total: Amount { bytes: point.tb, blocks: point.tbk },
            own_maximum: amount(point.mb, point.mbk),
            at_peak: amount(point.gb, point.gbk),
            at_end: amount(point.eb, point.ebk),
            lifetimes: point.tl.filter(|_| lifetimes),
            read: point.rb.filter(|_| accesses),
            written: point.wb.filter(|_| accesses),
            stack: point.fs,
        }
    };
    Ok(Profile {
        mode: match file.mode.as_str() {
            "heap" | "rust-heap" => Mode::Heap,
            "copy" => Mode::Copy,
            "ad-hoc" => Mode::AdHoc,
            _ => Mode::Other(file.mode),
        },
        command: file.cmd,
        pid: file.pid,
        time_unit: file.tu,
        bytes_unit: file.bu.unwrap_or_else(|| "byte".to_owned()),
        blocks_unit: file.bksu.unwrap_or_else(|| "blocks".to_owned()),
        end: file.te,
        peak: file.tg.filter(|_| lifetimes),
        points: file.pps.into_iter().map(point).collect(),
        frames: file.ftbl,
    })
}
