//! What is spoken behind ports of which nothing is known.
//!
//! A service that already runs has connections to somewhere; what they are for is told by the
//! first bytes that pass, not by a port's number.

use std::collections::{BTreeMap, HashMap};

use assay_captures::parsed::{Problem, Sink};
use assay_captures::pcap::{Endpoint, Record};
use assay_captures::tcp::{Connection, Event, EventSink, Streams};

use super::integrity::Protocol;
use super::protocols::{is_encrypted, recognise};

/// Servers that are remembered.
const SERVERS_LIMIT: usize = 10_000;

/// What a server speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spoken {
    /// A protocol, in the clear.
    Clear(Protocol),
    /// TLS: what is inside cannot be told.
    Encrypted,
}

/// Recognises servers by what passes.
#[derive(Debug)]
pub struct Recognition {
    streams: Streams,
    heard: Heard,
}

#[derive(Debug, Default)]
struct Heard {
    connections: HashMap<Connection, (Endpoint, bool)>,
    servers: BTreeMap<Endpoint, Spoken>,
}

impl Recognition {
    /// Listens to these ports.
    #[must_use]
    pub fn new(ports: &[u16]) -> Self {
        Self { streams: Streams::new(ports), heard: Heard::default() }
    }

    /// What each server spoke that could be recognised.
    #[must_use]
    pub fn finish(mut self) -> BTreeMap<Endpoint, Spoken> {
        self.streams.finish(&mut self.heard);
        self.heard.servers
    }
}

impl Sink<Record<'_>> for Recognition {
    fn record(&mut self, record: Record<'_>) {
        if let Record::Packet(packet) = record {
            self.streams.feed(&packet, &mut self.heard);
        }
    }

    fn problem(&mut self, _problem: Problem) {}
}

impl EventSink for Heard {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Opened { connection, server, from_start, .. } => {
                self.connections.insert(connection, (server, from_start));
            }
            Event::Chunk { connection, from, bytes, .. } => {
                let Some(&(server, from_start)) = self.connections.get(&connection) else { return };
                // No port is believed: that is what is being found out.
                let spoken = match recognise(from, bytes, 0, from_start) {
                    Some(protocol) => Some(Spoken::Clear(protocol)),
                    None => is_encrypted(bytes).then_some(Spoken::Encrypted),
                };
                // What was offered in the clear before TLS began is known better.
                if let Some(spoken) = spoken
                    && self.servers.len() < SERVERS_LIMIT
                {
                    self.servers.entry(server).or_insert(spoken);
                }
            }
            Event::Gap { .. } => {}
            Event::Closed { connection, .. } => drop(self.connections.remove(&connection)),
        }
    }
}
