//! What a Postgres connection says.

use super::recognise;
use crate::tcp::Side;
use crate::units::Moment;

/// One message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// When its last byte could be read.
    pub moment: Moment,
    /// Bytes on the wire, type and length included.
    pub length: u64,
    /// What it says.
    pub body: Body<'a>,
}

impl Message<'_> {
    /// Who sent it; `None` for a fault of the capture.
    #[must_use]
    pub fn from(&self) -> Option<Side> {
        match self.body {
            Body::Frontend(_) => Some(Side::Client),
            Body::Backend(_) => Some(Side::Server),
            Body::Fault(_) => None,
        }
    }
}

/// DataRow messages that came one after another, each of them whole. They are most of what a
/// capture holds, and say nothing but that they are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rows<'a> {
    /// When their last byte could be read.
    pub moment: Moment,
    /// How many.
    pub count: u64,
    /// The messages.
    pub(super) bytes: &'a [u8],
}

impl<'a> Rows<'a> {
    /// Bytes of all of them on the wire, types and lengths included.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// One by one.
    pub fn messages(&self) -> impl Iterator<Item = Message<'static>> + use<'a> {
        let Self { moment, mut bytes, .. } = *self;
        std::iter::from_fn(move || {
            let length = whole_row(bytes)?;
            bytes = &bytes[length..];
            let body = Body::Backend(Backend::DataRow);
            Some(Message { moment, length: length as u64, body })
        })
    }
}

/// Length of the DataRow message at the start of `bytes`, if one is there and whole.
#[inline]
pub(super) fn whole_row(bytes: &[u8]) -> Option<usize> {
    let &[b'D', a, b, c, d] = bytes.first_chunk::<5>()? else { return None };
    let length = u32::from_be_bytes([a, b, c, d]);
    let whole = 1 + length as usize;
    (recognise::backend(b'D', length) && whole <= bytes.len()).then_some(whole)
}

/// Takes what a connection says, in order.
pub trait MessageSink {
    /// Takes a message.
    fn message(&mut self, message: Message<'_>);

    /// Takes rows that came together. One by one, they are messages.
    fn rows(&mut self, rows: Rows<'_>) {
        rows.messages().for_each(|message| self.message(message));
    }
}

/// What a message says, by direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body<'a> {
    /// From the client.
    Frontend(Frontend<'a>),
    /// From the server.
    Backend(Backend<'a>),
    /// Nothing that was sent: what the reader must know.
    Fault(Fault),
}

/// Why messages may be missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// From here on TLS or GSSAPI: nothing can be read.
    Encrypted,
    /// Bytes were not captured; messages in them are unknown.
    Gap(Side),
    /// This side does not speak Postgres, or it cannot be seen where a message starts.
    OutOfStep(Side),
    /// In step again, after bytes that could not be read.
    Resumed(Side),
}

/// What a name in Describe or Close stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// A prepared statement.
    Statement,
    /// A portal: a statement with its parameters, ready to run.
    Portal,
}

/// From the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frontend<'a> {
    /// Asks for TLS.
    TlsRequest,
    /// Asks for GSSAPI encryption.
    GssRequest,
    /// Cancels a query of another connection.
    CancelRequest,
    /// Opens a session.
    Startup {
        /// Whether it is for replication.
        replication: bool,
    },
    /// An answer in the authentication exchange; its content is not delivered.
    Password,
    /// A simple query.
    Query {
        /// Its text, which can hold several statements; cut at 64 KiB.
        sql: &'a [u8],
    },
    /// Prepares a statement.
    Parse {
        /// Its name, empty for the unnamed one.
        name: &'a [u8],
        /// Its text, cut at 64 KiB.
        sql: &'a [u8],
    },
    /// Gives a statement its parameters.
    Bind {
        /// The portal to make.
        portal: &'a [u8],
        /// The statement.
        statement: &'a [u8],
    },
    /// Asks for the types of a statement or portal.
    Describe(Target),
    /// Runs a portal.
    Execute {
        /// The portal.
        portal: &'a [u8],
    },
    /// Forgets a statement or portal.
    Close(Target, &'a [u8]),
    /// Ends a series of extended messages; answered by ReadyForQuery.
    Sync,
    /// Asks for all answers so far.
    Flush,
    /// Calls a function by its number.
    FunctionCall,
    /// A piece of copied data.
    CopyData,
    /// The end of copied data.
    CopyDone,
    /// Copying failed on the client's side.
    CopyFail,
    /// Closes the session.
    Terminate,
}

/// From the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend<'a> {
    /// The one untyped byte that answers a request for encryption: `N` (no), `S` or `G` (yes).
    Encryption(u8),
    /// A step of authentication; 0 means done.
    Authentication(u32),
    /// A parameter's value, asked for or not.
    ParameterStatus,
    /// The key for cancel requests.
    BackendKeyData,
    /// The server waits for the next query.
    ReadyForQuery(Transaction),
    /// Types of the rows to come.
    RowDescription,
    /// A row.
    DataRow,
    /// A statement is done.
    CommandComplete {
        /// Its tag, such as `SELECT 5`.
        tag: &'a [u8],
    },
    /// An empty query is done.
    EmptyQuery,
    /// A statement failed.
    Error {
        /// SQLSTATE, five characters; empty where it is not there.
        code: &'a [u8],
        /// Severity, not translated where the server gives that.
        severity: &'a [u8],
    },
    /// Something to know.
    Notice,
    /// From LISTEN.
    Notification,
    /// Answers Parse.
    ParseComplete,
    /// Answers Bind.
    BindComplete,
    /// Answers Close.
    CloseComplete,
    /// Answers Describe: no rows.
    NoData,
    /// Answers Describe: types of the parameters.
    ParameterDescription,
    /// The row limit of Execute was reached.
    PortalSuspended,
    /// The server waits for copied data.
    CopyIn,
    /// Copied data follows.
    CopyOut,
    /// Both sides send, as in replication.
    CopyBoth,
    /// A piece of copied data.
    CopyData,
    /// The end of copied data.
    CopyDone,
    /// Answers FunctionCall.
    FunctionResult,
    /// The server speaks an older minor version.
    NegotiateVersion,
}

/// State of the session when it is ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transaction {
    /// None is open.
    Idle,
    /// One is open.
    Open,
    /// One is open and has failed.
    Failed,
}
