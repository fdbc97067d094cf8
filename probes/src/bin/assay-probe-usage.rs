//! Records what processes use: CPU time, context switches, memory. Reads clocks and /proc only.

use std::fs::File;
use std::io::Write;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use assay_captures::ids::Pid;
use assay_captures::usage::{At, FILE, Sample};
use assay_probes::capture_folder::CaptureFolder;
use assay_probes::cli::{Description, SessionArgs};
use assay_probes::clock;
use assay_probes::session::{self, Probe, Progress, Recorder};
use assay_probes::usage::{Reader, machine};

/// Record CPU time, context switches and memory of processes
///
/// Example: assay-probe-usage --out usage --target subject:pid=123 --duration 10
#[derive(clap::Parser)]
#[command(version)]
struct Args {
    #[command(flatten)]
    session: SessionArgs,

    /// Time between samples, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 250,
        value_parser = clap::value_parser!(u64).range(1..=3_600_000))]
    interval: u64,

    /// Least time between two readings of proportional memory, in seconds; read at marks only,
    /// since the kernel walks every page of the process for it
    #[arg(long, value_name = "SECONDS", default_value_t = 5)]
    proportional: u64,
}

impl Probe for Args {
    const DESCRIPTION: Description = Description {
        question: "usage",
        summary: "CPU time, context switches, run-queue wait and memory, from clocks and /proc",
        tools: &[],
        rights: &["cap_sys_ptrace"],
        more_rights: &[],
        more: "",
        without: "processes of other users, in part (your own are)",
        cost: "none: the service's processes are read from outside, a few times a second",
    };
    type Recorder = Usage;

    fn session(&self) -> &SessionArgs {
        &self.session
    }

    fn start(&self, folder: &mut CaptureFolder, recording: bool) -> Result<Usage> {
        self.session.require_pids()?;
        folder.manifest.backend = Some("proc".into());
        let mut usage = Usage {
            file: folder.create(FILE)?,
            readers: Reader::of_targets(&self.session.targets),
            interval: Duration::from_millis(self.interval),
            proportional: Duration::from_secs(self.proportional),
            proportional_read: None,
            recording,
            samples: 0,
        };
        usage.sample(At::Ready)?;
        Ok(usage)
    }
}

/// Writes a sample whenever it is asked to.
struct Usage {
    file: File,
    readers: Vec<Reader>,
    interval: Duration,
    proportional: Duration,
    proportional_read: Option<Instant>,
    recording: bool,
    samples: u64,
}

impl Usage {
    fn sample(&mut self, at: At) -> Result<()> {
        let moment = clock::now();
        let proportional = at == At::Mark
            && self.proportional_read.is_none_or(|read| read.elapsed() >= self.proportional);
        let groups = self.readers.iter_mut().map(|reader| reader.read(proportional)).collect();
        let took = clock::now().since(moment).unwrap_or_default();
        let sample = Sample { moment, took, at, groups, machine: machine() };
        let mut line = serde_json::to_vec(&sample).context("write a sample")?;
        line.push(b'\n');
        // One write for a line: a kill tears at most the last one.
        self.file.write_all(&line).with_context(|| format!("cannot write {FILE}"))?;
        if proportional {
            self.proportional_read = Some(Instant::now());
        }
        self.samples += 1;
        Ok(())
    }
}

impl Recorder for Usage {
    fn on(&mut self) -> Result<()> {
        self.recording = true;
        self.sample(At::On)
    }

    fn off(&mut self) -> Result<()> {
        self.recording = false;
        self.sample(At::Off)
    }

    fn mark(&mut self) -> Result<()> {
        self.sample(At::Mark)
    }

    fn interval(&self) -> Option<Duration> {
        Some(self.interval)
    }

    fn tick(&mut self) -> Result<Progress> {
        if self.recording {
            self.sample(At::Tick)?;
        }
        Ok(Progress::Going)
    }

    fn stop(&mut self, folder: &mut CaptureFolder) -> Result<()> {
        let last = self.sample(At::End);
        let integrity = &mut folder.manifest.integrity;
        integrity.insert("samples".into(), self.samples);
        let exits = self.readers.iter().map(Reader::exits).sum();
        integrity.insert("exits".into(), exits);
        // All of its own CPU time: what reading costs the machine, waiting for a CPU left out.
        let used = clock::process_cpu(Pid(std::process::id())).unwrap_or_default();
        integrity.insert("cpu_nanoseconds_per_sample".into(), used.0 / self.samples.max(1));
        last
    }
}

fn main() -> ExitCode {
    session::run::<Args>()
}
