//! A run of the tiny experiment in folders of its own, watched from outside.

use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use assay::processes;
use assay::tools::{INITDB, REDIS_SERVER};
use assay_captures::capture;
use assay_captures::pcap::{FILE, PLAIN_FILE};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

/// Nothing here takes as long; a test that waits longer has failed.
const LIMIT: Duration = Duration::from_secs(240);

/// Whether the services can be started; says so where they cannot.
pub(crate) fn services_are_installed() -> bool {
    let missing = [INITDB, REDIS_SERVER].into_iter().find(|tool| tool.find().is_none());
    if let Some(tool) = missing {
        let _gone = writeln!(io::stderr(), "left out: {}", tool.missing());
    }
    missing.is_none()
}

/// Whether the tests of faults that take minutes are wanted; says so where they are not.
pub(crate) fn all_faults_are_tried() -> bool {
    let wanted = std::env::var_os("ASSAY_FAULTS").is_some();
    if !wanted {
        let _gone = writeln!(io::stderr(), "left out, since it takes long: `just faults` tries it");
    }
    wanted
}

/// The tiny experiment, copied to where a test may change it.
pub(crate) struct Tiny {
    folder: TempDir,
}

impl Tiny {
    /// As it ships, but for the seeding, which takes no longer than it must.
    pub(crate) fn new() -> Self {
        let tiny = Self::copy("tiny", &["experiment.toml", "seed.sql", "subject.rs"]);
        tiny.change("seed.sql", "pg_sleep(1)", "pg_sleep(0)");
        tiny
    }

    /// Another one, with a subject that is told secrets.
    pub(crate) fn secrets() -> Self {
        Self::copy("secrets", &["experiment.toml", "seed.sql", "service.py"])
    }

    fn copy(name: &str, files: &[&str]) -> Self {
        let folder = TempDir::with_prefix("tiny-").expect("a temporary folder can be made");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/experiments").join(name);
        for file in files {
            fs::copy(source.join(file), folder.path().join(file)).expect("it can be copied");
        }
        fs::create_dir(folder.path().join("tmp")).expect("a folder can be made");
        Self { folder }
    }

    /// With the subject built already, once for all tests.
    pub(crate) fn built() -> Self {
        static SUBJECT: OnceLock<Vec<u8>> = OnceLock::new();
        let tiny = Self::new();
        let subject = SUBJECT.get_or_init(|| {
            let status = Command::new("rustc")
                .args(["--edition", "2024", "subject.rs", "-o", "subject"])
                .current_dir(tiny.path())
                .status();
            assert!(status.expect("rustc runs").success());
            fs::read(tiny.path().join("subject")).expect("rustc has written it")
        });
        let program = tiny.path().join("subject");
        fs::write(&program, subject).expect("the subject can be written");
        let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(&program, executable).expect("the subject is ours");
        tiny.change("experiment.toml", "build = [\"sh\"", "build = [] # [\"sh\"");
        tiny
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Replaces a part of a file, which must be there.
    pub(crate) fn change(&self, file: &str, from: &str, to: &str) {
        let path = self.path().join(file);
        let text = fs::read_to_string(&path).expect("it can be read");
        assert!(text.contains(from), "{file} has no {from:?}");
        fs::write(&path, text.replacen(from, to, 1)).expect("it can be written");
    }

    /// `assay run` on it, with a temporary directory that nobody else uses.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_assay"));
        command
            .arg("run")
            .arg(self.path().join("experiment.toml"))
            .arg("--out")
            .arg(self.run())
            .env("TMPDIR", self.path().join("tmp"))
            // The probes lie beside the program: cargo has built them.
            .env_remove("CARGO")
            .stdin(Stdio::null());
        command
    }

    /// Where the run is kept.
    pub(crate) fn run(&self) -> PathBuf {
        self.path().join("run")
    }

    /// What the run says it is: its status and why.
    pub(crate) fn status(&self) -> (String, String) {
        let text = fs::read(self.run().join("run.json")).expect("the record is there");
        let record: serde_json::Value = serde_json::from_slice(&text).expect("it is JSON");
        let word = |name: &str| record[name].as_str().unwrap_or_default().to_owned();
        (word("status"), word("reason"))
    }

    /// Fails unless the run has a temporary directory and processes: what is looked for below
    /// would be seen.
    pub(crate) fn assert_something_is_there(&self, what: &str) {
        let files = fs::read_dir(self.path().join("tmp")).expect("it is there");
        assert_eq!(files.count(), 1, "{what}: temporary directories");
        assert!(self.processes().len() >= 3, "{what}: only {:?}", self.processes());
    }

