//! Names of processes, threads and ports, so that one cannot be passed for another.

use serde::{Deserialize, Serialize};

/// A process, as numbered in the probe's PID namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Pid(pub u32);

/// A thread, as numbered in the probe's PID namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Tid(pub u32);

/// A TCP port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Port(pub u16);

/// The part a process plays in an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The program under test, with all its processes.
    Subject,
    /// The Postgres server: the postmaster and its backends.
    Postgres,
    /// A pooler that answers the service as Postgres, and passes on to the real one.
    Pooler,
    /// The Redis server.
    Redis,
    /// The load driver.
    Load,
}

impl Role {
    /// The word for it on command lines, in captures and in the `process` label.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Subject => "subject",
            Self::Postgres => "postgres",
            Self::Pooler => "pooler",
            Self::Redis => "redis",
            Self::Load => "load",
        }
    }

    /// The role with this word.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        [Self::Subject, Self::Postgres, Self::Pooler, Self::Redis, Self::Load]
            .into_iter()
            .find(|role| role.word() == word)
    }
}
