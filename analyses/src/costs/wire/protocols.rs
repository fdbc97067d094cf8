//! What each connection speaks, and what it says.

use assay_captures::pcap::Endpoint;
use assay_captures::postgres::{Backend, Body, Frontend, MessageSink, Rows};
use assay_captures::tcp::{Connection, Side};
use assay_captures::units::Moment;
use assay_captures::{http, postgres, redis};

use super::books::{Books, Entries};
use super::counts::Count;
use super::fold::WirePorts;
use super::integrity::Protocol;
use super::statements::Statements;
use crate::attribute::Owner;
use crate::metric::Metric;
use crate::trips;

/// Chunks after which a connection that was open before the capture stays unrecognised.
const CHANCES: u8 = 16;

/// One connection.
#[derive(Debug)]
pub(super) struct Talk {
    connection: Connection,
    server: Endpoint,
    from_start: bool,
    /// Whether it stands among the connections of its protocol.
    counted: bool,
    /// Chunks that may still show that everything is encrypted, where the offer was not captured.
    looks: u8,
    /// The last window of which it was said that the connection was open before the capture.
    joined: Option<Owner>,
    spoken: Spoken,
}

#[derive(Debug)]
enum Spoken {
    Unknown { chances: u8 },
    Ignored,
    Http(Box<http::Decoder>),
    Postgres(Box<(postgres::Decoder, trips::postgres::Session)>),
    Redis(Box<(redis::Decoder, trips::redis::Session)>),
}

impl Talk {
    pub(super) fn new(
        connection: Connection,
        server: Endpoint,
        from_start: bool,
        ports: &WirePorts,
    ) -> Self {
        let looks = if from_start { 0 } else { CHANCES };
        let spoken = Spoken::Unknown { chances: CHANCES };
        let joined = None;
        let mut talk =
            Self { connection, server, from_start, counted: false, looks, joined, spoken };
        match ports.protocol(server.port) {
            Some(protocol) => talk.speaks(protocol),
            None if ports.is_empty() => {}
            None => talk.spoken = Spoken::Ignored,
        }
        talk
    }

    fn speaks(&mut self, protocol: Protocol) {
        let (connection, from_start) = (self.connection, self.from_start);
        self.spoken = match protocol {
            Protocol::Http => Spoken::Http(Box::new(http::Decoder::new(from_start))),
            Protocol::Postgres => Spoken::Postgres(Box::new((
                postgres::Decoder::new(from_start),
                trips::postgres::Session::new(connection),
            ))),
            Protocol::Redis => Spoken::Redis(Box::new((
                redis::Decoder::new(from_start),
                trips::redis::Session::new(connection, from_start),
            ))),
        };
    }

    /// What it speaks, as far as is known.
    pub(super) fn protocol(&self) -> Option<Protocol> {
        match self.spoken {
            Spoken::Unknown { .. } | Spoken::Ignored => None,
            Spoken::Http(_) => Some(Protocol::Http),
            Spoken::Postgres(_) => Some(Protocol::Postgres),
            Spoken::Redis(_) => Some(Protocol::Redis),
        }
    }

    /// Takes bytes of one side.
    pub(super) fn bytes(
        &mut self,
        from: Side,
        moment: Moment,
        bytes: &[u8],
        books: &mut Books,
        statements: &mut Statements,
    ) {
        if let Spoken::Unknown { chances } = &mut self.spoken {
            *chances = chances.saturating_sub(1);
            let left = *chances;
            match recognise(from, bytes, self.server.port, self.from_start) {
                Some(protocol) => self.speaks(protocol),
                None if is_tls(bytes) => {
                    books.detail(moment, |details| details.encrypted += 1);
                    self.spoken = Spoken::Ignored;
                }
                None if left == 0 || self.from_start => self.spoken = Spoken::Ignored,
                None => {}
            }
        }
        let Some(protocol) = self.protocol() else { return };
        let connection = self.connection;
        if !std::mem::replace(&mut self.counted, true) {
            books.detail(moment, |of| *of.connections.entry(protocol).or_default() += 1);
        }
        if !self.from_start {
            self.joined(protocol, moment, books);
        }
        if self.looks > 0 {
            self.looks -= 1;
            if is_encrypted(bytes) {
                // It stays so: each window that it says anything in has the fault.
                self.looks = CHANCES;
                books.fault(protocol, "encrypted", connection, moment);
            }
        }
        books.bytes(protocol, from, moment, bytes.len() as u64);
        match &mut self.spoken {
            Spoken::Unknown { .. } | Spoken::Ignored => {}
            Spoken::Http(decoder) => decoder.feed(from, moment, bytes, &mut |message| {
                http_message(&message, connection, books);
            }),
            Spoken::Postgres(both) => {
                let (decoder, session) = &mut **both;
                let mut sink = PostgresTalk { connection, session, books, statements };
                decoder.feed_together(from, moment, bytes, &mut sink);
            }
            Spoken::Redis(both) => {
                let (decoder, session) = &mut **both;
                decoder.feed(from, moment, bytes, &mut |message| {
                    redis_message(&message, connection, session, books);
                });
            }
        }
    }

