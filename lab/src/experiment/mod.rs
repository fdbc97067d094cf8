//! Experiments: what is run, valid by construction.
//!
//! A TOML file is read into [`file::ExperimentFile`] (what was typed) and turned into an
//! [`Experiment`] (what it means); [`plan::Plan`] says what a run of it will do.

pub mod ablations;
mod build;
pub mod copy;
pub mod file;
pub mod plan;
pub(crate) mod position;
pub(crate) mod read;
mod routes;
pub mod template;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use assay_captures::run_record::Claim;

pub use read::{ExperimentError, load};

/// An experiment. Invalid ones cannot be built: names are unique, files exist, routes have
/// parameters for every placeholder, and there is at least one arm, route and pass.
#[derive(Clone, Debug, PartialEq)]
pub struct Experiment {
    /// The file that it was read from.
    pub file: PathBuf,
    /// Its text, for the copy in the run directory.
    pub text: String,
    /// Short name; names the run directory.
    pub name: String,
    /// What reports print as heading.
    pub title: String,
    /// What everything is divided by, such as `request`.
    pub unit: String,
    /// The Postgres that subjects use.
    pub postgres: Option<PostgresSettings>,
    /// The Redis that subjects use.
    pub redis: Option<RedisSettings>,
    /// The programs under test.
    pub subjects: Vec<Subject>,
    /// Every subject in each of its variants; the first is the reference.
    pub arms: Vec<Arm>,
    /// Index of the arm that is a second copy of the reference, where there is one.
    pub copy: Option<usize>,
    /// The requests.
    pub routes: Vec<Route>,
    /// Causes that it names, each with the variant that flips it alone.
    pub claims: Vec<Claim>,
    /// How requests are sent.
    pub load: LoadSettings,
    /// Who runs on which cores.
    pub pinning: PinningSettings,
    /// The passes and their lengths.
    pub passes: Passes,
    /// The short plan.
    pub quick: Quick,
    /// Files with phase rules that come before the built-in ones.
    pub phases: Vec<PathBuf>,
}

/// How a Postgres is set up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PostgresSettings {
    /// SQL files, run in order after the start.
    pub init: Vec<PathBuf>,
    /// Server settings of a private instance, such as `shared_buffers`.
    pub settings: BTreeMap<String, String>,
    /// Whether `init` is also run on a database that was given by URL.
    pub init_given: bool,
}

/// How a Redis is set up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RedisSettings {
    /// Server settings of a private instance, such as `maxmemory`.
    pub settings: BTreeMap<String, String>,
}

/// A program under test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    /// Its name.
    pub name: String,
    /// Where it is built and started.
    pub dir: PathBuf,
    /// The command that builds it; empty for none.
    pub build: Vec<String>,
    /// The command that starts it; never empty. A program with a slash is looked up in `dir`.
    pub command: Vec<String>,
    /// Environment, templates unexpanded.
    pub env: BTreeMap<String, String>,
    /// How it is known to be ready.
    pub ready: Ready,
}

/// How a subject is known to be ready: a GET of `path` answers 2xx within `timeout`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ready {
    /// The path.
    pub path: String,
    /// How long it may take.
    pub timeout: Duration,
}

/// A subject in one of its variants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arm {
    /// Index into the experiment's subjects.
    pub subject: usize,
    /// The variant; a subject without variants has one named `default`.
    pub variant: Variant,
}

/// The same subject under another environment or arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variant {
    /// Its name.
    pub name: String,
    /// What tables print above its column.
    pub title: String,
    /// Environment beside the subject's, templates unexpanded.
    pub env: BTreeMap<String, String>,
    /// Arguments after the subject's command.
    pub args: Vec<String>,
}

/// A request with a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// Its name.
    pub name: String,
    /// HTTP method.
    pub method: String,
    /// Path template, such as `/post/{slug}`.
    pub path: String,
    /// Where the values of each placeholder come from.
    pub parameters: BTreeMap<String, Parameter>,
    /// Header fields.
    pub headers: BTreeMap<String, String>,
    /// Body template; empty for none.
    pub body: String,
    /// Whether answers differ from arm to arm and from time to time, so that only their status
    /// is checked.
    pub answers_vary: bool,
    /// SQL statements that the page may use.
    pub query_budget: Option<u32>,
}

/// Where the values of a placeholder come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Parameter {
    /// Known when the experiment was read: a list, or the lines of a file. Never empty.
    Values(Vec<String>),
    /// The first column of a query, asked after the seeding.
    Sql(String),
}

/// How requests are sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadSettings {
    /// Connections of the closed load.
    pub connections: u32,
    /// Load before the first lap of a cell.
    pub warm_up: Duration,
    /// A request without an answer for this long is an error.
    pub timeout: Duration,
    /// How long a service's connections must be quiet before the next serial request.
    pub gap: Duration,
}

/// Who runs on which cores.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PinningSettings {
    /// The subject.
    pub app: Cores,
    /// Postgres and Redis.
    pub services: Cores,
    /// The load driver and the probes.
    pub load: Cores,
}

/// A choice of cores.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Cores {
    /// By the number of cores of the machine.
    #[default]
    Auto,
    /// These, ascending.
    List(Vec<usize>),
}

