//! From chunks of a file to records.

use super::blocks::{Order, Stamps, interface_stamps, packet_drops, statistics_drops};
use super::link::{Frame, Inside, segment};
use super::model::{Interface, Record};
use crate::parsed::{Place, Problem, Sink};
use crate::units::Moment;

/// A longer record is passed over: no network sends such frames, so its length is wrong.
const RECORD_LIMIT: u64 = 16 << 20;

const SECTION_HEADER: u32 = pcap_parser::SHB_MAGIC;

/// Reads a capture from chunks of any size.
#[derive(Debug)]
pub struct Decoder {
    /// The start of a record whose rest has not come yet; never longer than a record.
    carry: Vec<u8>,
    /// Where the next byte that has not been decoded stands in the file.
    position: u64,
    /// Bytes to pass over before the next record.
    skip: u64,
    format: Format,
    interfaces: Vec<Capture>,
    /// Kinds of problems that would otherwise be said once a packet.
    said: Said,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Unknown,
    Classic {
        order: Order,
        header: u8,
    },
    Sections {
        order: Order,
    },
    /// Not a capture, or broken beyond repair: the rest is passed over.
    Unreadable,
}

/// What a frame needs to know of its interface.
#[derive(Clone, Copy, Debug)]
struct Capture {
    link_type: u16,
    snap_length: u32,
    stamps: Stamps,
}

#[derive(Debug, Default)]
struct Said {
    fragment: bool,
    short: bool,
    unknown_link: bool,
    timeless: bool,
}

impl Default for Decoder {
    fn default() -> Self {
        Self {
            carry: Vec::new(),
            position: 0,
            skip: 0,
            format: Format::Unknown,
            interfaces: Vec::new(),
            said: Said::default(),
        }
    }
}

impl Decoder {
    /// A decoder at the start of a file.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next bytes of the file.
    pub fn feed<S>(&mut self, mut bytes: &[u8], sink: &mut S)
    where
        S: for<'a> Sink<Record<'a>>,
    {
        while !bytes.is_empty() {
            if self.format == Format::Unreadable {
                self.position += bytes.len() as u64;
                return;
            }
            if self.skip > 0 {
                let passed = self.skip.min(bytes.len() as u64);
                self.skip -= passed;
                self.position += passed;
                bytes = &bytes[passed as usize..];
                continue;
            }
            if self.carry.is_empty() {
                let used = self.decode(bytes, sink);
                bytes = &bytes[used..];
                // What follows belongs to no record that could be cut off.
                if self.format == Format::Unreadable {
                    continue;
                }
                if used == 0 && self.skip == 0 {
                    self.carry.extend_from_slice(bytes);
                    return;
                }
                continue;
            }
            bytes = self.top_up(bytes, sink);
        }
    }

