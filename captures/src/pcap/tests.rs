//! Files built byte by byte: byte orders, link types, cuts.

use super::*;
use crate::parsed::Parsed;
use crate::units::{Moment, Nanos};

/// Takes what a test looks at, so that nothing borrowed is kept.
#[derive(Default)]
struct Seen {
    packets: Vec<(Moment, u16, Vec<u8>, u64, u32)>,
    others: usize,
    drops: Vec<(u32, u64)>,
    between: u64,
    interfaces: Vec<Interface>,
    rest: Parsed<()>,
}

impl crate::parsed::Sink<Record<'_>> for Seen {
    fn record(&mut self, record: Record<'_>) {
        match record {
            Record::Packet(packet) => self.packets.push((
                packet.moment,
                packet.source.port,
                packet.payload.to_vec(),
                packet.payload_offset,
                packet.missing,
            )),
            Record::Other { .. } => self.others += 1,
            Record::Drops { interface, total } => self.drops.push((interface, total)),
            Record::DropsBefore { count } => self.between += count,
            Record::Interface(interface) => self.interfaces.push(interface),
        }
    }

    fn problem(&mut self, problem: crate::parsed::Problem) {
        self.rest.problems.push(problem);
    }
}

fn read(file: &[u8]) -> Seen {
    let mut seen = Seen::default();
    let mut decoder = Decoder::new();
    decoder.feed(file, &mut seen);
    decoder.finish(&mut seen);
    seen
}

/// A TCP segment from port 1000 with `payload`; `total` is the length that IPv4 gives, 0 for none.
fn ipv4(payload: &[u8], total: u16) -> Vec<u8> {
    let mut bytes = vec![0x45, 0];
    bytes.extend(total.to_be_bytes());
    bytes.extend([0, 0, 0, 0, 64, 6, 0, 0, 127, 0, 0, 1, 127, 0, 0, 1]);
    bytes.extend(tcp(payload));
    bytes
}

fn tcp(payload: &[u8]) -> Vec<u8> {
    let mut bytes = 1000_u16.to_be_bytes().to_vec();
    bytes.extend([0, 80, 0, 0, 0, 1, 0, 0, 0, 0, 0x50, 0x10, 0, 0, 0, 0, 0, 0]);
    bytes.extend(payload);
    bytes
}

/// IPv6 with these extension headers before TCP.
fn ipv6(next: u8, extensions: &[u8], payload: &[u8]) -> Vec<u8> {
    let segment = tcp(payload);
    let mut bytes = vec![0x60, 0, 0, 0];
    bytes.extend(((extensions.len() + segment.len()) as u16).to_be_bytes());
    bytes.extend([next, 64]);
    bytes.extend([0; 32]);
    bytes.extend(extensions);
    bytes.extend(segment);
    bytes
}

/// A classic capture of one frame.
fn classic(magic: [u8; 4], link_type: u8, frame: &[u8], original: u32) -> Vec<u8> {
    let mut file = magic.to_vec();
    file.extend([2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, link_type, 0, 0, 0]);
    for word in [7, 5, frame.len() as u32, original] {
        file.extend(word.to_le_bytes());
    }
    if magic == [0x34, 0xcd, 0xb2, 0xa1] {
        file.extend([0; 8]);
    }
    file.extend(frame);
    file
}

const MICROS: [u8; 4] = [0xd4, 0xc3, 0xb2, 0xa1];

fn payload_behind(link_type: u8, head: &[u8], datagram: &[u8]) -> Option<Vec<u8>> {
    let frame = [head, datagram].concat();
    let seen = read(&classic(MICROS, link_type, &frame, frame.len() as u32));
    seen.packets.first().map(|packet| packet.2.clone())
}

#[test]
fn a_segment_is_found_behind_every_link_layer() {
    let ether = |kind: &[u8]| [&[0; 12], kind].concat();
    let datagram = ipv4(b"hello", 45);
    let heads: [(u8, Vec<u8>); 13] = [
        (1, ether(&[8, 0])),
        (1, ether(&[0x81, 0, 0, 1, 8, 0])),
        (1, ether(&[0x88, 0xa8, 0, 1, 0x81, 0, 0, 2, 8, 0])),
        (1, ether(&[0x88, 0x47, 0, 0, 0, 64, 0, 0, 0x11, 64])),
        (1, ether(&[0x88, 0x64, 0x11, 0, 0, 0, 0, 0, 0, 0x21])),
        (1, ether(&[0, 60, 0xaa, 0xaa, 3, 0, 0, 0, 8, 0])),
        (0, vec![2, 0, 0, 0]),
        (0, vec![0, 0, 0, 2]),
        (108, vec![0, 0, 0, 2]),
        (101, vec![]),
        (228, vec![]),
        (113, [&[0; 14][..], &[8, 0]].concat()),
        (12, vec![]),
    ];
    for (link_type, head) in heads {
        let found = payload_behind(link_type, &head, &datagram);
        assert_eq!(found.as_deref(), Some(&b"hello"[..]), "{link_type} {head:?}");
    }
}

