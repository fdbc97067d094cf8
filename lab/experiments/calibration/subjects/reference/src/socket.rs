//! One message out, one answer in, each by one system call.

use std::io;
use std::net::TcpStream;
use std::os::fd::AsRawFd;

/// Sends all of `bytes`; they are few enough for one `sendto`.
pub fn send(stream: &TcpStream, bytes: &[u8]) -> io::Result<()> {
    // SAFETY: the buffer is as long as is said.
    let sent = unsafe {
        libc::send(stream.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), libc::MSG_NOSIGNAL)
    };
    match usize::try_from(sent) {
        Ok(sent) if sent == bytes.len() => Ok(()),
        Ok(_) => Err(io::Error::other("a message did not go out at once")),
        Err(_) => Err(io::Error::last_os_error()),
    }
}

/// What has come, by one `recvfrom`; 0 at the end.
pub fn receive(stream: &TcpStream, buffer: &mut [u8]) -> io::Result<usize> {
    // SAFETY: the buffer is as long as is said.
    let received =
        unsafe { libc::recv(stream.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), 0) };
    usize::try_from(received).map_err(|_| io::Error::last_os_error())
}

/// An answer of known length, which must come at once.
pub fn receive_exactly(stream: &TcpStream, buffer: &mut [u8], length: usize) -> io::Result<()> {
    let received = receive(stream, buffer)?;
    if received == length {
        return Ok(());
    }
    Err(io::Error::other(format!("{received} bytes came at once, not {length}")))
}
