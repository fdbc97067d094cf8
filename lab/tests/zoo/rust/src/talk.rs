//! The side of a client in the talk with the test: it says its version, then performs one
//! operation for each line that it reads, and answers `done` or `failed` and why.

use std::env;
use std::fmt::Display;

use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// A query without parameters.
pub const PLAIN: &str = "SELECT count(*) FROM zoo";

/// Who connects.
#[derive(Clone, Copy)]
pub enum User {
    /// Without a password.
    Trusted,
    /// By SCRAM-SHA-256.
    Scram,
}

/// Lines from the test.
pub struct Talk {
    lines: UnboundedReceiver<String>,
}

impl Talk {
    /// Reads in a thread of its own, so that background tasks run while nothing is asked.
    pub fn begin() -> Self {
        let (send, lines) = unbounded_channel();
        std::thread::spawn(move || {
            for line in std::io::stdin().lines().map_while(Result::ok) {
                if send.send(line.trim().to_owned()).is_err() {
                    break;
                }
            }
        });
        Self { lines }
    }

    /// The first thing that is said.
    pub fn version(&self, version: &str) {
        println!("{version}");
    }

    /// The next operation; `None` when no more is wanted.
    pub async fn next(&mut self) -> Option<String> {
        self.lines.recv().await
    }

    /// How it went.
    pub fn answer<T, E: Display>(&self, outcome: Result<T, E>) {
        match outcome {
            Ok(_) => println!("done"),
            Err(error) => println!("failed {}", format!("{error:#}").replace('\n', " ")),
        }
    }
}

/// What the test says about the server.
pub fn setting(name: &str) -> String {
    env::var(format!("ZOO_{name}")).unwrap_or_default()
}

/// Where to connect to, as a URL.
pub fn url(user: User) -> String {
    let (user, password) = match user {
        User::Trusted => (setting("TRUSTED"), String::new()),
        User::Scram => (setting("SCRAM"), format!(":{}", setting("PASSWORD"))),
    };
    let (host, port, database) = (setting("HOST"), setting("PORT"), setting("DATABASE"));
    format!("postgres://{user}{password}@{host}:{port}/{database}")
}
