//! From an experiment file to an experiment: every rule is checked, every error names its line.

use std::fmt;
use std::path::{Path, PathBuf};

use super::file::ExperimentFile;
use super::position::{Step, line_at, line_of};
use super::{Experiment, build};

/// Why an experiment cannot be used: one line, `FILE:LINE: what`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExperimentError {
    /// The file.
    pub file: PathBuf,
    /// 1-based; `None` when the file cannot be read at all.
    pub line: Option<usize>,
    /// What is wrong, and what to do.
    pub message: String,
}

impl fmt::Display for ExperimentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.file.display())?;
        if let Some(line) = self.line {
            write!(f, "{line}:")?;
        }
        write!(f, " {}", self.message)
    }
}

impl std::error::Error for ExperimentError {}

/// Reads an experiment. Files that it names are looked up beside it, and must be there.
pub fn load(file: &Path) -> Result<Experiment, ExperimentError> {
    let unreadable =
        |message: String| ExperimentError { file: file.to_path_buf(), line: None, message };
    let text = std::fs::read_to_string(file)
        .map_err(|error| unreadable(format!("cannot be read: {error}")))?;
    let absolute =
        std::path::absolute(file).map_err(|error| unreadable(format!("has no place: {error}")))?;
    let folder = absolute.parent().unwrap_or(Path::new("/"));
    parse(file, folder, &text)
}

/// Reads an experiment from its text; `folder` is where relative paths begin.
pub(super) fn parse(file: &Path, folder: &Path, text: &str) -> Result<Experiment, ExperimentError> {
    let refuse =
        |line, message| ExperimentError { file: file.to_path_buf(), line: Some(line), message };
    let typed: ExperimentFile = toml::from_str(text).map_err(|error| {
        let line = error.span().map_or(1, |span| line_at(text, span.start));
        refuse(line, reworded(error.message()))
    })?;
    build::experiment(typed, file, folder, text)
        .map_err(|fault| refuse(line_of(text, &fault.steps()), fault.message))
}

/// A rule that an experiment breaks, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    /// Path of keys and places, such as `route`, `1`, `path`.
    pub(super) place: Vec<String>,
    /// What is wrong, and what to do.
    pub(super) message: String,
}

impl Fault {
    /// A fault at a dotted path such as `route.1.path`.
    pub(super) fn at(place: &str, message: impl Into<String>) -> Self {
        Self { place: place.split('.').map(str::to_owned).collect(), message: message.into() }
    }

    fn steps(&self) -> Vec<Step<'_>> {
        self.place.iter().map(|step| step.parse().map_or(Step::Key(step), Step::Place)).collect()
    }
}

/// The parser's message as one line, with a guess at what was meant by an unknown key.
pub(crate) fn reworded(message: &str) -> String {
    let line = message.lines().collect::<Vec<_>>().join(" ");
    let quoted: Vec<&str> = line.split('`').skip(1).step_by(2).collect();
    let [unknown, known @ ..] = quoted.as_slice() else { return line };
    if !line.starts_with("unknown field") {
        return line;
    }
    let guess = super::nearest(unknown, known.iter().copied());
    let hint = guess.map_or(String::new(), |guess| format!("; did you mean `{guess}`?"));
    format!("unknown key `{unknown}`{hint} (keys here: {})", known.join(", "))
}
