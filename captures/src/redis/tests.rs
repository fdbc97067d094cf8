//! Commands and replies in, events and problems out.

use super::*;
use crate::tcp::Side;
use crate::units::Moment;

fn check(client: &[u8], server: &[u8], expected: &str) {
    let mut decoder = Decoder::new(true);
    let mut said = Vec::new();
    let mut each = |message: Message<'_>| {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        said.push(match message.said {
            Said::Command(command) => format!("{}/{}", text(command.name), command.words),
            Said::Reply(reply) if reply.null => "null".to_owned(),
            Said::Reply(reply) => format!("{}{}", char::from(reply.kind), text(reply.start)),
            Said::Push(push) => format!("push {}", text(push.start)),
            Said::Fault(fault) => format!("{fault:?}"),
        });
    };
    decoder.feed(Side::Client, Moment(0), client, &mut each);
    decoder.feed(Side::Server, Moment(1), server, &mut each);
    assert_eq!(said.join(" "), expected);
}

#[test]
fn commands_come_as_arrays_or_as_lines() {
    check(
        b"*2\r\n$3\r\nGET\r\n$1\r\na\r\nset a 'b c'\r\n\r\n*0\r\nPING\n",
        b"",
        "GET/2 set/4 PING/1",
    );
}

#[test]
fn replies_of_both_versions_are_told_apart_from_pushes() {
    check(
        b"",
        b"+OK\r\n-ERR no\r\n:1\r\n$-1\r\n*-1\r\n_\r\n$0\r\n\r\n",
        "+OK -ERR no :1 null null null $",
    );
    check(b"", b">2\r\n+message\r\n$1\r\nx\r\n%1\r\n+a\r\n~1\r\n:1\r\n*0\r\n", "push message %a *");
    check(b"", b"|1\r\n+ttl\r\n:9\r\n$1\r\nx\r\n*2\r\n|1\r\n+a\r\n+b\r\n:7\r\n:8\r\n", "$x *7");
}

#[test]
fn tls_and_other_protocols_are_said() {
    check(b"\x16\x03\x01\x02\x00", b"", "Encrypted");
    check(b"*x\r\n", b"what\r\n", "OutOfStep(Client) OutOfStep(Server)");
}

#[test]
fn a_hole_in_a_value_of_known_length_costs_nothing() {
    let mut decoder = Decoder::new(true);
    let mut replies = 0;
    let mut each =
        |message: Message<'_>| replies += u32::from(matches!(message.said, Said::Reply(_)));
    decoder.feed(Side::Server, Moment(0), b"$10\r\nab", &mut each);
    decoder.gap(Side::Server, Moment(1), 5, &mut each);
    decoder.feed(Side::Server, Moment(2), b"hij\r\n+OK\r\n", &mut each);
    assert_eq!(replies, 2);
}
