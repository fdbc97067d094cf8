//! Records the packets of the targets' ports.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use assay_captures::ids::{Port, Role};
use assay_captures::units::{Moment, Span};
use assay_probes::capture_folder::CaptureFolder;
use assay_probes::cli::{Description, SessionArgs};
use assay_probes::clock;
use assay_probes::filter;
use assay_probes::frame;
use assay_probes::masking;
use assay_probes::pcapng::Writer;
use assay_probes::ring::{Captured, Ring};
use assay_probes::session::{self, Probe, Progress, Recorder};

const FILE: &str = "capture.pcapng";

/// Record the packets of the targets' ports
///
/// Example: assay-probe-wire --out wire --target subject:port=8080 --target postgres:port=5433
#[derive(clap::Parser)]
#[command(version)]
struct Args {
    #[command(flatten)]
    session: SessionArgs,

    /// Where the packets pass
    #[arg(long, value_name = "NAME", default_value = "lo")]
    interface: String,

    /// Stop when so many responses have left the subject's ports
    #[arg(long, value_name = "N")]
    max_requests: Option<u64>,

    /// Stop when the file has so many bytes
    #[arg(long, value_name = "BYTES")]
    max_bytes: Option<u64>,

    /// Memory for packets that have not been written yet, in MiB: with less, a burst is lost
    #[arg(long, value_name = "MIB", default_value_t = 64,
        value_parser = clap::value_parser!(u32).range(2..=1024))]
    ring: u32,

    /// Run on this CPU only, 0-based
    #[arg(long, value_name = "CPU")]
    cpu: Option<usize>,

    /// Do not mask the payload when the file is closed: it then holds what users sent
    #[arg(long)]
    keep_payload: bool,
}

impl Probe for Args {
    const DESCRIPTION: Description = Description {
        question: "wire",
        summary: "every packet between the service, its clients, Postgres and Redis",
        tools: &[],
        rights: &["cap_net_raw"],
        cost: "up to 6 % of the rate while on, none while off",
    };
    type Recorder = Wire;

    fn session(&self) -> &SessionArgs {
        &self.session
    }

    fn start(&self, folder: &mut CaptureFolder, recording: bool) -> Result<Wire> {
        let ports = self.session.require_ports()?;
        if let Some(cpu) = self.cpu {
            pin(cpu)?;
        }
        let ring = Ring::open(&self.interface, &filter::tcp_ports(&ports), self.ring)?;
        folder.manifest.backend = Some("af_packet".into());
        let file = folder.create(FILE)?;
        let application = concat!("assay-probe-wire ", env!("CARGO_PKG_VERSION"));
        let copy = file.try_clone().context("cannot keep the capture open")?;
        let writer = Writer::begin(copy, application, &self.interface)
            .with_context(|| format!("cannot write {FILE}"))?;
        let subjects = self.session.targets.iter().filter(|target| target.role == Role::Subject);
        let mut wire = Wire {
            ring,
            listening: false,
            taken: Taken {
                writer,
                subject_ports: subjects.filter_map(|target| target.port).collect(),
                packets: 0,
                bytes: 0,
                responses: 0,
            },
            file,
            began: clock::now(),
            max_requests: self.max_requests.unwrap_or(u64::MAX),
            max_bytes: self.max_bytes.unwrap_or(u64::MAX),
            keep_payload: self.keep_payload,
        };
        if recording {
            wire.on()?;
        }
        Ok(wire)
    }
}

fn pin(cpu: usize) -> Result<()> {
    let mut set = nix::sched::CpuSet::new();
    set.set(cpu).with_context(|| format!("there is no CPU {cpu}"))?;
    nix::sched::sched_setaffinity(nix::unistd::Pid::from_raw(0), &set)
        .with_context(|| format!("cannot run on CPU {cpu}; is it there?"))
}

