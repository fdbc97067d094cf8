//! A packet socket with a ring of blocks that the kernel fills and the probe empties.
//!
//! TPACKET_V3 (kernel `Documentation/networking/packet_mmap.rst`): the reader is woken once for
//! a block, not for each packet. A wake-up per packet would cost the sender of the packet more
//! than a quarter of its rate.

use std::ffi::CString;
use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use assay_captures::units::Moment;
use libc::{c_int, c_void, sock_filter};

use crate::pcapng::Statistics;

/// 1 MiB, so that so many blocks are so many MiB.
const BLOCK_SIZE: u32 = 1 << 20;
/// A block that has waited for so long is handed over though it is not full.
const BLOCK_TIMEOUT_MS: u32 = 20;
/// Only the smallest room of a packet: blocks hold packets of any length one after another.
const FRAME_SIZE: u32 = 2048;
/// An EtherType set aside for experiments (IEEE 802, "local experimental 2"): bound to it, the
/// socket is not even asked about a packet of another type.
const NOTHING: u16 = 0x88b6;
/// How long the last block may take before something is wrong.
const DRAIN_MAX: Duration = Duration::from_secs(2);

/// The socket and its ring.
#[derive(Debug)]
pub struct Ring {
    socket: OwnedFd,
    memory: *mut u8,
    interface: c_int,
    blocks: u32,
    /// The block that the kernel will hand over next.
    next: u32,
    statistics: Statistics,
}

impl Ring {
    /// Opens a ring of `blocks` MiB on an interface with a filter; nothing passes until
    /// [`listen`](Self::listen).
    pub fn open(interface: &str, filter: &[sock_filter], blocks: u32) -> Result<Self> {
        let index = interface_index(interface)?;
        let socket = socket()?;
        ensure_ethernet(&socket, interface)?;
        let version = libc::tpacket_versions::TPACKET_V3 as c_int;
        set(&socket, libc::SOL_PACKET, libc::PACKET_VERSION, &version)
            .context("this kernel has no TPACKET_V3 rings")?;
        if interface == "lo" {
            // Each packet passes `lo` twice, out and in. Elsewhere what goes out is the half
            // of the conversation that this machine says.
            set(&socket, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, &1_i32)
                .context("cannot ignore outgoing packets; this needs kernel 4.20")?;
        }
        let program = libc::sock_fprog {
            len: u16::try_from(filter.len()).context("too many ports for one filter")?,
            filter: filter.as_ptr().cast_mut(),
        };
        set(&socket, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)
            .context("the kernel refused the packet filter")?;
        let memory = map(&socket, blocks)?;
        let statistics = Statistics::default();
        let ring = Self { socket, memory, interface: index, blocks, next: 0, statistics };
        ring.bind(NOTHING).with_context(|| format!("cannot watch interface {interface}"))?;
        Ok(ring)
    }

    /// Records from here on.
    pub fn listen(&self) -> Result<()> {
        self.bind(libc::ETH_P_ALL as u16).context("cannot begin to record packets")
    }

    /// Records no more: when it returns the kernel has forgotten the socket, and a packet costs
    /// nobody anything. What is in the ring waits for [`drain`](Self::drain).
    pub fn close(&self) -> Result<()> {
        self.bind(NOTHING).context("cannot stop recording packets")
    }

