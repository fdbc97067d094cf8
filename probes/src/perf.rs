//! perf as a child: recording that can be switched, and its samples as text.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use assay_captures::ids::Pid;
use assay_captures::manifest::Tool;
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

/// How long perf may take to answer, and to write its file when it ends.
const PATIENCE: Duration = Duration::from_secs(20);

/// perf has a page of advice for it.
const NEEDS_RIGHT: &str = "sampling whole CPUs needs the right cap_perfmon, and cap_syslog for the \
                           names of kernel functions: run as root, or \
                           `setcap cap_perfmon,cap_syslog=ep` the probe";

/// A running `perf record`.
#[derive(Debug)]
pub struct Perf {
    child: Child,
    commands: File,
    answers: File,
    data: PathBuf,
    fifos: [PathBuf; 2],
    errors: PathBuf,
    /// Exactly how it was started.
    pub command: Vec<String>,
}

/// How to record.
#[derive(Clone, Debug)]
pub struct Sampling {
    /// Samples a second on each CPU.
    pub rate: u32,
    /// The CPUs, such as `0` or `0-3`; all where it is left out.
    pub cpus: Option<String>,
}

/// The tool and its version; an error in one line where it is not installed.
pub fn tool() -> Result<Tool> {
    let output = Command::new("perf").arg("--version").output().context(
        "perf is not installed, so CPU time cannot be told apart by phase; apt-get install \
         linux-perf",
    )?;
    let text = String::from_utf8_lossy(&output.stdout);
    let version = text.trim().rsplit(' ').next().unwrap_or_default().to_owned();
    Ok(Tool { name: "perf".into(), version })
}

impl Perf {
    /// Starts `perf record` on whole CPUs, switched off; returns when it answers.
    ///
    /// Never on single processes: perf then arms a timer at each context switch, which costs the
    /// service a quarter of its speed and lets the switch itself look busy.
    pub fn start(folder: &Path, sampling: &Sampling) -> Result<Self> {
        let [commands, answers] = ["perf.commands", "perf.answers"].map(|name| folder.join(name));
        for fifo in [&commands, &answers] {
            mkfifo(fifo, Mode::S_IRUSR | Mode::S_IWUSR)
                .with_context(|| format!("cannot make {}", fifo.display()))?;
        }
        // Both ends, so that opening does not wait for perf.
        let open = |fifo: &Path| OpenOptions::new().read(true).write(true).open(fifo);
        let control = format!("fifo:{},{}", commands.display(), answers.display());
        let data = folder.join("perf.data");
        let errors = folder.join("perf.errors");
        let mut command = Command::new("perf");
        command.args(["record", "-e", "cpu-clock", "-g", "-k", "CLOCK_MONOTONIC", "-D", "-1"]);
        command.args(["-F", &sampling.rate.to_string(), "-B", "-N", "--control", &control]);
        match &sampling.cpus {
            Some(cpus) => command.args(["-C", cpus]),
            None => command.arg("-a"),
        };
        command.arg("-o").arg(&data);
        let words = std::iter::once(command.get_program()).chain(command.get_args());
        let words = words.map(|word| word.to_string_lossy().into_owned()).collect();
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(File::create(&errors)?);
        die_with_us(&mut command);
        let child = command.spawn().context("cannot start perf")?;
        let mut perf = Self {
            child,
            commands: open(&commands)?,
            answers: open(&answers)?,
            data,
            fifos: [commands, answers],
            errors,
            command: words,
        };
        perf.ask("ping")?;
        Ok(perf)
    }

    /// Switches recording on or off; done when it returns.
    pub fn switch(&mut self, on: bool) -> Result<()> {
        self.ask(if on { "enable" } else { "disable" })
    }

    /// Ends recording; what was recorded is on disk. Of a perf that did not end as it was told to,
    /// nothing stays.
    pub fn finish(mut self) -> Result<Recorded> {
        let ended = self.end();
        let errors = fs::read_to_string(&self.errors).unwrap_or_default();
        let status = ended.inspect_err(|_| self.remove_data())?;
        // perf passes the signal that ended it on to itself.
        if !status.success() && status.signal() != Some(Signal::SIGINT as i32) {
            self.remove_data();
            bail!("perf ended ({status}): {}", last_line(&errors));
        }
        ensure!(self.data.exists(), "perf left no file: {}", last_line(&errors));
        Ok(Recorded { data: self.data.clone() })
    }

