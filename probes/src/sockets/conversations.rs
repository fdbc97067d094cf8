//! From what sockets say to frames of connections with Postgres and Redis.
//!
//! Only what such a server is told and answers is kept. What a socket speaks is known by its path
//! or by its first bytes; until then they are held, and a socket that speaks otherwise is dropped.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};

use assay_captures::ids::Role;
use assay_captures::pcap::{Endpoint, Flags};
use assay_captures::units::Moment;
use assay_captures::{postgres, redis};

use super::frames::{PAYLOAD_MAX, Segment, frame};
use super::record::{Address, Body, Record};
use super::servers::{Name, Servers, path_name};

/// Bytes held of a socket that is not recognised.
const HELD_MAX: usize = 256 * 1024;
/// Bytes that a client has sent first, after which it would have been recognised.
const FIRST_MAX: usize = 16;
/// Pieces after which a socket that was open before stays unrecognised.
const CHANCES: u8 = 16;
/// Frames that stand for one hole; a longer one shows by its sequence numbers alone.
const HOLE_FRAMES: u32 = 16;
/// The first client port: above those of servers, by which a reader tells the two apart.
const FIRST_PORT: u16 = 32_768;
/// Client ports of one made-up address.
const PORTS: u64 = 28_000;

/// What is to become of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It goes on.
    Kept,
    /// Nobody wants to hear of it.
    Ignored,
    /// It is not there any more.
    Gone,
}

/// Takes frames: when, the frame, and its length with what was not copied.
pub trait FrameSink {
    /// Takes one.
    fn frame(&mut self, moment: Moment, frame: Vec<u8>, original: u32);
}

/// All sockets.
#[derive(Debug, Default)]
pub struct Conversations {
    /// The servers that were given and found.
    pub servers: Servers,
    sockets: BTreeMap<u64, Socket>,
    made: u64,
}

#[derive(Debug)]
enum Socket {
    Unknown(Box<Unknown>),
    Talking(Talk),
    Ignored,
}

/// A socket of which it is not known what it speaks.
#[derive(Debug)]
struct Unknown {
    /// When it was connected, where that was seen.
    connected: Option<Moment>,
    server: Name,
    client: Option<Endpoint>,
    held: Vec<Piece>,
    chances: u8,
}

#[derive(Debug)]
struct Piece {
    moment: Moment,
    sent: bool,
    offset: u64,
    length: u32,
    bytes: Vec<u8>,
}

/// A connection with a server.
#[derive(Clone, Copy, Debug)]
struct Talk {
    client: Endpoint,
    server: Endpoint,
    /// Bytes sent and received.
    next: [u64; 2],
    /// Whether the server, and the client, have said that they are done.
    ended: [bool; 2],
}

impl Conversations {
    /// No sockets yet.
    #[must_use]
    pub fn new(servers: Servers) -> Self {
        Self { servers, ..Self::default() }
    }

    /// How many sockets are known.
    #[must_use]
    pub fn len(&self) -> usize {
        self.sockets.len()
    }

