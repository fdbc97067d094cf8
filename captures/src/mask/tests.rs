//! Tests of masking: what stays, what goes, and that nothing depends on how bytes are cut.

use super::http::Http;
use super::postgres::Postgres;
use super::redis::Redis;
use super::*;

/// Speaks lines of a conversation; each is masked in pieces of `piece` bytes, which begin no
/// segment of their own.
fn speak(
    conversation: &mut dyn Conversation,
    lines: &[(From, &[u8])],
    piece: usize,
) -> Vec<Vec<u8>> {
    lines
        .iter()
        .map(|(from, line)| {
            let mut masked = line.to_vec();
            for piece in masked.chunks_mut(piece) {
                conversation.mask(*from, piece);
            }
            masked
        })
        .collect()
}

/// The masked lines, after checking that any way of cutting them masks them alike.
fn masked(new: &dyn Fn() -> Box<dyn Conversation>, lines: &[(From, &[u8])]) -> Vec<String> {
    let whole = speak(new().as_mut(), lines, usize::MAX);
    for piece in 1..40 {
        assert_eq!(speak(new().as_mut(), lines, piece), whole, "pieces of {piece}");
    }
    // Masked once more it stays as it is: the same structure is read from it.
    let again: Vec<(From, &[u8])> =
        lines.iter().zip(&whole).map(|((from, _), line)| (*from, line.as_slice())).collect();
    assert_eq!(speak(new().as_mut(), &again, usize::MAX), whole, "masking what is masked");
    whole.iter().map(|line| line.escape_ascii().to_string()).collect()
}

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut message = vec![kind];
    message.extend((body.len() as u32 + 4).to_be_bytes());
    message.extend(body);
    message
}

fn start_up(version: u32, body: &[u8]) -> Vec<u8> {
    let mut message = (body.len() as u32 + 8).to_be_bytes().to_vec();
    message.extend(version.to_be_bytes());
    message.extend(body);
    message
}

fn bind() -> Vec<u8> {
    // One format (binary), three values (4 bytes, NULL, 5 bytes), one result format.
    let mut body = b"p\0s1\0\0\x01\0\x01\0\x03\0\0\0\x04pw42".to_vec();
    body.extend(b"\xff\xff\xff\xff\0\0\0\x05alice\0\x01\0\x01");
    message(b'B', &body)
}

fn row() -> Vec<u8> {
    message(b'D', b"\0\x03\0\0\0\x05Ann B\xff\xff\xff\xff\0\0\0\0")
}

fn session() -> Vec<(From, Vec<u8>)> {
    let start = start_up(196_608, b"user\0ann\0database\0shop\0\0");
    let greeting = [
        message(b'R', b"\0\0\0\x05salt"),
        message(b'S', b"server_version\x0015.4\0"),
        message(b'S', b"session_authorization\0ann\0"),
        message(b'K', b"\0\0\0\x07key!"),
        message(b'Z', b"I"),
    ];
    let query = [
        message(b'P', b"s1\0select * from t where a = 'alice' and b = $1\0\0\x01\0\0\0\x17"),
        message(b'D', b"Ss1\0"),
        bind(),
        message(b'E', b"p\0\0\0\0\0"),
        message(b'S', b""),
    ];
    let answer = [
        message(b'1', b""),
        message(b'T', b"\0\x01name\0\0\0\0\0\0\0\0\0\0\x19\xff\xff\xff\xff\xff\xff\0\0"),
        row(),
        message(b'C', b"SELECT 1\0"),
        message(b'E', b"SERROR\0VERROR\0C23505\0Mkey (mail)=(ann)\0Dann is there\0Rfoo\0\0"),
        message(b'Z', b"E"),
    ];
    vec![
        (From::Client, start),
        (From::Server, greeting.concat()),
        (From::Client, message(b'p', b"md5secret\0")),
        (From::Client, query.concat()),
        (From::Server, answer.concat()),
        (From::Client, message(b'Q', b"insert into t values ('alice', 42)\0")),
        (From::Client, message(b'd', b"alice\t42\n")),
        (From::Server, message(b'A', b"\0\0\0\x09chan\0alice\0")),
    ]
}

