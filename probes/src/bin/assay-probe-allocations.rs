//! Records heap allocations of a program that was started with the preloaded counter.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use assay_captures::allocation_counts::{FILE, Sample};
use assay_captures::usage::At;
use assay_probes::allocation_counter::{CounterFile, Counts};
use assay_probes::capture_folder::CaptureFolder;
use assay_probes::cli::{Description, SessionArgs};
use assay_probes::clock;
use assay_probes::session::{self, Probe, Recorder};

/// Record heap allocations counted by the preloaded library
///
/// Start the program with LD_PRELOAD=libassay_allocation_counter.so and
/// ASSAY_ALLOCATION_COUNTER=FILE.
///
/// Example: assay-probe-allocations --out allocations --counter /tmp/counter --duration 10
#[derive(clap::Parser)]
#[command(version)]
struct Args {
    #[command(flatten)]
    session: SessionArgs,

    /// The file named by ASSAY_ALLOCATION_COUNTER in the program's environment
    #[arg(long, value_name = "FILE", required_unless_present = "describe")]
    counter: Option<PathBuf>,
}

impl Probe for Args {
    const DESCRIPTION: Description = Description {
        question: "allocations",
        summary: "heap blocks and bytes, counted by a library preloaded into the program",
        tools: &[],
        rights: &[],
        more_rights: &[],
        more: "",
        without: "",
        cost: "two atomic additions for each allocation; none that can be measured",
    };
    type Recorder = Allocations;

    fn session(&self) -> &SessionArgs {
        &self.session
    }

    fn start(&self, folder: &mut CaptureFolder, _recording: bool) -> Result<Allocations> {
        let path = self.counter.as_deref().context("no counter file: give --counter FILE")?;
        let counter = CounterFile::open(path)
            .with_context(|| format!("cannot map the counter file {}", path.display()))?;
        folder.manifest.backend = Some("preload".into());
        folder.manifest.notes.push(
            "realloc counts as one block of its whole new size; bytes are those asked for".into(),
        );
        let mut allocations =
            Allocations { file: folder.create(FILE)?, counter, last: Counts::default() };
        // A program that has started has allocated: a counter at zero counts nothing.
        allocations.sample(At::Ready)?;
        ensure!(
            self.session.targets.is_empty() || allocations.last.blocks > 0,
            "nothing was counted: the subject does not call the C library's malloc (statically \
             linked, another libc, or a heap of its own), or was started without the counter"
        );
        Ok(allocations)
    }
}

/// Writes a sample whenever it is asked to.
struct Allocations {
    file: File,
    counter: CounterFile,
    last: Counts,
}

impl Allocations {
    fn sample(&mut self, at: At) -> Result<()> {
        let Counts { blocks, bytes, frees } = self.counter.counts();
        self.last = Counts { blocks, bytes, frees };
        let sample = Sample { moment: clock::now(), at, blocks, bytes, frees };
        let mut line = serde_json::to_vec(&sample).context("write a sample")?;
        line.push(b'\n');
        self.file.write_all(&line).with_context(|| format!("cannot write {FILE}"))
    }
}

impl Recorder for Allocations {
    // The library cannot be switched: it counts on, and samples mark the time.
    fn on(&mut self) -> Result<()> {
        self.sample(At::On)
    }

    fn off(&mut self) -> Result<()> {
        self.sample(At::Off)
    }

    fn mark(&mut self) -> Result<()> {
        self.sample(At::Mark)
    }

    fn stop(&mut self, folder: &mut CaptureFolder) -> Result<()> {
        let last = self.sample(At::End);
        folder.manifest.integrity.insert("blocks".into(), self.last.blocks);
        last
    }
}

fn main() -> ExitCode {
    session::run::<Args>()
}
