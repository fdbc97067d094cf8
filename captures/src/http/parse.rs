//! From the chunks of both directions to requests and responses.

use std::collections::VecDeque;

use super::body::{Body, Chunked, Progress};
use super::model::{Fault, Message, Said};
use crate::tcp::Side;
use crate::units::Moment;

/// Longest head that is read.
const HEAD_LIMIT: usize = 64 * 1024;
/// Requests that can wait for their response at once.
const PIPELINE_LIMIT: usize = 10_000;
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n";

/// Decodes one connection.
#[derive(Debug)]
pub struct Decoder {
    client: Half,
    server: Half,
    /// What the requests that wait for their response need to know about its body.
    waiting: VecDeque<Asked>,
    readable: bool,
}

/// How a method bears on its response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    Head,
    Connect,
    Other,
}

#[derive(Debug, Default)]
struct Half {
    /// The start of a head whose end has not come yet.
    head: Vec<u8>,
    body: Option<Body>,
    /// Whether the body belongs to an interim response.
    in_step: bool,
    said: bool,
}

type Deliver<'s, S> = &'s mut S;

impl Decoder {
    /// A decoder for a connection whose first bytes come first if `from_start`; otherwise it gets
    /// into step at the first chunk that starts with a message.
    #[must_use]
    pub fn new(from_start: bool) -> Self {
        let half = || Half { in_step: from_start, ..Half::default() };
        Self { client: half(), server: half(), waiting: VecDeque::new(), readable: true }
    }

    /// Takes the next bytes of one side.
    pub fn feed<S: FnMut(Message<'_>)>(
        &mut self,
        from: Side,
        moment: Moment,
        bytes: &[u8],
        sink: Deliver<'_, S>,
    ) {
        let mut rest = bytes;
        while self.readable && !rest.is_empty() {
            let half = self.half(from);
            if let Some(body) = &mut half.body {
                match body.feed(rest) {
                    Progress::Inside => return,
                    Progress::Ends(used) => {
                        half.body = None;
                        rest = &rest[used..];
                        self.end(from, moment, sink);
                    }
                    Progress::Bad => return self.lost(from, moment, sink),
                }
                continue;
            }
            if !half.in_step {
                let fits = match from {
                    Side::Client => is_request(rest),
                    Side::Server => is_response(rest),
                };
                if !fits {
                    return self.lost(from, moment, sink);
                }
                half.in_step = true;
                half.said = false;
                sink(Message { moment, said: Said::Fault(Fault::Resumed(from)) });
            }
            let Some(used) = self.head(from, moment, rest, sink) else { return };
            rest = &rest[used..];
        }
    }

    /// Takes note of bytes that were not captured.
    pub fn gap<S: FnMut(Message<'_>)>(
        &mut self,
        from: Side,
        moment: Moment,
        length: u64,
        sink: Deliver<'_, S>,
    ) {
        if !self.readable {
            return;
        }
        let half = self.half(from);
        if let Some(body) = &mut half.body
            && body.pass_gap(length)
        {
            let ends = *body == Body::Length(0);
            sink(Message { moment, said: Said::Fault(Fault::HoleInBody(from, length)) });
            if ends {
                self.half(from).body = None;
                self.end(from, moment, sink);
            }
            return;
        }
        half.body = None;
        half.head.clear();
        half.in_step = false;
        sink(Message { moment, said: Said::Fault(Fault::Gap(from)) });
    }

    /// The connection is closed: ends a response that reaches until then.
    pub fn close<S: FnMut(Message<'_>)>(&mut self, moment: Moment, sink: Deliver<'_, S>) {
        if self.readable && self.server.body == Some(Body::UntilClose) {
            self.server.body = None;
            self.end(Side::Server, moment, sink);
        }
    }

    fn half(&mut self, side: Side) -> &mut Half {
        match side {
            Side::Client => &mut self.client,
            Side::Server => &mut self.server,
        }
    }

    fn end<S: FnMut(Message<'_>)>(&mut self, from: Side, moment: Moment, sink: Deliver<'_, S>) {
        let said = match from {
            Side::Client => Said::RequestEnd,
            Side::Server => Said::ResponseEnd,
        };
        sink(Message { moment, said });
    }

