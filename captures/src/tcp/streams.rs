//! All connections of a capture.

use std::collections::{HashMap, VecDeque};

use foldhash::fast::RandomState;

use super::direction::{Arrival, Direction, Out, Segment, distance};
use super::model::{Connection, End, Event, EventSink, Figures, Side};
use crate::pcap::{Endpoint, Flags, Packet};
use crate::units::Moment;

/// Connections open at once; beyond it the longest silent tenth is closed.
const OPEN_LIMIT: usize = 100_000;
/// Payload kept behind holes in all connections together; beyond it those of the connection that
/// brings more are given up.
const KEPT_LIMIT: usize = 32 << 20;
/// Closed connections remembered, so that late copies of their segments open nothing.
const CLOSED_LIMIT: usize = 8192;

/// Reassembles all TCP connections of a capture.
#[derive(Debug, Default)]
pub struct Streams {
    open: HashMap<Ends, Conversation, RandomState>,
    closed: HashMap<Ends, Tail, RandomState>,
    closed_order: VecDeque<Ends>,
    /// Ports that are known to listen, for connections whose handshake was not captured.
    listening: Vec<u16>,
    count: u64,
    /// Payload that is kept behind holes.
    kept: usize,
    figures: Figures,
}

/// Both ends, the lower first, so that both directions find the same entry.
type Ends = (Endpoint, Endpoint);

#[derive(Debug)]
struct Conversation {
    connection: Connection,
    client: Endpoint,
    from_client: Direction,
    from_server: Direction,
    /// Sequence number of the SYN of the client and of the server.
    starts: (Option<u32>, Option<u32>),
    packets: u64,
    moment: Moment,
}

/// What is remembered of a closed connection.
#[derive(Debug)]
struct Tail {
    client: Endpoint,
    from_client: Option<u32>,
    from_server: Option<u32>,
    starts: (Option<u32>, Option<u32>),
    /// Whether its end was captured: then only a SYN can start anything between these ports.
    ended: bool,
}

impl Streams {
    /// No connections yet. `listening` are the ports of servers, which tell client from server
    /// where a connection was open before the capture began; others go by the lower port.
    #[must_use]
    pub fn new(listening: &[u16]) -> Self {
        Self { listening: listening.to_vec(), ..Self::default() }
    }

    /// What was seen so far.
    #[must_use]
    pub fn figures(&self) -> Figures {
        self.figures
    }

    /// Takes a segment.
    pub fn feed(&mut self, packet: &Packet<'_>, sink: &mut impl EventSink) {
        self.figures.segments += 1;
        self.figures.carrying += u64::from(!packet.payload.is_empty());
        if packet.missing > 0 {
            self.figures.truncated += 1;
        }
        let ends = ends(packet);
        // Almost every packet belongs to what is open and starts nothing.
        let mut known = match packet.flags.has(Flags::SYN) {
            true => None,
            false => self.open.get_mut(&ends),
        };
        if known.is_none() {
            if !self.prepare(ends, packet, sink) {
                return;
            }
            known = self.open.get_mut(&ends);
        }
        let Some(conversation) = known else { return };
        conversation.packets += 1;
        conversation.moment = packet.moment;
        let before = conversation.kept();
        conversation.segment(packet, &mut self.figures, sink);
        self.kept = (self.kept + conversation.kept()).saturating_sub(before);
        if self.kept > KEPT_LIMIT && conversation.kept() > 0 {
            self.kept = self.kept.saturating_sub(conversation.kept());
            conversation.flush(packet.moment, &mut self.figures, sink);
        }
        let reset = packet.flags.has(Flags::RST);
        if reset || conversation.is_finished() {
            let end = if reset { End::Reset } else { End::Finished };
            self.close(ends, packet.moment, end, sink);
        }
    }

    /// The recorder was off for a while: bytes that were sent meanwhile are no gap. Call it when
    /// everything is quiet, before the next segment.
    pub fn resume(&mut self) {
        for open in self.open.values_mut() {
            open.from_client.resume();
            open.from_server.resume();
        }
        self.kept = 0;
    }

