//! Redis: a private throwaway server, or a real one given by URL.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use assay_captures::ids::{Pid, Port, Role};
use nix::sys::signal::Signal;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::RunningService;
use super::private::{
    Server, free_port, private_file, private_folder, random_password, service_user,
};
use crate::child::Upbringing;
use crate::experiment::RedisSettings;
use crate::pinning::CoreSet;
use crate::processes;
use crate::tools::REDIS_SERVER;

/// How long a server may take to answer after its start.
const START: Duration = Duration::from_secs(10);
/// How often the port that was free a moment ago may turn out to be taken.
const TRIES: usize = 3;

/// A running Redis.
#[derive(Debug)]
pub struct Redis {
    /// What probes and records need.
    pub service: RunningService,
    /// For subjects: with password.
    pub url: String,
    server: Option<Server>,
}

impl Redis {
    /// Starts a private server under `scratch`: empty, without persistence.
    pub async fn start(settings: &RedisSettings, scratch: &Path, cores: &CoreSet) -> Result<Self> {
        let program = REDIS_SERVER.require()?;
        let user = service_user()?;
        let folder = scratch.join("redis");
        private_folder(&folder, user.as_ref())?;
        let password = random_password()?;
        let mut last = anyhow!("no port was tried");
        for _ in 0..TRIES {
            let port = free_port()?;
            let file = folder.join("redis.conf");
            let _old = std::fs::remove_file(&file);
            private_file(&file, &configuration(port, &password, settings), user.as_ref())?;
            let mut command = Command::new(&program);
            command.arg(&file).env_clear().env("LC_ALL", "C").current_dir(&folder);
            let upbringing = Upbringing::on(cores)?.as_user(user.as_ref());
            let log = folder.join("log");
            // SIGKILL: there is nothing to save.
            let mut server = Server::start("redis", command, upbringing, log, Signal::SIGKILL)?;
            match server.wait_for_port(port, START).await {
                Ok(()) => {
                    let url = format!("redis://:{password}@127.0.0.1:{port}/");
                    let service = RunningService {
                        role: Role::Redis,
                        path: None,
                        port: Port(port),
                        pid: Some(Pid(server.pid())),
                        version: version("127.0.0.1", port, None, &password).await?,
                        private: true,
                        settings: settings.settings.clone(),
                    };
                    return Ok(Self { service, url, server: Some(server) });
                }
                Err(error) if error.to_string().contains("in use") => last = error,
                Err(error) => return Err(error),
            }
        }
        Err(last)
    }

    /// Uses a real server. Nothing in it is changed.
    pub async fn attach(url: &str) -> Result<Self> {
        let place = Place::parse(url)?;
        let version =
            version(&place.host, place.port, place.user.as_deref(), &place.password).await?;
        let local = matches!(place.host.as_str(), "localhost" | "127.0.0.1" | "::1");
        let pid = local.then(|| processes::listener_on(place.port)).flatten();
        let service = RunningService {
            role: Role::Redis,
            path: None,
            port: Port(place.port),
            pid: pid.map(|pid| Pid(pid.as_raw().cast_unsigned())),
            version,
            private: false,
            settings: BTreeMap::new(),
        };
        Ok(Self { service, url: url.to_owned(), server: None })
    }

    /// An error, with the server's last words, when a private server has ended.
    pub fn check(&mut self) -> Result<()> {
        self.server.as_mut().map_or(Ok(()), Server::check)
    }
}

/// What `redis.conf` says; the password stands here and on no command line.
fn configuration(port: u16, password: &str, settings: &RedisSettings) -> String {
    let mut lines: BTreeMap<&str, String> = BTreeMap::from([
        ("save", String::new()),
        ("appendonly", "no".to_owned()),
        ("daemonize", "no".to_owned()),
        ("databases", "16".to_owned()),
    ]);
    for (name, value) in &settings.settings {
        lines.insert(name, value.clone());
    }
    lines.insert("bind", "127.0.0.1".to_owned());
    lines.insert("port", port.to_string());
    lines.insert("requirepass", password.to_owned());
    let quoted = |value: &str| value.replace('\\', "\\\\").replace('"', "\\\"");
    lines
        .iter()
        .map(|(name, value)| match *name {
            // Redis refuses quoted lists of addresses only where there are several words.
            "save" if !value.is_empty() => format!("save {value}\n"),
            _ => format!("{name} \"{}\"\n", quoted(value)),
        })
        .collect()
}

