//! Sockets that speak, and the streams that come out of the frames made for them.

use assay_captures::ids::Pid;
use assay_captures::parsed::{Problem, Sink};
use assay_captures::pcap::{Decoder, Record as Packet};
use assay_captures::tcp::{Event, EventSink, Side, Streams};
use assay_captures::units::Nanos;

use super::*;
use crate::pcapng::{Interface, Writer};

/// Writes a capture, reads it again, and tells what each side said.
struct Frames(Writer<Vec<u8>>);

impl FrameSink for Frames {
    fn frame(&mut self, moment: Moment, frame: Vec<u8>, original: u32) {
        self.0.packet(0, moment, &frame, original).unwrap();
    }
}

#[derive(Default)]
struct Told {
    streams: Streams,
    events: Events,
}

#[derive(Default)]
struct Events(Vec<String>);

impl EventSink for Events {
    fn event(&mut self, event: Event<'_>) {
        let side = |from: Side| if from == Side::Client { '>' } else { '<' };
        self.0.push(match event {
            Event::Opened { server, from_start, .. } => format!("to {} {from_start}", server.port),
            Event::Chunk { from, bytes, .. } => {
                format!("{}{}", side(from), bytes.escape_ascii())
            }
            Event::Gap { from, length, .. } => format!("{}gap {length}", side(from)),
            Event::Closed { end, .. } => format!("{end:?}"),
        });
    }
}

impl Sink<Packet<'_>> for Told {
    fn record(&mut self, record: Packet<'_>) {
        if let Packet::Packet(packet) = record {
            self.streams.feed(&packet, &mut self.events);
        }
    }
    fn problem(&mut self, problem: Problem) {
        self.events.0.push(problem.to_string());
    }
}

fn new(connects: bool, path: &[u8]) -> Body<'_> {
    Body::New { connects, accepted: false, address: Address::Unix(path) }
}

fn piece(sent: bool, offset: u64, bytes: &[u8]) -> Body<'_> {
    Body::Piece { sent, offset, length: bytes.len() as u32, bytes }
}

/// Feeds bodies of one socket; what the capture says, and the last fate.
fn said(bodies: &[Body<'_>]) -> (Vec<String>, Fate) {
    let name = Interface { name: "sockets", description: None };
    let mut frames = Frames(Writer::begin(Vec::new(), "test", &[name]).unwrap());
    let mut conversations = Conversations::default();
    let mut fate = Fate::Kept;
    for (index, body) in bodies.iter().enumerate() {
        let moment = Nanos(index as u64);
        let body = body.clone();
        let record = Record { moment, entered: None, inode: 7, pid: Pid(1), body };
        fate = conversations.take(&record, Moment(index as u64), &mut frames);
    }
    frames.0.flush().unwrap();
    let mut told = Told::default();
    let mut decoder = Decoder::new();
    decoder.feed(frames.0.file(), &mut told);
    decoder.finish(&mut told);
    told.streams.finish(&mut told.events);
    (told.events.0, fate)
}

const STARTUP: &[u8] = b"\0\0\0\x08\0\x03\0\0";

#[test]
fn a_connection_is_whole_from_its_first_byte_to_its_end() {
    let (events, fate) = said(&[
        new(true, b"/x"),
        piece(true, 0, STARTUP),
        piece(false, 0, b"R"),
        piece(true, 8, b"X\0\0\0\x04"),
        Body::Closed,
    ]);
    let startup = r">\x00\x00\x00\x08\x00\x03\x00\x00";
    let goodbye = r">X\x00\x00\x00\x04";
    assert_eq!(events, ["to 5432 true", startup, "<R", goodbye, "Finished"]);
    assert_eq!(fate, Fate::Gone);
}

#[test]
fn a_first_command_that_comes_in_pieces_is_recognised_all_the_same() {
    let (events, _) = said(&[
        new(true, b"/run/redis"),
        piece(true, 0, b"*1"),
        piece(true, 2, b"\r\n$4\r\nPING\r\n"),
        piece(false, 0, b"+PONG\r\n"),
    ]);
    assert_eq!(events[0], "to 6379 true");
    assert_eq!(events[1..4].len(), 3);
    assert_eq!(events[3], r"<+PONG\r\n");
}

#[test]
fn bytes_that_were_not_copied_are_a_gap_of_their_length() {
    let (events, _) = said(&[
        new(false, b"/x"),
        piece(true, 0, b"Q\0\0\0\x06a\0"),
        Body::Piece { sent: false, offset: 0, length: 100_000, bytes: b"" },
        piece(false, 100_000, b"Z"),
        // Two records were lost between.
        piece(false, 100_301, b"Z"),
    ]);
    let expected = [
        "to 5432 false",
        r">Q\x00\x00\x00\x06a\x00",
        "<gap 60000",
        "<gap 40000",
        "<Z",
        "<gap 300",
        "<Z",
        "Open",
    ];
    assert_eq!(events, expected);
}

#[test]
fn what_speaks_otherwise_or_is_spoken_to_is_ignored() {
    let http =
        piece(true, 0, b"GET / HTTP/1.1\r\nHost: example.org\r\nAccept: */*\r\nA: b\r\n\r\n");
    let nothing: [&str; 0] = [];
    assert_eq!(said(&[new(true, b"/x"), http]), (vec![], Fate::Ignored));
    let greeting = piece(false, 0, b"220 mail\r\n");
    assert_eq!(said(&[new(true, b"/x"), greeting]), (vec![], Fate::Ignored));
    let asked = piece(false, 0, b"Q\0\0\0\x06a\0");
    assert_eq!(said(&[new(false, b"/x"), asked]), (vec![], Fate::Ignored));
    let accepted =
        Body::New { connects: false, accepted: true, address: Address::Unix(b"/.s.PGSQL.1") };
    assert_eq!(said(&[accepted]).1, Fate::Ignored);
    assert_eq!(said(&[new(true, b"")]).0, nothing);
}

#[test]
fn sockets_that_nobody_has_any_more_are_closed() {
    let name = Interface { name: "sockets", description: None };
    let mut frames = Frames(Writer::begin(Vec::new(), "test", &[name]).unwrap());
    let mut conversations = Conversations::default();
    for inode in [1, 2] {
        let body = new(true, b"/x");
        let record = Record { moment: Nanos(0), entered: None, inode, pid: Pid(1), body };
        conversations.take(&record, Moment(0), &mut frames);
    }
    assert_eq!(conversations.sweep(&[2].into(), Moment(1), &mut frames), [1]);
    assert_eq!(conversations.len(), 1);
}
