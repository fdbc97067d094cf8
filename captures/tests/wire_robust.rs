//! No input makes the wire's decoders panic, loop, or lose count of where they are: captures cut
//! at every byte, with bits flipped from a fixed seed, and fed in pieces of any size.

use std::collections::HashMap;

use assay_captures::parsed::{Problem, Sink};
use assay_captures::pcap::{Decoder, Record};
use assay_captures::tcp::{Connection, Event, EventSink, Streams};
use assay_captures::{http, postgres, redis};

const SYN: u8 = 2;
const ACK: u8 = 16;
const FIN: u8 = 1;

/// Writes a capture of one TCP connection, segment by segment.
struct Recording {
    file: Vec<u8>,
    next: [u32; 2],
    clock: u32,
}

impl Recording {
    fn new() -> Self {
        let mut file = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        file.extend([0, 0, 4, 0, 1, 0, 0, 0]);
        let mut recording = Self { file, next: [1000, u32::MAX - 20], clock: 0 };
        recording.segment(0, SYN, b"");
        recording.segment(1, SYN | ACK, b"");
        recording
    }

    fn segment(&mut self, from: usize, flags: u8, payload: &[u8]) {
        let ports: [u16; 2] = [40_000, 5432];
        let mut frame = vec![0; 12];
        frame.extend([8, 0, 0x45, 0]);
        frame.extend((40 + payload.len() as u16).to_be_bytes());
        frame.extend([0, 0, 0, 0, 64, 6, 0, 0, 127, 0, 0, 1, 127, 0, 0, 1]);
        frame.extend(ports[from].to_be_bytes());
        frame.extend(ports[1 - from].to_be_bytes());
        frame.extend(self.next[from].to_be_bytes());
        frame.extend(self.next[1 - from].to_be_bytes());
        frame.extend([0x50, flags, 1, 0, 0, 0, 0, 0]);
        frame.extend(payload);
        self.clock += 1;
        for word in [1, self.clock, frame.len() as u32, frame.len() as u32] {
            self.file.extend(word.to_le_bytes());
        }
        self.file.extend(frame);
        let length = payload.len() as u32 + u32::from(flags & (SYN | FIN) != 0);
        self.next[from] = self.next[from].wrapping_add(length);
    }
}

/// Everything that the decoders say, as text.
#[derive(Default)]
struct Said {
    streams: Streams,
    talks: Talks,
    problems: Vec<Problem>,
}

#[derive(Default)]
struct Talks {
    open: HashMap<Connection, (http::Decoder, postgres::Decoder, redis::Decoder)>,
    said: Vec<String>,
}

impl Sink<Record<'_>> for Said {
    fn record(&mut self, record: Record<'_>) {
        if let Record::Packet(packet) = record {
            self.streams.feed(&packet, &mut self.talks);
        }
    }

    fn problem(&mut self, problem: Problem) {
        self.problems.push(problem);
    }
}

impl EventSink for Talks {
    fn event(&mut self, event: Event<'_>) {
        let said = &mut self.said;
        match event {
            Event::Opened { connection, from_start, .. } => {
                let decoders = (
                    http::Decoder::new(from_start),
                    postgres::Decoder::new(from_start),
                    redis::Decoder::new(from_start),
                );
                self.open.insert(connection, decoders);
            }
            Event::Chunk { connection, from, moment, bytes } => {
                let Some((http, postgres, redis)) = self.open.get_mut(&connection) else { return };
                http.feed(from, moment, bytes, &mut |m| said.push(format!("{m:?}")));
                postgres.feed(from, moment, bytes, &mut |m| said.push(format!("{m:?}")));
                redis.feed(from, moment, bytes, &mut |m| said.push(format!("{m:?}")));
            }
            Event::Gap { connection, from, moment, length } => {
                let Some((http, postgres, redis)) = self.open.get_mut(&connection) else { return };
                http.gap(from, moment, length, &mut |m| said.push(format!("{m:?}")));
                postgres.gap(from, moment, length, &mut |m| said.push(format!("{m:?}")));
                redis.gap(from, moment, length, &mut |m| said.push(format!("{m:?}")));
            }
            Event::Closed { connection, moment, .. } => {
                if let Some((mut http, ..)) = self.open.remove(&connection) {
                    http.close(moment, &mut |m| said.push(format!("{m:?}")));
                }
            }
        }
    }
}

fn read(file: &[u8], piece: usize) -> Said {
    let mut said = Said::default();
    let mut decoder = Decoder::new();
    for piece in file.chunks(piece.max(1)) {
        decoder.feed(piece, &mut said);
    }
    decoder.finish(&mut said);
    said.streams.finish(&mut said.talks);
    said
}