    /// Closes what is still open: the capture is over.
    pub fn finish(&mut self, sink: &mut impl EventSink) {
        let mut left: Vec<_> =
            self.open.iter().map(|(ends, open)| (open.connection, *ends, open.moment)).collect();
        left.sort_unstable();
        for (_, ends, moment) in left {
            self.close(ends, moment, End::Open, sink);
        }
    }

    /// Sees to it that the packet's connection is open; false when the packet belongs to none.
    fn prepare(&mut self, ends: Ends, packet: &Packet<'_>, sink: &mut impl EventSink) -> bool {
        let syn = packet.flags.has(Flags::SYN);
        if let Some(open) = self.open.get(&ends) {
            if !(syn && open.is_another_start(packet)) {
                return true;
            }
            // The same ports again: the end of the earlier connection was not captured.
            let end = if open.is_closing() { End::Finished } else { End::Replaced };
            self.close(ends, packet.moment, end, sink);
        }
        if let Some(tail) = self.closed.get(&ends)
            && tail.covers(packet)
        {
            self.figures.copies += u64::from(syn || !packet.payload.is_empty());
            return false;
        }
        if packet.flags.has(Flags::RST)
            || !(syn || !packet.payload.is_empty() || packet.missing > 0)
        {
            return false;
        }
        self.open(ends, packet, sink);
        true
    }

    fn open(&mut self, ends: Ends, packet: &Packet<'_>, sink: &mut impl EventSink) {
        if self.open.len() >= OPEN_LIMIT {
            self.close_silent(sink);
        }
        let from_start = packet.flags.has(Flags::SYN);
        let source_listens = if from_start {
            packet.flags.has(Flags::ACK)
        } else {
            self.listens(packet.source.port, packet.destination.port)
        };
        let (client, server) = if source_listens {
            (packet.destination, packet.source)
        } else {
            (packet.source, packet.destination)
        };
        let connection = Connection(self.count);
        self.count += 1;
        if from_start {
            self.figures.connections += 1;
        } else {
            self.figures.joined += 1;
        }
        self.closed.remove(&ends);
        self.open.insert(
            ends,
            Conversation {
                connection,
                client,
                from_client: Direction::default(),
                from_server: Direction::default(),
                starts: (None, None),
                packets: 0,
                moment: packet.moment,
            },
        );
        let moment = packet.moment;
        sink.event(Event::Opened { connection, moment, client, server, from_start });
    }

    fn listens(&self, source: u16, destination: u16) -> bool {
        match (self.listening.contains(&source), self.listening.contains(&destination)) {
            (true, false) => true,
            (false, true) => false,
            _ => source < destination,
        }
    }

    fn close(&mut self, ends: Ends, moment: Moment, end: End, sink: &mut impl EventSink) {
        let Some(mut open) = self.open.remove(&ends) else { return };
        self.kept = self.kept.saturating_sub(open.kept());
        open.flush(moment, &mut self.figures, sink);
        sink.event(Event::Closed { connection: open.connection, moment, end });
        if self.closed_order.len() >= CLOSED_LIMIT
            && let Some(oldest) = self.closed_order.pop_front()
        {
            self.closed.remove(&oldest);
        }
        self.closed_order.push_back(ends);
        self.closed.insert(
            ends,
            Tail {
                client: open.client,
                from_client: open.from_client.next(),
                from_server: open.from_server.next(),
                starts: open.starts,
                ended: matches!(end, End::Finished | End::Reset),
            },
        );
    }

    fn close_silent(&mut self, sink: &mut impl EventSink) {
        let mut all: Vec<_> = self.open.iter().map(|(ends, open)| (open.moment, *ends)).collect();
        all.sort_unstable();
        all.truncate(OPEN_LIMIT / 10);
        for (moment, ends) in all {
            self.close(ends, moment, End::Open, sink);
        }
    }
}

impl Conversation {
    fn side(&self, source: Endpoint) -> Side {
        if source == self.client { Side::Client } else { Side::Server }
    }

    /// Payload that waits behind holes.
    fn kept(&self) -> usize {
        self.from_client.kept() + self.from_server.kept()
    }

    fn is_closing(&self) -> bool {
        self.from_client.has_end() || self.from_server.has_end()
    }

    fn is_finished(&self) -> bool {
        self.from_client.is_finished() && self.from_server.is_finished()
    }

