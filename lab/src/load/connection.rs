//! One keep-alive connection: opens itself when needed, sends one request, reads its answer.
//!
//! The connection's own work and the exchange are polled in the same task, so a request costs
//! the driver no hop between tasks.

use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::CONNECTION;
use hyper::{Response, Version};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use super::checks::BodyCheck;
use super::errors::ErrorKind;
use super::requests::Prepared;

/// hyper's read buffer never grows beyond this, so 3,000 connections stay below 200 MB.
const READ_BUFFER_MAX: usize = 64 * 1024;

type Io = http1::Connection<TokioIo<TcpStream>, Full<Bytes>>;

/// A connection to the subject, or the intention to open one.
pub(super) struct Connection {
    address: SocketAddr,
    link: Option<Link>,
}

struct Link {
    sender: SendRequest<Full<Bytes>>,
    /// `None` once it has ended: dropping it is what tells `sender` so.
    io: Option<Io>,
}

/// A whole answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body_bytes: u64,
    /// Whether the body is the expected one.
    pub(super) expected: bool,
}

impl Answer {
    pub(super) fn is_2xx(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

impl Connection {
    pub(super) fn new(address: SocketAddr) -> Self {
        Self { address, link: None }
    }

    /// Makes sure that the connection is open and can take a request; opens it again where the
    /// other side has closed it meanwhile.
    pub(super) async fn refresh(&mut self) -> io::Result<()> {
        if let Some(link) = &mut self.link
            && link.ready().await.is_ok()
            && link.is_open().await
        {
            return Ok(());
        }
        self.open().await
    }

    /// Opens it, whatever was there before.
    async fn open(&mut self) -> io::Result<()> {
        self.link = None;
        let stream = TcpStream::connect(self.address).await?;
        stream.set_nodelay(true)?;
        let (sender, io) = http1::Builder::new()
            .max_buf_size(READ_BUFFER_MAX)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(io::Error::other)?;
        let mut link = Link { sender, io: Some(io) };
        link.ready().await.map_err(io::Error::other)?;
        self.link = Some(link);
        Ok(())
    }

    /// Sends one request and reads its whole answer, showing each part of the body to `body`.
    /// After an error, or where the other side wants to close, the connection is given up; the
    /// next exchange opens it again.
    pub(super) async fn exchange(
        &mut self,
        prepared: &Prepared,
        timeout: Duration,
        body: impl FnMut(&[u8]),
    ) -> Result<Answer, ErrorKind> {
        let work = async {
            let open = match &mut self.link {
                Some(link) => link.ready().await.is_ok(),
                None => false,
            };
            if !open {
                self.open().await.map_err(|_| ErrorKind::Connect)?;
            }
            let Some(link) = &mut self.link else { return Err(ErrorKind::Connect) };
            link.exchange(prepared, body).await
        };
        match tokio::time::timeout(timeout, work).await {
            Ok(Ok((answer, keep))) => {
                if !keep {
                    self.link = None;
                }
                Ok(answer)
            }
            failed => {
                self.link = None;
                Err(failed
                    .map_or(ErrorKind::Timeout, |kind| kind.err().unwrap_or(ErrorKind::Closed)))
            }
        }
    }
}

impl Link {
    /// Waits until a request can be sent; an error where the connection has ended.
    async fn ready(&mut self) -> hyper::Result<()> {
        drive(&mut self.io, self.sender.ready()).await
    }

    /// Looks at the socket: a connection that the other side has closed while it was idle says so
    /// only when it is read.
    async fn is_open(&mut self) -> bool {
        poll_fn(|context| {
            poll_io(&mut self.io, context);
            Poll::Ready(self.io.is_some())
        })
        .await
    }

    /// The answer, and whether the other side keeps the connection.
    async fn exchange(
        &mut self,
        prepared: &Prepared,
        mut see: impl FnMut(&[u8]),
    ) -> Result<(Answer, bool), ErrorKind> {
        let Self { sender, io } = self;
        let work = async {
            let response = sender.send_request(prepared.request.clone()).await?;
            let status = response.status().as_u16();
            let keep = keeps(&response);
            let mut check = BodyCheck::new(prepared.expected.as_deref());
            let mut body = response.into_body();
            while let Some(frame) = body.frame().await {
                if let Ok(chunk) = frame?.into_data() {
                    check.feed(&chunk);
                    see(&chunk);
                }
            }
            let expected = check.is_expected();
            Ok((Answer { status, body_bytes: check.length(), expected }, keep))
        };
        drive(io, work).await.map_err(|error| ErrorKind::of_hyper(&error))
    }
}

/// Whether the connection may be used again after this answer.
fn keeps(response: &Response<Incoming>) -> bool {
    let says = |word: &str| {
        let mut values = response.headers().get_all(CONNECTION).iter();
        values.any(|value| {
            let words = value.to_str().unwrap_or_default().split(',');
            words.into_iter().any(|found| found.trim().eq_ignore_ascii_case(word))
        })
    };
    if response.version() == Version::HTTP_11 { !says("close") } else { says("keep-alive") }
}

/// Polls `work`, and the connection under it whenever `work` waits.
async fn drive<F: Future>(io: &mut Option<Io>, work: F) -> F::Output {
    let mut work = pin!(work);
    poll_fn(|context| {
        if let Poll::Ready(output) = work.as_mut().poll(context) {
            return Poll::Ready(output);
        }
        poll_io(io, context);
        // What the connection has just read is there now: no need to wait to be woken for it.
        work.as_mut().poll(context)
    })
    .await
}

fn poll_io(io: &mut Option<Io>, context: &mut Context<'_>) {
    if let Some(open) = io
        && Pin::new(open).poll(context).is_ready()
    {
        *io = None;
    }
}
