//! Probes under supervision: started, told `on`, `off`, `mark`, `stop`, and waited for.
//!
//! A probe is another program; all that is known of it is the session protocol. Whatever goes
//! wrong with one is a [`ProbeError`] of one line, and costs its pass, not the run.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use assay_captures::ids::{Pid, Port, Role};
use nix::sys::signal::Signal;
use serde::Deserialize;

use crate::child::Upbringing;
use crate::pinning::CoreSet;

/// How long a probe may take until it records: perf and strace attach to many threads.
const READY_MAX: Duration = Duration::from_secs(20);
/// How long it may take to switch, or to read its counters.
const REPLY_MAX: Duration = Duration::from_secs(10);
/// How long it may take to close its capture: masking packets, naming symbols.
const STOP_MAX: Duration = Duration::from_secs(120);
/// How long a probe that is being given up may take to end by itself.
const GRACE: Duration = Duration::from_secs(2);
/// Lines of its standard error that are kept.
const TAIL_LINES: usize = 10;
/// The longest line that is read from a probe.
const LINE_MAX: u64 = 64 * 1024;

/// A set of processes that a probe watches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeTarget {
    /// The part it plays.
    pub role: Role,
    /// The processes that its others descend from, where they are known.
    pub pids: Vec<Pid>,
    /// The port that it listens on.
    pub port: Port,
    /// The Unix socket that it listens on, where that is what counts.
    pub path: Option<String>,
}

impl ProbeTarget {
    /// As the probes' command line has it.
    #[must_use]
    pub fn argument(&self) -> String {
        let pids: String = self.pids.iter().map(|pid| format!("pid={},", pid.0)).collect();
        let path = self.path.iter().map(|path| format!(",path={path}")).collect::<String>();
        format!("{}:{pids}port={}{path}", self.role.word(), self.port.0)
    }
}

/// What went wrong with a probe, in one line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{probe}: {reason}")]
pub struct ProbeError {
    /// The probe's question, such as `wire`.
    pub probe: String,
    /// What happened.
    pub reason: String,
    /// Whether it never got to record: then trying again elsewhere will not help.
    pub at_start: bool,
}

/// One line of a probe's standard output.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Reply {
    ready: bool,
    on: bool,
    off: bool,
    mark: bool,
    done: bool,
    status: Option<String>,
    reason: Option<String>,
    error: Option<String>,
}

impl Reply {
    fn is(&self, word: &str) -> bool {
        match word {
            "ready" => self.ready,
            "on" => self.on,
            "off" => self.off,
            "mark" => self.mark,
            "done" => self.done,
            _ => false,
        }
    }
}

/// A running probe. Dropping it without [`ProbeSession::stop`] gives it up: its capture is then
/// closed if it ends within two seconds, and it is killed if not.
#[derive(Debug)]
pub struct ProbeSession {
    probe: String,
    child: Child,
    commands: Option<ChildStdin>,
    replies: Receiver<Reply>,
    stderr: Option<JoinHandle<VecDeque<String>>>,
    recording: bool,
    ended: bool,
}

impl ProbeSession {
    /// Starts `program` on `cores` and waits until it is ready. `recording` says whether it
    /// records from then on; otherwise it waits for [`ProbeSession::switch`].
    pub fn start(
        probe: &str,
        program: &Path,
        out: &Path,
        targets: &[ProbeTarget],
        options: &[String],
        recording: bool,
        cores: &CoreSet,
    ) -> Result<Self, ProbeError> {
        let failed =
            |reason: String| ProbeError { probe: probe.to_owned(), reason, at_start: true };
        let mut command = Command::new(program);
        command.arg("--out").arg(out);
        for target in targets {
            command.arg("--target").arg(target.argument());
        }
        if !recording {
            command.arg("--off");
        }
        command.args(options);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // SIGTERM lets it flush what it has when we are gone.
        let upbringing = Upbringing::on(cores)
            .map_err(|error| failed(format!("cannot be pinned: {error}")))?
            .dying_of(Signal::SIGTERM);
        upbringing.apply(&mut command);
        let mut child = command.spawn().map_err(|error| {
            failed(format!("cannot start {}: {error}; build the probes", program.display()))
        })?;
        let replies = child.stdout.take().map_or_else(|| channel().1, read_replies);
        let stderr = child.stderr.take().map(read_tail);
        let commands = child.stdin.take();
        let probe = probe.to_owned();
        let mut session = Self { probe, child, commands, replies, stderr, recording, ended: false };
        session
            .wait("ready", READY_MAX)
            .map_err(|reason| failed(session.explain(reason)))
            .map(|_| ())?;
        Ok(session)
    }

