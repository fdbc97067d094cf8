//! A probe that runs as a program, as the lab starts it.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Lines, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};

use assay_captures::manifest::Manifest;
use serde_json::Value;

/// A folder that is removed at the end.
pub(crate) struct Folder(PathBuf);

impl Folder {
    /// A new one for this test.
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("assay-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// A place in it.
    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The program and its pipes.
pub(crate) struct Running {
    pub(crate) child: Child,
    input: Option<ChildStdin>,
    output: Lines<BufReader<ChildStdout>>,
}

impl Running {
    /// Starts a probe with `--out` and these words.
    pub(crate) fn start(program: &str, out: &Path, words: &[&str]) -> Self {
        Self::start_in(program, out, words, &[])
    }

    /// The same in an environment that has this as well.
    pub(crate) fn start_in(
        program: &str,
        out: &Path,
        words: &[&str],
        environment: &[(&str, &OsStr)],
    ) -> Self {
        let mut child = Command::new(program)
            .arg("--out")
            .arg(out)
            .args(words)
            .envs(environment.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, input, output }
    }

    /// The next line that it says.
    pub(crate) fn line(&mut self) -> Value {
        serde_json::from_str(&self.output.next().unwrap().unwrap()).unwrap()
    }

    /// Waits until it says that it is ready; when.
    pub(crate) fn ready(&mut self) -> u64 {
        moment(&self.line(), "ready")
    }

    /// Sends a command and waits for its answer; when.
    pub(crate) fn tell(&mut self, word: &str) -> u64 {
        self.send(word);
        moment(&self.line(), word)
    }

    /// Sends a command.
    pub(crate) fn send(&mut self, word: &str) {
        writeln!(self.input.as_mut().unwrap(), "{word}").unwrap();
    }

    /// Says that there are no more commands, and waits for the end.
    pub(crate) fn end(mut self) -> (Value, ExitStatus) {
        drop(self.input.take());
        self.wait()
    }

    /// Waits for the end.
    pub(crate) fn wait(mut self) -> (Value, ExitStatus) {
        let last = self.line();
        (last, self.child.wait().unwrap())
    }
}

fn moment(line: &Value, word: &str) -> u64 {
    assert_eq!(line[word], true, "{line}");
    line["moment"].as_u64().unwrap()
}

/// The manifest of a capture.
pub(crate) fn manifest(folder: &Path) -> Manifest {
    assay_captures::capture::manifest(folder).unwrap()
}
