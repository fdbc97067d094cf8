//! A test program that plays the part of a service: started again as a child, which does a known
//! stage of work each time it is told to.

use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};

/// Says to the started program what it is.
const PART: &str = "ASSAY_TEST_PART";

/// The part that this program was started to play; nothing in the program that runs the tests.
pub(crate) fn part() -> Option<String> {
    std::env::var(PART).ok()
}

/// In the child: says that what came before is over, and waits for the next stage; nothing when
/// there is none. By `writev` and `readv`, so that stages may count their `write` and `read`.
pub(crate) fn next_stage() -> Option<u8> {
    let mut byte = b'x';
    let mut slice = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
    // SAFETY: one byte of a live local, written to and read from it.
    unsafe {
        libc::writev(2, &raw const slice, 1);
        let read = libc::readv(0, &raw mut slice, 1);
        (read == 1).then_some(byte)
    }
}

/// The child, from outside.
pub(crate) struct Subject {
    child: Child,
}

impl Subject {
    /// Starts the test `test` of this program in a part, and waits until it is there.
    pub(crate) fn start(test: &str, part: &str) -> Self {
        Self::start_with(test, part, &[])
    }

    /// The same, with more in its environment.
    pub(crate) fn start_with(test: &str, part: &str, environment: &[(&str, &str)]) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", test, "--nocapture", "--test-threads=1"]);
        Self::try_start(command, part, environment).unwrap()
    }

    /// Has a command start the program; nothing where it ends before the program is there.
    pub(crate) fn try_start(
        mut command: Command,
        part: &str,
        environment: &[(&str, &str)],
    ) -> Option<Self> {
        let child = command
            .env(PART, part)
            .envs(environment.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .ok()?;
        let mut subject = Self { child };
        subject.child.stderr.as_mut()?.read_exact(&mut [0]).ok()?;
        Some(subject)
    }

    /// As a probe's command line names it.
    pub(crate) fn target(&self) -> String {
        format!("subject:pid={}", self.pid())
    }

    /// Its process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Has it do a stage, and returns when it has: so it lives.
    pub(crate) fn stage(&mut self, word: u8) {
        self.child.stdin.as_mut().unwrap().write_all(&[word]).unwrap();
        self.stage_over();
    }

    fn stage_over(&mut self) {
        self.child.stderr.as_mut().unwrap().read_exact(&mut [0]).unwrap();
    }
}

impl Drop for Subject {
    fn drop(&mut self) {
        // The end of its input is the end of its work.
        drop(self.child.stdin.take());
        let _gone = self.child.wait();
    }
}
