//! From a frame to its TCP segment: link layers, IPv4, IPv6, TCP.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::model::{Endpoint, Flags, Packet};
use crate::units::Moment;

/// A frame as it stands in the file.
#[derive(Clone, Copy)]
pub(super) struct Frame<'a> {
    pub(super) moment: Moment,
    pub(super) link_type: u16,
    pub(super) bytes: &'a [u8],
    /// Where it starts in the file.
    pub(super) offset: u64,
    pub(super) original_length: u32,
}

/// What a frame holds.
pub(super) enum Inside<'a> {
    Tcp(Packet<'a>),
    /// Another protocol.
    Other,
    /// One of several pieces of a datagram; the first may start with a TCP header.
    Fragment,
    /// Cut within its headers.
    Short,
    /// A link type that this reader does not know.
    UnknownLink,
}

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;

/// Finds the TCP segment of a frame.
pub(super) fn segment<'a>(frame: &Frame<'a>) -> Inside<'a> {
    let bytes = frame.bytes;
    match frame.link_type {
        1 => ether_type(frame, 12),
        // NULL has the address family in the recorder's byte order, LOOP in network order.
        0 | 108 => match bytes.first_chunk::<4>() {
            Some(&[a, 0, 0, 0] | &[0, 0, 0, a]) => family(frame, a),
            Some(_) => Inside::Other,
            None => Inside::Short,
        },
        12 | 14 | 101 | 228 | 229 => ip(frame, 0),
        113 => ether_type(frame, 14),
        276 => match be16(bytes, 0) {
            Some(protocol) => network(frame, protocol, 20),
            None => Inside::Short,
        },
        _ => Inside::UnknownLink,
    }
}

fn family<'a>(frame: &Frame<'a>, family: u8) -> Inside<'a> {
    match family {
        // AF_INET; AF_INET6 of Linux, NetBSD, FreeBSD and macOS.
        2 | 10 | 24 | 28 | 30 => ip(frame, 4),
        _ => Inside::Other,
    }
}

fn ether_type<'a>(frame: &Frame<'a>, offset: usize) -> Inside<'a> {
    match be16(frame.bytes, offset) {
        Some(kind) => network(frame, kind, offset + 2),
        None => Inside::Short,
    }
}

/// Passes VLAN tags (802.1Q, 802.1ad and its older numbers), MPLS labels, PPPoE and SNAP.
fn network<'a>(frame: &Frame<'a>, kind: u16, offset: usize) -> Inside<'a> {
    let (mut kind, mut offset) = (kind, offset);
    loop {
        match kind {
            IPV4 | IPV6 => return ip(frame, offset),
            0x8100 | 0x88a8 | 0x9100 | 0x9200 => {
                let Some(next) = be16(frame.bytes, offset + 2) else { return Inside::Short };
                (kind, offset) = (next, offset + 4);
            }
            0x8847 | 0x8848 => {
                let Some(&[_, _, label, _]) =
                    frame.bytes.get(offset..).and_then(<[u8]>::first_chunk)
                else {
                    return Inside::Short;
                };
                offset += 4;
                if label & 1 == 1 {
                    return ip(frame, offset);
                }
            }
            0x8864 => match be16(frame.bytes, offset + 6) {
                Some(0x0021 | 0x0057) => return ip(frame, offset + 8),
                Some(_) => return Inside::Other,
                None => return Inside::Short,
            },
            0..=1500 => match frame.bytes.get(offset..).and_then(<[u8]>::first_chunk::<6>) {
                Some([0xaa, 0xaa, 3, 0, 0, 0]) => {
                    let Some(next) = be16(frame.bytes, offset + 6) else { return Inside::Short };
                    if next <= 1500 {
                        return Inside::Other;
                    }
                    (kind, offset) = (next, offset + 8);
                }
                _ => return Inside::Other,
            },
            _ => return Inside::Other,
        }
    }
}

/// A piece of a frame, and how long it was on the wire.
#[derive(Clone, Copy)]
struct Piece {
    /// First byte within the frame.
    start: usize,
    /// First byte after it on the wire; the frame may be cut before.
    end: usize,
}

fn ip<'a>(frame: &Frame<'a>, start: usize) -> Inside<'a> {
    match frame.bytes.get(start).map(|byte| byte >> 4) {
        Some(4) => ipv4(frame, start),
        Some(6) => ipv6(frame, start),
        Some(_) => Inside::Other,
        None => Inside::Short,
    }
}