    /// Whether none is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sockets.is_empty()
    }

    /// Takes a record of a moment, and says what is to become of its socket.
    pub fn take(&mut self, record: &Record<'_>, moment: Moment, out: &mut impl FrameSink) -> Fate {
        let inode = record.inode;
        match &record.body {
            Body::New { connects, accepted, address } => {
                return self.meet(inode, *connects, *accepted, address, moment);
            }
            Body::Piece { sent, offset, length, bytes } => {
                let (sent, offset, length) = (*sent, *offset, *length);
                match self.sockets.get_mut(&inode) {
                    Some(Socket::Talking(talk)) => {
                        talk.piece(moment, sent, offset, length, bytes, out);
                    }
                    Some(Socket::Unknown(_)) => {
                        let bytes = bytes.to_vec();
                        let piece = Piece { moment, sent, offset, length, bytes };
                        return self.hold(inode, piece, out);
                    }
                    Some(Socket::Ignored) | None => {}
                }
            }
            Body::End => {
                if let Some(Socket::Talking(talk)) = self.sockets.get_mut(&inode) {
                    talk.end(moment, false, out);
                }
            }
            Body::Closed => {
                self.close(inode, moment, out);
                return Fate::Gone;
            }
        }
        Fate::Kept
    }

    /// Closes the sockets that are not among the living; which.
    pub fn sweep(
        &mut self,
        living: &BTreeSet<u64>,
        moment: Moment,
        out: &mut impl FrameSink,
    ) -> Vec<u64> {
        let gone: Vec<u64> =
            self.sockets.keys().filter(|inode| !living.contains(inode)).copied().collect();
        for inode in &gone {
            self.close(*inode, moment, out);
        }
        gone
    }

    fn close(&mut self, inode: u64, moment: Moment, out: &mut impl FrameSink) {
        if let Some(Socket::Talking(mut talk)) = self.sockets.remove(&inode) {
            talk.end(moment, true, out);
            talk.end(moment, false, out);
        }
    }

    fn meet(
        &mut self,
        inode: u64,
        connects: bool,
        accepted: bool,
        address: &Address<'_>,
        moment: Moment,
    ) -> Fate {
        if self.sockets.contains_key(&inode) {
            return Fate::Kept;
        }
        let (server, client) = match address {
            // Nobody listens at a socket without a name: the other end is the client, or both are
            // of one family.
            _ if accepted => return self.ignore(inode),
            Address::Unix([]) | Address::Other => return self.ignore(inode),
            Address::Unix(path) => (Name::Path(path_name(path)), None),
            Address::Inet { own, peer } => {
                (Name::Inet(peer.0, peer.1), Some(Endpoint { address: own.0, port: own.1 }))
            }
        };
        let connected = connects.then_some(moment);
        let unknown = Unknown { connected, server, client, held: Vec::new(), chances: CHANCES };
        self.sockets.insert(inode, Socket::Unknown(Box::new(unknown)));
        Fate::Kept
    }

    fn ignore(&mut self, inode: u64) -> Fate {
        self.sockets.insert(inode, Socket::Ignored);
        Fate::Ignored
    }

    fn hold(&mut self, inode: u64, piece: Piece, out: &mut impl FrameSink) -> Fate {
        let Some(Socket::Unknown(unknown)) = self.sockets.get_mut(&inode) else {
            return Fate::Kept;
        };
        unknown.held.push(piece);
        let spoken = match self.servers.role(&unknown.server) {
            Some(role) => Spoken::Known(role),
            None => unknown.spoken(),
        };
        match spoken {
            Spoken::Known(role) => {
                let Some(Socket::Unknown(unknown)) = self.sockets.remove(&inode) else {
                    return Fate::Kept;
                };
                let talk = self.talk(*unknown, role, out);
                self.sockets.insert(inode, Socket::Talking(talk));
                Fate::Kept
            }
            Spoken::Unclear => Fate::Kept,
            Spoken::Other => self.ignore(inode),
        }
    }

    /// Begins a connection with what was held of it.
    fn talk(&mut self, unknown: Unknown, role: Role, out: &mut impl FrameSink) -> Talk {
        let client = unknown.client.unwrap_or_else(|| {
            let block = (self.made / PORTS) as u8;
            let address = IpAddr::V4(Ipv4Addr::new(127, 85, 1 + block % 250, 1));
            let port = FIRST_PORT + (self.made % PORTS) as u16;
            self.made += 1;
            Endpoint { address, port }
        });
        let server = self.servers.endpoint(&unknown.server, role);
        let mut talk = Talk { client, server, next: [0, 0], ended: [false, false] };
        if let Some(moment) = unknown.connected {
            talk.handshake(moment, out);
        }
        for piece in unknown.held {
            talk.piece(piece.moment, piece.sent, piece.offset, piece.length, &piece.bytes, out);
        }
        talk
    }
}

enum Spoken {
    Known(Role),
    Unclear,
    Other,
}

impl Unknown {
    /// What it speaks by what was held, the last piece of which is new.
    fn spoken(&mut self) -> Spoken {
        let Some(last) = self.held.last() else { return Spoken::Unclear };
        let said: Vec<u8>;
        let first = if self.connected.is_some() {
            if !last.sent && !self.held.iter().any(|piece| piece.sent) {
                // Neither Postgres nor Redis speaks first.
                return Spoken::Other;
            }
            let sent = self.held.iter().filter(|piece| piece.sent);
            said = sent.flat_map(|piece| piece.bytes.iter().copied()).take(1024).collect();
            &said[..]
        } else {
            self.chances = self.chances.saturating_sub(1);
            &last.bytes[..]
        };
        let speaks = (postgres::is_frontend(first), redis::is_client(first));
        match speaks {
            // Open before, and asked instead of asking: the process is the server here.
            (true, _) | (_, true) if !last.sent && self.connected.is_none() => Spoken::Other,
            (true, false) => Spoken::Known(Role::Postgres),
            (false, true) => Spoken::Known(Role::Redis),
            _ => self.unclear(first),
        }
    }