    /// The question that it answers.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.probe
    }

    /// Records from here on, or no more.
    pub fn switch(&mut self, recording: bool) -> Result<(), ProbeError> {
        if self.recording != recording {
            self.command(if recording { "on" } else { "off" })?;
            self.recording = recording;
        }
        Ok(())
    }

    /// Has it read its counters now.
    pub fn mark(&mut self) -> Result<(), ProbeError> {
        self.command("mark")
    }

    /// Has it close its capture, and waits until it has.
    pub fn stop(mut self) -> Result<(), ProbeError> {
        let done = self.send("stop").and_then(|()| self.wait("done", STOP_MAX));
        done.map(|_| ()).map_err(|reason| self.error(reason))
    }

    fn command(&mut self, word: &'static str) -> Result<(), ProbeError> {
        let answered = self.send(word).and_then(|()| self.wait(word, REPLY_MAX));
        answered.map(|_| ()).map_err(|reason| self.error(reason))
    }

    fn send(&mut self, word: &str) -> Result<(), String> {
        let sent = self.commands.as_mut().map(|pipe| writeln!(pipe, "{word}"));
        match sent {
            Some(Ok(())) => Ok(()),
            // It has ended; why is on its standard output, if it said so.
            _ => match self.wait("done", REPLY_MAX) {
                Ok(_) => Err("ended before it was told to".to_owned()),
                Err(reason) => Err(reason),
            },
        }
    }

    /// Waits for the reply to `word`; an error is the reason why it will not come.
    fn wait(&mut self, word: &str, longest: Duration) -> Result<Reply, String> {
        let deadline = Instant::now() + longest;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.replies.recv_timeout(left) {
                Ok(reply) if reply.done => {
                    self.ended = true;
                    return match (reply.status.as_deref(), word) {
                        (Some("complete"), "done") => Ok(reply),
                        (Some("complete"), _) => Err("ended before it was told to".to_owned()),
                        _ => Err(reply.reason.unwrap_or_else(|| "failed".to_owned())),
                    };
                }
                Ok(reply) if reply.is(word) => return Ok(reply),
                Ok(Reply { error: Some(error), .. }) => return Err(error),
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout) => {
                    return Err(format!("no answer to `{word}` within {} s", longest.as_secs()));
                }
                Err(RecvTimeoutError::Disconnected) => return Err(String::new()),
            }
        }
    }

    fn error(&mut self, reason: String) -> ProbeError {
        let reason = self.explain(reason);
        ProbeError { probe: self.probe.clone(), reason, at_start: false }
    }

    /// A reason for an end without one: how the process ended, and its last words.
    fn explain(&mut self, reason: String) -> String {
        if !reason.is_empty() {
            return reason;
        }
        let status = self.end();
        let last = self.stderr.take().and_then(|tail| tail.join().ok()).unwrap_or_default();
        let last: Vec<String> = last.into();
        let words = if last.is_empty() { "it said nothing".to_owned() } else { last.join(" | ") };
        format!("ended unexpectedly ({status}): {words}")
    }

    /// Ends the process if it has not ended; how it did.
    fn end(&mut self) -> String {
        self.ended = true;
        // The end of its standard input is a request to stop.
        self.commands = None;
        let deadline = Instant::now() + GRACE;
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return status.to_string(),
                Ok(None) if Instant::now() < deadline => {
                    std::thread::sleep(Duration::from_millis(10));
                }
                Ok(None) => {
                    let _gone = self.child.kill();
                    return match self.child.wait() {
                        Ok(status) => status.to_string(),
                        Err(error) => error.to_string(),
                    };
                }
                Err(error) => return error.to_string(),
            }
        }
    }
}

impl Drop for ProbeSession {
    fn drop(&mut self) {
        // After its last line a probe only has to exit; it is waited for like any other.
        self.end();
    }
}

fn read_replies(out: impl Read + Send + 'static) -> Receiver<Reply> {
    let (send, receive) = channel();
    std::thread::spawn(move || {
        for line in lines(out) {
            // Whatever is not a reply is not for us.
            if let Ok(reply) = serde_json::from_str(&line)
                && send.send(reply).is_err()
            {
                break;
            }
        }
    });
    receive
}