/// Conversations of all three protocols, with what is hard in each.
fn recordings() -> Vec<Vec<u8>> {
    let conversations: [&[(usize, &[u8])]; 3] = [
        &[
            (0, b"\0\0\0\x08\x04\xd2\x16\x2f"),
            (1, b"N"),
            (0, b"\0\0\0\x0e\0\x03\0\0user\0a"),
            (0, b"\0"),
            (1, b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I"),
            (0, b"P\0\0\0\x10s\0select 1\0\0\0B\0\0\0\x0d\0s\0\0\0\0\0\0\0"),
            (0, b"E\0\0\0\x09\0\0\0\0\0S\0\0\0\x04"),
            (1, b"1\0\0\0\x042\0\0\0\x04D\0\0\0\x0b\0\x01\0\0\0\x011"),
            (1, b"C\0\0\0\x0dSELECT 1\0Z\0\0\0\x05I"),
        ],
        &[
            (0, b"*2\r\n$3\r\nGET\r\n$4\r\npage\r\nPING\r\n"),
            (1, b"$5\r\nhello\r\n+PONG\r\n"),
            (1, b"|1\r\n+ttl\r\n:3600\r\n%1\r\n+a\r\n*2\r\n:1\r\n_\r\n>2\r\n+m\r\n#t\r\n"),
        ],
        &[
            (0, b"POST /a HTTP/1.1\r\ncontent-length: 3\r\n\r\nabcGET /b HTTP/1.1\r\n\r\n"),
            (1, b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n"),
            (1, b"transfer-encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n0\r\na: b\r\n\r\n"),
            (1, b"HTTP/1.1 200 OK\r\n\r\nuntil the end"),
        ],
    ];
    conversations
        .iter()
        .map(|conversation| {
            let mut recording = Recording::new();
            for (from, payload) in *conversation {
                recording.segment(*from, ACK, payload);
            }
            recording.segment(0, FIN | ACK, b"");
            recording.segment(1, FIN | ACK, b"");
            recording.file
        })
        .collect()
}

/// The same capture as pcapng, little-endian or big-endian.
fn as_pcapng(file: &[u8], big: bool) -> Vec<u8> {
    let number = |value: u32| if big { value.to_be_bytes() } else { value.to_le_bytes() };
    let short = |value: u16| if big { value.to_be_bytes() } else { value.to_le_bytes() };
    let block = |kind: u32, body: &[u8]| {
        let padded = body.len().next_multiple_of(4);
        let length = number(12 + padded as u32);
        let padding = vec![0; padded - body.len()];
        [&number(kind)[..], &length, body, &padding, &length].concat()
    };
    let magic = number(0x1a2b_3c4d);
    let mut out = block(0x0a0d_0d0a, &[&magic[..], &short(1), &short(0), &[0xff; 8]].concat());
    out.extend(block(1, &[&short(1)[..], &[0; 6]].concat()));
    let mut at = 24;
    while at < file.len() {
        let word =
            |at: usize| u32::from_le_bytes([file[at], file[at + 1], file[at + 2], file[at + 3]]);
        let stamp = u64::from(word(at)) * 1_000_000 + u64::from(word(at + 4));
        let length = word(at + 8);
        let frame = &file[at + 16..at + 16 + length as usize];
        let head = [0, (stamp >> 32) as u32, stamp as u32, length, length];
        let body = [&head.map(number).concat()[..], frame].concat();
        out.extend(block(6, &body));
        at += 16 + length as usize;
    }
    out
}

#[test]
fn the_size_of_the_pieces_changes_nothing() {
    for file in recordings() {
        let whole = read(&file, usize::MAX);
        assert!(whole.problems.is_empty() && whole.talks.said.len() > 3);
        for size in [1, 2, 3, 7, 16, 61] {
            let pieces = read(&file, size);
            assert_eq!(pieces.talks.said, whole.talks.said);
            assert_eq!(pieces.problems, whole.problems);
        }
    }
}

#[test]
fn all_container_formats_hold_the_same() {
    for file in recordings() {
        let classic = read(&file, usize::MAX);
        for big in [false, true] {
            let sections = read(&as_pcapng(&file, big), 100);
            assert_eq!(sections.talks.said, classic.talks.said);
            assert!(sections.problems.is_empty());
        }
    }
}

#[test]
fn no_prefix_of_a_capture_panics_and_each_says_that_it_was_cut() {
    for file in recordings() {
        for cut in 0..file.len() {
            let said = read(&file[..cut], usize::MAX);
            assert!(said.problems.len() <= 1);
        }
        let sections = as_pcapng(&file, true);
        for cut in 0..sections.len() {
            read(&sections[..cut], 11);
        }
    }
}

#[test]
fn no_flipped_bit_panics() {
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = move || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random as usize
    };
    for file in recordings() {
        for file in [as_pcapng(&file, false), file] {
            for _ in 0..2000 {
                let mut broken = file.clone();
                for _ in 0..=next() % 8 {
                    let at = next() % broken.len();
                    broken[at] ^= 1 << (next() % 8);
                }
                read(&broken, 1 + next() % 300);
            }
        }
    }
}

#[test]
fn segments_that_are_lost_cut_doubled_or_swapped_do_not_stop_the_reading() {
    for file in recordings() {
        let mut frames = Vec::new();
        let mut at = 24;
        while at < file.len() {
            let length = usize::from(file[at + 8]) + 256 * usize::from(file[at + 9]);
            frames.push(&file[at..at + 16 + length]);
            at += 16 + length;
        }
        let join = |frames: &[&[u8]]| [&file[..24], &frames.concat()].concat();
        let whole = read(&file, usize::MAX).talks.said;
        let twice: Vec<&[u8]> = frames.iter().flat_map(|frame| [*frame, *frame]).collect();
        assert_eq!(read(&join(&twice), usize::MAX).talks.said, whole, "each frame twice");
        for index in 2..frames.len() - 1 {
            let mut fewer = frames.clone();
            fewer.remove(index);
            read(&join(&fewer), usize::MAX);
            let mut swapped = frames.clone();
            swapped.swap(index, index + 1);
            read(&join(&swapped), usize::MAX);
        }
    }
}
