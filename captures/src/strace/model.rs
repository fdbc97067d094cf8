//! What a trace holds. Records borrow from the line that they were read from.

use crate::ids::Tid;
use crate::units::{Moment, Nanos};

/// One thing that a trace says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record<'a> {
    /// A system call, whole: delivered when it has returned, or when it is known that it will not.
    Call(Call<'a>),
    /// A signal was delivered, or a thread was stopped by one.
    Signal(Signal<'a>),
    /// A thread has ended.
    Exit(Exit<'a>),
    /// A thread has ended since another thread of its process called `execve`.
    Superseded(Superseded),
    /// A frame of the stack of the call before it (`-k`), as printed.
    Frame(&'a [u8]),
    /// strace says something about itself: attached, detached, personality of a process.
    Notice(&'a [u8]),
    /// A row of the table of `-c`; the last one is named `total`.
    Row(Row<'a>),
}

/// A system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call<'a> {
    /// The thread, as numbered at the call's end; `None` where the trace names none.
    pub tid: Option<Tid>,
    /// When it was entered.
    pub stamp: Option<Stamp>,
    /// Its name.
    pub name: &'a str,
    /// What is between the parentheses; both parts of a call that was printed in two. Of a call
    /// of more than 4 KiB that was printed in two, or of a line of more than 1 MiB, a part is
    /// missing.
    pub args: &'a [u8],
    /// How it ended.
    pub outcome: Outcome<'a>,
    /// How long it took (`-T`).
    pub duration: Option<Nanos>,
    /// The line that it began on, or for a call whose beginning is not there, ended on.
    pub line: u64,
    /// Whether its beginning is not in the trace: the stamp is then that of its end.
    pub headless: bool,
}

/// How a system call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome<'a> {
    /// It returned.
    Returned {
        /// The value. Addresses above `i64::MAX` wrap.
        value: i64,
        /// The name of the error.
        errno: Option<&'a str>,
        /// What `-y` says about a descriptor that was returned.
        target: Option<&'a [u8]>,
        /// What strace explains in parentheses: the error's text, flags, `Timeout`.
        comment: Option<&'a [u8]>,
    },
    /// It was interrupted, and the kernel goes on with it by itself (`? ERESTARTSYS`).
    Restarted {
        /// The kernel's own code.
        errno: &'a str,
    },
    /// It does not return to its caller (`= ?`): `exit`, a call of a thread that was killed.
    Never,
    /// strace let go of the thread meanwhile.
    Detached,
    /// The trace ended before the call did.
    Unfinished,
}

impl<'a> Outcome<'a> {
    /// The error, as `strace -c` counts errors: the kernel's own restart codes among them.
    #[must_use]
    pub fn errno(&self) -> Option<&'a str> {
        match self {
            Self::Returned { errno, .. } => *errno,
            Self::Restarted { errno } => Some(errno),
            _ => None,
        }
    }
}

/// When something was printed, by the one clock that the trace has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stamp {
    /// CLOCK_REALTIME (`-ttt`).
    Unix(Moment),
    /// Time since the midnight before the trace began, in the time zone of strace (`-t`, `-tt`).
    /// There is no date: it cannot be joined with anything else.
    SinceMidnight(Nanos),
    /// Time since the first line (`-r`), as a sum of the steps from line to line.
    SinceFirst(Nanos),
}

impl Stamp {
    /// The moment, where the trace has one.
    #[must_use]
    pub fn moment(self) -> Option<Moment> {
        match self {
            Self::Unix(moment) => Some(moment),
            _ => None,
        }
    }

    /// Nanoseconds since the clock's own origin, to be compared within one trace.
    #[must_use]
    pub fn nanos(self) -> u64 {
        match self {
            Self::Unix(Moment(nanos)) => nanos,
            Self::SinceMidnight(Nanos(nanos)) | Self::SinceFirst(Nanos(nanos)) => nanos,
        }
    }
}

/// A signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signal<'a> {
    /// The thread.
    pub tid: Option<Tid>,
    /// When.
    pub stamp: Option<Stamp>,
    /// Such as `SIGCHLD`.
    pub name: &'a str,
    /// Whether the thread was stopped by it; else it was delivered.
    pub stopped: bool,
    /// The rest of the line.
    pub detail: &'a [u8],
}

