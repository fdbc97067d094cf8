//! The BPF programs on sockets, loaded, attached and read.

use std::ffi::CStr;
use std::fs;
use std::io::{self, IoSlice, Read, Write};
use std::os::unix::net::UnixStream;

use anyhow::{Context, Result, bail, ensure};
use assay_captures::ids::{Pid, Role};
use assay_captures::syscall_names::Architecture;

use super::processes::Family;
use super::record::{Body, Record};
use crate::bpf::btf::Btf;
use crate::bpf::kernel::{Attachment, Map, MapKind, Program, possible_cpus};
use crate::bpf::ring_buffer::RingBuffer;
use crate::bpf::socket_layout::{CALLS, Counted, Layout, Maps, URING, call};
use crate::bpf::socket_programs::{SCRATCH, copy_bytes, note_calls};

const PROCESSES: u32 = 65_536;
const SOCKETS: u32 = 65_536;
const THREADS: u32 = 16_384;
const NUMBERS: u32 = 512;
/// Room for what passes between two looks.
const RING: u32 = 32 << 20;
const ENTER: &CStr = c"sys_enter";
const EXIT: &CStr = c"sys_exit";
/// What our own test says, in one piece and in two.
const WORDS: [&[u8]; 2] = [b"one piece", b"and two"];

/// What the programs could not copy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// Pieces that were lost: no room in the ring, or a call with too many buffers.
    pub dropped: u64,
    /// Pieces that could not be read from the caller's memory.
    pub unreadable: u64,
    /// Calls on sockets that are not followed since there are too many.
    pub untracked: u64,
    /// Calls that a program missed since it was running already on that CPU.
    pub missed: u64,
}

impl Losses {
    /// All of them.
    #[must_use]
    pub fn total(self) -> u64 {
        self.dropped + self.unreadable + self.untracked + self.missed
    }
}

/// The programs. All is gone from the kernel when this is dropped.
#[derive(Debug)]
pub struct Tap {
    cpus: usize,
    maps: Maps,
    ring: RingBuffer,
    programs: [Program; 2],
    attached: Vec<Attachment>,
    family: Family,
}

impl Tap {
    /// Loads the programs for these processes and their descendants, and proves on calls of our
    /// own that bytes come through. `inet` says whether TCP sockets are looked at too.
    pub fn load(roots: &[Pid], inet: bool) -> Result<Self> {
        let Some(architecture) = Architecture::here() else {
            bail!("the system calls of this processor are not known");
        };
        let types = fs::read("/sys/kernel/btf/vmlinux").context(
            "this kernel does not describe its types (no BTF), so sockets cannot be looked at",
        )?;
        let btf = Btf::read(&types).context("the kernel's description of its types is unknown")?;
        let layout =
            Layout::read(&btf).context("this kernel keeps its sockets in a way unknown here")?;
        let maps = maps().map_err(refused)?;
        fill(&maps.calls, architecture)?;
        let load = |code: Vec<_>| Program::load(&code).map_err(refused);
        let programs =
            [load(note_calls(&maps, &layout, inet))?, load(copy_bytes(&maps, &layout, inet))?];
        let mut tap = Self {
            cpus: possible_cpus().context("cannot tell how many CPUs the kernel has")?,
            ring: RingBuffer::map(&maps.ring, RING).context("cannot map the ring of records")?,
            family: Family::load(&maps.watched, &maps.counts, &btf, roots).map_err(refused)?,
            programs,
            attached: Vec::new(),
            maps,
        };
        tap.prove()?;
        Ok(tap)
    }

    /// Copies from here on.
    pub fn attach(&mut self) -> Result<()> {
        self.family.attach(&self.maps.watched, Role::Subject as u32)?;
        self.attach_programs()
    }

    /// Copies no more; costs nothing from here on. What was copied can still be read.
    pub fn detach(&mut self) {
        self.attached.clear();
        self.family.detach();
    }

