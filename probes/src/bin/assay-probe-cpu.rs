//! Samples stacks of whole CPUs and keeps those of the targets.

use std::collections::BTreeSet;
use std::io::{BufWriter, Read, Write};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use assay_captures::ids::{Pid, Role};
use assay_captures::manifest::Target;
use assay_captures::perf_script::{Decoder, FILE};
use assay_probes::capture_folder::CaptureFolder;
use assay_probes::cli::{Description, SessionArgs};
use assay_probes::perf::{self, Perf, Recorded, Sampling};
use assay_probes::processes::ProcessTree;
use assay_probes::session::{self, Probe, Progress, Recorder};
use assay_probes::stacks::StackWriter;
use flate2::Compression;
use flate2::write::GzEncoder;

/// Sample the stacks of processes
///
/// Example: assay-probe-cpu --out cpu --target subject:pid=123 --duration 10
#[derive(clap::Parser)]
#[command(version)]
struct Args {
    #[command(flatten)]
    session: SessionArgs,

    /// Samples a second on each CPU; a rate in step with the kernel's tick would see the tick
    #[arg(long, value_name = "HZ", default_value_t = 499,
        value_parser = clap::value_parser!(u32).range(1..=5000))]
    rate: u32,

    /// The CPUs to sample, such as 0 or 0-3; all where it is left out
    #[arg(long, value_name = "LIST")]
    cpu: Option<String>,
}

/// The ticks a second that kernels are built with.
const TICKS: [u32; 4] = [100, 250, 300, 1000];

impl Probe for Args {
    const DESCRIPTION: Description = Description {
        question: "cpu",
        summary: "stacks of everything that runs on a CPU, a few hundred times a second",
        tools: &["perf"],
        rights: &["cap_perfmon", "cap_syslog"],
        more_rights: &[],
        more: "",
        without: "CPU time by phase (by process it is)",
        cost: "about 4 % of the service's CPU time at 1,999 samples a second, less at fewer",
    };
    type Recorder = Cpu;

    fn session(&self) -> &SessionArgs {
        &self.session
    }

    fn start(&self, folder: &mut CaptureFolder, recording: bool) -> Result<Cpu> {
        self.session.require_pids()?;
        ensure!(
            !TICKS
                .iter()
                .any(|&tick| self.rate.is_multiple_of(tick) || tick.is_multiple_of(self.rate)),
            "{} samples a second keep step with a kernel's tick; use a prime such as 499",
            self.rate
        );
        folder.manifest.backend = Some("perf".into());
        folder.manifest.tool = Some(perf::tool()?);
        let sampling = Sampling { rate: self.rate, cpus: self.cpu.clone() };
        let perf = Perf::start(folder.path(), &sampling)?;
        folder.manifest.command.clone_from(&perf.command);
        let targets = self.session.targets.iter();
        let trees = targets.map(|target| (target.clone(), ProcessTree::new(&target.pids)));
        let mut cpu = Cpu { perf: Some(perf), trees: trees.collect(), seen: Vec::new() };
        cpu.seen.resize(cpu.trees.len(), BTreeSet::new());
        cpu.look();
        if recording {
            cpu.on()?;
        }
        Ok(cpu)
    }
}

/// perf, and who has been among the targets.
struct Cpu {
    perf: Option<Perf>,
    trees: Vec<(Target, ProcessTree)>,
    seen: Vec<BTreeSet<Pid>>,
}

impl Cpu {
    fn look(&mut self) {
        for ((_, tree), seen) in self.trees.iter_mut().zip(&mut self.seen) {
            tree.refresh();
            seen.extend(tree.pids());
        }
    }

    fn switch(&mut self, on: bool) -> Result<()> {
        self.look();
        self.perf.as_mut().context("perf has ended")?.switch(on)
    }

    fn write(&self, recorded: &Recorded, folder: &mut CaptureFolder) -> Result<()> {
        let pids: BTreeSet<Pid> = self.seen.iter().flatten().copied().collect();
        let file = BufWriter::new(folder.create(FILE)?);
        let file = GzEncoder::new(file, Compression::fast());
        let mut script = recorded.script(&pids)?;
        let mut writer = StackWriter::new(file, pids, folder.manifest.clock);
        let mut decoder = Decoder::default();
        let mut chunk = vec![0; 64 * 1024];
        loop {
            match script.text.read(&mut chunk).context("cannot read from perf script")? {
                0 => break,
                length => decoder.feed(&chunk[..length], &mut writer),
            }
        }
        decoder.finish(&mut writer);
        let integrity = &mut folder.manifest.integrity;
        integrity.insert("samples".into(), writer.kept);
        integrity.insert("lines_not_understood".into(), writer.problems);
        let packed = writer.finish().and_then(GzEncoder::finish);
        let flushed = packed.and_then(|mut file| file.flush());
        flushed.with_context(|| format!("cannot write {FILE}"))?;
        let lost = script.finish()?;
        folder.manifest.integrity.insert("lost_chunks".into(), lost);
        Ok(())
    }
}

impl Recorder for Cpu {
    fn on(&mut self) -> Result<()> {
        self.switch(true)
    }

    fn off(&mut self) -> Result<()> {
        self.switch(false)
    }

    fn mark(&mut self) -> Result<()> {
        self.look();
        Ok(())
    }

    fn interval(&self) -> Option<Duration> {
        Some(Duration::from_millis(500))
    }

    fn tick(&mut self) -> Result<Progress> {
        self.look();
        Ok(Progress::Going)
    }

    fn stop(&mut self, folder: &mut CaptureFolder) -> Result<()> {
        self.look();
        for ((target, _), seen) in self.trees.iter().zip(&self.seen) {
            let known = folder.manifest.targets.iter_mut().find(|known| **known == *target);
            if let Some(known) = known {
                known.pids = seen.iter().copied().collect();
            }
        }
        let Some(perf) = self.perf.take() else { return Ok(()) };
        let recorded = perf.finish()?;
        let written = self.write(&recorded, folder);
        // Also after a failure: nobody reads it any more.
        let removed = recorded.remove();
        written?;
        folder.manifest.notes.push("times in the stacks are of CLOCK_REALTIME".into());
        if self.trees.iter().any(|(target, _)| target.role == Role::Subject) && hidden_kernel() {
            folder.manifest.notes.push(
                "the kernel hides its symbols (kptr_restrict): kernel time has no phases".into(),
            );
        }
        removed
    }
}

/// Whether kernel addresses read as zero.
fn hidden_kernel() -> bool {
    std::fs::read_to_string("/proc/kallsyms")
        .is_ok_and(|text| text.lines().take(50).all(|line| line.starts_with("0000000000000000 ")))
}

fn main() -> ExitCode {
    session::run::<Args>()
}
