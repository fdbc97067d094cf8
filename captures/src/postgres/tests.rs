//! Messages of both sides in, events and problems out.

use super::*;
use crate::tcp::Side;
use crate::units::Moment;

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    [&[kind][..], &(4 + body.len() as u32).to_be_bytes(), body].concat()
}

fn said(decoder: &mut Decoder, from: Side, bytes: &[u8]) -> Vec<String> {
    let mut said = Vec::new();
    decoder.feed(from, Moment(0), bytes, &mut |message| said.push(format!("{:?}", message.body)));
    said
}

#[test]
fn texts_and_names_are_delivered_and_passwords_are_not() {
    let mut decoder = Decoder::new(false);
    let mut bytes = message(b'Q', b"select 1\0");
    bytes.extend(message(b'p', b"secret\0"));
    let said = said(&mut decoder, Side::Client, &bytes);
    assert!(said[1].contains("Query") && said[2].ends_with("Password)"), "{said:?}");
}

#[test]
fn a_long_body_is_kept_in_part_and_passed_over_whole() {
    let mut decoder = Decoder::new(false);
    let mut sql = vec![b'x'; 300_000];
    sql.push(0);
    let bytes = [message(b'Q', &sql), message(b'S', b"")].concat();
    let mut kept = Vec::new();
    for chunk in bytes.chunks(1000) {
        decoder.feed(Side::Client, Moment(0), chunk, &mut |message| match message.body {
            Body::Frontend(Frontend::Query { sql }) => kept.push((sql.len(), message.length)),
            Body::Frontend(Frontend::Sync) => kept.push((0, message.length)),
            _ => {}
        });
    }
    assert_eq!(kept, [(64 * 1024, 300_006), (0, 5)]);
}

#[test]
fn after_a_gap_the_next_chunk_that_starts_with_a_message_is_in_step() {
    let mut decoder = Decoder::new(false);
    let ready = message(b'Z', b"I");
    assert_eq!(said(&mut decoder, Side::Server, b"ello").len(), 1, "out of step, said once");
    assert_eq!(said(&mut decoder, Side::Server, b"ello").len(), 0);
    assert_eq!(said(&mut decoder, Side::Server, &ready).len(), 2, "resumed, ready");
    decoder.gap(Side::Server, Moment(0), 100, &mut |_| {});
    assert_eq!(
        said(&mut decoder, Side::Server, b"\0\0rest"),
        Vec::<String>::from(["Fault(OutOfStep(Server))".to_owned()])
    );
    assert_eq!(said(&mut decoder, Side::Server, &ready).len(), 2);
}

#[test]
fn a_gap_within_a_row_of_known_length_loses_no_step() {
    let mut decoder = Decoder::new(false);
    let row = message(b'D', &[0; 100]);
    assert_eq!(said(&mut decoder, Side::Server, &row[..50]).len(), 1);
    decoder.gap(Side::Server, Moment(0), 30, &mut |_| {});
    let rest = [&row[80..], &message(b'Z', b"T")].concat();
    assert_eq!(said(&mut decoder, Side::Server, &rest).len(), 2);
}

#[test]
fn postgres_is_recognised_by_content() {
    assert!(is_frontend(&[0, 0, 0, 8, 4, 0xd2, 0x16, 0x2f]));
    assert!(is_frontend(&message(b'Q', b"select 1\0")));
    assert!(is_backend(&[message(b'C', b"SELECT 1\0"), message(b'Z', b"I")].concat()));
    assert!(!is_frontend(b"GET / HTTP/1.1\r\n"));
    assert!(!is_frontend(b"*1\r\n$4\r\nPING\r\n"));
    assert!(!is_backend(b"HTTP/1.1 200 OK\r\n"));
}