    /// Reads a head; how many bytes it had, or `None` if the rest of the chunk is used up.
    fn head<S: FnMut(Message<'_>)>(
        &mut self,
        from: Side,
        moment: Moment,
        bytes: &[u8],
        sink: Deliver<'_, S>,
    ) -> Option<usize> {
        let kept = std::mem::take(&mut self.half(from).head);
        if kept.is_empty() {
            // Empty lines between messages mean nothing.
            let blank = bytes.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
            if blank > 0 {
                return Some(blank);
            }
            if let Some(fault) = other_protocol(from, bytes) {
                self.readable = false;
                sink(Message { moment, said: Said::Fault(fault) });
                return None;
            }
            return self.whole_head(from, moment, bytes, sink).unwrap_or_else(|| {
                self.keep(from, moment, bytes.to_vec(), sink);
                None
            });
        }
        let before = kept.len();
        let mut joined = kept;
        let room = HEAD_LIMIT.saturating_sub(before).min(bytes.len());
        joined.extend_from_slice(&bytes[..room]);
        match self.whole_head(from, moment, &joined, sink) {
            Some(used) => used.map(|used| used.saturating_sub(before)),
            None => {
                self.keep(from, moment, joined, sink);
                None
            }
        }
    }

    fn keep<S: FnMut(Message<'_>)>(
        &mut self,
        from: Side,
        moment: Moment,
        head: Vec<u8>,
        sink: Deliver<'_, S>,
    ) {
        if head.len() >= HEAD_LIMIT {
            self.lost(from, moment, sink);
        } else {
            self.half(from).head = head;
        }
    }

    /// `None`: the head goes on. `Some(None)`: this is no head.
    #[expect(clippy::option_option, reason = "three answers, told apart in one place")]
    fn whole_head<S: FnMut(Message<'_>)>(
        &mut self,
        from: Side,
        moment: Moment,
        bytes: &[u8],
        sink: Deliver<'_, S>,
    ) -> Option<Option<usize>> {
        let mut headers = [httparse::EMPTY_HEADER; 128];
        let used = match from {
            Side::Client => {
                let mut request = httparse::Request::new(&mut headers);
                match request.parse(bytes) {
                    Ok(httparse::Status::Complete(used)) => {
                        self.request(moment, &request, sink);
                        used
                    }
                    Ok(httparse::Status::Partial) => return None,
                    Err(_) => {
                        self.lost(from, moment, sink);
                        return Some(None);
                    }
                }
            }
            Side::Server => {
                let mut response = httparse::Response::new(&mut headers);
                match response.parse(bytes) {
                    Ok(httparse::Status::Complete(used)) => {
                        self.response(moment, &response, sink);
                        used
                    }
                    Ok(httparse::Status::Partial) => return None,
                    Err(_) => {
                        self.lost(from, moment, sink);
                        return Some(None);
                    }
                }
            }
        };
        Some(Some(used))
    }

    fn request<S: FnMut(Message<'_>)>(
        &mut self,
        moment: Moment,
        request: &httparse::Request<'_, '_>,
        sink: Deliver<'_, S>,
    ) {
        let method = request.method.unwrap_or("").as_bytes();
        let target = request.path.unwrap_or("").as_bytes();
        if self.waiting.len() < PIPELINE_LIMIT {
            self.waiting.push_back(match method {
                b"HEAD" => Asked::Head,
                b"CONNECT" => Asked::Connect,
                _ => Asked::Other,
            });
        }
        sink(Message { moment, said: Said::Request { method, target } });
        self.client.body = match framing(request.headers) {
            Framing::Says(Body::UntilClose) | Framing::Nonsense => {
                self.lost(Side::Client, moment, sink);
                return;
            }
            Framing::Says(Body::Length(0)) | Framing::Silent => None,
            Framing::Says(body) => Some(body),
        };
        if self.client.body.is_none() {
            self.end(Side::Client, moment, sink);
        }
    }

