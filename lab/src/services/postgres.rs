//! Postgres: a private throwaway cluster, or a real one given by URL.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::str::FromStr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use assay_captures::ids::{Pid, Port, Role};
use assay_captures::units::Nanos;
use nix::sys::signal::Signal;
use nix::unistd::User;
use tokio_postgres::config::Host;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Config, NoTls, SimpleQueryMessage};

use super::private::{
    Server, free_port, private_file, private_folder, random_password, service_user,
};
use super::{RunningService, round_trip};
use crate::child::Upbringing;
use crate::experiment::PostgresSettings;
use crate::pinning::CoreSet;
use crate::processes;
use crate::tools::{INITDB, POSTGRES};
use crate::ui::Progress;

/// The role that subjects use, and their database.
const SUBJECT: &str = "app";
/// The role that Assay's own questions use, so that they are not counted as the subject's.
const OWN: &str = "assay";
/// Stands in Assay's own questions, for databases where they must share the subject's role.
const OWN_MARK: &str = "/* asked by assay */";
/// A path of a Unix socket may have 107 bytes; the socket's own name takes up to 20.
const LONGEST_SOCKET_FOLDER: usize = 87;
/// How long a cluster may take to answer after its start.
const START: Duration = Duration::from_secs(30);
/// How often the port that was free a moment ago may turn out to be taken.
const TRIES: usize = 3;

/// A running Postgres.
#[derive(Debug)]
pub struct Postgres {
    /// What probes and records need.
    pub service: RunningService,
    /// For subjects: with user and password.
    pub url: String,
    subject: Config,
    own: Config,
    server: Option<Server>,
}

/// Where a private cluster lives.
struct Cluster {
    user: Option<User>,
    folder: PathBuf,
    password: String,
}

impl Postgres {
    /// Makes and starts a private cluster under `scratch`, with a database that is empty.
    pub async fn start(
        settings: &PostgresSettings,
        scratch: &Path,
        cores: &CoreSet,
        progress: &Progress,
    ) -> Result<Self> {
        let (initdb, postgres) = (INITDB.require()?, POSTGRES.require()?);
        let user = service_user()?;
        let folder = scratch.join("postgres");
        private_folder(&folder, user.as_ref())?;
        let cluster = Cluster { user, folder, password: random_password()? };
        progress.now("initdb");
        cluster.init(&initdb).await?;
        progress.now("starting the server");
        let (mut server, port) = cluster.serve(&postgres, settings, cores).await?;
        let mut own = Config::new();
        own.user(OWN).password(&cluster.password).dbname("postgres").port(port);
        // Through the socket, so that our own questions are in no capture of the port.
        match cluster.socket_folder() {
            Some(folder) => own.host_path(folder),
            None => own.host("127.0.0.1"),
        };
        let client = connect_when_started(&own, &mut server).await?;
        let subject = make_database(&client, port).await?;
        let version = server_version(&client).await?;
        own.dbname(SUBJECT);
        let password = String::from_utf8_lossy(subject.get_password().unwrap_or_default());
        let url = format!("postgres://{SUBJECT}:{password}@127.0.0.1:{port}/{SUBJECT}");
        let service = RunningService {
            role: Role::Postgres,
            path: None,
            port: Port(port),
            pid: Some(Pid(server.pid())),
            version,
            private: true,
            settings: settings.settings.clone(),
        };
        let postgres = Self { url, service, subject, own, server: Some(server) };
        let own = connect(&postgres.own).await?;
        own.batch_execute("CREATE EXTENSION pg_stat_statements")
            .await
            .map_err(|error| anyhow!("pg_stat_statements cannot be used: {}", said(&error)))?;
        Ok(postgres)
    }

    /// Uses a real database. Nothing in it is changed, unless the experiment says `init_given`.
    pub async fn attach(url: &str) -> Result<Self> {
        let subject = Config::from_str(url)
            .map_err(|error| anyhow!("--postgres-url is not a Postgres URL: {error}"))?;
        let port = subject.get_ports().first().copied().unwrap_or(5432);
        let client = connect(&subject).await?;
        let local = subject.get_hosts().iter().all(|host| match host {
            Host::Tcp(name) => matches!(name.as_str(), "localhost" | "127.0.0.1" | "::1"),
            Host::Unix(_) => true,
        });
        let pid = local.then(|| processes::listener_on(port)).flatten();
        let service = RunningService {
            role: Role::Postgres,
            path: None,
            port: Port(port),
            pid: pid.map(|pid| Pid(pid.as_raw().cast_unsigned())),
            version: server_version(&client).await?,
            private: false,
            settings: BTreeMap::new(),
        };
        let own = subject.clone();
        Ok(Self { service, url: url.to_owned(), subject, own, server: None })
    }

