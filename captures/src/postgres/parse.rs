//! From the chunks of both directions to messages.

use super::body::{asks_for_replication, backend, backend_is_hollow, frontend, frontend_is_hollow};
use super::framing::{Framing, Next};
use super::model::{Backend, Body, Fault, Frontend, Message, MessageSink, Rows, whole_row};
use super::recognise::{self, Untyped, series, startup};
use crate::tcp::Side;
use crate::units::Moment;

/// Decodes one connection.
#[derive(Debug)]
pub struct Decoder {
    client: Half,
    server: Half,
    phase: Phase,
    /// Whether the next server byte is the untyped answer to a request for encryption.
    answer_expected: bool,
    readable: bool,
    /// Whether anything has been recognised at all.
    recognised: bool,
}

/// How the client's bytes are framed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Untyped messages: the session has not begun.
    Opening,
    /// Typed messages.
    Session,
}

#[derive(Debug, Default)]
struct Half {
    framing: Framing,
    /// Whether it is known where messages start.
    in_step: bool,
    /// Whether being out of step has been said.
    said: bool,
}

impl Decoder {
    /// A decoder for a connection whose first bytes come first if `from_start`; otherwise it gets
    /// into step at the first chunk that starts with a message.
    #[must_use]
    pub fn new(from_start: bool) -> Self {
        let half = || Half { in_step: from_start, ..Half::default() };
        Self {
            client: half(),
            server: half(),
            phase: if from_start { Phase::Opening } else { Phase::Session },
            answer_expected: false,
            readable: true,
            recognised: false,
        }
    }

    /// Whether any message has been recognised.
    #[must_use]
    pub fn is_recognised(&self) -> bool {
        self.recognised
    }

