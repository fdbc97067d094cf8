//! The connections of a capture: each packet's payload goes to the right state machine.

use std::collections::{BTreeMap, HashMap};

use crate::pcap::{Endpoint, Flags, Packet};

use super::http::Http;
use super::postgres::Postgres;
use super::redis::Redis;
use super::{Conversation, From, MASK};

/// More connections at a time are not followed; each takes less than 1 KB.
const FLOWS_MAX: usize = 65_536;

/// What is spoken on a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// PostgreSQL's protocol 3.
    Postgres,
    /// RESP2 or RESP3.
    Redis,
    /// HTTP/1.
    Http,
    /// Nothing that is understood here: all of it is masked.
    Unknown,
}

/// Masks the packets of a capture, in the capture's order.
///
/// A packet that comes late, after its successor, is masked whole: its bytes can no longer be
/// told apart. On `lo` there are none.
pub struct Flows {
    ports: BTreeMap<u16, Protocol>,
    flows: HashMap<(Endpoint, Endpoint), Flow>,
}

struct Flow {
    conversation: Option<Box<dyn Conversation + Send>>,
    /// The next sequence number of each direction, where it is known.
    client_next: Option<u32>,
    server_next: Option<u32>,
    ends: u8,
}

impl Flows {
    /// What is spoken on each port that servers listen on.
    #[must_use]
    pub fn new(ports: BTreeMap<u16, Protocol>) -> Self {
        Self { ports, flows: HashMap::new() }
    }

    /// Masks `payload`, a copy of the packet's, in place.
    pub fn mask(&mut self, packet: &Packet<'_>, payload: &mut [u8]) {
        let server = self.ports.get(&packet.source.port).copied();
        let client = self.ports.get(&packet.destination.port).copied();
        let (from, protocol) = match (client, server) {
            (Some(protocol), None) => (From::Client, protocol),
            (None, Some(protocol)) => (From::Server, protocol),
            // Nobody's port, or a service that calls another from a port of the list.
            _ => {
                payload.fill(MASK);
                return;
            }
        };
        let key = match from {
            From::Client => (packet.source, packet.destination),
            From::Server => (packet.destination, packet.source),
        };
        let opens =
            from == From::Client && packet.flags.has(Flags::SYN) && !packet.flags.has(Flags::ACK);
        if opens {
            self.flows.remove(&key);
        }
        if self.flows.len() >= FLOWS_MAX && !self.flows.contains_key(&key) {
            // Whoever goes on speaking is joined again as one that was open before.
            self.flows.clear();
        }
        let flow = self.flows.entry(key).or_insert_with(|| Flow::new(protocol, opens));
        flow.segment(from, packet, payload);
        if packet.flags.has(Flags::RST) || flow.ends >= 2 {
            self.flows.remove(&key);
        }
    }
}

impl Flow {
    fn new(protocol: Protocol, from_start: bool) -> Self {
        let conversation: Option<Box<dyn Conversation + Send>> = match protocol {
            Protocol::Postgres => Some(Box::new(Postgres::new(from_start))),
            Protocol::Redis => Some(Box::new(Redis::new(from_start))),
            Protocol::Http => Some(Box::new(Http::new(from_start))),
            Protocol::Unknown => None,
        };
        Self { conversation, client_next: None, server_next: None, ends: 0 }
    }

    fn segment(&mut self, from: From, packet: &Packet<'_>, payload: &mut [u8]) {
        let next = match from {
            From::Client => &mut self.client_next,
            From::Server => &mut self.server_next,
        };
        self.ends += u8::from(packet.flags.has(Flags::FIN));
        if packet.flags.has(Flags::SYN) {
            // SYN takes a number itself.
            *next = Some(packet.sequence.wrapping_add(1));
            payload.fill(MASK);
            return;
        }
        if payload.is_empty() {
            return;
        }
        let Some(conversation) = &mut self.conversation else {
            payload.fill(MASK);
            return;
        };
        // Sequence numbers wrap; what is less than half their range away lies on that side.
        let ahead = next.map_or(0, |next| packet.sequence.wrapping_sub(next).cast_signed());
        // Seen already, all of it or its beginning.
        let seen = if ahead < 0 { ahead.unsigned_abs() as usize } else { 0 };
        let (old, new) = payload.split_at_mut(seen.min(payload.len()));
        old.fill(MASK);
        if new.is_empty() {
            return;
        }
        if ahead > 0 {
            conversation.gap(from);
        }
        // A segment is at most a packet long.
        let length = payload_end(seen, new.len(), packet.missing);
        conversation.mask(from, new);
        if packet.missing > 0 {
            conversation.gap(from);
        }
        *next = Some(packet.sequence.wrapping_add(length));
    }
}

/// How far a segment reaches behind its sequence number.
fn payload_end(seen: usize, new: usize, missing: u32) -> u32 {
    u32::try_from(seen + new).unwrap_or(u32::MAX).wrapping_add(missing)
}
