//! What one round trip to Postgres takes: `SELECT 1` over a blocking socket that speaks the
//! protocol itself. A client library adds its own wake-ups, several times the trip.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use assay_captures::units::Nanos;
use bytes::BytesMut;
use postgres_protocol::IsNull;
use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{ChannelBinding, SCRAM_SHA_256, ScramSha256};
use postgres_protocol::message::backend::Message;
use postgres_protocol::message::frontend;
use tokio_postgres::config::{Config, Host};

/// How many trips are timed; the median is taken.
const ROUND_TRIPS: usize = 2000;
/// A server that says nothing for so long has given up.
const PATIENCE: Duration = Duration::from_secs(10);

/// Median time of 2,000 `SELECT 1`, prepared, one after another on one TCP connection.
///
/// # Errors
///
/// One line: the connection fails, or the server asks for what only a full client knows (TLS,
/// certificates).
pub(super) fn select_1(config: &Config) -> Result<Nanos> {
    let mut connection = Connection::open(config)?;
    let mut prepare = BytesMut::new();
    frontend::parse("one", "SELECT 1", [], &mut prepare)?;
    frontend::sync(&mut prepare);
    connection.ask(&prepare)?;
    let mut run = BytesMut::new();
    let nothing = std::iter::empty::<()>();
    let bound = frontend::bind("", "one", [], nothing, |(), _| Ok(IsNull::Yes), [1], &mut run);
    if bound.is_err() {
        bail!("a statement without parameters cannot be bound");
    }
    frontend::execute("", 0, &mut run)?;
    frontend::sync(&mut run);
    let mut times = Vec::with_capacity(ROUND_TRIPS);
    for _ in 0..ROUND_TRIPS {
        let begin = Instant::now();
        connection.ask(&run)?;
        times.push(begin.elapsed());
    }
    times.sort_unstable();
    let median = times.get(ROUND_TRIPS / 2).copied().unwrap_or_default();
    Ok(Nanos(u64::try_from(median.as_nanos()).unwrap_or(u64::MAX)))
}

/// A connection that is past its start-up.
struct Connection {
    stream: TcpStream,
    received: BytesMut,
}

impl Connection {
    fn open(config: &Config) -> Result<Self> {
        let Some(Host::Tcp(host)) = config.get_hosts().first() else {
            bail!("round trips are timed over TCP, and this Postgres has a socket file");
        };
        let port = config.get_ports().first().copied().unwrap_or(5432);
        let mut addresses = (host.as_str(), port).to_socket_addrs().context("no such host")?;
        let address = addresses.next().with_context(|| format!("{host} has no address"))?;
        let stream = TcpStream::connect_timeout(&address, PATIENCE)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let mut connection = Self { stream, received: BytesMut::new() };
        connection.start(config)?;
        Ok(connection)
    }

    fn start(&mut self, config: &Config) -> Result<()> {
        let user = config.get_user().unwrap_or("postgres");
        let password = config.get_password().unwrap_or_default();
        let database = config.get_dbname().unwrap_or(user);
        let mut out = BytesMut::new();
        frontend::startup_message([("user", user), ("database", database)], &mut out)?;
        let mut scram = ScramSha256::new(password, ChannelBinding::unsupported());
        loop {
            self.stream.write_all(&out.split())?;
            match self.next()? {
                Message::AuthenticationCleartextPassword => {
                    frontend::password_message(password, &mut out)?;
                }
                Message::AuthenticationMd5Password(body) => {
                    let hash = md5_hash(user.as_bytes(), password, body.salt());
                    frontend::password_message(hash.as_bytes(), &mut out)?;
                }
                Message::AuthenticationSasl(_) => {
                    frontend::sasl_initial_response(SCRAM_SHA_256, scram.message(), &mut out)?;
                }
                Message::AuthenticationSaslContinue(body) => {
                    scram.update(body.data())?;
                    frontend::sasl_response(scram.message(), &mut out)?;
                }
                Message::AuthenticationSaslFinal(body) => scram.finish(body.data())?,
                Message::ReadyForQuery(_) => return Ok(()),
                Message::AuthenticationGss | Message::AuthenticationSspi => {
                    bail!("this Postgres asks for an authentication that is not spoken here");
                }
                _ => {}
            }
        }
    }

    /// Sends messages and waits until the server is ready again.
    fn ask(&mut self, messages: &[u8]) -> Result<()> {
        self.stream.write_all(messages)?;
        while !matches!(self.next()?, Message::ReadyForQuery(_)) {}
        Ok(())
    }

    fn next(&mut self) -> Result<Message> {
        loop {
            if let Some(message) = Message::parse(&mut self.received)? {
                if let Message::ErrorResponse(_) = message {
                    bail!("Postgres answers with an error");
                }
                return Ok(message);
            }
            let mut chunk = [0; 4096];
            match self.stream.read(&mut chunk) {
                Ok(0) => bail!("Postgres has closed the connection"),
                Ok(length) => self.received.extend_from_slice(&chunk[..length]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error).context("Postgres does not answer"),
            }
        }
    }
}
