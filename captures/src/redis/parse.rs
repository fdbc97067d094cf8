//! From the chunks of both directions to commands and replies.

use super::commands::{Commands, Step, number};
use super::model::{Fault, Message, Said};
use super::replies::Replies;
use crate::tcp::Side;
use crate::units::Moment;

/// Decodes one connection.
#[derive(Debug)]
pub struct Decoder {
    commands: Commands,
    replies: Replies,
    client: Standing,
    server: Standing,
    readable: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Standing {
    in_step: bool,
    said: bool,
}

impl Decoder {
    /// A decoder for a connection whose first bytes come first if `from_start`; otherwise it gets
    /// into step at the first chunk that starts with a message.
    #[must_use]
    pub fn new(from_start: bool) -> Self {
        let standing = Standing { in_step: from_start, said: false };
        Self {
            commands: Commands::default(),
            replies: Replies::default(),
            client: standing,
            server: standing,
            readable: true,
        }
    }

    /// Takes the next bytes of one side.
    pub fn feed(
        &mut self,
        from: Side,
        moment: Moment,
        bytes: &[u8],
        sink: &mut impl FnMut(Message<'_>),
    ) {
        if !self.readable || bytes.is_empty() {
            return;
        }
        if matches!(bytes, [0x16, 3, ..]) && self.commands.is_between() && from == Side::Client {
            self.readable = false;
            fault(sink, moment, Fault::Encrypted);
            return;
        }
        let (standing, fits): (_, fn(&[u8]) -> bool) = match from {
            Side::Client => (&mut self.client, is_client),
            Side::Server => (&mut self.server, is_server),
        };
        if !standing.in_step {
            if !fits(bytes) {
                return lost(standing, from, moment, sink);
            }
            *standing = Standing { in_step: true, said: false };
            fault(sink, moment, Fault::Resumed(from));
        }
        let step = match from {
            Side::Client => self.commands.feed(bytes, &mut |command, length| {
                sink(Message { moment, length, said: Said::Command(command) });
            }),
            Side::Server => self.replies.feed(bytes, &mut |reply, length| {
                let said = if reply.kind == b'>' { Said::Push(reply) } else { Said::Reply(reply) };
                sink(Message { moment, length, said });
            }),
        };
        if let Step::Bad = step {
            match from {
                Side::Client => self.commands.reset(),
                Side::Server => self.replies.reset(),
            }
            lost(standing, from, moment, sink);
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
        let kept = match from {
            Side::Client => self.commands.pass_gap(length),
            Side::Server => self.replies.pass_gap(length),
        };
        if !kept {
            match from {
                Side::Client => self.client.in_step = false,
                Side::Server => self.server.in_step = false,
            }
        }
        fault(sink, moment, Fault::Gap(from));
    }

    /// Whether both sides stand between messages.
    #[must_use]
    pub fn is_between(&self) -> bool {
        self.commands.is_between() && self.replies.is_between()
    }
}

/// Whether `bytes` can be the start of what a client sends in RESP. Inline commands are not
/// recognised: any text could be one.
#[must_use]
pub fn is_client(bytes: &[u8]) -> bool {
    let Some((words, rest)) = counted(bytes, b'*') else { return false };
    match rest {
        [] => words > 0,
        _ => words > 0 && counted(rest, b'$').is_some(),
    }
}

/// Whether `bytes` can be the start of what a server sends in RESP.
#[must_use]
pub fn is_server(bytes: &[u8]) -> bool {
    let Some((&kind, rest)) = bytes.split_first() else { return false };
    let Some(end) = rest.iter().position(|&byte| byte == b'\r') else { return false };
    let line = &rest[..end];
    if !matches!(rest.get(end + 1), None | Some(b'\n')) {
        return false;
    }
    match kind {
        b'+' | b'-' => line.iter().all(|&byte| byte >= b' '),
        b':' | b'$' | b'*' | b'%' | b'~' | b'>' | b'|' | b'!' | b'=' => number(line).is_some(),
        b'_' => line.is_empty(),
        b'#' => matches!(line, b"t" | b"f"),
        b',' | b'(' => !line.is_empty() && line.len() < 512,
        _ => false,
    }
}

/// A line that counts something, and what follows it.
fn counted(bytes: &[u8], kind: u8) -> Option<(i64, &[u8])> {
    let rest = bytes.strip_prefix(&[kind])?;
    let end = rest.iter().take(12).position(|&byte| byte == b'\r')?;
    let count = number(&rest[..end])?;
    let after = rest.get(end + 1..)?;
    Some((count, after.strip_prefix(b"\n").unwrap_or(after)))
}

fn lost(standing: &mut Standing, side: Side, moment: Moment, sink: &mut impl FnMut(Message<'_>)) {
    standing.in_step = false;
    if !std::mem::replace(&mut standing.said, true) {
        fault(sink, moment, Fault::OutOfStep(side));
    }
}

fn fault(sink: &mut impl FnMut(Message<'_>), moment: Moment, fault: Fault) {
    sink(Message { moment, length: 0, said: Said::Fault(fault) });
}
