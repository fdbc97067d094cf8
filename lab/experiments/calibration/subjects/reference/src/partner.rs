//! Two long-lived threads that wait for each other.
//!
//! The one asks, the other naps as often as it was told and answers. A nap is always a voluntary
//! context switch, whatever else the machine does; so is waiting for a question or an answer,
//! except where a thread was kept from running for so long that it need not wait any more. Many
//! naps to a question make that exception small.

use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::AsRawFd;
use std::thread;

use crate::calls::sleep;

/// Microseconds; the kernel's timer slack makes it fifty more.
const NAP: u32 = 20;

/// The other side of a thread's pings.
pub struct Partner {
    ask: PipeWriter,
    answer: PipeReader,
}

impl Partner {
    /// Starts it; it ends when this is dropped.
    pub fn start() -> io::Result<Self> {
        let (questions, ask) = io::pipe()?;
        let (answer, answers) = io::pipe()?;
        thread::Builder::new().spawn(move || {
            while let Ok(Some(naps)) = read(&questions) {
                (0..naps).for_each(|_| sleep(NAP));
                if write(&answers, 0).is_err() {
                    break;
                }
            }
        })?;
        Ok(Self { ask, answer })
    }

    /// Asks for so many naps, and waits for the answer.
    pub fn ping(&self, naps: u8) -> io::Result<()> {
        write(&self.ask, naps)?;
        read(&self.answer)?.map(|_| ()).ok_or_else(|| io::Error::other("the partner is gone"))
    }
}

/// One byte; `None` at the end.
fn read(pipe: &PipeReader) -> io::Result<Option<u8>> {
    let mut byte = [0u8];
    // SAFETY: the buffer is as long as is said.
    match unsafe { libc::read(pipe.as_raw_fd(), byte.as_mut_ptr().cast(), 1) } {
        -1 => Err(io::Error::last_os_error()),
        read => Ok((read == 1).then_some(byte[0])),
    }
}

fn write(pipe: &PipeWriter, byte: u8) -> io::Result<()> {
    // SAFETY: the buffer is as long as is said.
    match unsafe { libc::write(pipe.as_raw_fd(), [byte].as_ptr().cast(), 1) } {
        1 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
