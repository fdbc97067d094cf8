//! Ethernet, IP and TCP headers for bytes that never had any.

use std::net::IpAddr;

use assay_captures::pcap::{Endpoint, Flags};

/// Most bytes of payload in one frame: IP counts its length in 16 bits.
pub const PAYLOAD_MAX: u32 = 60_000;

const ETHERNET: usize = 14;
const IPV4: usize = 20;
const IPV6: usize = 40;
const TCP: usize = 20;
const WINDOW: u16 = 0xffff;

/// What a segment says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Who sends it.
    pub from: Endpoint,
    /// To whom.
    pub to: Endpoint,
    /// Number of its first byte.
    pub sequence: u32,
    /// The next byte that the sender waits for.
    pub acknowledgement: u32,
    /// Its flags.
    pub flags: Flags,
}

/// The frame of a segment with this payload, behind which `missing` bytes were not copied; and its
/// length with them.
#[must_use]
pub fn frame(segment: &Segment, payload: &[u8], missing: u32) -> (Vec<u8>, u32) {
    let carried = payload.len() + missing as usize;
    let v6 = segment.from.address.is_ipv6() || segment.to.address.is_ipv6();
    let header = ETHERNET + if v6 { IPV6 } else { IPV4 } + TCP;
    let mut bytes = Vec::with_capacity(header + payload.len());
    bytes.resize(12, 0);
    if v6 {
        bytes.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
        bytes.extend(((TCP + carried) as u16).to_be_bytes());
        bytes.extend([6, 64]);
        for address in [segment.from.address, segment.to.address] {
            bytes.extend(mapped(address));
        }
    } else {
        bytes.extend([8, 0]);
        ipv4(&mut bytes, segment, TCP + carried);
    }
    bytes.extend(segment.from.port.to_be_bytes());
    bytes.extend(segment.to.port.to_be_bytes());
    bytes.extend(segment.sequence.to_be_bytes());
    bytes.extend(segment.acknowledgement.to_be_bytes());
    bytes.extend([(TCP as u8 / 4) << 4, segment.flags.0]);
    bytes.extend(WINDOW.to_be_bytes());
    // No checksum, as on `lo`, and nothing urgent.
    bytes.extend([0; 4]);
    bytes.extend_from_slice(payload);
    let original = (header + carried) as u32;
    (bytes, original)
}

fn ipv4(bytes: &mut Vec<u8>, segment: &Segment, carried: usize) {
    let start = bytes.len();
    bytes.extend([0x45, 0]);
    bytes.extend(((IPV4 + carried) as u16).to_be_bytes());
    bytes.extend([0, 0, 0x40, 0, 64, 6, 0, 0]);
    for address in [segment.from.address, segment.to.address] {
        if let IpAddr::V4(address) = address {
            bytes.extend(address.octets());
        }
    }
    let words = bytes[start..].chunks_exact(2);
    let mut sum: u32 = words.map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    bytes[start + 10..start + 12].copy_from_slice(&(!(sum as u16)).to_be_bytes());
}

fn mapped(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        IpAddr::V6(address) => address.octets(),
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use assay_captures::parsed::{Problem, Sink};
    use assay_captures::pcap::{Decoder, Record};
    use assay_captures::units::Moment;

    use super::*;
    use crate::pcapng::{Interface, Writer};

    #[derive(Default)]
    struct Seen(Vec<String>);

    impl Sink<Record<'_>> for Seen {
        fn record(&mut self, record: Record<'_>) {
            if let Record::Packet(p) = record {
                self.0.push(format!(
                    "{} > {} {} {} {:x} {} +{}",
                    p.source,
                    p.destination,
                    p.sequence,
                    p.acknowledgement,
                    p.flags.0,
                    String::from_utf8_lossy(p.payload),
                    p.missing
                ));
            }
        }
        fn problem(&mut self, problem: Problem) {
            self.0.push(problem.to_string());
        }
    }

    #[test]
    fn our_own_decoder_reads_what_was_put_into_a_frame() {
        let mut file = Vec::new();
        let lo = Interface { name: "sockets", description: Some("made up") };
        let mut writer = Writer::begin(&mut file, "probe", &[lo]).unwrap();
        let four = IpAddr::V4(Ipv4Addr::new(127, 85, 0, 1));
        let six = IpAddr::V6(Ipv6Addr::LOCALHOST);
        for address in [four, six] {
            let from = Endpoint { address, port: 1024 };
            let to = Endpoint { address, port: 5432 };
            let (sequence, acknowledgement) = (u32::MAX, 7);
            let segment = Segment { from, to, sequence, acknowledgement, flags: Flags(0x18) };
            let (bytes, original) = frame(&segment, b"Sync", 6);
            writer.packet(0, Moment(1), &bytes, original).unwrap();
        }
        writer.flush().unwrap();
        drop(writer);
        let mut seen = Seen::default();
        let mut decoder = Decoder::new();
        decoder.feed(&file, &mut seen);
        decoder.finish(&mut seen);
        let expected = [
            "127.85.0.1:1024 > 127.85.0.1:5432 4294967295 7 18 Sync +6",
            "[::1]:1024 > [::1]:5432 4294967295 7 18 Sync +6",
        ];
        assert_eq!(seen.0, expected);
    }
}