/// The passes to run, and what was said about their lengths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passes {
    /// Which; never empty.
    pub run: Vec<PassKind>,
    /// By pass.
    pub settings: BTreeMap<PassKind, PassSettings>,
}

/// The short plan, for `--quick` and the demo.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Quick {
    /// Indices of the subjects that are run where the command line names none; empty for all.
    pub subjects: Vec<usize>,
    /// Indices of the routes that are run with every variant; others with the first alone.
    pub every_variant_on: Vec<usize>,
    /// Load before the first lap of a cell.
    pub warm_up: Option<Duration>,
    /// By pass.
    pub passes: Passes,
}

/// Lengths of one pass; `None` where the experiment says nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PassSettings {
    /// Laps of each cell.
    pub rounds: Option<u32>,
    /// Length of a lap under load.
    pub lap: Option<Duration>,
    /// Requests of a lap under load, instead of a length.
    pub iterations: Option<u64>,
    /// Requests of a serial lap.
    pub requests: Option<u32>,
}

impl PassSettings {
    fn or(self, other: Self) -> Self {
        Self {
            rounds: self.rounds.or(other.rounds),
            // What is said at all about the end of a lap is said here: the two exclude each other.
            lap: self.lap.or(if self.iterations.is_some() { None } else { other.lap }),
            iterations: self.iterations.or(if self.lap.is_some() {
                None
            } else {
                other.iterations
            }),
            requests: self.requests.or(other.requests),
        }
    }
}

impl Default for Passes {
    fn default() -> Self {
        Self { run: PassKind::STANDARD.to_vec(), settings: BTreeMap::new() }
    }
}

impl Passes {
    /// What was said about the lengths of one pass.
    #[must_use]
    pub fn of(&self, kind: PassKind) -> PassSettings {
        self.settings.get(&kind).copied().unwrap_or_default()
    }
}

/// One way of running.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PassKind {
    /// Under load, no probe but the reading of process clocks.
    Fair,
    /// One request at a time, packets and system calls recorded.
    Serial,
    /// Under load, packets recorded.
    Wire,
    /// Under load, system calls counted.
    Syscalls,
    /// Under load, stacks sampled.
    Cpu,
    /// Under load, allocations counted by a preloaded library.
    Allocations,
    /// Under whatever others send, all probes at once. Only for a service that already runs; no
    /// experiment names it.
    Foreign,
    /// Under load, process clocks read all along: what that costs.
    Usage,
    /// Under load, packets, system calls and clocks at once: what they cost together.
    Together,
}

/// Lengths where an experiment says nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StandardLengths {
    /// Laps of each cell.
    pub rounds: u32,
    /// Length of a lap under load.
    pub lap: Duration,
    /// Requests of a serial lap.
    pub requests: u32,
}

impl PassKind {
    /// In the order in which a run takes them.
    pub const ALL: [Self; 8] = [
        Self::Fair,
        Self::Serial,
        Self::Wire,
        Self::Syscalls,
        Self::Cpu,
        Self::Allocations,
        Self::Usage,
        Self::Together,
    ];

    /// Those of an experiment that names none. The others tell what a probe costs and nothing of
    /// the subject.
    pub const STANDARD: [Self; 6] =
        [Self::Fair, Self::Serial, Self::Wire, Self::Syscalls, Self::Cpu, Self::Allocations];

    /// The word for it on command lines, in experiments and in run directories.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Fair => "fair",
            Self::Serial => "serial",
            Self::Wire => "wire",
            Self::Syscalls => "syscalls",
            Self::Cpu => "cpu",
            Self::Allocations => "allocations",
            Self::Foreign => "foreign",
            Self::Usage => "usage",
            Self::Together => "together",
        }
    }

    /// The probes that a pass under load switches off and on by turns.
    #[must_use]
    pub fn switched(self) -> &'static [&'static str] {
        match self {
            Self::Fair | Self::Serial | Self::Allocations | Self::Foreign => &[],
            Self::Wire => &["wire"],
            Self::Syscalls => &["syscalls"],
            Self::Cpu => &["cpu"],
            Self::Usage => &["usage"],
            Self::Together => &["wire", "syscalls", "usage"],
        }
    }

    /// The pass with this word.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.word() == word)
    }

    /// Lengths where an experiment says nothing.
    ///
    /// An even number of rounds, because order is balanced in pairs; a serial lap long enough
    /// that a statement prepared on each of a pool's connections stays the exception.
    #[must_use]
    pub fn standard(self, quick: bool) -> StandardLengths {
        let (rounds, lap_ms, requests) = match (self, quick) {
            (Self::Fair, false) => (6, 10_000, 0),
            (Self::Fair, true) => (4, 500, 0),
            (Self::Serial, false) => (1, 0, 500),
            (Self::Serial, true) => (1, 0, 100),
            (Self::Cpu, false) => (2, 10_000, 0),
            (Self::Cpu, true) => (2, 800, 0),
            (_, false) => (4, 2_000, 0),
            (_, true) => (2, 500, 0),
        };
        StandardLengths { rounds, lap: Duration::from_millis(lap_ms), requests }
    }
}

/// The known name that `typed` was probably meant to be.
pub(crate) fn nearest<'a>(
    typed: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    known
        .into_iter()
        .map(|name| (strsim::damerau_levenshtein(typed, name), name))
        .filter(|(distance, name)| *distance <= name.len().max(typed.len()).div_ceil(3))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}