    fn response<S: FnMut(Message<'_>)>(
        &mut self,
        moment: Moment,
        response: &httparse::Response<'_, '_>,
        sink: Deliver<'_, S>,
    ) {
        let status = response.code.unwrap_or(0);
        if (100..200).contains(&status) && status != 101 {
            sink(Message { moment, said: Said::Interim { status } });
            return;
        }
        let asked = self.waiting.pop_front().unwrap_or(Asked::Other);
        sink(Message { moment, said: Said::Response { status } });
        let tunnel = asked == Asked::Connect && (200..300).contains(&status);
        let empty = asked == Asked::Head || tunnel || matches!(status, 101 | 204 | 304);
        self.server.body = match framing(response.headers) {
            _ if empty => None,
            Framing::Nonsense => {
                self.lost(Side::Server, moment, sink);
                return;
            }
            Framing::Says(Body::Length(0)) => None,
            Framing::Says(body) => Some(body),
            Framing::Silent => Some(Body::UntilClose),
        };
        if self.server.body.is_none() {
            self.end(Side::Server, moment, sink);
        }
        if tunnel || status == 101 {
            self.readable = false;
            sink(Message { moment, said: Said::Fault(Fault::Upgraded) });
        }
    }

    fn lost<S: FnMut(Message<'_>)>(&mut self, side: Side, moment: Moment, sink: Deliver<'_, S>) {
        let half = self.half(side);
        half.head.clear();
        half.body = None;
        half.in_step = false;
        if !std::mem::replace(&mut half.said, true) {
            sink(Message { moment, said: Said::Fault(Fault::OutOfStep(side)) });
        }
    }
}

/// Whether `bytes` can be the start of a request.
#[must_use]
pub fn is_request(bytes: &[u8]) -> bool {
    let mut words = bytes.splitn(3, |&byte| byte == b' ');
    let method = words.next().unwrap_or(&[]);
    (3..=20).contains(&method.len())
        && method.iter().all(|byte| byte.is_ascii_uppercase() || matches!(byte, b'-' | b'_'))
        && words.next().is_some_and(|target| !target.is_empty())
        && words.next().is_some_and(|version| {
            let length = version.len().min(7);
            version[..length] == b"HTTP/1."[..length]
        })
}

/// Whether `bytes` can be the start of a response.
#[must_use]
pub fn is_response(bytes: &[u8]) -> bool {
    bytes.starts_with(b"HTTP/1.")
}

/// What the headers say of the body.
enum Framing {
    /// Nothing.
    Silent,
    /// How far it reaches.
    Says(Body),
    /// Things that exclude each other: it cannot be told where the next message begins, and two
    /// readers can disagree about it, which is how requests are smuggled.
    Nonsense,
}

fn framing(headers: &[httparse::Header<'_>]) -> Framing {
    let (mut length, mut coded) = (None, false);
    for header in headers {
        if header.name.eq_ignore_ascii_case("transfer-encoding") {
            let value = header.value.to_ascii_lowercase();
            if value.trim_ascii().ends_with(b"chunked") {
                return Framing::Says(Body::Chunked(Chunked::START));
            }
            coded = true;
        } else if header.name.eq_ignore_ascii_case("content-length") {
            // A list of equal numbers is one number.
            for word in header.value.split(|&byte| byte == b',') {
                let Some(number) = decimal(word.trim_ascii()) else { return Framing::Nonsense };
                if length.is_some_and(|known| known != number) {
                    return Framing::Nonsense;
                }
                length = Some(number);
            }
        }
    }
    match length {
        // A coding other than chunked ends with the connection, whatever length is stated.
        _ if coded => Framing::Says(Body::UntilClose),
        Some(length) => Framing::Says(Body::Length(length)),
        None => Framing::Silent,
    }
}

/// Digits and nothing else: neither a sign nor a blank.
fn decimal(digits: &[u8]) -> Option<u64> {
    let plain = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(digits).ok().filter(|_| plain)?.parse().ok()
}

fn other_protocol(from: Side, bytes: &[u8]) -> Option<Fault> {
    match (from, bytes) {
        (_, [0x16, 3, ..]) => Some(Fault::Encrypted),
        (Side::Client, _) if bytes.starts_with(PREFACE) => Some(Fault::Http2),
        _ => None,
    }
}