fn borrowed(lines: &[(From, Vec<u8>)]) -> Vec<(From, &[u8])> {
    lines.iter().map(|(from, line)| (*from, line.as_slice())).collect()
}

#[test]
fn postgres_keeps_statements_and_loses_values() {
    let lines = session();
    let after = masked(&|| Box::new(Postgres::new(true)), &borrowed(&lines));
    let expected = [
        r"\x00\x00\x00 \x00\x03\x00\x00user\x00xxx\x00database\x00xxxx\x00\x00",
        concat!(
            r"R\x00\x00\x00\x0c\x00\x00\x00\x05xxxx",
            r"S\x00\x00\x00\x18server_version\x0015.4\x00",
            r"S\x00\x00\x00\x1esession_authorization\x00xxx\x00",
            r"K\x00\x00\x00\x0c\x00\x00\x00\x07xxxx",
            r"Z\x00\x00\x00\x05I"
        ),
        r"p\x00\x00\x00\x0exxxxxxxxxx",
        concat!(
            r"P\x00\x00\x00:s1\x00select * from t where a = \'xxxxx\' and b = $1\x00",
            r"\x00\x01\x00\x00\x00\x17",
            r"D\x00\x00\x00\x08Ss1\x00",
            r"B\x00\x00\x00(p\x00s1\x00\x00\x01\x00\x01\x00\x03\x00\x00\x00\x04xxxx",
            r"\xff\xff\xff\xff\x00\x00\x00\x05xxxxx\x00\x01\x00\x01",
            r"E\x00\x00\x00\np\x00\x00\x00\x00\x00",
            r"S\x00\x00\x00\x04"
        ),
    ];
    assert_eq!(after[..4], expected);
    let everything = after.concat();
    for kept in ["SELECT 1", "C23505", "SERROR", "name", "chan", "Rfoo"] {
        assert!(everything.contains(kept), "{kept} should stay");
    }
    for secret in ["alice", "Ann B", "pw42", "secret", "mail", "is there", "42", "salt", "key"] {
        assert!(!everything.contains(secret), "{secret} should go");
    }
}

#[test]
fn an_encrypted_connection_is_masked_whole_and_a_refused_offer_goes_on_in_the_clear() {
    let offer = start_up(80_877_103, b"");
    let start = start_up(196_608, b"user\0ann\0\0");
    let hello = b"\x16\x03\x01secret".to_vec();
    let lines: [(From, &[u8]); 4] = [
        (From::Client, &offer),
        (From::Server, b"S"),
        (From::Client, &hello),
        (From::Server, &hello),
    ];
    let after = masked(&|| Box::new(Postgres::new(true)), &lines);
    assert_eq!(after[1..], ["S", "xxxxxxxxx", "xxxxxxxxx"]);
    let ready = message(b'Z', b"I");
    let lines: [(From, &[u8]); 4] = [
        (From::Client, &offer),
        (From::Server, b"N"),
        (From::Client, &start),
        (From::Server, &ready),
    ];
    let after = masked(&|| Box::new(Postgres::new(true)), &lines);
    assert!(after[2].contains(r"user\x00xxx"));
    assert_eq!(after[3], r"Z\x00\x00\x00\x05I");
}

#[test]
fn a_joined_connection_is_understood_from_a_segment_that_is_whole_messages() {
    let mut postgres = Postgres::new(false);
    let mut tail = b"lice\0\x01\0\x01".to_vec();
    postgres.mask(From::Client, &mut tail);
    assert_eq!(tail, [MASK; 8], "the end of a message that nobody saw begin");
    let mut next = bind();
    postgres.mask(From::Client, &mut next);
    assert!(next.starts_with(b"B\0\0\0(p\0s1\0"));
    assert!(!next.windows(5).any(|five| five == b"alice"));
    // A row's text that looks like a message of its own, cut by the segment's end.
    let mut text = b"Q\0\0\0\x20select 'alice".to_vec();
    postgres.gap(From::Client);
    postgres.mask(From::Client, &mut text);
    assert!(text.iter().all(|&byte| byte == MASK));
}