/// The end of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exit<'a> {
    /// The thread.
    pub tid: Option<Tid>,
    /// When.
    pub stamp: Option<Stamp>,
    /// Its status; `None` when it was killed.
    pub status: Option<i32>,
    /// The signal that killed it.
    pub signal: Option<&'a str>,
    /// Whether it left a core.
    pub core_dumped: bool,
}

/// A thread that another thread of the process has replaced; that one has its number from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Superseded {
    /// The thread that is gone, and the number that goes on.
    pub tid: Option<Tid>,
    /// When.
    pub stamp: Option<Stamp>,
    /// The thread that called `execve`, as numbered until now.
    pub by: Tid,
}

/// A row of the table of `-c`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row<'a> {
    /// The call's name, or `total`.
    pub name: &'a str,
    /// Calls.
    pub calls: u64,
    /// Of these, failed.
    pub errors: u64,
    /// CPU time that the kernel spent; with `-w`, time that passed. The table does not say which.
    pub time: Option<Nanos>,
}

/// A descriptor among the arguments, with what `-y` says about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descriptor<'a> {
    /// Its number.
    pub number: i32,
    /// A path, or with `-yy` a socket; empty without `-y`.
    pub target: &'a [u8],
}

/// A connected socket, as `-yy` prints it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Socket<'a> {
    /// Such as `TCP`, `TCPv6`, `UNIX-STREAM`.
    pub protocol: &'a str,
    /// The own end.
    pub local: &'a str,
    /// The other end.
    pub peer: &'a str,
}

/// The descriptor that a call's arguments begin with: `3</srv/a>, "x", 1`.
///
/// Older stracers do not escape `>` in paths, so the path ends at the first `>` that ends an
/// argument.
#[must_use]
pub fn descriptor(args: &[u8]) -> Option<Descriptor<'_>> {
    let digits = args.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let number = std::str::from_utf8(&args[..digits]).ok()?.parse().ok()?;
    let rest = &args[digits..];
    let Some(path) = rest.strip_prefix(b"<") else {
        let whole = rest.is_empty() || rest.starts_with(b",");
        return whole.then_some(Descriptor { number, target: b"" });
    };
    let end = memchr::memchr_iter(b'>', path)
        .find(|&end| path.get(end + 1).is_none_or(|&after| after == b','))?;
    Some(Descriptor { number, target: &path[..end] })
}

/// The ends of a socket: `TCP:[127.0.0.1:40000->127.0.0.1:5432]`, `UNIX-STREAM:[17->18]`.
#[must_use]
pub fn socket(target: &[u8]) -> Option<Socket<'_>> {
    let (protocol, ends) = std::str::from_utf8(target).ok()?.split_once(":[")?;
    let (local, peer) = ends.strip_suffix(']')?.split_once("->")?;
    Some(Socket { protocol, local, peer })
}

/// The arguments of a call, split at the commas that are in no bracket and in no string.
pub fn arguments(args: &[u8]) -> impl Iterator<Item = &[u8]> {
    let (mut depth, mut quoted, mut escaped) = (0_u32, false, false);
    args.split(move |&byte| {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'[' | b'{' | b'(' if !quoted => depth += 1,
            b']' | b'}' | b')' if !quoted => depth = depth.saturating_sub(1),
            b',' if !quoted && depth == 0 => return true,
            _ => {}
        }
        false
    })
    .map(<[u8]>::trim_ascii)
    .filter(|argument| !argument.is_empty())
}

/// The program that a successful `execve` has started, as its caller named it.
#[must_use]
pub fn program<'a>(call: &Call<'a>) -> Option<&'a [u8]> {
    let which = match call.name {
        "execve" => 0,
        "execveat" => 1,
        _ => return None,
    };
    let Outcome::Returned { value: 0, .. } = call.outcome else { return None };
    let path = arguments(call.args).nth(which)?.strip_prefix(b"\"")?;
    Some(&path[..memchr::memchr(b'"', path)?])
}
