//! Records the packets of the targets' ports.

use std::fs::File;
use std::os::fd::BorrowedFd;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use assay_captures::ids::{Pid, Port, Role};
use assay_captures::manifest::Target;
use assay_captures::pcap::{FILE as PACKED, PLAIN_FILE as FILE};
use assay_probes::capture_folder::CaptureFolder;
use assay_probes::cli::{Description, SessionArgs};
use assay_probes::filter;
use assay_probes::masking;
use assay_probes::network_namespace;
use assay_probes::packet_file::PacketFile;
use assay_probes::packing;
use assay_probes::pcapng::Interface;
use assay_probes::ring::Ring;
use assay_probes::rings::Rings;
use assay_probes::session::{self, Probe, Progress, Recorder};
use assay_probes::sockets::servers::give_ports;
use assay_probes::sockets::source::{DESCRIPTION, Source};

/// How often sockets are looked at. They wake nobody, since that would cost the sender.
const LOOK: Duration = Duration::from_millis(20);

/// Record the packets of the targets' ports, and what passes on Unix sockets
///
/// Example: assay-probe-wire --out wire --target subject:port=8080 --target postgres:port=5433
///
/// Example: assay-probe-wire --out wire --target subject:pid=123,port=8080 --sockets unix
#[derive(clap::Parser)]
#[command(version)]
struct Args {
    #[command(flatten)]
    session: SessionArgs,

    /// Where the packets pass; may be given again, for servers that are reached in different ways
    #[arg(long, value_name = "NAME", default_value = "lo")]
    interface: Vec<String>,

    /// Look for the interfaces in the network namespace of this process, such as a container's
    #[arg(long, value_name = "PID")]
    netns: Option<u32>,

    /// Record what the subject's processes, and a pooler's, say to Postgres and Redis on their own
    /// sockets: `unix` those that no packet shows, `all` TCP too, and no packets
    ///
    /// A target with a path asks for `unix` by itself.
    #[arg(long, value_enum, value_name = "WHICH")]
    sockets: Option<Sockets>,

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

    /// Make the file a pipe: whoever reads it gets every packet as it is, and nothing is kept
    ///
    /// `mark` then writes what is there, and the counters of each interface behind it.
    #[arg(long, conflicts_with_all = ["max_bytes", "keep_payload"])]
    stream: bool,

    /// Do not mask the payload when the file is closed: it then holds what users sent
    #[arg(long)]
    keep_payload: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Sockets {
    Unix,
    All,
}

impl Probe for Args {
    const DESCRIPTION: Description = Description {
        question: "wire",
        summary: "every packet between the service, its clients, Postgres and Redis; Unix sockets \
                  by the service's own calls (BPF)",
        tools: &[],
        rights: &["cap_net_raw"],
        more_rights: &["cap_bpf", "cap_perfmon"],
        more: "what passes on Unix sockets",
        without: "round trips, statements, rows and bytes of Postgres and Redis, and waiting times",
        cost: "packets: up to 6 % of the rate while on; sockets: about 1 µs a call on a socket; \
               none while off",
    };
    type Recorder = Wire;

    fn session(&self) -> &SessionArgs {
        &self.session
    }

    fn start(&self, folder: &mut CaptureFolder, recording: bool) -> Result<Wire> {
        if let Some(cpu) = self.cpu {
            pin(cpu)?;
        }
        give_ports(&mut folder.manifest.targets);
        let targets = folder.manifest.targets.clone();
        let rings = self.rings(&targets)?;
        let sockets = self.sockets(&targets, rings.len())?;
        folder.manifest.backend = Some(backend(!rings.is_empty(), sockets.is_some()).into());
        let file = if self.stream { folder.pipe(FILE)? } else { folder.create(FILE)? };
        let copy = file.try_clone().context("cannot keep the capture open")?;
        let named = self.interface.iter().take(rings.len() as usize);
        let listed = named.map(|name| Interface { name, description: None });
        let made_up = Interface { name: "sockets", description: Some(DESCRIPTION) };
        let interfaces: Vec<_> = listed.chain(sockets.as_ref().map(|_| made_up)).collect();
        let subjects = targets.iter().filter(|target| target.role == Role::Subject);
        let ports: Vec<Port> = subjects.filter_map(|target| target.port).collect();
        let sorted = sockets.is_some() || rings.len() > 1;
        let taken = PacketFile::begin(FILE, copy, &interfaces, ports, sorted)?;
        let mut wire = Wire {
            rings,
            sockets,
            taken,
            file,
            max_requests: self.max_requests.unwrap_or(u64::MAX),
            max_bytes: self.max_bytes.unwrap_or(u64::MAX),
            keep_payload: self.keep_payload,
            stream: self.stream,
        };
        if recording {
            wire.on()?;
        }
        Ok(wire)
    }
}

impl Args {
    fn wants(&self, targets: &[Target]) -> Option<Sockets> {
        let paths = targets.iter().any(|target| target.path.is_some());
        self.sockets.or(paths.then_some(Sockets::Unix))
    }

    /// The rings for the targets' ports; none where sockets are all that is asked for.
    fn rings(&self, targets: &[Target]) -> Result<Rings> {
        let wants = self.wants(targets);
        let on_network = targets.iter().filter(|target| target.path.is_none());
        let ports: Vec<Port> = on_network.filter_map(|target| target.port).collect();
        if wants == Some(Sockets::All) || (wants.is_some() && ports.is_empty()) {
            return Ok(Rings::default());
        }
        ensure!(!ports.is_empty(), "no port to watch: give --target ROLE:port=N");
        let filter = filter::tcp_ports(&ports);
        let open = || {
            let names = self.interface.iter();
            names.map(|name| Ring::open(name, &filter, self.ring)).collect::<Result<Vec<_>>>()
        };
        network_namespace::inside(self.netns.map(Pid), open).map(Rings::new)
    }

