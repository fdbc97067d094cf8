//! However connections mingle and whatever is lost, doubled or cut off, everything that is counted
//! is charged: the windows and nobody together have what one window over everything has.

use std::net::Ipv4Addr;

use assay_captures::parsed::Sink;
use assay_captures::pcap::{Endpoint, Flags, Packet, Record};
use assay_captures::units::{Moment, Span};
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::cost::Origin;
use crate::window::Window;

/// What one side can say, and what the other answers.
const TALK: [(u16, &[u8], &[u8]); 8] = [
    (5432, b"Q\0\0\0\x0dselect a\0", b"D\0\0\0\x06\0\0C\0\0\0\x0dSELECT 1\0Z\0\0\0\x05I"),
    (5432, b"S\0\0\0\x04", b"Z\0\0\0\x05I"),
    (5432, b"Q\0\0\0\x0abegin\0", b"C\0\0\0\x0aBEGIN\0Z\0\0\0\x05T"),
    (5432, b"P\0\0\0\x10\0select a\0\0\0H\0\0\0\x04", b"1\0\0\0\x04"),
    (6379, b"*2\r\n$3\r\nGET\r\n$1\r\na\r\n", b"$-1\r\n"),
    (6379, b"*1\r\n$4\r\nPING\r\n", b"-ERR\r\n"),
    (8080, b"GET / HTTP/1.1\r\n\r\n", b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"),
    (8080, b"GET / HTTP/1.1\r\n\r\n", b"HTTP/1.1 100 C\r\n\r\nHTTP/1.1 404 N\r\n\r\n"),
];

/// One segment: when, on which connection, from whom, and what.
#[derive(Clone, Debug)]
struct Segment {
    client: u16,
    server: u16,
    from_client: bool,
    sequence: u32,
    payload: Vec<u8>,
}

/// Lines of talk as segments; each connection has its order, but they mingle as they come.
fn segments(lines: &[(u8, usize, usize)]) -> Vec<Segment> {
    let mut next = std::collections::HashMap::new();
    let mut segments = Vec::new();
    for &(connection, line, cut) in lines {
        let (server, asked, answered) = TALK[line % TALK.len()];
        let client = 40_000 + u16::from(connection % 3);
        for (from_client, bytes) in [(true, asked), (false, answered)] {
            let middle = cut % (bytes.len() + 1);
            for payload in [&bytes[..middle], &bytes[middle..]] {
                let sequence = next.entry((client, server, from_client)).or_insert(1_u32);
                let payload = payload.to_vec();
                let length = payload.len() as u32;
                segments.push(Segment {
                    client,
                    server,
                    from_client,
                    sequence: *sequence,
                    payload,
                });
                *sequence += length;
            }
        }
    }
    segments
}

fn count(segments: &[Segment], windows: &[Window]) -> WireOutcome {
    let ports = WirePorts { http: vec![8080], postgres: vec![5432], redis: vec![6379] };
    let mut fold = WireFold::new(windows, ports);
    for (index, segment) in segments.iter().enumerate() {
        let end = |port| Endpoint { address: Ipv4Addr::LOCALHOST.into(), port };
        let (from, to) = match segment.from_client {
            true => (segment.client, segment.server),
            false => (segment.server, segment.client),
        };
        fold.record(Record::Packet(Packet {
            moment: Moment(index as u64),
            source: end(from),
            destination: end(to),
            sequence: segment.sequence,
            acknowledgement: 1,
            flags: Flags::ACK,
            payload: &segment.payload,
            payload_offset: 0,
            missing: 0,
            captured_length: 0,
            original_length: 0,
        }));
    }
    let origin = Origin {
        subject: String::new(),
        variant: String::new(),
        route: String::new(),
        pass: String::new(),
        capture: None,
    };
    fold.finish(&origin)
}

proptest! {
    #[test]
    fn windows_and_nobody_have_what_the_capture_has(
        lines in vec((any::<u8>(), any::<usize>(), any::<usize>()), 1..60),
        lost in vec(any::<prop::sample::Index>(), 0..4),
        swapped in vec(any::<prop::sample::Index>(), 0..4),
        doubled in vec(any::<prop::sample::Index>(), 0..4),
        end in any::<prop::sample::Index>(),
        bounds in vec(0_u64..260, 2..6),
    ) {
        let mut sent = segments(&lines);
        for index in lost {
            sent.remove(index.index(sent.len()));
        }
        for index in swapped {
            let at = index.index(sent.len());
            let other = (at + 1).min(sent.len() - 1);
            sent.swap(at, other);
        }
        for index in doubled {
            let at = index.index(sent.len());
            sent.insert(at, sent[at].clone());
        }
        sent.truncate(end.index(sent.len()) + 1);
        let always = Span { start: Moment(0), end: Moment(u64::MAX) };
        let whole = count(&sent, &[Window { span: always, requests: 1 }]);
        prop_assert_eq!(whole.nobody, Counts::default());
        // Neighbours without a gap between them; before and behind them is nobody's.
        let mut bounds = bounds;
        bounds.sort_unstable();
        bounds.dedup();
        let windows: Vec<Window> = bounds
            .windows(2)
            .map(|pair| Window {
                span: Span { start: Moment(pair[0]), end: Moment(pair[1]) },
                requests: 1,
            })
            .collect();
        let parts = count(&sent, &windows);
        let mut sum = parts.totals;
        sum.add_all(&parts.nobody);
        prop_assert_eq!(sum, whole.totals);
    }
}
