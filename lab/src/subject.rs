//! Subjects: built, started on their cores, known to be ready, stopped.

use std::fs::{File, OpenOptions};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use assay_captures::ids::{self, Port};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::child::Upbringing;
use crate::experiment::template::{Values, expand};
use crate::experiment::{Ready, Subject, Variant};
use crate::pinning::CoreSet;
use crate::processes::{self, Process};
use crate::services::Services;
use crate::services::private::free_port;
use crate::ui::Progress;

/// How long a subject may take to end after SIGTERM.
const GRACE: Duration = Duration::from_secs(3);
/// Lines of output that an error quotes.
const QUOTED_LINES: usize = 12;
/// What a subject sees of our own environment; the rest is what the experiment says.
const INHERITED: [&str; 7] = ["PATH", "HOME", "USER", "LANG", "LC_ALL", "TZ", "TMPDIR"];

/// Builds a subject, quiet unless it fails; then its last lines are the error.
pub async fn build(subject: &Subject, scratch: &Path, progress: &Progress) -> Result<()> {
    let [program, arguments @ ..] = subject.build.as_slice() else { return Ok(()) };
    progress.now(&subject.build.join(" "));
    let log = scratch.join(format!("build-{}.log", subject.name));
    let file = output_file(&log)?;
    let mut command = Command::new(program);
    command.args(arguments).current_dir(&subject.dir);
    forget_cargo(&mut command);
    command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
    Upbringing::anywhere().apply(&mut command);
    let started = tokio::process::Command::from(command).kill_on_drop(true).spawn();
    let mut child = started.with_context(|| format!("cannot start {program:?} to build"))?;
    let status = child.wait().await?;
    if !status.success() {
        let lines = tail(&log, QUOTED_LINES).join("\n  ");
        bail!("building {} failed ({status}):\n  {lines}", subject.name);
    }
    Ok(())
}

/// When Assay itself runs under `cargo run`, cargo's own variables would follow it and choose the
/// wrong toolchain and target directory for a build elsewhere.
fn forget_cargo(command: &mut Command) {
    const KEPT: [&str; 4] = ["CARGO_HOME", "CARGO_NET_", "CARGO_HTTP_", "CARGO_REGISTR"];
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy();
        let ours = name.starts_with("CARGO") && !KEPT.iter().any(|kept| name.starts_with(kept));
        if ours || name == "RUSTUP_TOOLCHAIN" {
            command.env_remove(name.as_ref());
        }
    }
}

/// What a start needs beside the experiment.
#[derive(Clone, Copy, Debug)]
pub struct Surroundings<'a> {
    /// For the templates.
    pub services: &'a Services,
    /// The subject's cores.
    pub cores: &'a CoreSet,
    /// Where its output goes.
    pub scratch: &'a Path,
}

/// Starts a subject, with environment beside the experiment's, and returns when it is ready.
pub async fn start(
    subject: &Subject,
    variant: &Variant,
    around: Surroundings<'_>,
    environment: &[(String, String)],
) -> Result<RunningSubject> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()?));
    let values = Values {
        postgres_url: around.services.postgres.as_ref().map(|postgres| postgres.url.as_str()),
        redis_url: around.services.redis.as_ref().map(|redis| redis.url.as_str()),
        address,
    };
    let name = format!("{}.{}", subject.name, variant.name);
    let output = around.scratch.join(format!("{name}-{}.log", address.port()));
    let mut command = command(subject, variant, &values);
    let file = output_file(&output)?;
    command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
    command.envs(environment.iter().map(|(name, value)| (name, value)));
    Upbringing::on(around.cores)?.apply(&mut command);
    let program = command.get_program().to_string_lossy().into_owned();
    let child = command.spawn().with_context(|| format!("cannot start {name}: {program}"))?;
    let mut running = RunningSubject {
        subject: subject.name.clone(),
        variant: variant.name.clone(),
        title: variant.title.clone(),
        address,
        roots: vec![ids::Pid(child.id())],
        port: Port(address.port()),
        life: Life::Ours { child, output, known: Vec::new() },
    };
    running.wait_until_ready(&subject.ready).await?;
    Ok(running)
}

fn command(subject: &Subject, variant: &Variant, values: &Values<'_>) -> Command {
    let words: Vec<String> =
        (subject.command.iter().chain(&variant.args)).map(|word| expand(word, values)).collect();
    let (program, arguments) = words.split_first().map_or(("", &[][..]), |(p, a)| (p.as_str(), a));
    let program =
        if program.contains('/') { subject.dir.join(program) } else { PathBuf::from(program) };
    let mut command = Command::new(program);
    command.args(arguments).current_dir(&subject.dir).env_clear();
    for name in INHERITED {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    for (name, value) in subject.env.iter().chain(&variant.env) {
        command.env(name, expand(value, values));
    }
    command
}

fn output_file(path: &Path) -> Result<File> {
    let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path);
    file.with_context(|| format!("cannot write {}", path.display()))
}

/// The status of the answer to one GET.
async fn get(address: SocketAddr, path: &str) -> std::io::Result<u16> {
    let mut stream = TcpStream::connect(address).await?;
    let request = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut head = [0; 12];
    stream.read_exact(&mut head).await?;
    let status = std::str::from_utf8(&head).ok().and_then(|head| head.get(9..)?.parse().ok());
    status.ok_or_else(|| std::io::ErrorKind::InvalidData.into())
}