#[test]
fn redis_keeps_commands_and_loses_keys_and_values() {
    let lines: Vec<(From, &[u8])> = vec![
        (From::Client, b"*3\r\n$3\r\nSET\r\n$6\r\nuser:7\r\n$5\r\na\r\nB!\r\n"),
        (From::Server, b"+OK\r\n"),
        (From::Client, b"*4\r\n$6\r\nclient\r\n$7\r\nSETINFO\r\n$8\r\nlib-name\r\n$2\r\nrs\r\n"),
        (From::Server, b"-WRONGTYPE the key holds alice\r\n:1042\r\n$-1\r\n$0\r\n\r\n"),
        (From::Server, b"%2\r\n$3\r\nabc\r\n,3.14\r\n=9\r\ntxt:alice\r\n#t\r\n_\r\n"),
        (From::Client, b"GET alice\r\nPING\r\n"),
    ];
    assert_eq!(
        masked(&|| Box::new(Redis::new(true)), &lines),
        [
            r"*3\r\n$3\r\nSET\r\n$6\r\nxxxxxx\r\n$5\r\nxxxxx\r\n",
            r"+xx\r\n",
            r"*4\r\n$6\r\nclient\r\n$7\r\nSETINFO\r\n$8\r\nxxxxxxxx\r\n$2\r\nxx\r\n",
            r"-WRONGTYPE xxxxxxxxxxxxxxxxxxx\r\n:1111\r\n$-1\r\n$0\r\n\r\n",
            r"%2\r\n$3\r\nxxx\r\n,1.11\r\n=9\r\nxxxxxxxxx\r\n#t\r\n_\r\n",
            r"GET xxxxx\r\nPING\r\n",
        ]
    );
}

#[test]
fn redis_keeps_what_decides_whether_something_is_a_reply() {
    let mut redis = Redis::new(true);
    let mut command = b"*3\r\n$6\r\nCLIENT\r\n$5\r\nREPLY\r\n$3\r\nOFF\r\n\
        *3\r\n$6\r\nCLIENT\r\n$7\r\nSETNAME\r\n$3\r\nann\r\n"
        .to_vec();
    redis.mask(From::Client, &mut command);
    let text = String::from_utf8(command).unwrap();
    assert!(text.contains("OFF") && !text.contains("ann"), "{text}");
    let mut push = b"*3\r\n$7\r\nmessage\r\n$7\r\nmessage\r\n$3\r\nann\r\n".to_vec();
    redis.mask(From::Server, &mut push);
    assert_eq!(push, b"*3\r\n$7\r\nmessage\r\n$7\r\nxxxxxxx\r\n$3\r\nxxx\r\n");
}

#[test]
fn http_keeps_paths_and_framing_and_loses_bodies_and_cookies() {
    let lines: Vec<(From, &[u8])> = vec![
        (
            From::Client,
            b"POST /post/a-1?name=ann&x HTTP/1.1\r\nHost: ann.example\r\n\
            Content-Length: 5\r\nAuthorization: Basic c2Vj\r\n\r\nalice",
        ),
        (
            From::Server,
            b"HTTP/1.1 200 OK\r\nSet-Cookie: id=7; a\r\nTransfer-Encoding: chunked\r\n\
            \r\n5;q=1\r\nalice\r\n0\r\nTrail: er\r\n\r\n",
        ),
        (From::Client, b"HEAD /a HTTP/1.1\r\n\r\nGET /b HTTP/1.1\r\n\r\n"),
        (
            From::Server,
            b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n\
            HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\n\r\n",
        ),
        (From::Client, b"GET /chat HTTP/1.1\r\nUpgrade: websocket\r\n\r\n"),
        (From::Server, b"HTTP/1.1 101 Switching Protocols\r\n\r\nalice"),
        (From::Client, b"GET /not HTTP/1.1"),
    ];
    assert_eq!(
        masked(&|| Box::new(Http::new(true)), &lines),
        [
            r"POST /post/a-1?name=xxx&x HTTP/1.1\r\nHost: xxxxxxxxxxx\r\nContent-Length: 5\r\nAuthorization: xxxxx xxxx\r\n\r\nxxxxx",
            r"HTTP/1.1 200 OK\r\nSet-Cookie: xxxxx x\r\nTransfer-Encoding: chunked\r\n\r\n5;xxx\r\nxxxxx\r\n0\r\nTrail: xx\r\n\r\n",
            r"HEAD /a HTTP/1.1\r\n\r\nGET /b HTTP/1.1\r\n\r\n",
            r"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nHTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\n\r\n",
            r"GET /chat HTTP/1.1\r\nUpgrade: websocket\r\n\r\n",
            r"HTTP/1.1 101 Switching Protocols\r\n\r\nxxxxx",
            r"xxxxxxxxxxxxxxxxx",
        ]
    );
}