fn ipv4<'a>(frame: &Frame<'a>, start: usize) -> Inside<'a> {
    let Some(header) = frame.bytes.get(start..).and_then(<[u8]>::first_chunk::<20>) else {
        return Inside::Short;
    };
    let header_length = usize::from(header[0] & 0x0f) * 4;
    if header_length < 20 {
        return Inside::Other;
    }
    if header[9] != 6 {
        return Inside::Other;
    }
    // More fragments, or not the first.
    if u16::from_be_bytes([header[6], header[7]]) & 0x3fff != 0 {
        return Inside::Fragment;
    }
    let total = usize::from(u16::from_be_bytes([header[2], header[3]]));
    // A network card that cuts segments itself is handed one datagram of length 0 ("TSO"), and
    // so is anything above 64 KiB: then the frame says how long it is.
    let end = if total < header_length { frame.original_length as usize } else { start + total };
    let address = |at: usize| -> IpAddr {
        Ipv4Addr::new(header[at], header[at + 1], header[at + 2], header[at + 3]).into()
    };
    tcp(frame, address(12), address(16), Piece { start: start + header_length, end })
}

fn ipv6<'a>(frame: &Frame<'a>, start: usize) -> Inside<'a> {
    let Some(header) = frame.bytes.get(start..).and_then(<[u8]>::first_chunk::<40>) else {
        return Inside::Short;
    };
    let address = |at: usize| -> IpAddr {
        let mut octets = [0; 16];
        octets.copy_from_slice(&header[at..at + 16]);
        Ipv6Addr::from(octets).into()
    };
    let length = usize::from(u16::from_be_bytes([header[4], header[5]]));
    let end = if length == 0 { frame.original_length as usize } else { start + 40 + length };
    let mut next = header[6];
    let mut at = start + 40;
    loop {
        let Some(&[following, size]) = frame.bytes.get(at..).and_then(<[u8]>::first_chunk) else {
            return Inside::Short;
        };
        match next {
            6 => return tcp(frame, address(8), address(24), Piece { start: at, end }),
            // Hop-by-hop, routing, destination options, mobility: length in 8 bytes, less one.
            0 | 43 | 60 | 135 => at += (usize::from(size) + 1) * 8,
            // Authentication: length in 4 bytes, less two.
            51 => at += (usize::from(size) + 2) * 4,
            44 => {
                let Some(bits) = be16(frame.bytes, at + 2) else { return Inside::Short };
                // An "atomic" fragment is whole: offset 0 and no more to come.
                if bits & 0xfff9 != 0 {
                    return Inside::Fragment;
                }
                at += 8;
            }
            _ => return Inside::Other,
        }
        next = following;
    }
}

fn tcp<'a>(frame: &Frame<'a>, from: IpAddr, to: IpAddr, piece: Piece) -> Inside<'a> {
    let Some(header) = frame.bytes.get(piece.start..).and_then(<[u8]>::first_chunk::<20>) else {
        return Inside::Short;
    };
    let header_length = usize::from(header[12] >> 4) * 4;
    let start = piece.start + header_length;
    if header_length < 20 || start > piece.end {
        return Inside::Short;
    }
    // Ethernet pads short frames: what lies behind the datagram is not payload.
    let captured_end = piece.end.min(frame.bytes.len());
    let payload = frame.bytes.get(start..captured_end).unwrap_or(&[]);
    let word = |at: usize| {
        u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
    };
    Inside::Tcp(Packet {
        moment: frame.moment,
        source: Endpoint { address: from, port: u16::from_be_bytes([header[0], header[1]]) },
        destination: Endpoint { address: to, port: u16::from_be_bytes([header[2], header[3]]) },
        sequence: word(4),
        acknowledgement: word(8),
        flags: Flags(header[13]),
        payload,
        payload_offset: frame.offset + start as u64,
        missing: u32::try_from(piece.end - start - payload.len()).unwrap_or(u32::MAX),
        captured_length: frame.bytes.len() as u32,
        original_length: frame.original_length,
    })
}

fn be16(bytes: &[u8], offset: usize) -> Option<u16> {
    bytes.get(offset..).and_then(<[u8]>::first_chunk).map(|two| u16::from_be_bytes(*two))
}