fn read_tail(error: impl Read + Send + 'static) -> JoinHandle<VecDeque<String>> {
    std::thread::spawn(move || {
        let mut tail = VecDeque::new();
        for line in lines(error) {
            if !line.trim().is_empty() {
                if tail.len() == TAIL_LINES {
                    tail.pop_front();
                }
                tail.push_back(line);
            }
        }
        tail
    })
}

/// The lines of `from`, cut where they are longer than anything that a probe has to say.
fn lines(from: impl Read) -> impl Iterator<Item = String> {
    let mut from = BufReader::new(from);
    std::iter::from_fn(move || {
        let mut line = Vec::new();
        let read = from.by_ref().take(LINE_MAX).read_until(b'\n', &mut line).ok()?;
        (read > 0).then(|| String::from_utf8_lossy(&line).trim_end().to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A probe in shell: `script` runs for each command, in `$word`.
    fn fake(folder: &Path, ready: &str, script: &str) -> Result<ProbeSession, ProbeError> {
        use std::os::unix::fs::PermissionsExt;
        let program = folder.join("assay-probe-fake");
        let text = format!(
            "#!/bin/sh\n{ready}\nwhile read word; do\n{script}\ndone\n\
             echo '{{\"done\":true,\"status\":\"complete\"}}'\n"
        );
        std::fs::write(&program, text).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o700)).unwrap();
        let cores = CoreSet::new(crate::pinning::usable_cores().unwrap()).unwrap();
        let (role, pids) = (Role::Subject, vec![Pid(7)]);
        let target = ProbeTarget { role, pids, port: Port(80), path: None };
        let out = folder.join("out");
        ProbeSession::start("fake", &program, &out, &[target], &[], false, &cores)
    }

    const READY: &str = "echo '{\"ready\":true,\"moment\":1}'";
    const OBEY: &str = "[ $word = stop ] && break; echo \"{\\\"$word\\\":true,\\\"moment\\\":2}\"";

    #[test]
    fn a_probe_that_obeys_is_switched_marked_and_stopped() {
        let folder = tempfile::tempdir().unwrap();
        let note = format!("echo \"$@\" > {}/args; {READY}", folder.path().display());
        let mut probe = fake(folder.path(), &note, OBEY).unwrap();
        probe.switch(true).unwrap();
        probe.mark().unwrap();
        probe.switch(false).unwrap();
        probe.stop().unwrap();
        let args = std::fs::read_to_string(folder.path().join("args")).unwrap();
        let out = folder.path().join("out");
        let wanted = format!("--out {} --target subject:pid=7,port=80 --off\n", out.display());
        assert_eq!(args, wanted);
    }

    #[test]
    fn a_probe_that_fails_at_its_start_says_why() {
        let folder = tempfile::tempdir().unwrap();
        let said = "echo '{\"done\":true,\"status\":\"failed\",\"reason\":\"no right\"}'; exit 1";
        let error = fake(folder.path(), said, OBEY).unwrap_err();
        assert_eq!(error.to_string(), "fake: no right");
        assert!(error.at_start);
    }

    #[test]
    fn a_probe_that_crashes_is_quoted() {
        let folder = tempfile::tempdir().unwrap();
        let crash = "echo 'first' >&2; echo 'at the end' >&2; exit 3";
        let mut probe = fake(folder.path(), READY, crash).unwrap();
        let error = probe.mark().unwrap_err();
        assert_eq!(
            error.to_string(),
            "fake: ended unexpectedly (exit status: 3): first | at the end"
        );
        assert!(!error.at_start);
    }

    #[test]
    fn a_probe_that_fails_on_the_way_says_why_and_ends_the_waiting() {
        let folder = tempfile::tempdir().unwrap();
        let full = "echo '{\"done\":true,\"status\":\"failed\",\"reason\":\"disk full\"}'; exit 1";
        let mut probe = fake(folder.path(), READY, full).unwrap();
        assert_eq!(probe.switch(true).unwrap_err().to_string(), "fake: disk full");
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let cores = CoreSet::new(crate::pinning::usable_cores().unwrap()).unwrap();
        let path = Path::new("/nowhere/assay-probe-x");
        let started = ProbeSession::start("x", path, Path::new("/nowhere"), &[], &[], true, &cores);
        let said = started.unwrap_err().to_string();
        assert!(said.starts_with("x: cannot start /nowhere/assay-probe-x: "), "{said}");
    }
}