    /// Takes the next bytes of one side.
    pub fn feed(
        &mut self,
        from: Side,
        moment: Moment,
        bytes: &[u8],
        sink: &mut impl FnMut(Message<'_>),
    ) {
        self.feed_together(from, moment, bytes, &mut OneByOne(sink));
    }

    /// Takes the next bytes of one side, and delivers rows that came together as one.
    pub fn feed_together(
        &mut self,
        from: Side,
        moment: Moment,
        bytes: &[u8],
        sink: &mut impl MessageSink,
    ) {
        if !self.readable || bytes.is_empty() {
            return;
        }
        match from {
            Side::Client => self.client_bytes(moment, bytes, sink),
            Side::Server => self.server_bytes(moment, bytes, sink),
        }
    }

    /// Takes note of bytes that were not captured.
    pub fn gap(
        &mut self,
        from: Side,
        moment: Moment,
        length: u64,
        sink: &mut impl FnMut(Message<'_>),
    ) {
        if !self.readable {
            return;
        }
        let half = match from {
            Side::Client => &mut self.client,
            Side::Server => &mut self.server,
        };
        if half.in_step && !half.framing.pass_gap(length) {
            half.in_step = false;
            if from == Side::Server {
                self.answer_expected = false;
            }
        }
        fault(&mut OneByOne(sink), moment, Fault::Gap(from));
    }

    fn client_bytes(&mut self, moment: Moment, bytes: &[u8], sink: &mut impl MessageSink) {
        if !self.client.in_step {
            if startup(bytes).is_some_and(|(_, length)| length as usize == bytes.len()) {
                self.phase = Phase::Opening;
            } else if !series(bytes, recognise::frontend) {
                return self.lost(Side::Client, moment, sink);
            } else {
                self.phase = Phase::Session;
            }
            self.resume(Side::Client, moment, sink);
        }
        let mut rest = bytes;
        while !rest.is_empty() && self.readable {
            let untyped = self.phase == Phase::Opening;
            if untyped && self.client.framing.is_between() && is_tls(rest) {
                self.encrypted(moment, sink);
                return;
            }
            let fits = |kind, length| match untyped {
                true => untyped_fits(length),
                false => recognise::frontend(kind, length),
            };
            match self.client.framing.next(rest, untyped, fits, frontend_is_hollow) {
                Next::Unfinished => return,
                Next::Bad => return self.lost(Side::Client, moment, sink),
                Next::Whole(frame, after) => {
                    let message = if untyped {
                        opening(frame.body).map(|(message, phase, answer)| {
                            self.phase = phase;
                            self.answer_expected |= answer;
                            message
                        })
                    } else {
                        frontend(frame.kind, frame.body)
                    };
                    rest = after;
                    let Some(message) = message else {
                        return self.lost(Side::Client, moment, sink);
                    };
                    self.recognised = true;
                    let body = Body::Frontend(message);
                    sink.message(Message { moment, length: frame.length, body });
                }
            }
            self.client.framing.done();
        }
    }

    fn server_bytes(&mut self, moment: Moment, bytes: &[u8], sink: &mut impl MessageSink) {
        let mut rest = bytes;
        if self.answer_expected {
            self.answer_expected = false;
            // An old server answers with an ordinary ErrorResponse.
            if let answer @ (b'N' | b'S' | b'G') = rest[0] {
                let body = Body::Backend(Backend::Encryption(answer));
                sink.message(Message { moment, length: 1, body });
                if answer != b'N' {
                    self.encrypted(moment, sink);
                    return;
                }
                rest = &rest[1..];
            }
        }
        if rest.is_empty() {
            return;
        }
        if !self.server.in_step {
            if !series(rest, recognise::backend) {
                return self.lost(Side::Server, moment, sink);
            }
            self.resume(Side::Server, moment, sink);
        }
        while !rest.is_empty() {
            if self.server.framing.is_between()
                && let Some(rows) = rows(moment, rest)
            {
                self.recognised = true;
                rest = &rest[rows.length() as usize..];
                sink.rows(rows);
                continue;
            }
            let framing = &mut self.server.framing;
            match framing.next(rest, false, recognise::backend, backend_is_hollow) {
                Next::Unfinished => return,
                Next::Bad => return self.lost(Side::Server, moment, sink),
                Next::Whole(frame, after) => {
                    rest = after;
                    let Some(message) = backend(frame.kind, frame.body) else {
                        return self.lost(Side::Server, moment, sink);
                    };
                    self.recognised = true;
                    let body = Body::Backend(message);
                    sink.message(Message { moment, length: frame.length, body });
                }
            }
            self.server.framing.done();
        }
    }

    fn encrypted(&mut self, moment: Moment, sink: &mut impl MessageSink) {
        self.readable = false;
        fault(sink, moment, Fault::Encrypted);
    }

    fn half(&mut self, side: Side) -> &mut Half {
        match side {
            Side::Client => &mut self.client,
            Side::Server => &mut self.server,
        }
    }

    fn lost(&mut self, side: Side, moment: Moment, sink: &mut impl MessageSink) {
        let half = self.half(side);
        half.in_step = false;
        half.framing.reset();
        if !std::mem::replace(&mut half.said, true) {
            fault(sink, moment, Fault::OutOfStep(side));
        }
    }

    fn resume(&mut self, side: Side, moment: Moment, sink: &mut impl MessageSink) {
        let half = self.half(side);
        half.in_step = true;
        half.said = false;
        half.framing.reset();
        fault(sink, moment, Fault::Resumed(side));
    }
}

/// Hands rows over as the messages that they are.
struct OneByOne<'s, S>(&'s mut S);

impl<S: FnMut(Message<'_>)> MessageSink for OneByOne<'_, S> {
    fn message(&mut self, message: Message<'_>) {
        self.0(message);
    }
}

/// The whole rows at the start of `bytes`, if it starts with one.
fn rows(moment: Moment, bytes: &[u8]) -> Option<Rows<'_>> {
    let (mut count, mut length) = (0, 0);
    while let Some(row) = whole_row(&bytes[length..]) {
        count += 1;
        length += row;
    }
    (count > 0).then(|| Rows { moment, count, bytes: &bytes[..length] })
}

fn fault(sink: &mut impl MessageSink, moment: Moment, fault: Fault) {
    sink.message(Message { moment, length: 0, body: Body::Fault(fault) });
}

/// An untyped message; how the next ones are framed; whether one untyped byte answers it.
fn opening(body: &[u8]) -> Option<(Frontend<'_>, Phase, bool)> {
    let mut head = [0; 8];
    head[..4].copy_from_slice(&(body.len() as u32 + 4).to_be_bytes());
    head[4..].copy_from_slice(body.first_chunk::<4>()?);
    Some(match startup(&head)?.0 {
        Untyped::Tls => (Frontend::TlsRequest, Phase::Opening, true),
        Untyped::Gss => (Frontend::GssRequest, Phase::Opening, true),
        Untyped::Cancel => (Frontend::CancelRequest, Phase::Opening, false),
        Untyped::Startup => {
            let replication = asks_for_replication(body);
            (Frontend::Startup { replication }, Phase::Session, false)
        }
    })
}

fn untyped_fits(length: u32) -> bool {
    (8..=10_004).contains(&length)
}

/// A TLS handshake record: since version 17 clients may start with it at once.
fn is_tls(bytes: &[u8]) -> bool {
    matches!(bytes, [0x16, 3, ..])
}
