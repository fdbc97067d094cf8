//! Postgres and Redis: private throwaway instances, or real ones given by URL.

pub mod postgres;
pub(crate) mod private;
pub mod redis;
mod round_trip;

use std::collections::BTreeMap;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::Result;

use assay_captures::ids::{Pid, Port, Role};
use assay_captures::run_record;

pub use postgres::Postgres;
pub use redis::Redis;

use crate::run::Interrupted;

/// The services of a run.
#[derive(Debug, Default)]
pub struct Services {
    /// Postgres, when the experiment has one.
    pub postgres: Option<Postgres>,
    /// Redis, when the experiment has one.
    pub redis: Option<Redis>,
    /// What a service that already runs was found to talk to; nothing of it is ours.
    pub found: Vec<RunningService>,
}

impl Services {
    /// An error, with its last words, when a private service has ended.
    pub fn check(&mut self) -> Result<()> {
        self.postgres.as_mut().map_or(Ok(()), Postgres::check)?;
        self.redis.as_mut().map_or(Ok(()), Redis::check)
    }

    /// What went wrong with a service: that it has ended, where it has, and what was noticed of
    /// that otherwise. One that was killed closes its connections a moment before it is gone.
    pub fn explain<T>(&mut self, done: Result<T>) -> Result<T> {
        const MOMENT: Duration = Duration::from_millis(300);
        let Err(error) = done else { return done };
        if error.is::<Interrupted>() {
            return Err(error);
        }
        let deadline = Instant::now() + MOMENT;
        while Instant::now() < deadline {
            self.check()?;
            sleep(Duration::from_millis(10));
        }
        Err(error)
    }

    /// Who is running, for probes and the run record.
    pub fn running(&self) -> impl Iterator<Item = &RunningService> {
        let postgres = self.postgres.iter().map(|postgres| &postgres.service);
        let redis = self.redis.iter().map(|redis| &redis.service);
        postgres.chain(redis).chain(&self.found)
    }
}

/// A service that subjects talk to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunningService {
    /// Postgres or Redis.
    pub role: Role,
    /// TCP port; of one on a Unix socket, the port that stands for it in captures.
    pub port: Port,
    /// The Unix socket on which the subject speaks to it, where it does.
    pub path: Option<String>,
    /// The server's first process: the postmaster, for Postgres. `None` for a service given by
    /// URL whose process is not on this machine or cannot be seen.
    pub pid: Option<Pid>,
    /// What it says its version is.
    pub version: String,
    /// Whether Assay started it for this run.
    pub private: bool,
    /// Settings that were asked for.
    pub settings: BTreeMap<String, String>,
}

impl RunningService {
    /// As the run record holds it.
    #[must_use]
    pub fn record(&self) -> run_record::Service {
        run_record::Service {
            kind: self.role.word().to_owned(),
            version: self.version.clone(),
            port: self.port.0,
            private: self.private,
            settings: self.settings.clone(),
        }
    }
}
