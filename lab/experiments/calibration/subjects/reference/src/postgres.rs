//! Postgres by hand: the messages are written out here, so their number and length are known.

use std::io::{self, Read, Write};
use std::net::TcpStream;

use crate::scram::Scram;
use crate::socket::{receive_exactly, send};
use crate::work::Work;

/// The statement that is executed: one row of one value as long as is asked.
const STATEMENT: &[u8] = b"SELECT repeat('x', $1)\0";
/// What is prepared without being executed.
const PREPARED: &[u8] = b"SELECT 1\0";
const INT4: u32 = 23;

const BIND_COMPLETE: usize = 5;
const PARSE_COMPLETE: usize = 5;
/// Type, length, number of values, length of the value.
const DATA_ROW: usize = 1 + 4 + 2 + 4;
/// Type, length, `SELECT 1` and its end.
const COMMAND_COMPLETE: usize = 1 + 4 + 9;
const READY_FOR_QUERY: usize = 6;

/// One open connection.
pub struct Postgres {
    stream: TcpStream,
    message: Vec<u8>,
    answer: Vec<u8>,
}

impl Postgres {
    /// Connects, authenticates, and prepares the statement.
    pub fn connect(url: &str) -> io::Result<Self> {
        let wrong = || io::Error::other("DATABASE_URL is not postgres://USER:PASSWORD@HOST/NAME");
        let rest = url.strip_prefix("postgres://").ok_or_else(wrong)?;
        let (user, rest) = rest.split_once(':').ok_or_else(wrong)?;
        let (password, rest) = rest.split_once('@').ok_or_else(wrong)?;
        let (address, database) = rest.split_once('/').ok_or_else(wrong)?;
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        let (message, answer) = (Vec::with_capacity(8_192), vec![0; 16_384]);
        let mut postgres = Self { stream, message, answer };
        postgres.log_in(user, password, database)?;
        postgres.message.clear();
        parse(&mut postgres.message, b"w\0", STATEMENT, &[INT4]);
        sync(&mut postgres.message);
        postgres.exchange(PARSE_COMPLETE + READY_FOR_QUERY)?;
        Ok(postgres)
    }

    fn log_in(&mut self, user: &str, password: &str, database: &str) -> io::Result<()> {
        let words = ["user", user, "database", database, ""];
        let body: Vec<u8> =
            words.iter().flat_map(|word| [word.as_bytes(), b"\0"].concat()).collect();
        let length = u32::try_from(body.len() + 8).map_err(io::Error::other)?;
        let start = [&length.to_be_bytes()[..], &196_608u32.to_be_bytes(), &body].concat();
        self.stream.write_all(&start)?;
        let mut scram = Scram::new(password)?;
        loop {
            let (kind, body) = self.read_message()?;
            match (kind, body.get(..4)) {
                (b'R', Some([0, 0, 0, 10])) => {
                    let first = scram.first();
                    let length = u32::try_from(first.len()).map_err(io::Error::other)?;
                    let head = [b"SCRAM-SHA-256\0", &length.to_be_bytes()[..]].concat();
                    self.write_message(b'p', &[&head, first.as_bytes()].concat())?;
                }
                (b'R', Some([0, 0, 0, 11])) => {
                    let last = scram.last(&String::from_utf8_lossy(&body[4..]))?;
                    self.write_message(b'p', last.as_bytes())?;
                }
                (b'E', _) => {
                    return Err(io::Error::other("Postgres refuses the connection"));
                }
                (b'Z', _) => return Ok(()),
                _ => {}
            }
        }
    }

    fn write_message(&mut self, kind: u8, body: &[u8]) -> io::Result<()> {
        self.message.clear();
        message(&mut self.message, kind, &[body]);
        self.stream.write_all(&self.message)
    }