    /// Whether a SYN starts another connection between the same ports.
    fn is_another_start(&self, packet: &Packet<'_>) -> bool {
        let (known, next) = match self.side(packet.source) {
            Side::Client => (self.starts.0, self.from_client.next()),
            Side::Server => (self.starts.1, self.from_server.next()),
        };
        match (known, next) {
            (Some(known), _) => known != packet.sequence,
            // No SYN yet from this side: it belongs here if it stands right before its bytes.
            (None, Some(next)) => next != packet.sequence.wrapping_add(1),
            (None, None) => false,
        }
    }

    fn segment(&mut self, packet: &Packet<'_>, figures: &mut Figures, sink: &mut impl EventSink) {
        let from = self.side(packet.source);
        let connection = self.connection;
        let (own, other) = match from {
            Side::Client => (&mut self.from_client, &mut self.from_server),
            Side::Server => (&mut self.from_server, &mut self.from_client),
        };
        let syn = packet.flags.has(Flags::SYN);
        let mut sequence = packet.sequence;
        if syn {
            sequence = sequence.wrapping_add(1);
            let start = match from {
                Side::Client => &mut self.starts.0,
                Side::Server => &mut self.starts.1,
            };
            *start = Some(packet.sequence);
            if own.next().is_none() {
                own.begin(sequence);
            }
            if packet.flags.has(Flags::ACK) && other.next().is_none() {
                other.begin(packet.acknowledgement);
            }
        }
        let length = packet.payload.len() as u32 + packet.missing;
        if length > 0 {
            let segment = Segment {
                sequence,
                bytes: packet.payload,
                missing: packet.missing,
                moment: packet.moment,
            };
            let arrival = own.take(&segment, &mut deliver(connection, from, figures, sink));
            match arrival {
                Arrival::InOrder => {}
                Arrival::Early => figures.out_of_order += 1,
                Arrival::Copy => figures.copies += 1,
            }
        }
        if packet.flags.has(Flags::FIN) {
            let end = sequence.wrapping_add(length);
            if own.next().is_none() {
                own.begin(end);
            }
            own.announce_end(end);
        }
        if packet.flags.has(Flags::ACK) && !packet.flags.has(Flags::RST) {
            let mut deliver = deliver(connection, from.other(), figures, sink);
            other.acknowledge(packet.acknowledgement, self.packets, packet.moment, &mut deliver);
        }
    }

    fn flush(&mut self, moment: Moment, figures: &mut Figures, sink: &mut impl EventSink) {
        let connection = self.connection;
        self.from_client.flush(moment, &mut deliver(connection, Side::Client, figures, sink));
        self.from_server.flush(moment, &mut deliver(connection, Side::Server, figures, sink));
    }
}

impl Tail {
    /// Whether a packet is a late copy of something in the closed connection.
    fn covers(&self, packet: &Packet<'_>) -> bool {
        let from_client = packet.source == self.client;
        let (end, start) = if from_client {
            (self.from_client, self.starts.0)
        } else {
            (self.from_server, self.starts.1)
        };
        if packet.flags.has(Flags::SYN) {
            return start == Some(packet.sequence);
        }
        if self.ended {
            return true;
        }
        let last = packet.sequence.wrapping_add(packet.payload.len() as u32);
        end.is_some_and(|end| {
            let beyond = distance(end, last);
            // A sender may say its end again, one number later.
            beyond <= 1 && beyond > -(1 << 30)
        })
    }
}

fn deliver<'s>(
    connection: Connection,
    from: Side,
    figures: &'s mut Figures,
    sink: &'s mut impl EventSink,
) -> impl FnMut(Moment, Out<'_>) + 's {
    move |moment, out| match out {
        Out::Bytes(bytes) => sink.event(Event::Chunk { connection, from, moment, bytes }),
        Out::Gap(length) => {
            figures.gaps += 1;
            figures.missing_bytes += length;
            sink.event(Event::Gap { connection, from, moment, length });
        }
    }
}

fn ends(packet: &Packet<'_>) -> Ends {
    if packet.source <= packet.destination {
        (packet.source, packet.destination)
    } else {
        (packet.destination, packet.source)
    }
}