/// A subject in one variant, running and ready.
#[derive(Debug)]
pub struct RunningSubject {
    /// Name of the subject.
    pub subject: String,
    /// Name of its variant.
    pub variant: String,
    /// What tables print above its column.
    pub title: String,
    /// Where requests go.
    pub address: SocketAddr,
    /// The processes that its others descend from.
    pub roots: Vec<ids::Pid>,
    /// The port that it listens on itself.
    pub port: Port,
    /// Who started it.
    pub life: Life,
}

/// Who started a subject, and so who may stop it.
#[derive(Debug)]
pub enum Life {
    /// We did: it is frozen while others are loaded, and ended in the end.
    Ours {
        /// Its first process.
        child: Child,
        /// What it printed, both streams.
        output: PathBuf,
        /// Its descendants at the last look: they may outlive a first process that dies.
        known: Vec<Process>,
    },
    /// Somebody else: it is never touched.
    Foreign,
}

impl RunningSubject {
    /// Stops its processes where they are, so that they cost nothing while another one is loaded.
    pub fn freeze(&mut self) {
        self.signal(Signal::SIGSTOP);
    }

    /// Lets its processes go on.
    pub fn thaw(&mut self) {
        self.signal(Signal::SIGCONT);
    }

    /// Signals everything that we have started; what somebody else has, never: also not who was
    /// given the number of one that has ended.
    fn signal(&mut self, signal: Signal) {
        if self.is_alive()
            && let Life::Ours { child, known, .. } = &mut self.life
        {
            let root = Pid::from_raw(child.id().cast_signed());
            *known = processes::descendants(root);
            processes::signal_tree(root, signal);
        }
    }

    /// Whether its first process has not ended.
    pub fn is_alive(&mut self) -> bool {
        self.ended().is_none()
    }

    /// How it ended, if it has.
    pub fn ended(&mut self) -> Option<String> {
        match &mut self.life {
            Life::Ours { child, .. } => Some(child.try_wait().ok().flatten()?.to_string()),
            Life::Foreign => {
                let alive = |pid: &ids::Pid| {
                    let process = processes::process(Pid::from_raw(pid.0.cast_signed()));
                    process.is_some_and(|process| !process.zombie)
                };
                let gone = !self.roots.iter().any(alive);
                gone.then(|| "its processes are gone".to_owned())
            }
        }
    }

    /// The last lines that it printed, at most `lines`.
    #[must_use]
    pub fn tail(&self, lines: usize) -> Vec<String> {
        match &self.life {
            Life::Ours { output, .. } => tail(output, lines),
            Life::Foreign => Vec::new(),
        }
    }

    /// Ends it and everything that it started: SIGTERM, and SIGKILL for what is left of its tree
    /// after three seconds. Dropping does the same.
    pub fn stop(self) {
        drop(self);
    }

    async fn wait_until_ready(&mut self, ready: &Ready) -> Result<()> {
        let deadline = Instant::now() + ready.timeout;
        let mut last = "nothing listens".to_owned();
        loop {
            if let Some(status) = self.ended() {
                // Who goes into the background can be neither watched nor stopped.
                let hint = if status == "exit status: 0" {
                    "; a subject that goes into the background must be told to stay"
                } else {
                    ""
                };
                let quote = self.quote();
                bail!("{} ended before it was ready ({status}{hint}){quote}", self.name());
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let (name, limit) = (self.name(), ready.timeout);
                let asked = format!("GET {} at {}: {last}", ready.path, self.address);
                bail!("{name} is not ready after {limit:?} ({asked}){}", self.quote());
            }
            match tokio::time::timeout(left, get(self.address, &ready.path)).await {
                Ok(Ok(200..=299)) => return Ok(()),
                Ok(Ok(status)) => last = format!("status {status}"),
                Ok(Err(error)) => last = error.to_string(),
                Err(_late) => "no answer".clone_into(&mut last),
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// An error, with its last lines of output, when it has ended.
    pub fn check(&mut self) -> Result<()> {
        match self.ended() {
            None => Ok(()),
            Some(status) => bail!("{} ended under load ({status}){}", self.name(), self.quote()),
        }
    }

    /// `subject.variant`.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{}.{}", self.subject, self.variant)
    }

    /// Its last lines of output, to stand after an error.
    fn quote(&self) -> String {
        if matches!(self.life, Life::Foreign) {
            return String::new();
        }
        match self.tail(QUOTED_LINES).as_slice() {
            [] => "; it printed nothing".to_owned(),
            lines => format!("; its last lines:\n  {}", lines.join("\n  ")),
        }
    }

    /// Who is left of a subject whose first process has ended: those who were known, and those of
    /// its process group.
    fn left_behind(&self) -> Vec<Process> {
        let Life::Ours { child, known, .. } = &self.life else { return Vec::new() };
        let root = Pid::from_raw(child.id().cast_signed());
        let is_left = |process: &Process| {
            known.iter().any(|known| (known.pid, &known.name) == (process.pid, &process.name))
                || nix::unistd::getpgid(Some(process.pid)) == Ok(root)
        };
        // Orphans come to us; nobody else's process is looked at.
        processes::descendants(nix::unistd::getpid()).into_iter().filter(is_left).collect()
    }

    fn end(&mut self) {
        let alive = self.is_alive();
        let Life::Ours { child, .. } = &self.life else { return };
        let root = Pid::from_raw(child.id().cast_signed());
        let tree = if alive { processes::descendants(root) } else { self.left_behind() };
        if alive {
            let _gone = kill(root, Signal::SIGTERM);
            self.thaw();
        }
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
        if let Life::Ours { child, .. } = &mut self.life {
            // Does nothing to one that has been waited for.
            let _gone = child.kill();
            let _status = child.wait();
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