    /// Runs the experiment's SQL files as the subject's role, then makes the planner know the rows
    /// and writes everything out, so that no such work falls into a lap.
    pub async fn seed(&self, settings: &PostgresSettings, progress: &Progress) -> Result<()> {
        if !self.service.private && !settings.init_given {
            return Ok(());
        }
        let client = connect(&self.subject).await?;
        for file in &settings.init {
            progress.now(&file.file_name().unwrap_or_default().to_string_lossy());
            let sql = std::fs::read_to_string(file)
                .with_context(|| format!("cannot read {}", file.display()))?;
            client.batch_execute(&sql).await.map_err(|error| in_file(file, &sql, &error))?;
        }
        progress.now("vacuum analyze");
        let analyze = client.batch_execute("VACUUM ANALYZE").await;
        analyze.map_err(|error| anyhow!("vacuum analyze failed: {}", said(&error)))?;
        if self.service.private {
            let own = connect(&self.own).await?;
            let settle = "CHECKPOINT; SELECT pg_stat_statements_reset()";
            own.batch_execute(settle)
                .await
                .map_err(|error| anyhow!("cannot settle after the seeding: {}", said(&error)))?;
        }
        Ok(())
    }

    /// The first column of a query, as text, asked in the subject's role.
    pub async fn first_column(&self, sql: &str) -> Result<Vec<String>> {
        let client = connect(&self.subject).await?;
        let answers =
            client.simple_query(sql).await.map_err(|error| anyhow!("{}", said(&error)))?;
        let values = answers.iter().filter_map(|answer| match answer {
            SimpleQueryMessage::Row(row) if row.is_empty() => None,
            SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
            _ => None,
        });
        Ok(values.collect())
    }

    /// How many connections the subject's role has open. Between subjects it must return to what
    /// it was before.
    pub async fn connections(&self) -> Result<u64> {
        let sql = format!(
            "SELECT {OWN_MARK} count(*) FROM pg_stat_activity WHERE usename = '{}' \
             AND backend_type = 'client backend' AND pid <> pg_backend_pid()",
            self.role()
        );
        self.own_number(&sql).await
    }

    /// How many statements the subject's role has executed, by pg_stat_statements (`track = all`,
    /// statements inside functions left out, utility statements included); `None` where the
    /// extension is not there, or has thrown statements out and so lost counts.
    pub async fn statement_calls(&self) -> Result<Option<u64>> {
        let client = connect(&self.own).await?;
        let there = "SELECT count(*) FROM pg_extension WHERE extname = 'pg_stat_statements'";
        if number(&client, there).await? == 0 {
            return Ok(None);
        }
        let evicted = "SELECT dealloc FROM pg_stat_statements_info";
        if number(&client, evicted).await? > 0 {
            return Ok(None);
        }
        let sql = format!(
            "SELECT {OWN_MARK} coalesce(sum(calls), 0)::bigint FROM pg_stat_statements \
             WHERE toplevel AND userid = (SELECT oid FROM pg_roles WHERE rolname = '{}') \
             AND strpos(query, '{OWN_MARK}') = 0",
            self.role()
        );
        number(&client, &sql).await.map(Some)
    }

    /// Median time of 2,000 `SELECT 1`, prepared, one after another on one TCP connection.
    pub async fn select_1_round_trip(&self) -> Result<Nanos> {
        let config = self.subject.clone();
        let timed = tokio::task::spawn_blocking(move || round_trip::select_1(&config));
        timed.await?.context("cannot time a round trip to postgres")
    }

    /// An error, with the server's last words, when a private server has ended.
    pub fn check(&mut self) -> Result<()> {
        self.server.as_mut().map_or(Ok(()), Server::check)
    }

    fn role(&self) -> String {
        self.subject.get_user().unwrap_or(SUBJECT).replace('\'', "''")
    }

