//! Redis by hand: the commands are written out here, so their number and length are known.

use std::io;
use std::net::TcpStream;

use crate::socket::{receive, receive_exactly, send};
use crate::work::Work;

const GET: &[u8] = b"*2\r\n$3\r\nGET\r\n$11\r\ncalibration\r\n";
const SET: &[u8] =
    b"*3\r\n$3\r\nSET\r\n$11\r\ncalibration\r\n$32\r\nxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\r\n";
/// `$32`, the value, and two line ends.
const REPLY: usize = 3 + 2 + 32 + 2;

/// One open connection.
pub struct Redis {
    stream: TcpStream,
    message: Vec<u8>,
    answer: Vec<u8>,
}

impl Redis {
    /// Connects, authenticates, and stores the value that is asked for.
    pub fn connect(url: &str) -> io::Result<Self> {
        let wrong = || io::Error::other("REDIS_URL is not redis://:PASSWORD@HOST:PORT/");
        let rest = url.strip_prefix("redis://").ok_or_else(wrong)?;
        let (password, address) = match rest.split_once('@') {
            Some((user, address)) => (user.rsplit(':').next().unwrap_or_default(), address),
            None => ("", rest),
        };
        let stream = TcpStream::connect(address.trim_end_matches('/'))?;
        stream.set_nodelay(true)?;
        let (message, answer) = (Vec::with_capacity(4_096), vec![0; 8_192]);
        let mut redis = Self { stream, message, answer };
        if !password.is_empty() {
            let length = password.len();
            redis.ask(format!("*2\r\n$4\r\nAUTH\r\n${length}\r\n{password}\r\n").as_bytes())?;
        }
        redis.ask(SET)?;
        Ok(redis)
    }

    fn ask(&mut self, command: &[u8]) -> io::Result<()> {
        send(&self.stream, command)?;
        let length = receive(&self.stream, &mut self.answer)?;
        match &self.answer[..length] {
            b"+OK\r\n" => Ok(()),
            _ => Err(io::Error::other("Redis refuses the connection")),
        }
    }

    /// Does what is asked: each flight is one message out and its replies in.
    pub fn run(&mut self, work: &Work) -> io::Result<()> {
        for flight in 0..work.flights {
            self.message.clear();
            let commands = work.commands_in(flight);
            for _ in 0..commands {
                self.message.extend_from_slice(GET);
            }
            send(&self.stream, &self.message)?;
            let length = commands as usize * REPLY;
            receive_exactly(&self.stream, &mut self.answer, length)?;
        }
        Ok(())
    }
}

/// Bytes from the client and from the server for this work.
pub fn bytes(work: &Work) -> (usize, usize) {
    let commands = work.redis as usize;
    (commands * GET.len(), commands * REPLY)
}