#[test]
fn http_without_a_length_is_a_body_until_the_end() {
    let lines: Vec<(From, &[u8])> =
        vec![(From::Server, b"HTTP/1.0 200 OK\r\n\r\nHTTP/1.1 200 alice\r\n")];
    let after = masked(&|| Box::new(Http::new(true)), &lines);
    assert!(!after[0].contains("alice"));
}

#[test]
fn after_a_gap_everything_goes_until_a_message_begins() {
    let mut http = Http::new(true);
    http.mask(From::Server, &mut b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nali".to_vec());
    http.gap(From::Server);
    let mut rest = b"ce: secret\r\n".to_vec();
    http.mask(From::Server, &mut rest);
    assert_eq!(rest, [MASK; 12]);
    let mut next = b"HTTP/1.1 204 No Content\r\nX: y\r\n\r\n".to_vec();
    http.mask(From::Server, &mut next);
    assert_eq!(next, b"HTTP/1.1 204 No Content\r\nX: x\r\n\r\n");

    let mut redis = Redis::new(false);
    let mut rest = b"alice\r\n".to_vec();
    redis.mask(From::Client, &mut rest);
    assert_eq!(rest, [MASK; 7]);
    let mut next = b"*1\r\n$4\r\nPING\r\n".to_vec();
    redis.mask(From::Client, &mut next);
    assert_eq!(next, b"*1\r\n$4\r\nPING\r\n");
}

#[test]
fn nothing_panics_on_cut_and_flipped_traffic() {
    let lines = session();
    let mut random = 1_u64;
    let mut next = |limit: usize| {
        random =
            random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((random >> 33) as usize) % limit
    };
    for _ in 0..3000 {
        for from_start in [true, false] {
            let all: [Box<dyn Conversation>; 3] = [
                Box::new(Postgres::new(from_start)),
                Box::new(Redis::new(from_start)),
                Box::new(Http::new(from_start)),
            ];
            for mut conversation in all {
                for (from, line) in &lines {
                    let mut line = line.clone();
                    let at = next(line.len());
                    line[at] ^= 1 << next(8);
                    line.truncate(next(line.len()) + 1);
                    conversation.mask(*from, &mut line);
                }
            }
        }
    }
}

/// What decoders read: the length of each message and which one it is, without what it says.
fn structure(message: &dyn std::fmt::Debug) -> String {
    let text = format!("{message:?}");
    let kinds = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let names = kinds.filter(|word| word.starts_with(|c: char| c.is_ascii_uppercase()));
    names.collect::<Vec<_>>().join(" ")
}

fn side(from: From) -> crate::tcp::Side {
    match from {
        From::Client => crate::tcp::Side::Client,
        From::Server => crate::tcp::Side::Server,
    }
}

#[test]
fn decoders_read_the_same_messages_before_and_after() {
    let now = crate::units::Moment(1);
    let read = |lines: &[(From, Vec<u8>)]| {
        let mut decoder = crate::postgres::Decoder::new(true);
        let mut messages = Vec::new();
        for (from, line) in lines {
            decoder.feed(side(*from), now, line, &mut |message: crate::postgres::Message<'_>| {
                messages.push((message.length, structure(&message.body)));
            });
        }
        messages
    };
    let before = session();
    let after: Vec<(From, Vec<u8>)> = before
        .iter()
        .zip(speak(&mut Postgres::new(true), &borrowed(&before), usize::MAX))
        .map(|((from, _), line)| (*from, line))
        .collect();
    assert_ne!(before[3].1, after[3].1);
    let messages = read(&before);
    assert_eq!(read(&after), messages);
    assert!(messages.len() >= 20, "{messages:?}");
}
