//! Trips of one Redis connection.

use std::collections::VecDeque;

use assay_captures::redis::{Command, Message, Reply, Said};
use assay_captures::tcp::Connection;
use assay_captures::units::Moment;

use super::{Service, Trip, What};

/// Something that happened on a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fact {
    /// A command was sent.
    Command {
        /// When.
        moment: Moment,
        /// Whether it sets the connection up.
        set_up: bool,
    },
    /// A command failed.
    Error {
        /// When.
        moment: Moment,
        /// Whether it sets the connection up.
        set_up: bool,
    },
    /// A trip is over.
    Flight(Trip),
    /// A trip whose end cannot be told.
    Lost {
        /// When.
        moment: Moment,
    },
}

/// The state of one connection.
#[derive(Debug)]
pub struct Session {
    connection: Connection,
    /// Replies that are owed, in order.
    owed: VecDeque<Owed>,
    flight: Option<Flight>,
    replies: Replies,
    /// Whether only set-up has been seen.
    setting_up: bool,
    /// Whether the command before was set-up.
    greeted: bool,
    /// Channels or patterns that are listened to, or MONITOR: what comes is not asked for.
    listening: bool,
}

#[derive(Clone, Copy, Debug)]
struct Owed {
    /// Confirmations that are still to come; 1 but for SUBSCRIBE and its kind.
    replies: u64,
    confirms: bool,
    set_up: bool,
}

#[derive(Debug)]
struct Flight {
    start: Moment,
    set_up: bool,
    cycles: u32,
    bursts: u32,
    server_spoke: bool,
    what: What,
}

/// What CLIENT REPLY asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Replies {
    On,
    Off,
    /// This command and the next get none.
    Skip,
}

impl Session {
    /// A connection of which nothing has been seen; `from_start` if its first bytes were captured.
    #[must_use]
    pub fn new(connection: Connection, from_start: bool) -> Self {
        Self {
            connection,
            owed: VecDeque::new(),
            flight: None,
            replies: Replies::On,
            setting_up: from_start,
            greeted: false,
            listening: false,
        }
    }

    /// Takes a message.
    pub fn message(&mut self, message: &Message<'_>, sink: &mut impl FnMut(Fact)) {
        match message.said {
            Said::Command(command) => self.command(message.moment, &command, sink),
            Said::Reply(reply) => self.reply(message.moment, &reply, sink),
            Said::Push(push) => {
                if confirms(&push) && self.owed.front().is_some_and(|owed| owed.confirms) {
                    self.answered(message.moment, sink);
                }
            }
            Said::Fault(assay_captures::redis::Fault::Resumed(_)) => {}
            Said::Fault(_) => self.lose(message.moment, sink),
        }
    }

    /// The connection is closed, or the capture over.
    pub fn close(&mut self, moment: Moment, sink: &mut impl FnMut(Fact)) {
        self.lose(moment, sink);
    }

    fn lose(&mut self, moment: Moment, sink: &mut impl FnMut(Fact)) {
        if self.flight.take().is_some() {
            sink(Fact::Lost { moment });
        }
        self.owed.clear();
    }

    fn command(&mut self, moment: Moment, command: &Command<'_>, sink: &mut impl FnMut(Fact)) {
        let name = command.name.to_ascii_uppercase();
        // A library's last word of set-up can be one PING; on a bare connection PING is work.
        let check = name == b"PING" && std::mem::take(&mut self.greeted);
        let set_up = self.setting_up && (sets_up(&name) || check);
        self.greeted = set_up && !check;
        self.setting_up = set_up;
        sink(Fact::Command { moment, set_up });
        if let Some(flight) = &mut self.flight
            && std::mem::take(&mut flight.server_spoke)
        {
            flight.bursts += 1;
        }
        if name == b"CLIENT" && command.second.eq_ignore_ascii_case(b"REPLY") {
            match command.third.to_ascii_uppercase().as_slice() {
                b"OFF" => self.replies = Replies::Off,
                b"SKIP" if self.replies == Replies::On => self.replies = Replies::Skip,
                b"ON" => self.replies = Replies::On,
                _ => {}
            }
            if self.replies != Replies::On {
                return;
            }
        } else if self.replies != Replies::On {
            if self.replies == Replies::Skip {
                self.replies = Replies::On;
            }
            return;
        }
        let confirms = matches!(
            name.as_slice(),
            b"SUBSCRIBE"
                | b"PSUBSCRIBE"
                | b"SSUBSCRIBE"
                | b"UNSUBSCRIBE"
                | b"PUNSUBSCRIBE"
                | b"SUNSUBSCRIBE"
        );
        self.listening |=
            matches!(name.as_slice(), b"SUBSCRIBE" | b"PSUBSCRIBE" | b"SSUBSCRIBE" | b"MONITOR");
        let replies = if confirms { command.words.saturating_sub(1).max(1) } else { 1 };
        if self.owed.len() < 1 << 20 {
            self.owed.push_back(Owed { replies, confirms, set_up });
        }
        let flight = self.flight.get_or_insert_with(|| Flight {
            start: moment,
            set_up,
            cycles: 0,
            bursts: 1,
            server_spoke: false,
            what: What::Command(String::from_utf8_lossy(&name).into_owned()),
        });
        flight.set_up &= set_up;
    }

    fn reply(&mut self, moment: Moment, reply: &Reply<'_>, sink: &mut impl FnMut(Fact)) {
        // RESP2 has no pushes: what a channel sends looks like a reply.
        if self.listening && is_published(reply) {
            return;
        }
        let set_up = self.owed.front().is_some_and(|owed| owed.set_up);
        if reply.is_error() {
            sink(Fact::Error { moment, set_up });
            // One error stands for all confirmations.
            if let Some(owed) = self.owed.front_mut() {
                owed.replies = 1;
            }
        }
        self.answered(moment, sink);
    }

    fn answered(&mut self, moment: Moment, sink: &mut impl FnMut(Fact)) {
        if let Some(flight) = &mut self.flight {
            flight.server_spoke = true;
            flight.cycles += 1;
        }
        let Some(first) = self.owed.front_mut() else { return };
        first.replies -= 1;
        if first.replies > 0 {
            return;
        }
        self.owed.pop_front();
        if !self.owed.is_empty() {
            return;
        }
        let Some(flight) = self.flight.take() else { return };
        sink(Fact::Flight(Trip {
            service: Service::Redis,
            connection: self.connection,
            start: flight.start,
            end: moment,
            reason: None,
            set_up: flight.set_up,
            awaited: true,
            cycles: flight.cycles,
            bursts: flight.bursts,
            what: flight.what,
        }));
    }
}

/// Commands that client libraries send when they connect.
fn sets_up(name: &[u8]) -> bool {
    matches!(name, b"HELLO" | b"AUTH" | b"CLIENT" | b"SELECT" | b"READONLY")
}

/// Whether a push or array confirms a subscription.
fn confirms(reply: &Reply<'_>) -> bool {
    reply.start.to_ascii_lowercase().ends_with(b"subscribe")
}

/// Whether an array or line was published on a channel, or comes from MONITOR.
fn is_published(reply: &Reply<'_>) -> bool {
    match reply.kind {
        b'*' => matches!(reply.start, b"message" | b"pmessage" | b"smessage"),
        b'+' => reply.start.first().is_some_and(u8::is_ascii_digit) && reply.start.contains(&b'['),
        _ => false,
    }
}