    /// Says once a window that the connection was open before the capture.
    fn joined(&mut self, protocol: Protocol, moment: Moment, books: &mut Books) {
        let owner = books.owner(moment);
        if self.joined != Some(owner) {
            self.joined = Some(owner);
            books.fault(protocol, "joined", self.connection, moment);
        }
    }

    /// Takes note of bytes that were not captured.
    pub(super) fn gap(
        &mut self,
        from: Side,
        moment: Moment,
        length: u64,
        books: &mut Books,
        statements: &mut Statements,
    ) {
        let connection = self.connection;
        match &mut self.spoken {
            Spoken::Unknown { .. } => self.from_start = false,
            Spoken::Ignored => {}
            Spoken::Http(decoder) => decoder.gap(from, moment, length, &mut |message| {
                http_message(&message, connection, books);
            }),
            Spoken::Postgres(both) => {
                let (decoder, session) = &mut **both;
                decoder.gap(from, moment, length, &mut |message| {
                    postgres_message(&message, connection, session, books, statements);
                });
            }
            Spoken::Redis(both) => {
                let (decoder, session) = &mut **both;
                decoder.gap(from, moment, length, &mut |message| {
                    redis_message(&message, connection, session, books);
                });
            }
        }
    }

    /// The connection is closed, or the capture over.
    pub(super) fn close(&mut self, moment: Moment, books: &mut Books) {
        let connection = self.connection;
        match &mut self.spoken {
            Spoken::Unknown { .. } | Spoken::Ignored => {}
            Spoken::Http(decoder) => {
                decoder.close(moment, &mut |message| http_message(&message, connection, books));
                books.closed(connection);
            }
            Spoken::Postgres(both) => {
                both.1.close(moment, &mut Entries { books, connection });
                books.closed(connection);
            }
            Spoken::Redis(both) => {
                both.1.close(moment, &mut |fact| books.redis(connection, fact));
            }
        }
    }
}

/// Whether a chunk begins with a record of TLS 1.0 to 1.3 (RFC 8446, section 5.1).
pub(super) fn is_encrypted(bytes: &[u8]) -> bool {
    matches!(bytes, [0x14..=0x17, 3, 0..=4, high, _, ..] if *high <= 0x41)
}

/// What a first chunk looks like. Some starts say nothing (an inline Redis command, TLS): there
/// the well-known port decides.
pub(super) fn recognise(from: Side, bytes: &[u8], port: u16, from_start: bool) -> Option<Protocol> {
    let (http, postgres, redis) = match from {
        Side::Client => (
            http::is_request(bytes) || bytes.starts_with(b"PRI * HTTP/2"),
            postgres::is_frontend(bytes),
            redis::is_client(bytes),
        ),
        Side::Server => {
            (http::is_response(bytes), postgres::is_backend(bytes), redis::is_server(bytes))
        }
    };
    match (http, postgres, redis) {
        (true, ..) => Some(Protocol::Http),
        (_, true, false) => Some(Protocol::Postgres),
        (_, false, true) => Some(Protocol::Redis),
        _ if !from_start => None,
        _ => match port {
            5432 => Some(Protocol::Postgres),
            6379 => Some(Protocol::Redis),
            _ => None,
        },
    }
}

/// A TLS record: a handshake, or data of a connection that was open before the capture.
fn is_tls(bytes: &[u8]) -> bool {
    matches!(bytes, [0x16 | 0x17, 3, 0..=4, _, _, ..])
}

fn http_message(message: &http::Message<'_>, connection: Connection, books: &mut Books) {
    let moment = message.moment;
    let fault = match message.said {
        http::Said::Request { method, target } => {
            if let Some(routes) = &mut books.routes {
                routes.request(connection, method, target);
            }
            return books.request(moment);
        }
        http::Said::ResponseEnd => {
            if let Some(routes) = &mut books.routes {
                routes.response(connection, moment);
            }
            return books.response(moment);
        }
        http::Said::RequestEnd => return,
        http::Said::Response { status } => {
            let status = status.to_string();
            let responses = Metric::HttpResponses;
            return books.detail(moment, |of| of.add_for(responses, "status", &status, 1));
        }
        http::Said::Interim { .. } => {
            return books.detail(moment, |details| details.add(Metric::HttpInterim, 1));
        }
        http::Said::Fault(fault) => fault,
    };
    if let http::Fault::HoleInBody(_, bytes) = fault {
        books.detail(moment, |details| details.add(Metric::HttpMissingBytes, bytes));
    }
    let word = match fault {
        http::Fault::Encrypted => "encrypted",
        http::Fault::Http2 => "http/2",
        http::Fault::Gap(_) => "gap",
        http::Fault::HoleInBody(..) => "hole in a body",
        http::Fault::OutOfStep(_) => "out of step",
        http::Fault::Upgraded => "upgraded",
        http::Fault::Resumed(_) => return,
    };
    books.fault(Protocol::Http, word, connection, moment);
}