    /// Fails unless everything of the run is gone: its processes, its temporary directory, its
    /// shared memory, and from its captures what the subject answered.
    pub(crate) fn assert_nothing_is_left(&self, what: &str, creators: &[i32]) {
        let deadline = Instant::now() + Duration::from_secs(40);
        let left = || -> Vec<String> {
            let files = fs::read_dir(self.path().join("tmp")).expect("it is still there");
            let files = files.flatten().map(|file| format!("file {}", file.path().display()));
            let processes = self.processes().into_iter().map(|(pid, name)| format!("{name} {pid}"));
            files.chain(processes).chain(segments_of(creators)).collect()
        };
        while !left().is_empty() && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(50));
        }
        assert!(left().is_empty(), "{what}: left behind: {:?}", left());
        let mut folders = vec![self.run()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                let path = entry.path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.ends_with(PLAIN_FILE) || path.ends_with(FILE) {
                    let mut bytes = Vec::new();
                    // One that was being packed may be torn: what can be read of it counts.
                    let _torn = capture::feed_file(&path, |chunk| bytes.extend_from_slice(chunk));
                    let answer = b"a page that is always";
                    let found = bytes.windows(answer.len()).any(|window| window == answer);
                    assert!(!found, "{what}: {} is not masked", path.display());
                }
            }
        }
    }

    /// The processes that know this folder: by working directory, arguments or environment.
    fn processes(&self) -> Vec<(Pid, String)> {
        let place = self.path().to_string_lossy().into_owned();
        let knows = |pid: Pid| {
            let cwd = fs::read_link(format!("/proc/{pid}/cwd")).unwrap_or_default();
            let read = |file| fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
            let text = [read("cmdline"), read("environ")].concat();
            cwd.starts_with(self.path()) || String::from_utf8_lossy(&text).contains(&place)
        };
        let alive = processes::all().into_iter().filter(|process| !process.zombie);
        alive
            .filter(|process| knows(process.pid))
            .map(|process| (process.pid, process.name))
            .collect()
    }
}

/// System V segments that these processes made.
fn segments_of(creators: &[i32]) -> Vec<String> {
    let table = fs::read_to_string("/proc/sysvipc/shm").unwrap_or_default();
    let made = |row: &&str| {
        let creator = row.split_ascii_whitespace().nth(4).and_then(|word| word.parse().ok());
        creator.is_some_and(|creator: i32| creators.contains(&creator))
    };
    table.lines().skip(1).filter(made).map(|row| format!("shared memory {row}")).collect()
}

/// The three processes of a run, and what they say.
pub(crate) struct Watched {
    pub(crate) front: Child,
    talk: Receiver<String>,
    said: Vec<String>,
}

impl Watched {
    pub(crate) fn start(mut command: Command) -> Self {
        let mut front = command.stderr(Stdio::piped()).spawn().expect("assay starts");
        let stderr = BufReader::new(front.stderr.take().expect("it is a pipe"));
        let (send, talk) = channel();
        thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                let _gone = send.send(line);
            }
        });
        Self { front, talk, said: Vec::new() }
    }

    /// Returns when it has said a line that begins like this.
    pub(crate) fn wait_for(&mut self, begin: &str) {
        let deadline = Instant::now() + LIMIT;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.talk.recv_timeout(left) {
                Ok(line) => {
                    self.said.push(line);
                    if self.said.last().is_some_and(|line| line.starts_with(begin)) {
                        return;
                    }
                }
                Err(_) => panic!("it never said {begin:?}, but: {:#?}", self.said),
            }
        }
    }

    pub(crate) fn front_pid(&self) -> Pid {
        Pid::from_raw(self.front.id().cast_signed())
    }

    pub(crate) fn guardian(&self) -> Pid {
        only_child(self.front_pid())
    }

    pub(crate) fn worker(&self) -> Pid {
        let guardian = self.guardian();
        // Orphans are the guardian's children too; the worker is the oldest.
        let children = processes::descendants(guardian).into_iter();
        let children = children.filter(|process| process.parent == guardian);
        children.map(|process| process.pid).min().expect("the guardian has a worker")
    }

    /// Everyone below the front, to recognise what they made.
    pub(crate) fn everyone(&self) -> Vec<i32> {
        let below = processes::descendants(self.front_pid());
        below.iter().map(|process| process.pid.as_raw()).collect()
    }

    pub(crate) fn send(&self, pid: Pid, signal: Signal) {
        kill(pid, signal).expect("it is still there");
    }

    /// Waits for the front; returns what was said from now on as well.
    pub(crate) fn end(mut self) -> (ExitStatus, String) {
        let deadline = Instant::now() + LIMIT;
        let status = loop {
            if let Some(status) = self.front.try_wait().expect("it is our child") {
                break status;
            }
            assert!(Instant::now() < deadline, "it does not end; it said {:#?}", self.said);
            thread::sleep(Duration::from_millis(10));
        };
        let rest = self.talk.try_iter();
        self.said.extend(rest);
        (status, self.said.join("\n"))
    }
}

fn only_child(parent: Pid) -> Pid {
    let children = processes::descendants(parent).into_iter();
    let mut children = children.filter(|process| process.parent == parent);
    children.next().expect("it has a child").pid
}
