//! Trips of a service to Postgres and Redis, made from the messages of each connection.
//!
//! A trip ("flight") is counted by owed answers, not by packet timing: it begins when a message
//! that obliges an answer is sent while none is owed, and ends when none is owed again.

pub mod postgres;
pub mod redis;
#[cfg(test)]
mod tests;

use assay_captures::tcp::Connection;
use assay_captures::units::{Moment, Nanos};

use crate::costs::wire::StatementId;

/// Why a trip to Postgres was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// The service's own statement.
    User,
    /// Transaction control alone.
    Transaction,
    /// Preparing or forgetting statements.
    Prepare,
    /// A bare Sync or an empty query: a pool asks whether the connection lives.
    PoolPing,
    /// A pool clears the session.
    PoolReset,
}

impl Reason {
    /// All of them, in the order that tables have.
    pub const ALL: [Self; 5] =
        [Self::User, Self::Transaction, Self::Prepare, Self::PoolPing, Self::PoolReset];

    /// The word for it in the `reason` label.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Transaction => "transaction",
            Self::Prepare => "prepare",
            Self::PoolPing => "pool ping",
            Self::PoolReset => "pool reset",
        }
    }
}

/// Where a trip went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Service {
    /// Postgres.
    Postgres,
    /// Redis.
    Redis,
}

impl Service {
    /// The word for it in the `on` label.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Postgres => "postgres",
            Self::Redis => "redis",
        }
    }
}

/// One trip.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trip {
    /// Where it went.
    pub service: Service,
    /// On which connection.
    pub connection: Connection,
    /// When an answer was first owed.
    pub start: Moment,
    /// When none was owed any more.
    pub end: Moment,
    /// Why; `None` for connection set-up and for Redis.
    pub reason: Option<Reason>,
    /// Whether it belongs to connection set-up.
    pub set_up: bool,
    /// Whether somebody waits for it. False is a guess by rule: a bare Sync right after a
    /// statement, and a Close alone, are taken for a pool's or driver's own.
    pub awaited: bool,
    /// ReadyForQuery messages (Postgres) or replies (Redis) within it.
    pub cycles: u32,
    /// Times that the client sent something after the server had spoken, plus one.
    pub bursts: u32,
    /// The first statement that it ran, or the first command.
    pub what: What,
}

/// What a trip was made for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// A statement, numbered in the fold's list.
    Statement(StatementId),
    /// A Redis command, in capitals.
    Command(String),
    /// Protocol alone.
    Nothing,
}

impl Trip {
    /// How long an answer was owed.
    #[must_use]
    pub fn length(&self) -> Nanos {
        self.end.since(self.start).unwrap_or_default()
    }

    /// Whether it holds more than one exchange.
    #[must_use]
    pub fn is_pipelined(&self) -> bool {
        !self.set_up && (self.cycles > 1 || self.bursts > 1)
    }
}
