//! Subjects: built, started on their cores, known to be ready, stopped.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus};
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::processes;

/// How long a subject may take to end after SIGTERM.
const GRACE: Duration = Duration::from_secs(3);

/// A subject in one variant, running and ready.
#[derive(Debug)]
pub struct RunningSubject {
    /// Name of the subject.
    pub subject: String,
    /// Name of its variant.
    pub variant: String,
    /// What tables print above its column.
    pub title: String,
    /// Where it listens.
    pub address: SocketAddr,
    /// Its first process.
    pub pid: u32,
    /// What it printed, both streams.
    pub output: PathBuf,
    child: Child,
}

impl RunningSubject {
    /// Stops its processes where they are, so that they cost nothing while another one is loaded.
    pub fn freeze(&self) {
        processes::signal_tree(self.root(), Signal::SIGSTOP);
    }

    /// Lets its processes go on.
    pub fn thaw(&self) {
        processes::signal_tree(self.root(), Signal::SIGCONT);
    }

    /// Whether its first process has not ended.
    pub fn is_alive(&mut self) -> bool {
        self.ended().is_none()
    }

    /// How its first process ended, if it has.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// The last lines that it printed, at most `lines`.
    #[must_use]
    pub fn tail(&self, lines: usize) -> Vec<String> {
        tail(&self.output, lines)
    }

    /// Ends it and everything that it started: SIGTERM, and SIGKILL for what is left of its tree
    /// after three seconds. Dropping does the same.
    pub fn stop(self) {
        drop(self);
    }

    fn root(&self) -> Pid {
        Pid::from_raw(self.pid.cast_signed())
    }

    fn end(&mut self) {
        if self.ended().is_some() {
            return;
        }
        let tree = processes::descendants(self.root());
        let _gone = kill(self.root(), Signal::SIGTERM);
        self.thaw();
        let deadline = Instant::now() + GRACE;
        while self.is_alive() && Instant::now() < deadline {
            sleep(Duration::from_millis(5));
        }
        for process in tree {
            // Not by number alone: it may have been given to someone else since.
            let now = processes::process(process.pid);
            if now.is_some_and(|now| now.name == process.name && !now.zombie) {
                let _gone = kill(process.pid, Signal::SIGKILL);
            }
        }
        if self.is_alive() {
            let _gone = kill(self.root(), Signal::SIGKILL);
            let _status = self.child.wait();
        }
    }
}

impl Drop for RunningSubject {
    fn drop(&mut self) {
        self.end();
    }
}

/// The last lines of a file, at most `lines`; none when it cannot be read.
#[must_use]
pub fn tail(file: &Path, lines: usize) -> Vec<String> {
    use std::io::{Read, Seek, SeekFrom};
    // Enough for the last lines; a subject may have printed gigabytes.
    const LAST: u64 = 64 * 1024;
    let read = || -> std::io::Result<Vec<u8>> {
        let mut file = std::fs::File::open(file)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(LAST)))?;
        let mut bytes = Vec::new();
        file.take(LAST).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let text = read().unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let all: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    all[all.len().saturating_sub(lines)..].iter().map(|&line| line.to_owned()).collect()
}