    /// Some starts say nothing (an inline Redis command, TLS): there the usual port decides.
    fn unclear(&self, first: &[u8]) -> Spoken {
        if self.connected.is_none() {
            let bytes: usize = self.held.iter().map(|piece| piece.bytes.len()).sum();
            let hopeless = self.chances == 0 || bytes > HELD_MAX;
            return if hopeless { Spoken::Other } else { Spoken::Unclear };
        }
        match self.server {
            Name::Inet(_, 5432) => Spoken::Known(Role::Postgres),
            Name::Inet(_, 6379) => Spoken::Known(Role::Redis),
            _ if first.len() >= FIRST_MAX => Spoken::Other,
            _ => Spoken::Unclear,
        }
    }
}

impl Talk {
    fn handshake(&self, moment: Moment, out: &mut impl FrameSink) {
        let syn = Segment {
            from: self.client,
            to: self.server,
            sequence: 0,
            acknowledgement: 0,
            flags: Flags::SYN,
        };
        let answer = Segment {
            from: self.server,
            to: self.client,
            acknowledgement: 1,
            flags: Flags(Flags::SYN.0 | Flags::ACK.0),
            ..syn
        };
        for segment in [syn, answer] {
            let (bytes, original) = frame(&segment, &[], 0);
            out.frame(moment, bytes, original);
        }
    }

    fn piece(
        &mut self,
        moment: Moment,
        sent: bool,
        offset: u64,
        length: u32,
        bytes: &[u8],
        out: &mut impl FrameSink,
    ) {
        let way = usize::from(!sent);
        // What lies between was counted in the kernel, but its records were lost.
        let lost = offset.saturating_sub(self.next[way]);
        self.hole(moment, sent, lost, out);
        self.segment(moment, sent, bytes, 0, out);
        self.hole(moment, sent, u64::from(length).saturating_sub(bytes.len() as u64), out);
    }

    fn hole(&mut self, moment: Moment, sent: bool, length: u64, out: &mut impl FrameSink) {
        let mut left = length;
        for _ in 0..HOLE_FRAMES {
            let missing = left.min(u64::from(PAYLOAD_MAX)) as u32;
            if missing == 0 {
                return;
            }
            self.segment(moment, sent, &[], missing, out);
            left -= u64::from(missing);
        }
        self.next[usize::from(!sent)] += left;
    }

    fn segment(
        &mut self,
        moment: Moment,
        sent: bool,
        bytes: &[u8],
        missing: u32,
        out: &mut impl FrameSink,
    ) {
        if bytes.is_empty() && missing == 0 {
            return;
        }
        // PSH, as a sender sets it at the end of what it has to say.
        let segment = self.header(sent, Flags(0x08 | Flags::ACK.0));
        let (bytes_of_frame, original) = frame(&segment, bytes, missing);
        self.next[usize::from(!sent)] += bytes.len() as u64 + u64::from(missing);
        out.frame(moment, bytes_of_frame, original);
    }

    /// Says once that one side is done.
    fn end(&mut self, moment: Moment, client: bool, out: &mut impl FrameSink) {
        let ended = &mut self.ended[usize::from(client)];
        if !std::mem::replace(ended, true) {
            let (bytes, original) =
                frame(&self.header(client, Flags(Flags::FIN.0 | Flags::ACK.0)), &[], 0);
            out.frame(moment, bytes, original);
        }
    }

    fn header(&self, sent: bool, flags: Flags) -> Segment {
        // The SYN of each side has taken number 0.
        let numbers = self.next.map(|bytes| (bytes as u32).wrapping_add(1));
        let [own, other] = if sent { numbers } else { [numbers[1], numbers[0]] };
        let (from, to) = if sent { (self.client, self.server) } else { (self.server, self.client) };
        Segment { from, to, sequence: own, acknowledgement: other, flags }
    }
}

#[cfg(test)]
#[path = "conversations_tests.rs"]
mod tests;