    async fn own_number(&self, sql: &str) -> Result<u64> {
        number(&connect(&self.own).await?, sql).await
    }
}

impl Cluster {
    fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// `None` where its path would be too long for a socket.
    fn socket_folder(&self) -> Option<PathBuf> {
        (self.folder.as_os_str().len() <= LONGEST_SOCKET_FOLDER).then(|| self.folder.clone())
    }

    async fn init(&self, initdb: &Path) -> Result<()> {
        let password_file = self.folder.join("password");
        private_file(&password_file, &self.password, self.user.as_ref())?;
        let mut command = Command::new(initdb);
        command
            .args(["--no-sync", "--no-instructions", "--encoding=UTF8", "--locale=C"])
            .arg(format!("--username={OWN}"))
            .args(["--auth=scram-sha-256", "--pwfile"])
            .arg(&password_file)
            .arg("--pgdata")
            .arg(self.data());
        self.clean(&mut command);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Upbringing::anywhere().as_user(self.user.as_ref()).apply(&mut command);
        let child = tokio::process::Command::from(command).kill_on_drop(true).spawn();
        let output = child.context("cannot start initdb")?.wait_with_output().await?;
        if !output.status.success() {
            let text = String::from_utf8_lossy(&output.stderr);
            bail!("initdb failed ({}): {}", output.status, why(&text));
        }
        let _kept_in_memory = std::fs::remove_file(&password_file);
        Ok(())
    }

    async fn serve(
        &self,
        postgres: &Path,
        settings: &PostgresSettings,
        cores: &CoreSet,
    ) -> Result<(Server, u16)> {
        let mut last = anyhow!("no port was tried");
        for _ in 0..TRIES {
            let port = free_port()?;
            self.configure(port, settings)?;
            let mut command = Command::new(postgres);
            command.arg("-D").arg(self.data()).current_dir(&self.folder);
            self.clean(&mut command);
            let upbringing = Upbringing::on(cores)?.as_user(self.user.as_ref());
            let log = self.folder.join("log");
            // SIGQUIT: the fastest end that still takes shared memory away.
            let mut server = Server::start("postgres", command, upbringing, log, Signal::SIGQUIT)?;
            match server.wait_for_port(port, START).await {
                Ok(()) => return Ok((server, port)),
                Err(error) if error.to_string().contains("in use") => last = error,
                Err(error) => return Err(error),
            }
        }
        Err(last)
    }

    /// `PGDATA` and its kin would lead the programs elsewhere.
    fn clean(&self, command: &mut Command) {
        command.env_clear().env("LC_ALL", "C").current_dir(&self.folder);
    }

    fn configure(&self, port: u16, settings: &PostgresSettings) -> Result<()> {
        let socket = self.socket_folder().map(|path| path.to_string_lossy().into_owned());
        let mut lines: BTreeMap<&str, String> = BTreeMap::from([
            ("autovacuum", "off".to_owned()),
            ("pg_stat_statements.track", "all".to_owned()),
            // Its last words are shown when it dies: without warnings, and without statements and
            // values of whoever was refused something.
            ("log_min_messages", "fatal".to_owned()),
            // In files of the cluster, so that it goes with the folder and never stays behind in
            // /dev/shm.
            ("dynamic_shared_memory_type", "mmap".to_owned()),
        ]);
        for (name, value) in &settings.settings {
            lines.insert(name, value.clone());
        }
        let libraries = match settings.settings.get("shared_preload_libraries") {
            Some(more) if !more.is_empty() => format!("pg_stat_statements,{more}"),
            _ => "pg_stat_statements".to_owned(),
        };
        lines.insert("shared_preload_libraries", libraries);
        lines.insert("listen_addresses", "127.0.0.1".to_owned());
        lines.insert("port", port.to_string());
        lines.insert("unix_socket_directories", socket.unwrap_or_default());
        lines.insert("logging_collector", "off".to_owned());
        let text: String =
            lines.iter().map(|(name, value)| format!("{name} = {}\n", quoted(value))).collect();
        // initdb's own file has defaults only; this one is read after it and wins.
        let file = self.data().join("postgresql.auto.conf");
        let _old = std::fs::remove_file(&file);
        private_file(&file, &text, self.user.as_ref())
    }
}

