//! Packet captures: `pcap` in all its variants and `pcapng`, down to TCP segments.
//!
//! Formats: <https://www.ietf.org/archive/id/draft-ietf-opsawg-pcap-05.html>,
//! <https://www.ietf.org/archive/id/draft-ietf-opsawg-pcapng-03.html>, link types:
//! <https://www.tcpdump.org/linktypes.html>.
//!
//! The first bytes of a capture of a Postgres connection on `lo`:
//!
//! ```text
//! d4 c3 b2 a1 02 00 04 00 00 00 00 00 00 00 00 00   magic (µs, little-endian), version 2.4
//! 00 00 04 00 01 00 00 00                           snaplen 262144, link type 1 (Ethernet)
//! 52 5c 0d 6b 5b 03 0a 00 4a 00 00 00 4a 00 00 00   seconds, µs, captured, original length
//! 00 00 00 00 00 00 00 00 00 00 00 00 08 00         Ethernet header: on `lo` all zeros, then IPv4
//! 45 00 00 3c …                                     IPv4, then TCP
//! ```
//!
//! [`Decoder`] takes chunks of any size and keeps at most one record; what it delivers borrows
//! from the chunk. TCP checksums are not verified: on loopback and with offloading they are
//! never right.

mod blocks;
mod link;
mod model;
mod parse;
#[cfg(test)]
mod tests;

pub use model::{Endpoint, Flags, Interface, Packet, Record};
pub use parse::Decoder;

/// File name in the capture's folder: gzipped when it is closed, since masked payload repeats
/// itself.
pub const FILE: &str = "capture.pcapng.gz";
/// The same while it is recorded, and where there was no room to pack it.
pub const PLAIN_FILE: &str = "capture.pcapng";