/// Where a Redis URL leads: `redis://[[user]:password@]host[:port][/database]`.
#[derive(Debug, PartialEq, Eq)]
struct Place {
    host: String,
    port: u16,
    user: Option<String>,
    password: String,
}

impl Place {
    fn parse(url: &str) -> Result<Self> {
        let wrong = || anyhow!("--redis-url is not like redis://:PASSWORD@HOST:PORT/");
        let rest = url.strip_prefix("redis://").ok_or_else(wrong)?;
        let authority = rest.split(['/', '?']).next().unwrap_or_default();
        let (login, host) = authority.rsplit_once('@').unwrap_or(("", authority));
        let (user, password) = login.split_once(':').unwrap_or((login, ""));
        let (host, port) = match host.rsplit_once(':') {
            Some((host, port)) => (host, port.parse().map_err(|_| wrong())?),
            None => (host, 6379),
        };
        if host.is_empty() {
            return Err(wrong());
        }
        Ok(Self {
            host: host.to_owned(),
            port,
            user: (!user.is_empty()).then(|| user.to_owned()),
            password: password.to_owned(),
        })
    }
}

/// Asks the server for its version.
async fn version(host: &str, port: u16, user: Option<&str>, password: &str) -> Result<String> {
    let mut stream = TcpStream::connect((host, port))
        .await
        .with_context(|| format!("cannot connect to redis at {host}:{port}"))?;
    let mut ask = String::new();
    if !password.is_empty() {
        let words: Vec<&str> = ["AUTH"].into_iter().chain(user).chain([password]).collect();
        ask.push_str(&command(&words));
    }
    ask.push_str(&command(&["INFO", "server"]));
    ask.push_str(&command(&["QUIT"]));
    stream.write_all(ask.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.take(1 << 16).read_to_end(&mut answer).await?;
    let answer = String::from_utf8_lossy(&answer);
    if let Some(refusal) = answer.lines().find_map(|line| line.strip_prefix('-')) {
        bail!("redis at {host}:{port} refuses: {refusal}");
    }
    let version = answer.lines().find_map(|line| line.strip_prefix("redis_version:"));
    version
        .map(|version| version.trim().to_owned())
        .ok_or_else(|| anyhow!("what answers at {host}:{port} is not redis"))
}

/// A command as RESP writes it, whatever bytes its words have.
fn command(words: &[&str]) -> String {
    let mut text = format!("*{}\r\n", words.len());
    for word in words {
        text.push_str(&format!("${}\r\n{word}\r\n", word.len()));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_lead_somewhere_or_say_how_they_should_look() {
        let place = Place::parse("redis://:secret@127.0.0.1:7000/0").unwrap();
        assert_eq!(place.password, "secret");
        assert_eq!((place.host.as_str(), place.port, place.user), ("127.0.0.1", 7000, None));
        assert_eq!(Place::parse("redis://host").unwrap().port, 6379);
        for wrong in ["rediss://x", "127.0.0.1:6379", "redis://:1", "redis://host:x"] {
            assert!(Place::parse(wrong).unwrap_err().to_string().contains("redis://:PASSWORD"));
        }
    }

    #[test]
    fn a_private_server_keeps_nothing_and_asks_for_a_password() {
        let settings = RedisSettings { settings: [("maxmemory".into(), "64mb".into())].into() };
        let text = configuration(7000, "secret", &settings);
        for line in
            ["save \"\"", "requirepass \"secret\"", "bind \"127.0.0.1\"", "maxmemory \"64mb\""]
        {
            assert!(text.lines().any(|found| found == line), "{line} is not in {text}");
        }
    }
}
