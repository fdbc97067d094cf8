//! One HTTP connection: reads a request, does its work, answers.

use std::io;
use std::net::TcpStream;
use std::sync::Arc;

use crate::burn::{self, FUNCTIONS};
use crate::calls::{self, Files, sleep, thread_cpu};
use crate::ledger::Ledger;
use crate::partner::Partner;
use crate::postgres::Postgres;
use crate::redis::Redis;
use crate::socket::{receive, send};
use crate::truth;
use crate::work::Work;

const DONE: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\ndone\n";
/// The longest request.
const REQUEST: usize = 4_096;

/// What all connections share.
pub struct Services {
    /// Where Postgres is.
    pub postgres: Option<String>,
    /// Where Redis is.
    pub redis: Option<String>,
    /// Iterations of a burning function that take a microsecond.
    pub iterations: u64,
}

/// A connection with all that it needs, opened when it is first needed.
pub struct Connection {
    stream: TcpStream,
    services: Arc<Services>,
    ledger: Option<Arc<Ledger>>,
    files: Files,
    postgres: Option<Postgres>,
    redis: Option<Redis>,
    partner: Option<Partner>,
    blocks: Vec<*mut libc::c_void>,
    chance: u64,
}

impl Connection {
    /// A connection that has just been accepted.
    pub fn new(
        stream: TcpStream,
        services: Arc<Services>,
        ledger: Option<Arc<Ledger>>,
    ) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        let port = stream.peer_addr()?.port();
        Ok(Self {
            stream,
            services,
            ledger,
            files: Files::open()?,
            postgres: None,
            redis: None,
            partner: None,
            blocks: Vec::with_capacity(1_024),
            chance: 0x2545_f491_4f6c_dd1d ^ u64::from(port),
        })
    }

    /// Answers until the client leaves.
    pub fn serve(mut self) -> io::Result<()> {
        let mut request = [0; REQUEST];
        let mut used = thread_cpu();
        loop {
            let length = receive(&self.stream, &mut request)?;
            if length == 0 {
                return Ok(());
            }
            let path = path(&request[..length])?;
            let burnt = if path == "/ready" {
                send(&self.stream, DONE)?;
                [0; FUNCTIONS.len()]
            } else {
                self.answer(path)?
            };
            let now = thread_cpu();
            if let Some(ledger) = &self.ledger {
                ledger.note(now.saturating_sub(used), &burnt);
            }
            used = now;
        }
    }

    fn answer(&mut self, path: &str) -> io::Result<[u64; FUNCTIONS.len()]> {
        let work = match Work::parse(path) {
            Ok(work) => work,
            Err(reason) => {
                self.say(400, "text/plain", reason)?;
                return Ok([0; FUNCTIONS.len()]);
            }
        };
        if path.starts_with("/truth") {
            self.say(200, "application/x-ndjson", &truth::lines(&work))?;
            return Ok([0; FUNCTIONS.len()]);
        }
        let burnt = self.work(&work)?;
        send(&self.stream, DONE)?;
        Ok(burnt)
    }

    fn say(&self, status: u16, kind: &str, text: &str) -> io::Result<()> {
        let length = text.len();
        let head = format!("HTTP/1.1 {status} -\r\ncontent-type: {kind}\r\n");
        send(&self.stream, format!("{head}content-length: {length}\r\n\r\n{text}").as_bytes())
    }

    fn work(&mut self, work: &Work) -> io::Result<[u64; FUNCTIONS.len()]> {
        if work.trips + work.prepares > 0 {
            open(&mut self.postgres, self.services.postgres.as_deref(), Postgres::connect)?
                .run(work)?;
        }
        if work.redis > 0 {
            open(&mut self.redis, self.services.redis.as_deref(), Redis::connect)?.run(work)?;
        }
        calls::make(&work.calls, work.failing, &self.files)?;
        self.allocate(work.blocks, work.block);
        if work.pings > 0 {
            let partner = match &mut self.partner {
                Some(partner) => partner,
                none => none.insert(Partner::start()?),
            };
            let naps = u8::try_from(work.naps).unwrap_or(u8::MAX);
            for _ in 0..work.pings {
                partner.ping(naps)?;
            }
        }
        if work.sleep > 0 {
            sleep(work.sleep);
        }
        if work.burns() {
            return Ok(burn::run(&work.burn, self.services.iterations, &mut self.chance));
        }
        Ok([0; FUNCTIONS.len()])
    }

    fn allocate(&mut self, blocks: u32, bytes: u32) {
        for _ in 0..blocks {
            // SAFETY: freed below; the list has room for as many as a request may ask for.
            self.blocks.push(unsafe { libc::malloc(bytes as usize) });
        }
        for block in self.blocks.drain(..) {
            // SAFETY: it came from malloc, once.
            unsafe { libc::free(block) };
        }
    }
}

/// The service, connected when it is first asked for.
fn open<'a, T>(
    service: &'a mut Option<T>,
    url: Option<&str>,
    connect: impl FnOnce(&str) -> io::Result<T>,
) -> io::Result<&'a mut T> {
    match service {
        Some(open) => Ok(open),
        none => {
            let url = url.ok_or_else(|| io::Error::other("a service has no URL"))?;
            Ok(none.insert(connect(url)?))
        }
    }
}

/// The path of a GET that has come whole.
fn path(request: &[u8]) -> io::Result<&str> {
    let wrong = || io::Error::other("not a GET that came at once");
    if !request.ends_with(b"\r\n\r\n") {
        return Err(wrong());
    }
    let line = request.split(|&byte| byte == b'\r').next().ok_or_else(wrong)?;
    let line = std::str::from_utf8(line).map_err(io::Error::other)?;
    line.strip_prefix("GET ").and_then(|rest| rest.split(' ').next()).ok_or_else(wrong)
}
