//! Segments in any order in, the stream that the application saw out.

use std::net::Ipv4Addr;

use super::*;
use crate::pcap::{Endpoint, Flags, Packet};
use crate::units::Moment;

/// Writes events down as text.
#[derive(Default)]
struct Page(String);

impl EventSink for Page {
    fn event(&mut self, event: Event<'_>) {
        let side = |side: Side| if side == Side::Client { '>' } else { '<' };
        let text = match event {
            Event::Opened { connection, from_start, .. } => {
                format!("open{}{}", connection.0, if from_start { "" } else { "?" })
            }
            Event::Chunk { from, bytes, .. } => {
                format!("{}{}", side(from), String::from_utf8_lossy(bytes))
            }
            Event::Gap { from, length, .. } => format!("{}[{length}]", side(from)),
            Event::Closed { end, .. } => format!("{end:?}"),
        };
        if !self.0.is_empty() {
            self.0.push(' ');
        }
        self.0 += &text;
    }
}

/// Segments as text: `>` from the client, `<` from the server; flags `S F R`; the sequence number
/// of the payload, and the payload. `>S100`, `<5 abc a=104`, `>F`. `^` resumes the recording.
fn check(segments: &str, expected: &str) {
    let mut streams = Streams::new(&[5432]);
    let mut page = Page::default();
    let lines = segments.split(';').map(str::trim).filter(|line| !line.is_empty());
    for (index, line) in lines.enumerate() {
        if line == "^" {
            streams.resume();
            continue;
        }
        let client = line.starts_with('>');
        let mut words = line[1..].split_whitespace();
        let head = words.next().unwrap_or("");
        let flags = head.chars().fold(0_u8, |flags, letter| match letter {
            'S' => flags | 2,
            'F' => flags | 1,
            'R' => flags | 4,
            _ => flags,
        });
        let sequence = head.trim_start_matches(['S', 'F', 'R']).parse().unwrap_or(0);
        let (mut payload, mut acknowledgement, mut missing) = ("", None, 0);
        for word in words {
            match word.split_once('=') {
                Some(("a", number)) => acknowledgement = number.parse().ok(),
                Some(("cut", number)) => missing = number.parse().unwrap(),
                _ => payload = word,
            }
        }
        let end = |port| Endpoint { address: Ipv4Addr::LOCALHOST.into(), port };
        let (source, destination) =
            if client { (end(40_000), end(5432)) } else { (end(5432), end(40_000)) };
        let flags = Flags(flags | if acknowledgement.is_some() { 16 } else { 0 });
        let packet = Packet {
            moment: Moment(index as u64),
            source,
            destination,
            sequence,
            acknowledgement: acknowledgement.unwrap_or(0),
            flags,
            payload: payload.as_bytes(),
            payload_offset: 0,
            missing,
            captured_length: 0,
            original_length: 0,
        };
        streams.feed(&packet, &mut page);
    }
    streams.finish(&mut page);
    assert_eq!(page.0, expected, "{segments}");
}

const OPEN: &str = ">S99; <S199 a=100; ";

fn check_open(segments: &str, expected: &str) {
    check(&format!("{OPEN}{segments}"), &format!("open0 {expected}"));
}

#[test]
fn bytes_come_in_order_whatever_order_they_were_captured_in() {
    // 100..103 103..106 106..109
    check_open(">100 abc; >106 ghi; >103 def", ">abc >def >ghi Open");
    check_open(">103 def; >100 abc", ">abc >def Open");
}

#[test]
fn what_was_sent_again_counts_once() {
    check_open(">100 abc; >100 abc; >100 abcdef; >102 cdefg", ">abc >def >g Open");
    // A keep-alive repeats the byte before.
    check_open(">100 abc; >102 x; >103 d", ">abc >d Open");
    check(">S99; >S99; <S199 a=100; <S199 a=100; >100 abc; >100 abc", "open0 >abc Open");
}

#[test]
fn sequence_numbers_wrap_around() {
    check(">S4294967293; <S199 a=4294967294; >4294967294 abcd; >2 ef", "open0 >abcd >ef Open");
}

#[test]
fn a_hole_is_said_once_the_receiver_has_acknowledged_beyond_it() {
    let acknowledged = "<200 a=106; ".repeat(8);
    check_open(&format!(">103 def; {acknowledged}>106 g"), ">[3] >def >g Open");
    // Nothing came after it.
    check_open(&format!(">100 abc; {}", "<200 a=109; ".repeat(8)), ">abc >[6] Open");
    // At the end, without an acknowledgement.
    check_open(">103 def", ">[3] >def Open");
}

#[test]
fn a_cut_segment_leaves_a_hole_of_known_length() {
    check_open(">100 abc cut=4; >107 hij", ">abc >[4] >hij Open");
}

#[test]
fn an_acknowledgement_captured_before_its_segment_is_no_hole() {
    check_open("<200 a=103; >100 abc; <200 xyz a=103", ">abc <xyz Open");
}

#[test]
fn connections_end_and_late_copies_open_nothing() {
    check_open(">F100 a=200; <F200 a=101; >101 a=201; <F200 a=101; >100 x", "Finished");
    check_open(">100 abc; >R103; <200 late a=103", ">abc Reset");
    check_open(">F103 a=200; <F200 a=100; >100 abc", ">abc Finished");
}

#[test]
fn the_same_ports_can_be_used_again() {
    check(
        ">S99; <S199 a=100; >100 abc; >S5000; <S7000 a=5001; >5001 new",
        "open0 >abc Replaced open1 >new Open",
    );
    check(
        ">S99; <S199 a=100; >F100 a=200; <F200 a=101; >S300; >301 new",
        "open0 Finished open1 >new Open",
    );
}

#[test]
fn a_connection_that_was_open_before_is_joined_at_its_first_bytes() {
    check(">500 a=900; >500 abc a=900; <900 xyz a=503", "open0? >abc <xyz Open");
    check("<900 xyz a=503; >503 abc", "open0? <xyz >abc Open");
    // The handshake in the wrong order.
    check("<S199 a=100; >S99; >100 abc; <200 d", "open0 >abc <d Open");
}

#[test]
fn what_was_sent_while_the_recorder_was_off_is_no_hole() {
    check_open(">100 abc; ^; >900 new a=700; <700 answer a=903", ">abc >new <answer Open");
    check_open(">100 abc; ^; >100 abc a=200; >103 d", ">abc >d Open");
}