/// Moves packets from the ring to the file.
struct Wire {
    ring: Ring,
    listening: bool,
    taken: Taken,
    file: File,
    began: Moment,
    max_requests: u64,
    max_bytes: u64,
    keep_payload: bool,
}

/// What has come out of the ring.
struct Taken {
    writer: Writer<File>,
    subject_ports: Vec<Port>,
    packets: u64,
    bytes: u64,
    responses: u64,
}

impl Taken {
    fn packet(&mut self, packet: Captured<'_>) -> Result<()> {
        self.packets += 1;
        self.bytes += packet.frame.len() as u64;
        if frame::begins_response(packet.frame, &self.subject_ports) {
            self.responses += 1;
        }
        self.writer
            .packet(packet.moment, packet.frame, packet.original)
            .with_context(|| format!("cannot write {FILE}"))
    }
}

impl Wire {
    /// Stops listening, takes the rest, and writes the counters as they stand.
    fn pause(&mut self) -> Result<()> {
        if std::mem::take(&mut self.listening) {
            self.ring.close()?;
        }
        let taken = &mut self.taken;
        self.ring.drain(&mut |packet| taken.packet(packet))?;
        let counts = self.ring.statistics()?;
        let span = Span { start: self.began, end: clock::now() };
        taken.writer.statistics(span, counts).with_context(|| format!("cannot write {FILE}"))
    }
}

impl Wire {
    fn mask(&mut self, folder: &mut CaptureFolder) -> Result<()> {
        if self.keep_payload {
            let note = "the payload is not masked, as was asked for: it holds what users sent";
            folder.manifest.notes.push(note.into());
            return Ok(());
        }
        let mut expected = self.taken.packets;
        if let Some(whole) = self.taken.writer.torn_after() {
            // Half a packet at the end could not be told from anything else.
            self.file.set_len(whole).context("cannot cut off the half of a packet")?;
            expected = 0;
        }
        let masked = masking::mask(&self.file, &folder.manifest.targets, expected);
        match masked {
            Ok(masked) => self.taken.packets = masked.packets,
            Err(_) => folder.manifest.notes.push("the payload may hold what users sent".into()),
        }
        masked.map(drop)
    }
}

impl Recorder for Wire {
    fn on(&mut self) -> Result<()> {
        self.ring.listen()?;
        self.listening = true;
        Ok(())
    }

    fn off(&mut self) -> Result<()> {
        self.pause()
    }

    fn mark(&mut self) -> Result<()> {
        Ok(())
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.ring.as_fd())
    }

    fn readable(&mut self) -> Result<Progress> {
        let taken = &mut self.taken;
        self.ring.read(&mut |packet| taken.packet(packet))?;
        // A whole file after each block: whoever kills the probe loses 20 ms.
        taken.writer.flush().with_context(|| format!("cannot write {FILE}"))?;
        let full = taken.responses >= self.max_requests || taken.writer.length() >= self.max_bytes;
        Ok(if full { Progress::Finished } else { Progress::Going })
    }

    fn stop(&mut self, folder: &mut CaptureFolder) -> Result<()> {
        let paused = self.pause();
        let counts = self.ring.statistics()?;
        // Whatever else went wrong: what users sent does not stay.
        let masked = self.mask(folder);
        let integrity = &mut folder.manifest.integrity;
        integrity.insert("packets".into(), self.taken.packets);
        integrity.insert("packet_bytes".into(), self.taken.bytes);
        integrity.insert("received".into(), counts.received);
        integrity.insert("drops".into(), counts.dropped);
        integrity.insert("responses".into(), self.taken.responses);
        paused?;
        masked?;
        ensure!(
            counts.received - counts.dropped == self.taken.packets,
            "the kernel counted {} packets and {} drops, but {} came out of the ring",
            counts.received,
            counts.dropped,
            self.taken.packets
        );
        Ok(())
    }
}

fn main() -> ExitCode {
    session::run::<Args>()
}