    /// Adds to the carried start of a record just what it lacks.
    fn top_up<'b, S>(&mut self, bytes: &'b [u8], sink: &mut S) -> &'b [u8]
    where
        S: for<'a> Sink<Record<'a>>,
    {
        let needed = self.needed(&self.carry).unwrap_or(0).min(RECORD_LIMIT) as usize;
        let lacking = needed.saturating_sub(self.carry.len()).max(1).min(bytes.len());
        self.carry.extend_from_slice(&bytes[..lacking]);
        let carry = std::mem::take(&mut self.carry);
        let used = self.decode(&carry, sink);
        self.carry = carry;
        if self.skip > 0 || self.format == Format::Unreadable {
            // The carried bytes belong to what is passed over.
            let passed = self.skip.min((self.carry.len() - used) as u64);
            self.skip -= passed;
            self.position += passed;
            self.carry.clear();
        } else {
            self.carry.drain(..used);
        }
        &bytes[lacking..]
    }

    /// Says whether the file ended within a record.
    pub fn finish<S>(&mut self, sink: &mut S)
    where
        S: for<'a> Sink<Record<'a>>,
    {
        if !self.carry.is_empty() || self.skip > 0 {
            self.problem(sink, "the file ends within a record");
        } else if self.format == Format::Unknown {
            self.problem(sink, "the file is empty");
        }
        self.carry.clear();
        self.skip = 0;
    }

    /// Decodes all whole records at the start of `bytes`; returns how many bytes they had.
    fn decode<S>(&mut self, bytes: &[u8], sink: &mut S) -> usize
    where
        S: for<'a> Sink<Record<'a>>,
    {
        let mut used = 0;
        loop {
            let rest = &bytes[used..];
            let Some(needed) = self.needed(rest) else { return used };
            if needed > RECORD_LIMIT {
                self.pass_over(needed, sink);
                return used;
            }
            let Some(record) = rest.get(..needed as usize) else { return used };
            match self.format {
                Format::Unknown => self.begin(record, sink),
                Format::Classic { order, header } => self.classic(record, order, header, sink),
                Format::Sections { order } => self.block(record, order, sink),
                Format::Unreadable => return used,
            }
            used += record.len();
            self.position += record.len() as u64;
        }
    }

    /// Length of the record at the start of `rest`; `None` until enough of it is there to say.
    fn needed(&self, rest: &[u8]) -> Option<u64> {
        match self.format {
            Format::Unreadable => None,
            Format::Unknown => {
                let magic = rest.first_chunk::<4>()?;
                match *magic {
                    [0x0a, 0x0d, 0x0d, 0x0a] => block_length(rest, Order::Little),
                    _ if classic_magic(*magic).is_some() => Some(24),
                    _ => Some(4),
                }
            }
            Format::Classic { order, header } => {
                rest.get(..usize::from(header))?;
                Some(u64::from(header) + u64::from(order.u32(rest, 8)))
            }
            Format::Sections { order } => block_length(rest, order),
        }
    }

    fn pass_over<S>(&mut self, needed: u64, sink: &mut S)
    where
        S: for<'a> Sink<Record<'a>>,
    {
        match self.format {
            Format::Sections { .. } => {
                self.problem(sink, "a block longer than 16 MiB is passed over");
                self.skip = needed;
            }
            _ => {
                self.problem(sink, "a packet claims more than 16 MiB: what follows is unreadable");
                self.format = Format::Unreadable;
            }
        }
    }

    /// The file header, or the first section header.
    fn begin<S>(&mut self, record: &[u8], sink: &mut S)
    where
        S: for<'a> Sink<Record<'a>>,
    {
        let magic = record.first_chunk::<4>().copied().unwrap_or_default();
        if magic == [0x0a, 0x0d, 0x0d, 0x0a] {
            self.block(record, Order::Little, sink);
            return;
        }
        let Some((order, per_second, header)) = classic_magic(magic) else {
            self.problem(sink, "neither pcap nor pcapng: the first four bytes are not theirs");
            self.format = Format::Unreadable;
            return;
        };
        self.format = Format::Classic { order, header };
        let interface = Capture {
            // The upper bits tell of a checksum behind each frame.
            link_type: order.u32(record, 20) as u16,
            snap_length: order.u32(record, 16),
            stamps: Stamps { per_second, offset: 0 },
        };
        self.add_interface(interface, sink);
    }

    fn add_interface<S>(&mut self, capture: Capture, sink: &mut S)
    where
        S: for<'a> Sink<Record<'a>>,
    {
        // Bounded, since a broken file could describe millions.
        if self.interfaces.len() >= 4096 {
            return;
        }
        sink.record(Record::Interface(Interface {
            index: self.interfaces.len() as u32,
            link_type: capture.link_type,
            snap_length: capture.snap_length,
            resolution: capture.stamps.resolution(),
        }));
        self.interfaces.push(capture);
    }

    fn classic<S>(&mut self, record: &[u8], order: Order, header: u8, sink: &mut S)
    where
        S: for<'a> Sink<Record<'a>>,
    {
        let Some(capture) = self.interfaces.first().copied() else { return };
        let seconds = u64::from(order.u32(record, 0)) * 1_000_000_000;
        let unit = 1_000_000_000 / capture.stamps.per_second;
        let moment = Moment(seconds + u64::from(order.u32(record, 4)) * unit);
        let at = usize::from(header);
        self.frame(Some(moment), capture.link_type, &record[at..], at, order.u32(record, 12), sink);
    }

    fn block<S>(&mut self, block: &[u8], order: Order, sink: &mut S)
    where
        S: for<'a> Sink<Record<'a>>,
    {
        let kind = order.u32(block, 0);
        // 8 bytes before the body, 4 after it.
        let body = &block[8..block.len() - 4];
        match kind {
            SECTION_HEADER => {
                let order = if order_of_section(block) { Order::Little } else { Order::Big };
                self.format = Format::Sections { order };
                self.interfaces.clear();
            }
            pcap_parser::IDB_MAGIC => {
                let capture = Capture {
                    link_type: order.u16(body, 0),
                    snap_length: order.u32(body, 4),
                    stamps: interface_stamps(order, body.get(8..).unwrap_or(&[])),
                };
                self.add_interface(capture, sink);
            }
            pcap_parser::EPB_MAGIC => self.packet(body, order, order.u32(body, 0), sink),
            // The obsolete packet block has a 16-bit interface number and a drop count.
            2 => {
                let drops = order.u16(body, 2);
                if drops != 0 && drops != u16::MAX {
                    sink.record(Record::DropsBefore { count: u64::from(drops) });
                }
                self.packet(body, order, u32::from(order.u16(body, 0)), sink);
            }
            pcap_parser::SPB_MAGIC => self.simple_packet(body, order, sink),
            pcap_parser::ISB_MAGIC => {
                let options = body.get(12..).unwrap_or(&[]);
                if let Some(total) = statistics_drops(order, options) {
                    sink.record(Record::Drops { interface: order.u32(body, 0), total });
                }
            }
            // Names, secrets, custom blocks: nothing of TCP in them.
            _ => {}
        }
    }

    fn packet<S>(&mut self, body: &[u8], order: Order, interface: u32, sink: &mut S)
    where
        S: for<'a> Sink<Record<'a>>,
    {
        let Some(capture) = self.interfaces.get(interface as usize).copied() else {
            self.problem(sink, "a packet of an interface that was not described");
            return;
        };
        let captured = order.u32(body, 12) as usize;
        let Some(bytes) = body.get(20..).and_then(|rest| rest.get(..captured)) else {
            self.problem(sink, "a packet longer than its block");
            return;
        };
        let options = body.get(20 + captured.next_multiple_of(4)..).unwrap_or(&[]);
        if !options.is_empty() {
            let count = packet_drops(order, options);
            if count > 0 {
                sink.record(Record::DropsBefore { count });
            }
        }
        let stamp = u64::from(order.u32(body, 4)) << 32 | u64::from(order.u32(body, 8));
        let moment = capture.stamps.moment(stamp);
        let original = order.u32(body, 16);
        self.frame(Some(moment), capture.link_type, bytes, 8 + 20, original, sink);
    }

    fn simple_packet<S>(&mut self, body: &[u8], order: Order, sink: &mut S)
    where
        S: for<'a> Sink<Record<'a>>,
    {
        let Some(capture) = self.interfaces.first().copied() else {
            self.problem(sink, "a packet of an interface that was not described");
            return;
        };
        let original = order.u32(body, 0);
        let mut captured = (original as usize).min(body.len().saturating_sub(4));
        if capture.snap_length > 0 {
            captured = captured.min(capture.snap_length as usize);
        }
        let bytes = body.get(4..).and_then(|rest| rest.get(..captured)).unwrap_or(&[]);
        self.frame(None, capture.link_type, bytes, 8 + 4, original, sink);
    }

    /// `at` is where `bytes` start within the record.
    fn frame<S>(
        &mut self,
        moment: Option<Moment>,
        link_type: u16,
        bytes: &[u8],
        at: usize,
        original_length: u32,
        sink: &mut S,
    ) where
        S: for<'a> Sink<Record<'a>>,
    {
        let frame = Frame {
            moment: moment.unwrap_or_default(),
            link_type,
            bytes,
            offset: self.position + at as u64,
            // Some recorders cut the frame and write its original length as 0.
            original_length: original_length.max(bytes.len() as u32),
        };
        let problem = match segment(&frame) {
            Inside::Tcp(packet) if moment.is_some() => {
                sink.record(Record::Packet(packet));
                return;
            }
            Inside::Tcp(_) => first(&mut self.said.timeless)
                .then_some("packets without a time stamp are left out"),
            Inside::Other => None,
            Inside::Fragment => first(&mut self.said.fragment)
                .then_some("a fragment of a datagram: fragments are not put together"),
            Inside::Short => {
                first(&mut self.said.short).then_some("a frame is cut within its headers")
            }
            Inside::UnknownLink => first(&mut self.said.unknown_link)
                .then_some("a link type that is not read: its packets are left out"),
        };
        if let Some(message) = problem {
            self.problem(sink, message);
        }
        let (captured_length, original_length) = (bytes.len() as u32, frame.original_length);
        sink.record(Record::Other { moment, captured_length, original_length });
    }

    fn problem<S>(&self, sink: &mut S, message: &'static str)
    where
        S: for<'a> Sink<Record<'a>>,
    {
        Sink::<Record<'_>>::problem(sink, Problem::new(Place::Byte(self.position), message));
    }
}