/// Takes the messages of one Postgres connection.
struct PostgresTalk<'t> {
    connection: Connection,
    session: &'t mut trips::postgres::Session,
    books: &'t mut Books,
    statements: &'t mut Statements,
}

impl MessageSink for PostgresTalk<'_> {
    fn message(&mut self, message: postgres::Message<'_>) {
        let Self { connection, session, books, statements } = self;
        postgres_message(&message, *connection, session, books, statements);
    }

    fn rows(&mut self, rows: Rows<'_>) {
        self.books.charge(rows.moment, Count::Rows, rows.count);
        let mut entries = Entries { books: self.books, connection: self.connection };
        self.session.rows(&rows, self.statements, &mut entries);
    }
}

fn postgres_message(
    message: &postgres::Message<'_>,
    connection: Connection,
    session: &mut trips::postgres::Session,
    books: &mut Books,
    statements: &mut Statements,
) {
    let moment = message.moment;
    match message.body {
        Body::Frontend(Frontend::Startup { .. }) => books.charge(moment, Count::Connects, 1),
        Body::Frontend(Frontend::Parse { .. }) => books.charge(moment, Count::Parses, 1),
        Body::Backend(Backend::DataRow) => books.charge(moment, Count::Rows, 1),
        Body::Backend(Backend::Error { .. }) => books.charge(moment, Count::PostgresErrors, 1),
        Body::Backend(Backend::Notice) => {
            books.detail(moment, |details| details.add(Metric::PostgresNotices, 1));
        }
        Body::Backend(Backend::Notification) => {
            books.detail(moment, |details| details.add(Metric::PostgresNotifications, 1));
        }
        Body::Backend(Backend::Encryption(answer)) => {
            let word = if answer == b'N' { "refused" } else { "accepted" };
            let connections = Metric::PostgresConnections;
            books.detail(moment, |of| of.add_for(connections, "encryption", word, 1));
        }
        Body::Frontend(Frontend::CancelRequest) => {
            books.detail(moment, |details| details.add(Metric::PostgresCancels, 1));
        }
        Body::Fault(fault) => {
            let word = match fault {
                postgres::Fault::Encrypted => Some("encrypted"),
                postgres::Fault::Gap(_) => Some("gap"),
                postgres::Fault::OutOfStep(_) => Some("out of step"),
                // Finding the first boundary again is the end of a fault, not one more.
                postgres::Fault::Resumed(_) => None,
            };
            if let Some(word) = word {
                books.fault(Protocol::Postgres, word, connection, moment);
            }
        }
        _ => {}
    }
    session.message(message, statements, &mut Entries { books, connection });
}

fn redis_message(
    message: &redis::Message<'_>,
    connection: Connection,
    session: &mut trips::redis::Session,
    books: &mut Books,
) {
    redis_detail(message, books);
    if let redis::Said::Fault(fault) = message.said {
        let word = match fault {
            redis::Fault::Encrypted => Some("encrypted"),
            redis::Fault::Gap(_) => Some("gap"),
            redis::Fault::OutOfStep(_) => Some("out of step"),
            redis::Fault::Resumed(_) => None,
        };
        if let Some(word) = word {
            books.fault(Protocol::Redis, word, connection, message.moment);
        }
    }
    session.message(message, &mut |fact| books.redis(connection, fact));
}

fn redis_detail(message: &redis::Message<'_>, books: &mut Books) {
    let moment = message.moment;
    match message.said {
        redis::Said::Command(command) => {
            let name = String::from_utf8_lossy(command.name).to_ascii_uppercase();
            let commands = Metric::RedisCommands;
            books.detail(moment, |details| details.add_for(commands, "name", &name, 1));
        }
        redis::Said::Reply(reply) if reply.null => {
            books.detail(moment, |details| details.add(Metric::RedisNulls, 1));
        }
        redis::Said::Push(_) => {
            books.detail(moment, |details| details.add(Metric::RedisPushes, 1));
        }
        redis::Said::Reply(_) | redis::Said::Fault(_) => {}
    }
}
