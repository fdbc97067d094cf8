//! Packets as they come: read from the wire probe's pipe, and counted at once. Nothing of them is
//! kept.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use assay_analyses::costs::wire::{Taken, WireFold, WirePorts};
use assay_captures::parsed::{Problem, Sink};
use assay_captures::pcap::{Decoder, Record};

/// Between two looks whether the pipe is there.
const STEP: Duration = Duration::from_millis(5);
/// How long the probe may take to make it.
const PIPE_MAX: Duration = Duration::from_secs(20);
/// How long what was handed over may be on its way through the pipe.
const ON_ITS_WAY: Duration = Duration::from_millis(500);
const PIECE: usize = 64 * 1024;

/// What is heard on the wire right now.
#[derive(Debug)]
pub struct Live {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    heard: Mutex<Heard>,
    more: Condvar,
}

#[derive(Debug)]
struct Heard {
    fold: WireFold,
    /// Counters of interfaces that came: the probe writes them behind the packets of a second.
    counters: u64,
}

impl Sink<Record<'_>> for Heard {
    fn record(&mut self, record: Record<'_>) {
        self.counters += u64::from(matches!(record, Record::Drops { .. }));
        self.fold.record(record);
    }

    fn problem(&mut self, problem: Problem) {
        self.fold.problem(problem);
    }
}

impl Live {
    /// Waits for the pipe on a thread of its own, and reads it until it ends.
    pub fn listen(pipe: PathBuf, ports: WirePorts) -> std::io::Result<Self> {
        let heard = Mutex::new(Heard { fold: WireFold::rolling(ports), counters: 0 });
        let shared = Arc::new(Shared { heard, more: Condvar::new() });
        let there = Arc::clone(&shared);
        let read = move || {
            if let Some(file) = open(&pipe) {
                there.read(file);
            }
        };
        std::thread::Builder::new().name("live".to_owned()).spawn(read)?;
        Ok(Self { shared })
    }

    /// What came since the last time, once so many counters of interfaces have come in all.
    #[must_use]
    pub fn take(&self, counters: u64) -> Taken {
        let heard = self.shared.heard.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self
            .shared
            .more
            .wait_timeout_while(heard, ON_ITS_WAY, |heard| heard.counters < counters);
        let (mut heard, _late) = waited.unwrap_or_else(PoisonError::into_inner);
        heard.fold.take()
    }
}

impl Shared {
    fn read(&self, mut file: File) {
        let mut decoder = Decoder::new();
        let mut piece = vec![0; PIECE];
        while let Ok(length @ 1..) = file.read(&mut piece) {
            let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
            decoder.feed(&piece[..length], &mut *heard);
            drop(heard);
            self.more.notify_all();
        }
    }
}

/// Opens the pipe once it is there; the probe waits for that.
fn open(pipe: &Path) -> Option<File> {
    let until = Instant::now() + PIPE_MAX;
    while !pipe.exists() {
        if Instant::now() > until {
            return None;
        }
        std::thread::sleep(STEP);
    }
    File::open(pipe).ok()
}