    fn read_message(&mut self) -> io::Result<(u8, Vec<u8>)> {
        let mut head = [0; 5];
        self.stream.read_exact(&mut head)?;
        let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]);
        let mut body = vec![0; (length as usize).saturating_sub(4).min(65_536)];
        self.stream.read_exact(&mut body)?;
        Ok((head[0], body))
    }

    /// Does what is asked: each trip is one message out and one answer in.
    pub fn run(&mut self, work: &Work) -> io::Result<()> {
        for _ in 0..work.prepares {
            self.message.clear();
            prepare(&mut self.message);
            self.exchange(prepare_answer())?;
        }
        for trip in 0..work.trips {
            self.message.clear();
            let executions = work.executions_in(trip);
            execute(&mut self.message, executions, work.row);
            self.exchange(execute_answer(executions, work.row))?;
        }
        Ok(())
    }

    fn exchange(&mut self, answer: usize) -> io::Result<()> {
        send(&self.stream, &self.message)?;
        receive_exactly(&self.stream, &mut self.answer, answer)?;
        // Anything else than a ready server, in no transaction, is another answer than expected.
        match self.answer[..answer] {
            [.., b'Z', 0, 0, 0, 5, b'I'] => Ok(()),
            _ => Err(io::Error::other("Postgres has answered something else")),
        }
    }
}

/// Bytes from the client and from the server for this work.
pub fn bytes(work: &Work) -> (usize, usize) {
    let mut message = Vec::new();
    let mut received = 0;
    for _ in 0..work.prepares {
        prepare(&mut message);
        received += prepare_answer();
    }
    for trip in 0..work.trips {
        let executions = work.executions_in(trip);
        execute(&mut message, executions, work.row);
        received += execute_answer(executions, work.row);
    }
    (message.len(), received)
}

fn prepare(to: &mut Vec<u8>) {
    parse(to, b"\0", PREPARED, &[]);
    sync(to);
}

fn prepare_answer() -> usize {
    PARSE_COMPLETE + READY_FOR_QUERY
}

fn execute(to: &mut Vec<u8>, executions: u32, row: u32) {
    for _ in 0..executions {
        bind(to, row);
        message(to, b'E', &[b"\0", &0u32.to_be_bytes()]);
    }
    sync(to);
}

fn execute_answer(executions: u32, row: u32) -> usize {
    executions as usize * (BIND_COMPLETE + DATA_ROW + row as usize + COMMAND_COMPLETE)
        + READY_FOR_QUERY
}

fn parse(to: &mut Vec<u8>, name: &[u8], statement: &[u8], types: &[u32]) {
    let count = u16::try_from(types.len()).unwrap_or_default().to_be_bytes();
    let first = types.first().map(|first| first.to_be_bytes());
    message(to, b'P', &[name, statement, &count, first.as_ref().map_or(&[], |oid| &oid[..])]);
}

/// The row's length as text, in the default format; results too.
fn bind(to: &mut Vec<u8>, row: u32) {
    let mut digits = [0; 10];
    let mut start = digits.len();
    let mut rest = row;
    loop {
        start -= 1;
        digits[start] = b'0' + u8::try_from(rest % 10).unwrap_or_default();
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    let digits = &digits[start..];
    let length = u32::try_from(digits.len()).unwrap_or_default().to_be_bytes();
    message(to, b'B', &[b"\0w\0", &[0, 0], &[0, 1], &length, digits, &[0, 0]]);
}

fn sync(to: &mut Vec<u8>) {
    message(to, b'S', &[]);
}

fn message(to: &mut Vec<u8>, kind: u8, parts: &[&[u8]]) {
    let length: usize = 4 + parts.iter().map(|part| part.len()).sum::<usize>();
    to.push(kind);
    to.extend_from_slice(&u32::try_from(length).unwrap_or_default().to_be_bytes());
    for part in parts {
        to.extend_from_slice(part);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_as_the_protocol_has_them() {
        let mut out = Vec::new();
        execute(&mut out, 1, 100);
        let bind = b"B\0\0\0\x14\0w\0\0\0\0\x01\0\0\0\x03100\0\0";
        assert_eq!(out, [&bind[..], b"E\0\0\0\x09\0\0\0\0\0", b"S\0\0\0\x04"].concat());
        out.clear();
        prepare(&mut out);
        assert_eq!(out, b"P\0\0\0\x10\0SELECT 1\0\0\0S\0\0\0\x04");
    }

    #[test]
    fn bytes_are_those_of_the_messages() {
        let work = Work { trips: 2, executions: 3, prepares: 1, row: 10, ..Work::default() };
        // Parse 17 + Sync 5; three Bind (20) and Execute (10); two Sync
        assert_eq!(bytes(&work).0, 22 + 3 * 30 + 2 * 5);
        assert_eq!(bytes(&work).1, 11 + 3 * (5 + 21 + 14) + 2 * 6);
    }
}
