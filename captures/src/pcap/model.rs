//! What a packet capture holds.

use std::fmt;
use std::net::IpAddr;

use crate::units::{Moment, Nanos};

/// One record of a capture, in file order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record<'a> {
    /// An interface was described. Numbers start again at 0 in each section.
    Interface(Interface),
    /// A TCP segment.
    Packet(Packet<'a>),
    /// A packet that holds no TCP segment: another protocol, or a piece of a datagram.
    Other {
        /// When it was captured, if it says so.
        moment: Option<Moment>,
        /// Bytes of the frame in the file.
        captured_length: u32,
        /// Bytes of the frame on the wire.
        original_length: u32,
    },
    /// Packets that the recorder itself says it lost.
    Drops {
        /// Interface within the section.
        interface: u32,
        /// Lost so far on this interface (`isb_ifdrop`, `isb_osdrop`).
        total: u64,
    },
    /// Packets lost between the packet before and this one (`epb_dropcount`).
    DropsBefore {
        /// How many.
        count: u64,
    },
}

/// Where packets were recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Its number within the section.
    pub index: u32,
    /// Link type, as tcpdump.org numbers them.
    pub link_type: u16,
    /// Longest piece of a packet that was kept; 0 where there was no limit.
    pub snap_length: u32,
    /// Length of the shortest time that its stamps can tell, rounded up to 1 ns.
    pub resolution: Nanos,
}

/// One end of a TCP connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Endpoint {
    /// IP address.
    pub address: IpAddr,
    /// TCP port.
    pub port: u16,
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.address {
            IpAddr::V4(address) => write!(f, "{address}:{}", self.port),
            IpAddr::V6(address) => write!(f, "[{address}]:{}", self.port),
        }
    }
}

/// The flags of a TCP header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(pub u8);

impl Flags {
    /// Last segment of its direction.
    pub const FIN: Self = Self(0x01);
    /// First segment of its direction.
    pub const SYN: Self = Self(0x02);
    /// The connection is torn down.
    pub const RST: Self = Self(0x04);
    /// The acknowledgement number counts.
    pub const ACK: Self = Self(0x10);

    /// Whether all of `other` are set.
    #[must_use]
    pub fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// One TCP segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// When it was captured.
    pub moment: Moment,
    /// Who sent it.
    pub source: Endpoint,
    /// To whom.
    pub destination: Endpoint,
    /// Sequence number of its first payload byte (of SYN itself where that is set).
    pub sequence: u32,
    /// Acknowledgement number.
    pub acknowledgement: u32,
    /// Its flags.
    pub flags: Flags,
    /// The payload that was captured.
    pub payload: &'a [u8],
    /// Where the payload starts in the file.
    pub payload_offset: u64,
    /// Payload bytes that were on the wire but not captured (snap length).
    pub missing: u32,
    /// Bytes of the whole frame in the file.
    pub captured_length: u32,
    /// Bytes of the whole frame on the wire.
    pub original_length: u32,
}