    /// Hands over the records that are there.
    pub fn read(&mut self, mut record: impl FnMut(Record<'_>)) {
        self.ring.read(|bytes| {
            if let Some(read) = Record::read(bytes) {
                record(read);
            }
        });
    }

    /// A socket that nobody wants to hear of.
    pub fn ignore(&self, inode: u64) -> Result<()> {
        self.maps.sockets.put(inode, [0, 0, 1]).context("cannot ignore a socket")
    }

    /// A socket that is not there any more.
    pub fn forget(&self, inode: u64) -> Result<()> {
        self.maps.sockets.forget(inode).context("cannot forget a socket")
    }

    /// What was lost so far.
    pub fn losses(&self) -> Result<Losses> {
        let missed: io::Result<Vec<u64>> =
            self.programs.iter().map(Program::recursion_misses).collect();
        Ok(Losses {
            dropped: self.count(Counted::Dropped)?,
            unreadable: self.count(Counted::Unreadable)?,
            untracked: self.count(Counted::Untracked)?,
            missed: missed.context("the kernel does not tell about missed calls")?.iter().sum(),
        })
    }

    /// The watched processes.
    pub fn processes(&mut self) -> Vec<Pid> {
        self.family.look()
    }

    /// Whether somebody uses io_uring, whose work passes by unseen.
    pub fn uring(&mut self) -> Result<bool> {
        let open = |pid: &Pid| {
            let Ok(entries) = fs::read_dir(format!("/proc/{}/fd", pid.0)) else { return false };
            let links = entries.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
            links.into_iter().any(|link| link.to_string_lossy().contains("[io_uring]"))
        };
        Ok(self.count(Counted::Uring)? > 0 || self.family.look().iter().any(open))
    }

    fn count(&self, what: Counted) -> Result<u64> {
        self.maps.counts.sum(what as u32, self.cpus).context("cannot read a counter")
    }

    fn attach_programs(&mut self) -> Result<()> {
        for (program, point) in self.programs.iter().zip([ENTER, EXIT]) {
            let failed = || format!("cannot attach to {}", point.to_string_lossy());
            self.attached.push(program.attach(point).with_context(failed)?);
        }
        Ok(())
    }

    /// Says something to ourselves over a socket, and compares.
    fn prove(&mut self) -> Result<()> {
        let own = std::process::id();
        let (mut here, mut there) = UnixStream::pair().context("cannot make a socket")?;
        self.maps.watched.insert(own, Role::Subject as u32).context("cannot watch a process")?;
        self.attach_programs()?;
        let said = (|| {
            here.write_all(WORDS[0])?;
            let (first, second) = WORDS[1].split_at(3);
            // A part of it would be seen in what is heard.
            let _sent = here.write_vectored(&[IoSlice::new(first), IoSlice::new(second)])?;
            let mut heard = [0; WORDS[0].len() + WORDS[1].len()];
            there.read_exact(&mut heard)
        })();
        self.attached.clear();
        self.maps.watched.remove(own).context("cannot stop watching a process")?;
        said.context("cannot use a socket")?;
        let (mut sent, mut received) = (Vec::new(), Vec::new());
        let mut inodes = Vec::new();
        self.read(|record| match record.body {
            Body::New { .. } => inodes.push(record.inode),
            Body::Piece { sent: true, bytes, .. } => sent.extend_from_slice(bytes),
            Body::Piece { bytes, .. } => received.extend_from_slice(bytes),
            Body::End | Body::Closed => {}
        });
        for inode in inodes {
            self.forget(inode)?;
        }
        ensure!(
            !sent.is_empty() || !received.is_empty(),
            "the programs do not see this process: it lives in a PID namespace of its own (a \
             container); run the probe outside"
        );
        ensure!(
            sent == WORDS.concat() && received == sent,
            "bytes of our own came through changed: sockets cannot be recorded here"
        );
        Ok(())
    }
}

fn maps() -> io::Result<Maps> {
    Ok(Maps {
        watched: Map::create(MapKind::Hash, PROCESSES)?,
        calls: Map::create(MapKind::Array, NUMBERS)?,
        sockets: Map::create(MapKind::Table { key: 8, value: 24 }, SOCKETS)?,
        entered: Map::create(MapKind::Forgetful { key: 4, value: 8 }, THREADS)?,
        scratch: Map::create(MapKind::Scratch(SCRATCH), 1)?,
        ring: Map::create(MapKind::Ring, RING)?,
        counts: Map::create(MapKind::PerCpuArray, Counted::ALL.len() as u32)?,
    })
}

fn fill(calls: &Map, architecture: Architecture) -> Result<()> {
    for (name, bits) in CALLS.into_iter().chain([(URING, call::URING)]) {
        // A processor may lack a call that others have.
        if let Some(number) = architecture.number(name) {
            calls.insert(number as u32, bits.cast_unsigned()).context("cannot list a call")?;
        }
    }
    Ok(())
}

fn refused(error: io::Error) -> anyhow::Error {
    match error.raw_os_error() {
        Some(libc::EPERM) => anyhow::anyhow!(
            "the kernel refuses bpf(2): recording sockets needs cap_bpf and cap_perfmon; run as \
             root, or: setcap cap_net_raw,cap_bpf,cap_perfmon=ep on this probe"
        ),
        _ => anyhow::Error::new(error)
            .context("the kernel does not take the programs (they need kernel 5.12)"),
    }
}