    fn end(&mut self) -> Result<ExitStatus> {
        let pid = nix::unistd::Pid::from_raw(self.child.id().cast_signed());
        let told = kill(pid, Signal::SIGINT);
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().context("cannot wait for perf")? {
                return Ok(status);
            }
            if told.is_err() || Instant::now() > deadline {
                self.child.kill().context("cannot end perf")?;
                self.child.wait().context("cannot wait for perf")?;
                bail!("perf did not end within {PATIENCE:?} and was killed: its samples are lost");
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn remove_data(&self) {
        let _gone = fs::remove_file(&self.data);
    }

    fn ask(&mut self, word: &str) -> Result<()> {
        writeln!(self.commands, "{word}").context("cannot talk to perf")?;
        let (answered, answer) = std::sync::mpsc::channel();
        let file = self.answers.try_clone().context("cannot listen to perf")?;
        // A thread, since perf may die without an answer and a pipe that we hold open has no end.
        std::thread::spawn(move || {
            let mut line = Vec::new();
            let read = BufReader::new(file).read_until(b'\n', &mut line);
            let _nobody = answered.send(read.is_ok());
        });
        let deadline = Instant::now() + PATIENCE;
        loop {
            match answer.recv_timeout(Duration::from_millis(50)) {
                Ok(true) => return Ok(()),
                Ok(false) => bail!("perf does not answer to `{word}`"),
                Err(_) => {}
            }
            if let Some(status) = self.child.try_wait().context("cannot wait for perf")? {
                let errors = fs::read_to_string(&self.errors).unwrap_or_default();
                if errors.contains("perf_event_paranoid") {
                    bail!(NEEDS_RIGHT);
                }
                bail!("perf ended ({status}): {}", last_line(&errors));
            }
            ensure!(Instant::now() < deadline, "perf does not answer to `{word}`");
        }
    }
}

impl Drop for Perf {
    fn drop(&mut self) {
        for file in self.fifos.iter().chain([&self.errors]) {
            let _gone = fs::remove_file(file);
        }
    }
}

/// The file that perf has left.
#[derive(Debug)]
pub struct Recorded {
    data: PathBuf,
}

/// `perf script` at work.
#[derive(Debug)]
pub struct Script {
    child: Child,
    /// The samples, as text.
    pub text: ChildStdout,
    errors: PathBuf,
}

impl Recorded {
    /// Starts `perf script`. Without inlined functions: perf would start a process for each
    /// address. Without demangling: perf does not know all of Rust's names. Of these processes
    /// alone: looking up the symbols of everything else that ran takes seconds.
    pub fn script(&self, pids: &BTreeSet<Pid>) -> Result<Script> {
        let mut command = Command::new("perf");
        command.args(["script", "--no-inline", "--no-demangle", "--ns", "-F"]);
        command.arg("comm,pid,tid,cpu,time,period,event,ip,sym,symoff,dso");
        let pids: Vec<String> = pids.iter().map(|pid| pid.0.to_string()).collect();
        command.args(["--pid", &pids.join(",")]).arg("-i").arg(&self.data);
        let errors = self.data.with_extension("errors");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(File::create(&errors)?);
        die_with_us(&mut command);
        let mut child = command.spawn().context("cannot start perf script")?;
        let text = child.stdout.take().context("perf script has no output")?;
        Ok(Script { child, text, errors })
    }

    /// Removes perf's own file: its stacks have been written as text, or cannot be.
    pub fn remove(self) -> Result<()> {
        let _gone = fs::remove_file(self.data.with_extension("errors"));
        fs::remove_file(&self.data).context("cannot remove perf's file")
    }
}

impl Script {
    /// Waits for its end, when its output has been read. Returns how many chunks of samples the
    /// kernel could not write, which perf says on standard error.
    pub fn finish(mut self) -> Result<u64> {
        let mut rest = Vec::new();
        self.text.read_to_end(&mut rest).context("cannot read from perf script")?;
        let status = self.child.wait().context("cannot wait for perf script")?;
        let errors = fs::read_to_string(&self.errors).unwrap_or_default();
        let _gone = fs::remove_file(&self.errors);
        ensure!(status.success(), "perf script failed ({status}): {}", last_line(&errors));
        Ok(lost_chunks(&errors))
    }
}

/// `Processed 15000 events and lost 3 chunks!`
fn lost_chunks(errors: &str) -> u64 {
    let mut words = errors.split_whitespace();
    words.find(|&word| word == "lost").and_then(|_| words.next()?.parse().ok()).unwrap_or(0)
}

fn die_with_us(command: &mut Command) {
    // SAFETY: between fork and exec only system calls are made.
    unsafe {
        command.pre_exec(|| {
            crate::rights::hand_on()?;
            set_pdeathsig(Signal::SIGKILL)?;
            // The session takes signals by descriptor and has them blocked; a child must not.
            Ok(SigSet::empty().thread_set_mask()?)
        });
    }
}

fn last_line(text: &str) -> String {
    let line = text.lines().rev().find(|line| !line.trim().is_empty());
    line.unwrap_or("it said nothing").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_chunks_are_read_from_what_perf_says() {
        assert_eq!(lost_chunks("Processed 15000 events and lost 3 chunks!\n\nCheck IO!\n"), 3);
        assert_eq!(lost_chunks("Warning: something else"), 0);
    }
}
