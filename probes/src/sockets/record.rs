//! The records of the BPF programs: a head of 64 bytes, then the bytes or the address.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use assay_captures::ids::Pid;
use assay_captures::units::Nanos;

use crate::bpf::socket_layout::call;
use crate::bpf::socket_programs::HEAD;

/// One record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// When it was written, since boot.
    pub moment: Nanos,
    /// When the call began; of sends alone.
    pub entered: Option<Nanos>,
    /// The inode of the socket.
    pub inode: u64,
    /// Whose call it was.
    pub pid: Pid,
    /// What it tells.
    pub body: Body<'a>,
}

/// What a record tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body<'a> {
    /// A socket that was not known.
    New {
        /// Whether it is being connected now, so that its first bytes are the first ones.
        connects: bool,
        /// Whether the other end opened the connection.
        accepted: bool,
        /// The other end, where it has a name.
        address: Address<'a>,
    },
    /// Bytes that have passed.
    Piece {
        /// Whether the process has sent them.
        sent: bool,
        /// How many had passed this way before.
        offset: u64,
        /// How many they are.
        length: u32,
        /// The bytes: as many, or none where they could not be copied.
        bytes: &'a [u8],
    },
    /// The other end sends no more.
    End,
    /// The last descriptor of the socket is closed.
    Closed,
}

/// The two ends of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Address<'a> {
    /// The path of the other end; an abstract one begins with `\0`; empty for one without name.
    Unix(&'a [u8]),
    /// Both ends with their ports.
    Inet {
        /// The process's own end.
        own: (IpAddr, u16),
        /// The other end.
        peer: (IpAddr, u16),
    },
    /// Another family.
    Other,
}

const AF_UNIX: u32 = 1;
const AF_INET: u32 = 2;
const AF_INET6: u32 = 10;
/// Bytes of `struct sockaddr_un` before the path.
const BEFORE_PATH: usize = 2;

impl<'a> Record<'a> {
    /// Reads a record; `None` where it is too short to be one.
    #[must_use]
    pub fn read(bytes: &'a [u8]) -> Option<Self> {
        let long = |at: usize| Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
        let word = |at: usize| Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        let rest = bytes.get(HEAD as usize..)?;
        let (entered, length, bits) = (long(8)?, word(32)?, word(36)?.cast_signed());
        let has = |bit: i32| bits & bit != 0;
        let body = if has(call::NEW) {
            Body::New {
                connects: has(call::CONNECT),
                accepted: has(call::ACCEPT),
                address: Address::read(word(48)?, word(52)? as usize, rest),
            }
        } else if has(call::CLOSE) {
            Body::Closed
        } else if has(call::END) {
            Body::End
        } else {
            let bytes = rest.get(..length as usize).unwrap_or_default();
            Body::Piece { sent: has(call::SEND), offset: long(24)?, length, bytes }
        };
        Some(Self {
            moment: Nanos(long(0)?),
            entered: (entered != 0).then_some(Nanos(entered)),
            inode: long(16)?,
            // The upper half is the process, the lower the thread.
            pid: Pid((long(40)? >> 32) as u32),
            body,
        })
    }
}

impl<'a> Address<'a> {
    fn read(family: u32, length: usize, bytes: &'a [u8]) -> Self {
        Self::known(family, length, bytes).unwrap_or(Self::Other)
    }

    fn known(family: u32, length: usize, bytes: &'a [u8]) -> Option<Self> {
        let port = |at: usize| Some([*bytes.get(at)?, *bytes.get(at + 1)?]);
        let ip = |at: usize| match family {
            AF_INET => Some(IpAddr::V4(Ipv4Addr::from(*bytes.get(at..)?.first_chunk::<4>()?))),
            _ => Some(IpAddr::V6(Ipv6Addr::from(*bytes.get(at..)?.first_chunk::<16>()?))),
        };
        match family {
            AF_UNIX => {
                let path = bytes.get(BEFORE_PATH..length).unwrap_or_default();
                // A path ends with a zero, which may be counted; an abstract name begins with one.
                let path = match path.first() {
                    Some(0) | None => path,
                    Some(_) => path.split(|&byte| byte == 0).next().unwrap_or_default(),
                };
                Some(Self::Unix(path))
            }
            AF_INET | AF_INET6 => Some(Self::Inet {
                // The own port is in the machine's order, the other as it goes over the wire.
                own: (ip(0)?.to_canonical(), u16::from_ne_bytes(port(32)?)),
                peer: (ip(16)?.to_canonical(), u16::from_be_bytes(port(34)?)),
            }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(bits: i32, length: u32, rest: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for word in [7u64, 5, 4711, 100] {
            bytes.extend(word.to_ne_bytes());
        }
        bytes.extend(length.to_ne_bytes());
        bytes.extend(bits.to_ne_bytes());
        bytes.extend((42u64 << 32 | 43).to_ne_bytes());
        bytes.extend(AF_UNIX.to_ne_bytes());
        bytes.extend(length.to_ne_bytes());
        bytes.resize(64, 0);
        bytes.extend(rest);
        bytes
    }

    #[test]
    fn a_piece_has_its_place_and_its_bytes_or_none() {
        let bytes = record(call::SEND | call::BUFFER, 3, b"abc");
        let read = Record::read(&bytes).unwrap();
        assert_eq!((read.moment, read.entered, read.pid), (Nanos(7), Some(Nanos(5)), Pid(42)));
        let piece = Body::Piece { sent: true, offset: 100, length: 3, bytes: b"abc" };
        assert_eq!(read.body, piece);
        let bytes = record(call::RECEIVE | call::BUFFER, 3, b"");
        let piece = Body::Piece { sent: false, offset: 100, length: 3, bytes: b"" };
        assert_eq!(Record::read(&bytes).unwrap().body, piece);
        for cut in 0..64 {
            assert_eq!(Record::read(&bytes[..cut]), None);
        }
    }

    #[test]
    fn paths_end_at_their_zero_and_abstract_names_begin_with_one() {
        for (rest, path) in [
            (&b"\x01\x00/run/x\0"[..], &b"/run/x"[..]),
            (b"\x01\x00\0name", b"\0name"),
            (b"\x01\x00", b""),
        ] {
            let bytes = record(call::NEW | call::CONNECT, rest.len() as u32, rest);
            let address = Address::Unix(path);
            let expected = Body::New { connects: true, accepted: false, address };
            assert_eq!(Record::read(&bytes).unwrap().body, expected);
        }
    }
}
