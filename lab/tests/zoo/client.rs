//! A client under watch: a program in its own language that performs operations by name.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread::{sleep, spawn};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use assay_captures::units::{Moment, Span};

/// Every client, in the order of the page.
pub(crate) const ALL: [&str; 15] = [
    "libpq",
    "psycopg",
    "psycopg2",
    "asyncpg",
    "pg8000",
    "node-postgres",
    "postgres.js",
    "pgx",
    "pgjdbc",
    "tokio-postgres",
    "deadpool-postgres",
    "diesel",
    "diesel-async",
    "sqlx",
    "pgbench",
];

/// How long after its answer a client may still send what belongs to an operation: closing what
/// was dropped, pinging what went back to a pool.
const AFTERMATH: Duration = Duration::from_millis(60);

/// How long an operation may take.
const LONGEST: Duration = Duration::from_secs(30);

/// A running client.
pub(crate) struct Client {
    child: Child,
    commands: ChildStdin,
    answers: Receiver<String>,
    version: String,
}

impl Client {
    /// Starts a client of the zoo: as built in `built`, or by the system's own interpreter.
    pub(crate) fn start(
        name: &str,
        built: Option<&Path>,
        environment: &[(&'static str, String)],
    ) -> Self {
        let mut command = command(name, built);
        for (variable, _) in std::env::vars_os() {
            // The server and the rights of whoever runs the tests are not the zoo's.
            if variable.to_string_lossy().starts_with("PG") {
                command.env_remove(variable);
            }
        }
        command.envs(environment.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child =
            command.spawn().unwrap_or_else(|error| panic!("{name} does not start: {error}"));
        let commands = child.stdin.take().expect("it is piped");
        let lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        let (send, answers) = channel();
        spawn(move || lines.map_while(Result::ok).all(|line| send.send(line).is_ok()));
        let version = answers.recv_timeout(LONGEST);
        let version = version.unwrap_or_else(|_| panic!("{name} ended without a word"));
        Self { child, commands, answers, version }
    }

    /// What it calls itself.
    pub(crate) fn version(&self) -> &str {
        &self.version
    }

    /// Has it perform an operation; when, or what it says went wrong.
    pub(crate) fn perform(&mut self, operation: &str) -> Result<Span, String> {
        let start = now();
        writeln!(self.commands, "{operation}").expect("the client listens");
        let answer = self.answers.recv_timeout(LONGEST);
        let answer = answer.unwrap_or_else(|_| "it does not answer".to_owned());
        sleep(AFTERMATH);
        if answer == "done" { Ok(Span { start, end: now() }) } else { Err(answer) }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _gone = self.child.kill();
        let _reaped = self.child.wait();
    }
}

fn now() -> Moment {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    Moment(u64::try_from(since.as_nanos()).expect("before 2500"))
}

fn command(name: &str, built: Option<&Path>) -> Command {
    let zoo = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/zoo");
    let built = |path: &str| built.unwrap_or(Path::new("/nowhere")).join(path);
    let with = |program: PathBuf, argument: PathBuf| {
        let mut command = Command::new(program);
        command.arg(argument);
        command
    };
    match name {
        "psycopg" | "psycopg2" | "asyncpg" | "pg8000" => {
            let own = built("python/bin/python");
            let python = if own.is_file() { own } else { "/usr/bin/python3".into() };
            with(python, zoo.join(format!("python/with_{name}.py")))
        }
        "node-postgres" => with("node".into(), built("node/with_pg.js")),
        "postgres.js" => with("node".into(), built("node/with_postgres.js")),
        "pgx" => Command::new(built("go/client")),
        "libpq" => Command::new(built("c/client")),
        "pgbench" => with("sh".into(), zoo.join("pgbench/zoo.sh")),
        "pgjdbc" => {
            let mut java = Command::new("java");
            let driver = "/usr/share/java/postgresql.jar";
            java.arg("-cp").arg(format!("{}:{driver}", built("java").display())).arg("Zoo");
            java
        }
        rust => with(built("rust/debug/zoo"), rust.into()),
    }
}