    fn sockets(&self, targets: &[Target], interface: u32) -> Result<Option<Source>> {
        let Some(wants) = self.wants(targets) else { return Ok(None) };
        self.session.require_pids()?;
        // A pooler is a client as well: of the Postgres behind it.
        let clients = [Role::Subject, Role::Pooler];
        let clients = targets.iter().filter(|target| clients.contains(&target.role));
        let roots: Vec<Pid> = clients.flat_map(|target| target.pids.clone()).collect();
        ensure!(
            !roots.is_empty(),
            "sockets are recorded at the client's calls: give --target subject:pid=N"
        );
        Source::load(&roots, targets, wants == Sockets::All, interface).map(Some)
    }
}

fn backend(ring: bool, sockets: bool) -> &'static str {
    match (ring, sockets) {
        (true, true) => "af_packet and bpf",
        (false, true) => "bpf",
        _ => "af_packet",
    }
}

fn pin(cpu: usize) -> Result<()> {
    let mut set = nix::sched::CpuSet::new();
    set.set(cpu).with_context(|| format!("there is no CPU {cpu}"))?;
    nix::sched::sched_setaffinity(nix::unistd::Pid::from_raw(0), &set)
        .with_context(|| format!("cannot run on CPU {cpu}; is it there?"))
}

/// Moves packets from the rings and from sockets to the file.
struct Wire {
    rings: Rings,
    sockets: Option<Source>,
    taken: PacketFile,
    file: File,
    max_requests: u64,
    max_bytes: u64,
    keep_payload: bool,
    stream: bool,
}

impl Wire {
    /// Stops recording, takes the rest, and writes the counters as they stand.
    fn pause(&mut self) -> Result<()> {
        let taken = &mut self.taken;
        self.rings.pause(taken)?;
        if let Some(sockets) = &mut self.sockets {
            sockets.detach();
            if let Some(sorter) = &mut taken.sorter {
                sockets.read(sorter)?;
            }
        }
        taken.settle()?;
        self.write_statistics()
    }

    fn progress(&self) -> Progress {
        let taken = &self.taken;
        let full = taken.responses >= self.max_requests || taken.length() >= self.max_bytes;
        if full { Progress::Finished } else { Progress::Going }
    }
}

impl Wire {
    /// Hands over what is there now, and the counters behind it.
    fn hand_over(&mut self) -> Result<()> {
        self.tick()?;
        self.write_statistics()?;
        self.taken.flush()
    }

    fn write_statistics(&mut self) -> Result<()> {
        self.rings.write_statistics(&mut self.taken)?;
        if let Some(sockets) = &self.sockets {
            self.taken.statistics(self.rings.len(), sockets.statistics()?)?;
        }
        Ok(())
    }

    fn mask(&mut self, folder: &mut CaptureFolder) -> Result<()> {
        if self.stream {
            folder.unlist(FILE);
            folder.manifest.notes.push("packets went to a reader, and were not kept".into());
            return Ok(());
        }
        if self.keep_payload {
            let note = "the payload is not masked, as was asked for: it holds what users sent";
            folder.manifest.notes.push(note.into());
            return Ok(());
        }
        let mut expected = self.taken.packets;
        if let Some(whole) = self.taken.torn_after() {
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
        if let Some(sockets) = &mut self.sockets {
            sockets.attach()?;
        }
        self.rings.listen()
    }

    fn off(&mut self) -> Result<()> {
        self.pause()
    }

    fn mark(&mut self) -> Result<()> {
        if self.stream { self.hand_over() } else { Ok(()) }
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.rings.descriptor()
    }

    fn readable(&mut self) -> Result<Progress> {
        self.rings.read(&mut self.taken)?;
        self.taken.flush()?;
        Ok(self.progress())
    }

    fn interval(&self) -> Option<Duration> {
        (self.sockets.is_some() || self.rings.len() > 1).then_some(LOOK)
    }

    fn tick(&mut self) -> Result<Progress> {
        if let (Some(sockets), Some(sorter)) = (&mut self.sockets, &mut self.taken.sorter) {
            sockets.read(sorter)?;
        }
        self.readable()
    }

    fn stop(&mut self, folder: &mut CaptureFolder) -> Result<()> {
        let paused = self.pause();
        let counts = self.rings.statistics()?;
        let from_ring = self.rings.packets();
        let told = match &mut self.sockets {
            // Before masking, which must know what is spoken on the ports that were found.
            Some(sockets) => sockets.tell(&mut folder.manifest),
            None => Ok(()),
        };
        // Whatever else went wrong: what users sent does not stay.
        let masked = self.mask(folder);
        let lost = self
            .sockets
            .as_ref()
            .map_or(Ok(0), |sockets| sockets.statistics().map(|counts| counts.dropped))?;
        let integrity = &mut folder.manifest.integrity;
        integrity.insert("packets".into(), self.taken.packets);
        integrity.insert("packet_bytes".into(), self.taken.bytes);
        integrity.insert("received".into(), counts.received);
        integrity.insert("drops".into(), counts.dropped + lost);
        integrity.insert("responses".into(), self.taken.responses);
        if self.sockets.is_some() {
            integrity.insert("late".into(), self.taken.late());
        }
        paused?;
        told?;
        masked?;
        if !self.stream {
            // A capture that finds no room for this stays as it is, which is as good.
            let _best_effort = packing::pack(folder, FILE, PACKED);
        }
        ensure!(
            counts.received - counts.dropped == from_ring,
            "the kernel counted {} packets and {} drops, but {from_ring} came out of the ring",
            counts.received,
            counts.dropped,
        );
        Ok(())
    }
}

fn main() -> ExitCode {
    session::run::<Args>()
}