/// What a Postgres program says that has failed: its errors, or else its last lines.
fn why(text: &str) -> String {
    let is_error = |line: &&str| {
        ["FATAL", "PANIC", "error:", "could not"].iter().any(|word| line.contains(word))
    };
    let errors: Vec<&str> = text.lines().filter(is_error).take(3).collect();
    if !errors.is_empty() {
        return errors.join(" / ");
    }
    let last: Vec<&str> = text.lines().collect();
    last[last.len().saturating_sub(3)..].join(" / ")
}

/// As postgresql.conf quotes: quotes and backslashes are doubled.
fn quoted(value: &str) -> String {
    format!("'{}'", value.replace('\\', "\\\\").replace('\'', "''"))
}

/// Makes the subject's role and database; says how to connect as it.
async fn make_database(client: &Client, port: u16) -> Result<Config> {
    let password = random_password()?;
    for sql in [
        format!("CREATE ROLE {SUBJECT} LOGIN PASSWORD '{password}'"),
        format!("CREATE DATABASE {SUBJECT} OWNER {SUBJECT}"),
    ] {
        let made = client.batch_execute(&sql).await;
        made.map_err(|error| anyhow!("cannot make the database: {}", said(&error)))?;
    }
    let mut subject = Config::new();
    subject.host("127.0.0.1").port(port).user(SUBJECT).password(password).dbname(SUBJECT);
    Ok(subject)
}

/// Connects; the connection ends with the client.
async fn connect(config: &Config) -> Result<Client> {
    let connected = try_connect(config).await;
    connected.map_err(|error| anyhow!("cannot connect to postgres: {}", said(&error)))
}

/// A server listens a little before it has its socket and lets anyone in.
async fn connect_when_started(config: &Config, server: &mut Server) -> Result<Client> {
    let deadline = Instant::now() + START;
    loop {
        let error = match try_connect(config).await {
            Ok(client) => return Ok(client),
            Err(error) => error,
        };
        server.check()?;
        let may_pass = error.code().is_none_or(|code| *code == SqlState::CANNOT_CONNECT_NOW);
        if !may_pass || Instant::now() > deadline {
            bail!("cannot connect to postgres: {}", said(&error));
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn try_connect(config: &Config) -> Result<Client, tokio_postgres::Error> {
    let mut config = config.clone();
    config.connect_timeout(START);
    let (client, connection) = config.connect(NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

async fn number(client: &Client, sql: &str) -> Result<u64> {
    let row = client.query_one(sql, &[]).await;
    let row = row.map_err(|error| anyhow!("a question to postgres failed: {}", said(&error)))?;
    let number: i64 = row.try_get(0)?;
    Ok(u64::try_from(number).unwrap_or_default())
}

async fn server_version(client: &Client) -> Result<String> {
    let row = client.query_one("SHOW server_version", &[]).await?;
    Ok(row.try_get(0)?)
}

/// What the server said, where the library's own words hide it.
fn said(error: &tokio_postgres::Error) -> String {
    match error.as_db_error() {
        Some(error) => error.message().to_owned(),
        None => {
            let error: &dyn std::error::Error = error;
            let source = error.source().map_or(String::new(), |source| format!(": {source}"));
            format!("{error}{source}")
        }
    }
}

fn in_file(file: &Path, sql: &str, error: &tokio_postgres::Error) -> anyhow::Error {
    use tokio_postgres::error::ErrorPosition;
    let position = error.as_db_error().and_then(|error| error.position());
    let line = match position {
        Some(ErrorPosition::Original(at)) => {
            let before = sql.chars().take(*at as usize);
            format!(":{}", before.filter(|&character| character == '\n').count() + 1)
        }
        _ => String::new(),
    };
    anyhow!("{}{line}: {}", file.display(), said(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_told_before_what_comes_after_it() {
        let text = "FATAL:  could not write: No space left on device\nHINT:  Check it.\n\
                    child process exited with exit code 1\ninitdb: removing contents\n";
        assert_eq!(why(text), "FATAL:  could not write: No space left on device");
        assert_eq!(why("a\nb\nc\nd\n"), "b / c / d");
    }

    #[test]
    fn settings_are_quoted_as_postgres_reads_them() {
        assert_eq!(quoted("128MB"), "'128MB'");
        assert_eq!(quoted(r"it's a \"), r"'it''s a \\'");
    }
}