#[test]
fn extension_headers_are_passed_and_fragments_are_not_put_together() {
    let hop_by_hop = [6, 0, 0, 0, 0, 0, 0, 0];
    let atomic = [6, 0, 0, 0, 0, 0, 0, 9];
    let first = [6, 0, 0, 1, 0, 0, 0, 9];
    assert_eq!(payload_behind(101, &[], &ipv6(6, &[], b"x")).as_deref(), Some(&b"x"[..]));
    assert_eq!(payload_behind(101, &[], &ipv6(0, &hop_by_hop, b"x")).as_deref(), Some(&b"x"[..]));
    assert_eq!(payload_behind(229, &[], &ipv6(44, &atomic, b"x")).as_deref(), Some(&b"x"[..]));
    let frame = ipv6(44, &first, b"x");
    let seen = read(&classic(MICROS, 101, &frame, frame.len() as u32));
    assert_eq!((seen.packets.len(), seen.others), (0, 1));
    assert!(seen.rest.problems[0].message.contains("fragment"));
}

#[test]
fn lengths_are_those_of_the_datagram_and_what_was_cut_is_known() {
    let find = |frame: Vec<u8>, original: u32| {
        let seen = read(&classic(MICROS, 101, &frame, original));
        seen.packets.first().map(|packet| (packet.2.len(), packet.4))
    };
    // Ethernet pads short frames.
    assert_eq!(find([ipv4(b"abc", 43), vec![0; 9]].concat(), 52), Some((3, 0)));
    // A length of 0 stands for whatever the frame has: segmentation was left to the card.
    assert_eq!(find(ipv4(b"abcdef", 0), 46), Some((6, 0)));
    // Snap length.
    assert_eq!(find(ipv4(b"abc", 1040), 1040), Some((3, 997)));
}

#[test]
fn stamps_of_all_magics_mean_the_same() {
    let frame = ipv4(b"x", 41);
    let moment = |magic| read(&classic(magic, 101, &frame, 41)).packets[0].0;
    assert_eq!(moment(MICROS), Moment(7_000_005_000));
    assert_eq!(moment([0x4d, 0x3c, 0xb2, 0xa1]), Moment(7_000_000_005));
    assert_eq!(moment([0x34, 0xcd, 0xb2, 0xa1]), Moment(7_000_005_000));
}

#[test]
fn the_payload_can_be_found_in_the_file_again() {
    let file = classic(MICROS, 101, &ipv4(b"hello", 45), 45);
    let (.., payload, offset, _) = read(&file).packets.remove(0);
    assert_eq!(&file[offset as usize..offset as usize + 5], payload);
}

fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    let length = (12 + body.len() as u32).to_le_bytes();
    [&kind.to_le_bytes()[..], &length, body, &length].concat()
}

#[test]
fn each_interface_has_its_own_clock_and_drops_are_told() {
    let frame = [ipv4(b"x", 41), vec![0; 3]].concat();
    let mut file = block(
        0x0a0d_0d0a,
        &[&0x1a2b_3c4d_u32.to_le_bytes()[..], &[1, 0, 0, 0], &[255; 8]].concat(),
    );
    // Nanoseconds, one hour ahead; then 2^-10 s.
    let options = [9, 0, 1, 0, 9, 0, 0, 0, 14, 0, 8, 0, 16, 14, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    file.extend(block(1, &[&[101, 0, 0, 0, 0, 0, 0, 0][..], &options].concat()));
    let options = [9, 0, 1, 0, 0x8a, 0, 0, 0];
    file.extend(block(1, &[&[101, 0, 0, 0, 0, 0, 0, 0][..], &options].concat()));
    let packet = |interface: u32, stamp: u32, options: &[u8]| {
        let head = [interface, 0, stamp, 41, 41].map(u32::to_le_bytes).concat();
        block(6, &[&head[..], &frame, options].concat())
    };
    file.extend(packet(0, 5, &[4, 0, 8, 0, 3, 0, 0, 0, 0, 0, 0, 0]));
    file.extend(packet(1, 1536, &[]));
    file.extend(packet(9, 0, &[]));
    let drops = [5, 0, 8, 0, 42, 0, 0, 0, 0, 0, 0, 0];
    file.extend(block(5, &[&[0; 12][..], &drops].concat()));
    let seen = read(&file);
    let moments: Vec<_> = seen.packets.iter().map(|packet| packet.0).collect();
    assert_eq!(moments, [Moment(3_600_000_000_005), Moment(1_500_000_000)]);
    assert_eq!(seen.interfaces[1].resolution, Nanos(976_562));
    assert_eq!((seen.between, seen.drops), (3, vec![(0, 42)]));
    assert_eq!(seen.rest.problems.len(), 1);
}

#[test]
fn a_file_that_is_no_capture_says_so() {
    let problem = |file: &[u8]| read(file).rest.problems[0].to_string();
    assert!(problem(b"hello, world").contains("neither pcap nor pcapng"));
    assert!(problem(b"").contains("empty"));
    assert!(problem(&classic(MICROS, 101, b"", 0)[..30]).contains("ends within a record"));
}