    /// Hands over all blocks that are ready.
    pub fn read(&mut self, packet: &mut impl FnMut(Captured<'_>) -> Result<()>) -> Result<()> {
        while self.status() & libc::TP_STATUS_USER != 0 {
            let taken = self.block(packet);
            // Given back even after an error, since draining goes on afterwards.
            self.give_back();
            taken?;
        }
        self.socket_error()
    }

    /// After [`close`](Self::close): hands over everything that the kernel still holds.
    pub fn drain(&mut self, packet: &mut impl FnMut(Captured<'_>) -> Result<()>) -> Result<()> {
        let begun = Instant::now();
        loop {
            self.read(packet)?;
            // The open block gets no more packets. With some in it, its timer hands it over.
            if self.packets_in_block() == 0 {
                return Ok(());
            }
            ensure!(begun.elapsed() < DRAIN_MAX, "the kernel does not hand over the last packets");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// What the kernel has counted so far.
    pub fn statistics(&mut self) -> Result<Statistics> {
        // SAFETY: plain integers.
        let mut counts: libc::tpacket_stats_v3 = unsafe { zeroed() };
        let mut length = size_of::<libc::tpacket_stats_v3>() as libc::socklen_t;
        // SAFETY: the kernel writes at most `length` bytes there.
        let result = unsafe {
            libc::getsockopt(
                self.socket.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_STATISTICS,
                (&raw mut counts).cast(),
                &raw mut length,
            )
        };
        ensure!(result == 0, "cannot read drop counters: {}", io::Error::last_os_error());
        // Reading sets them to zero.
        self.statistics.received += u64::from(counts.tp_packets);
        self.statistics.dropped += u64::from(counts.tp_drops);
        Ok(self.statistics)
    }

    fn bind(&self, ethertype: u16) -> io::Result<()> {
        // SAFETY: plain integers.
        let mut address: libc::sockaddr_ll = unsafe { zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = ethertype.to_be();
        address.sll_ifindex = self.interface;
        let length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        // SAFETY: a link-layer address of the length given.
        let result =
            unsafe { libc::bind(self.socket.as_raw_fd(), (&raw const address).cast(), length) };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// The interface going down is an error of the socket's.
    fn socket_error(&self) -> Result<()> {
        match nix::sys::socket::getsockopt(&self.socket, nix::sys::socket::sockopt::SocketError) {
            Ok(0) => Ok(()),
            Ok(error) => bail!(
                "the interface was lost while recording: {}",
                io::Error::from_raw_os_error(error)
            ),
            Err(error) => Err(error).context("cannot ask the packet socket for errors"),
        }
    }

    fn descriptor(&self) -> *mut libc::tpacket_block_desc {
        // SAFETY: `next` is below `blocks`, so the result is inside the mapping.
        unsafe { self.memory.add(self.next as usize * BLOCK_SIZE as usize) }.cast()
    }

    fn status_word(&self) -> &AtomicU32 {
        // SAFETY: the word is inside the mapping, aligned, and shared with the kernel, which
        // reads and writes it whole.
        unsafe { AtomicU32::from_ptr(&raw mut (*self.descriptor()).hdr.bh1.block_status) }
    }

    fn status(&self) -> u32 {
        // Acquire: the block's packets were written before its status.
        self.status_word().load(Ordering::Acquire)
    }

    fn packets_in_block(&self) -> u32 {
        // SAFETY: as above; the kernel changes it while the block is open.
        let count = unsafe { AtomicU32::from_ptr(&raw mut (*self.descriptor()).hdr.bh1.num_pkts) };
        count.load(Ordering::Acquire)
    }

    fn give_back(&mut self) {
        self.status_word().store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.next = (self.next + 1) % self.blocks;
    }

    /// Hands over the packets of the block that is ours.
    fn block(&self, packet: &mut impl FnMut(Captured<'_>) -> Result<()>) -> Result<()> {
        // SAFETY: the status says that the block is ours: nobody writes to it until it is given
        // back, which `packet` cannot outlive since it only borrows.
        let bytes = unsafe {
            std::slice::from_raw_parts(self.descriptor().cast::<u8>(), BLOCK_SIZE as usize)
        };
        // SAFETY: a block begins with its descriptor.
        let header = unsafe { (*self.descriptor()).hdr.bh1 };
        let mut offset = header.offset_to_first_pkt as usize;
        for _ in 0..header.num_pkts {
            let next = Captured::at(bytes, offset).context("the kernel's ring is inconsistent")?;
            packet(next.0)?;
            offset += next.1;
        }
        Ok(())
    }
}

impl AsFd for Ring {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: mapped in `map` with this length, and no slice of it outlives `self`.
        unsafe { libc::munmap(self.memory.cast(), length(self.blocks)) };
    }
}

/// A packet in the ring.
#[derive(Clone, Copy, Debug)]
pub struct Captured<'a> {
    /// When the kernel saw it.
    pub moment: Moment,
    /// From the Ethernet header on.
    pub frame: &'a [u8],
    /// Its length on the wire.
    pub original: u32,
}

impl<'a> Captured<'a> {
    /// The packet at `offset` of a block, and how far the next one is away.
    fn at(block: &'a [u8], offset: usize) -> Option<(Self, usize)> {
        let bytes = block.get(offset..offset + size_of::<libc::tpacket3_hdr>())?;
        // SAFETY: as many bytes as the header has, of plain integers.
        let header: libc::tpacket3_hdr = unsafe { std::ptr::read_unaligned(bytes.as_ptr().cast()) };
        let start = offset + usize::from(header.tp_mac);
        let frame = block.get(start..start + header.tp_snaplen as usize)?;
        let nanos = u64::from(header.tp_sec) * 1_000_000_000 + u64::from(header.tp_nsec);
        let captured = Self { moment: Moment(nanos), frame, original: header.tp_len };
        Some((captured, header.tp_next_offset as usize))
    }
}

fn interface_index(name: &str) -> Result<c_int> {
    let text = CString::new(name).context("an interface's name has no NUL")?;
    // SAFETY: a C string that lives through the call.
    let index = unsafe { libc::if_nametoindex(text.as_ptr()) };
    ensure!(index != 0, "there is no network interface {name}; `ip link` lists them");
    Ok(index as c_int)
}

fn socket() -> Result<OwnedFd> {
    // Protocol 0: not a single packet before the filter stands.
    // SAFETY: no pointers; a new descriptor or an error.
    let fd = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
    if fd < 0 {
        let error = io::Error::last_os_error();
        if error.kind() == io::ErrorKind::PermissionDenied {
            bail!(
                "recording packets needs the right cap_net_raw: run as root, or \
                 `setcap cap_net_raw=ep` the probe"
            );
        }
        return Err(error).context("cannot open a packet socket");
    }
    // SAFETY: just given to us.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Offsets of the filter and the file's link type are those of Ethernet; `lo` looks like it too.
fn ensure_ethernet(socket: &OwnedFd, interface: &str) -> Result<()> {
    // SAFETY: plain integers and bytes.
    let mut request: libc::ifreq = unsafe { zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(interface.bytes().take(15)) {
        *to = from as libc::c_char;
    }
    // SAFETY: the kernel fills in the request that lives through the call.
    let result =
        unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFHWADDR as _, &raw mut request) };
    ensure!(result == 0, "cannot ask what {interface} is: {}", io::Error::last_os_error());
    // SAFETY: SIOCGIFHWADDR fills in this member.
    let kind = unsafe { request.ifr_ifru.ifru_hwaddr.sa_family };
    ensure!(
        kind == libc::ARPHRD_ETHER || kind == libc::ARPHRD_LOOPBACK,
        "{interface} has no Ethernet frames (hardware type {kind}); record on another interface"
    );
    Ok(())
}

/// Length of a ring in bytes.
fn length(blocks: u32) -> usize {
    BLOCK_SIZE as usize * blocks as usize
}

fn map(socket: &OwnedFd, blocks: u32) -> Result<*mut u8> {
    // SAFETY: plain integers.
    let mut request: libc::tpacket_req3 = unsafe { zeroed() };
    request.tp_block_size = BLOCK_SIZE;
    request.tp_block_nr = blocks;
    request.tp_frame_size = FRAME_SIZE;
    request.tp_frame_nr = BLOCK_SIZE / FRAME_SIZE * blocks;
    request.tp_retire_blk_tov = BLOCK_TIMEOUT_MS;
    set(socket, libc::SOL_PACKET, libc::PACKET_RX_RING, &request)
        .with_context(|| format!("cannot get {blocks} MiB for the packet ring"))?;
    // SAFETY: a new mapping of the ring; the kernel keeps it as long as it is mapped.
    let memory = unsafe {
        libc::mmap(
            std::ptr::null_mut::<c_void>(),
            length(blocks),
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED,
            socket.as_raw_fd(),
            0,
        )
    };
    ensure!(
        memory != libc::MAP_FAILED,
        "cannot map the packet ring: {}",
        io::Error::last_os_error()
    );
    Ok(memory.cast())
}

fn set<T>(socket: &OwnedFd, level: c_int, name: c_int, value: &T) -> io::Result<()> {
    // SAFETY: the kernel reads the value, of its own length, during the call.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            name,
            std::ptr::from_ref(value).cast(),
            size_of::<T>() as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