/// Sets `said`; whether it was not set before.
fn first(said: &mut bool) -> bool {
    !std::mem::replace(said, true)
}

/// Byte order, units per second and length of a packet header.
fn classic_magic(magic: [u8; 4]) -> Option<(Order, u64, u8)> {
    const MICRO: u64 = 1_000_000;
    const NANO: u64 = 1_000_000_000;
    Some(match magic {
        [0xd4, 0xc3, 0xb2, 0xa1] => (Order::Little, MICRO, 16),
        [0xa1, 0xb2, 0xc3, 0xd4] => (Order::Big, MICRO, 16),
        [0x4d, 0x3c, 0xb2, 0xa1] => (Order::Little, NANO, 16),
        [0xa1, 0xb2, 0x3c, 0x4d] => (Order::Big, NANO, 16),
        // Kuznetzov's: interface, protocol and packet type follow each header.
        [0x34, 0xcd, 0xb2, 0xa1] => (Order::Little, MICRO, 24),
        [0xa1, 0xb2, 0xcd, 0x34] => (Order::Big, MICRO, 24),
        _ => return None,
    })
}

/// Whether the section that starts here is little-endian.
fn order_of_section(block: &[u8]) -> bool {
    block.get(8..12) == Some(&[0x4d, 0x3c, 0x2b, 0x1a])
}

/// Length of the block at the start of `rest`. Blocks shorter than their own frame, or not padded
/// to 4 bytes, are taken as long as the shortest one, so that reading goes on.
fn block_length(rest: &[u8], order: Order) -> Option<u64> {
    let order = if rest.first_chunk::<4>()? == &[0x0a, 0x0d, 0x0d, 0x0a] {
        // A section header gives its own byte order, behind the length.
        rest.get(..12)?;
        if order_of_section(rest) { Order::Little } else { Order::Big }
    } else {
        order
    };
    rest.get(..8)?;
    Some(u64::from(order.u32(rest, 4)).max(12).next_multiple_of(4))
}
