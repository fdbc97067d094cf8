//! What can go wrong with one request, by kind, as laps count it.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::SocketAddr;

/// Why a request got no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ErrorKind {
    /// No connection could be made.
    Connect,
    /// The connection was reset.
    Reset,
    /// No whole answer within the time limit.
    Timeout,
    /// The other side closed the connection before the answer was whole.
    Closed,
    /// The answer is not HTTP/1.1.
    Protocol,
    /// A fixed rate's schedule asked for it, but it could not be sent in time.
    Unsent,
}

impl ErrorKind {
    /// Every kind, in the order of their declaration.
    pub const ALL: [Self; 6] =
        [Self::Connect, Self::Reset, Self::Timeout, Self::Closed, Self::Protocol, Self::Unsent];

    /// Its name in `laps.jsonl`.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::Reset => "reset",
            Self::Timeout => "timeout",
            Self::Closed => "closed",
            Self::Protocol => "protocol",
            Self::Unsent => "unsent",
        }
    }

    /// The kind of what hyper says about an exchange.
    pub(super) fn of_hyper(error: &hyper::Error) -> Self {
        if let Some(io) = io_error(error) {
            return Self::of_io(io);
        }
        if error.is_parse() {
            Self::Protocol
        } else if error.is_timeout() {
            Self::Timeout
        } else {
            // Incomplete message, channel closed, cancelled: all say that the connection ended.
            Self::Closed
        }
    }

    fn of_io(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => Self::Reset,
            io::ErrorKind::TimedOut => Self::Timeout,
            _ => Self::Closed,
        }
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

fn io_error(error: &hyper::Error) -> Option<&io::Error> {
    let mut source = std::error::Error::source(error);
    while let Some(error) = source {
        if let Some(io) = error.downcast_ref::<io::Error>() {
            return Some(io);
        }
        source = error.source();
    }
    None
}

/// How many requests ended in each kind of error.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ErrorCounts([u64; ErrorKind::ALL.len()]);

impl ErrorCounts {
    /// Counts `number` more of `kind`.
    pub fn add(&mut self, kind: ErrorKind, number: u64) {
        self.0[kind as usize] += number;
    }

    /// All of them together.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Name to number, without the kinds that did not happen.
    #[must_use]
    pub fn by_name(&self) -> BTreeMap<String, u64> {
        ErrorKind::ALL
            .into_iter()
            .map(|kind| (kind.word().to_owned(), self.0[kind as usize]))
            .filter(|&(_, number)| number > 0)
            .collect()
    }
}

/// Why the driver could not do what it was asked for at all.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// Nobody listens there.
    #[error("cannot connect to {address}: {source}")]
    Connect {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A request outside a lap got no answer.
    #[error("{method} {path} on {address} got no answer: {kind}")]
    NoAnswer {
        /// The address.
        address: SocketAddr,
        /// HTTP method.
        method: String,
        /// Path and query.
        path: String,
        /// What happened.
        kind: ErrorKind,
    },
    /// The machine refused the driver something: a timer, a thread, a CPU.
    #[error("the load driver cannot {what}: {source}")]
    Machine {
        /// What it wanted.
        what: &'static str,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The order makes no sense.
    #[error("{0}")]
    Order(&'static str),
    /// The driver's thread is gone.
    #[error("the load driver's thread has ended")]
    Gone,
}
