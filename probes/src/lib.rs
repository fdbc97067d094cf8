//! What the probe binaries share: their command line and their session.
//!
//! A probe is a [`session::Probe`] (its command line, and how recording begins) with a
//! [`session::Recorder`] (what it does on each command). The session does everything else: the
//! folder, the manifest, standard input and output, signals, the parent's death.
//!
//! ```no_run
//! use assay_probes::capture_folder::CaptureFolder;
//! use assay_probes::cli::{Description, SessionArgs};
//! use assay_probes::session::{self, Probe, Recorder};
//!
//! /// Record what the service does
//! #[derive(clap::Parser)]
//! struct Args {
//!     #[command(flatten)]
//!     session: SessionArgs,
//!     /// An option of this probe's own
//!     #[arg(long, default_value_t = 250)]
//!     interval: u64,
//! }
//!
//! struct Counter {
//!     file: std::fs::File,
//! }
//!
//! impl Probe for Args {
//!     const DESCRIPTION: Description = Description {
//!         question: "counter",
//!         summary: "counts what the service does",
//!         tools: &[],
//!         rights: &["cap_sys_ptrace"],
//!         more_rights: &[],
//!         more: "",
//!         without: "what other users' processes do",
//!         cost: "none that can be measured",
//!     };
//!     type Recorder = Counter;
//!
//!     fn session(&self) -> &SessionArgs {
//!         &self.session
//!     }
//!
//!     fn start(&self, folder: &mut CaptureFolder, recording: bool) -> anyhow::Result<Counter> {
//!         let _roots = self.session.require_pids()?;
//!         folder.manifest.backend = Some("bpf".into());
//!         let file = folder.create("counts.jsonl")?;
//!         // … attach; write the first sample; record only if `recording` …
//!         let _ = recording;
//!         Ok(Counter { file })
//!     }
//! }
//!
//! impl Recorder for Counter {
//!     fn on(&mut self) -> anyhow::Result<()> {
//!         Ok(())
//!     }
//!     fn off(&mut self) -> anyhow::Result<()> {
//!         Ok(())
//!     }
//!     fn mark(&mut self) -> anyhow::Result<()> {
//!         Ok(()) // write a sample
//!     }
//!     fn stop(&mut self, folder: &mut CaptureFolder) -> anyhow::Result<()> {
//!         self.file.sync_data()?;
//!         folder.manifest.integrity.insert("samples".into(), 2);
//!         Ok(())
//!     }
//! }
//!
//! fn main() -> std::process::ExitCode {
//!     session::run::<Args>()
//! }
//! ```

pub mod allocation_counter;
pub mod bpf;
pub mod capture_folder;
pub mod cli;
pub mod clock;
pub mod events;
pub mod filter;
pub mod frame;
pub mod inlines;
pub mod masking;
pub mod network_namespace;
pub mod packet_file;
pub mod packing;
pub mod pcapng;
pub mod perf;
pub mod processes;
pub mod rights;
pub mod ring;
pub mod rings;
pub mod session;
pub mod sockets;
pub mod stacks;
pub mod strace;
pub mod syscall_counter;
pub mod usage;
