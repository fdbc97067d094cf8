//! Both sides of a connection in, messages and problems out.

use super::*;
use crate::tcp::Side;
use crate::units::Moment;

/// `>` what the client sends, `<` what the server sends, `<[n]` a hole.
fn check(parts: &[(char, &str)], expected: &str) {
    let mut decoder = Decoder::new(true);
    let mut said = Vec::new();
    let mut each = |message: Message<'_>| {
        said.push(match message.said {
            Said::Request { method, target } => {
                format!("{} {}", String::from_utf8_lossy(method), String::from_utf8_lossy(target))
            }
            Said::RequestEnd => ".".to_owned(),
            Said::Response { status } => status.to_string(),
            Said::Interim { status } => format!("({status})"),
            Said::ResponseEnd => "!".to_owned(),
            Said::Fault(fault) => format!("{fault:?}"),
        });
    };
    for (index, (side, bytes)) in parts.iter().enumerate() {
        let moment = Moment(index as u64);
        match side {
            '>' => decoder.feed(Side::Client, moment, bytes.as_bytes(), &mut each),
            '<' => decoder.feed(Side::Server, moment, bytes.as_bytes(), &mut each),
            _ => decoder.gap(Side::Server, moment, bytes.parse().unwrap(), &mut each),
        }
    }
    decoder.close(Moment(99), &mut each);
    assert_eq!(said.join(" "), expected);
}

const GET: &str = "GET /a HTTP/1.1\r\nhost: x\r\n\r\n";

#[test]
fn bodies_end_where_their_framing_says() {
    check(
        &[('>', GET), ('<', "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nab"), ('<', "c")],
        "GET /a . 200 !",
    );
    check(
        &[
            ('>', GET),
            ('<', "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n3;a=b\r\nabc\r"),
            ('<', "\n0\r\nx: y\r\n\r\n"),
        ],
        "GET /a . 200 !",
    );
    check(&[('>', GET), ('<', "HTTP/1.0 200 OK\r\n\r\nabc"), ('<', "def")], "GET /a . 200 !");
    check(&[('>', GET), ('<', "HTTP/1.1 204 No\r\n\r\n")], "GET /a . 204 !");
}

#[test]
fn a_response_to_head_has_no_body_and_interim_ones_answer_nothing() {
    check(
        &[
            ('>', "HEAD /a HTTP/1.1\r\n\r\nPOST /b HTTP/1.1\r\ncontent-length: 2\r\n\r\nok"),
            ('<', "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nHTTP/1.1 100 Go\r\n\r\n"),
            ('<', "HTTP/1.1 103 Hint\r\n\r\nHTTP/1.1 201 Made\r\ncontent-length: 0\r\n\r\n"),
        ],
        "HEAD /a . POST /b . 200 ! (100) (103) 201 !",
    );
}

#[test]
fn a_hole_in_a_body_is_said_and_the_next_head_found() {
    check(
        &[
            ('>', GET),
            ('>', GET),
            ('<', "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc"),
            ('[', "4"),
            ('<', "hiHTTP/1.1 404 No\r\ncontent-length: 0\r\n\r\n"),
        ],
        "GET /a . GET /a . 200 HoleInBody(Server, 4) ! 404 !",
    );
    check(
        &[
            ('>', GET),
            ('<', "HTTP/1.1 2"),
            ('[', "4"),
            ('<', "x"),
            ('<', "HTTP/1.1 204 No\r\n\r\n"),
        ],
        "GET /a . Gap(Server) OutOfStep(Server) Resumed(Server) 204 !",
    );
}

#[test]
fn lengths_that_exclude_each_other_are_nothing_to_go_by() {
    for lengths in
        ["content-length: 3\r\ncontent-length: 4", "content-length: +3", "content-length: "]
    {
        let head = format!("POST /a HTTP/1.1\r\n{lengths}\r\n\r\nabc");
        check(&[('>', &head)], "POST /a OutOfStep(Client)");
    }
    check(
        &[('>', "POST /a HTTP/1.1\r\ncontent-length: 3, 3\r\ncontent-length: 3\r\n\r\nabc")],
        "POST /a .",
    );
    check(
        &[('>', "POST /a HTTP/1.1\r\ntransfer-encoding: gzip\r\n\r\n")],
        "POST /a OutOfStep(Client)",
    );
}

#[test]
fn other_protocols_are_said() {
    check(&[('>', "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")], "Http2");
    check(&[('>', "\u{16}\u{3}\u{1}")], "Encrypted");
    check(
        &[('>', GET), ('<', "HTTP/1.1 101 Switch\r\nupgrade: websocket\r\n\r\n\u{1}")],
        "GET /a . 101 ! Upgraded",
    );
    check(
        &[('>', "CONNECT a:1 HTTP/1.1\r\n\r\n"), ('<', "HTTP/1.1 200 OK\r\n\r\n\u{16}\u{3}")],
        "CONNECT a:1 . 200 ! Upgraded",
    );
}
