//! What reassembly delivers.

use crate::pcap::Endpoint;
use crate::units::Moment;

/// A connection, numbered in the order of its first packet. Numbers are never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Connection(pub u64);

/// One end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Side {
    /// The end that opened the connection.
    Client,
    /// The end that listened.
    Server,
}

impl Side {
    /// The other end.
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Both sides said that they were done.
    Finished,
    /// Torn down.
    Reset,
    /// A new connection came between the same ports: the end was not captured.
    Replaced,
    /// Still open where the capture ends.
    Open,
}

/// One step of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// First packet of a connection.
    Opened {
        /// Which.
        connection: Connection,
        /// When.
        moment: Moment,
        /// Who opened it.
        client: Endpoint,
        /// Who listened.
        server: Endpoint,
        /// Whether its handshake was captured, so that the first bytes are the first ones.
        from_start: bool,
    },
    /// Bytes in order. One chunk never holds more than one segment's payload.
    Chunk {
        /// Which connection.
        connection: Connection,
        /// Who sent them.
        from: Side,
        /// When the receiver could read them.
        moment: Moment,
        /// The bytes.
        bytes: &'a [u8],
    },
    /// Bytes that were sent but not captured.
    Gap {
        /// Which connection.
        connection: Connection,
        /// Who sent them.
        from: Side,
        /// When it was noticed.
        moment: Moment,
        /// How many bytes.
        length: u64,
    },
    /// The last event of a connection.
    Closed {
        /// Which.
        connection: Connection,
        /// When.
        moment: Moment,
        /// How.
        end: End,
    },
}

/// Takes events in order. The bytes of a chunk are borrowed.
pub trait EventSink {
    /// Takes one event.
    fn event(&mut self, event: Event<'_>);
}

/// What reassembly saw, for the integrity record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// TCP segments.
    pub segments: u64,
    /// Segments with payload.
    pub carrying: u64,
    /// Segments that held nothing new: retransmissions, and frames captured twice.
    pub copies: u64,
    /// Segments that came before one with a lower sequence number.
    pub out_of_order: u64,
    /// Holes that were never filled.
    pub gaps: u64,
    /// Bytes in those holes.
    pub missing_bytes: u64,
    /// Segments cut by the snap length.
    pub truncated: u64,
    /// Connections whose first packet was captured.
    pub connections: u64,
    /// Connections that were open before the capture began.
    pub joined: u64,
}
