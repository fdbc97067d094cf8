//! What was asked for on the command line, checked.

use std::net::{SocketAddr, ToSocketAddrs};
use std::time::Duration;

use super::found::Wanted;
use crate::cli::ObserveArgs;
use crate::commands::WrongUsage;
use crate::experiment::PassKind;

/// What attaching can measure; the order is that of a run.
const PASSES: [PassKind; 5] =
    [PassKind::Fair, PassKind::Serial, PassKind::Wire, PassKind::Syscalls, PassKind::Cpu];
/// The longest name of a route that is made from its path.
const LONGEST_NAME: usize = 40;

/// What to observe, and how.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// The service.
    pub wanted: Wanted,
    /// The requests to send; empty where others send them.
    pub targets: Vec<Target>,
    /// Connections of the closed load.
    pub connections: u32,
    /// Load of each route, all passes together.
    pub duration: Duration,
    /// Send so many requests one at a time, and nothing else.
    pub serial: Option<u32>,
    /// Which passes.
    pub passes: Vec<PassKind>,
}

/// One request to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Names the route in tables and folders.
    pub name: String,
    /// HTTP method.
    pub method: String,
    /// Host and port, as the URL has them.
    pub host: String,
    /// Path and query.
    pub path: String,
    /// Where it goes.
    pub address: SocketAddr,
    /// Header fields.
    pub headers: Vec<(String, String)>,
    /// The body; empty for none.
    pub body: String,
}

impl Options {
    /// Checks what was typed.
    pub fn read(args: &ObserveArgs) -> Result<Self, WrongUsage> {
        let mut targets: Vec<Target> = Vec::new();
        for url in &args.url {
            let mut target = target(url, args)?;
            let taken = |name: &str| targets.iter().any(|known| known.name == name);
            if taken(&target.name) {
                let plain = target.name.clone();
                let mut numbered = (2..).map(|number| format!("{plain}-{number}"));
                target.name = numbered.find(|name| !taken(name)).unwrap_or(plain);
            }
            targets.push(target);
        }
        if let Some(other) = targets.iter().find(|target| target.address != targets[0].address) {
            return Err(WrongUsage(format!(
                "all --url must lead to one address: {} and {} do not",
                targets[0].host, other.host
            )));
        }
        let wanted = match (args.port, args.pid, &args.name, targets.first()) {
            (Some(port), None, None, _) => Wanted::Port(port),
            (None, Some(pid), None, _) => Wanted::Pid(pid),
            (None, None, Some(name), _) => Wanted::Name(name.clone()),
            (None, None, None, Some(target)) => Wanted::Port(target.address.port()),
            _ => {
                let what = "say which service: --port, --pid or --name (one of them)";
                return Err(WrongUsage(what.to_owned()));
            }
        };
        match (targets.is_empty(), args.foreign_load || args.follow) {
            (true, false) => {
                let what = "say what to send: --url URL, or --foreign-load to watch what others \
                            send";
                return Err(WrongUsage(what.to_owned()));
            }
            (false, true) if args.foreign_load => {
                let what = "--foreign-load sends nothing: leave --url away";
                return Err(WrongUsage(what.to_owned()));
            }
            _ => {}
        }
        Ok(Self {
            wanted,
            targets,
            connections: args.connections,
            duration: Duration::from_secs_f64(args.duration.clamp(0.5, 86_400.0)),
            serial: args.serial,
            passes: passes(args)?,
        })
    }
}

fn passes(args: &ObserveArgs) -> Result<Vec<PassKind>, WrongUsage> {
    if args.serial.is_some() {
        return Ok(vec![PassKind::Serial]);
    }
    for name in &args.pass {
        if !PASSES.iter().any(|kind| kind.word() == name) {
            let known: Vec<&str> = PASSES.iter().map(|kind| kind.word()).collect();
            return Err(WrongUsage(format!(
                "there is no pass {name:?} for a service that already runs (there are: {})",
                known.join(", ")
            )));
        }
    }
    let chosen =
        |kind: &PassKind| args.pass.is_empty() || args.pass.iter().any(|name| name == kind.word());
    Ok(PASSES.into_iter().filter(chosen).collect())
}

/// `[NAME=]http://HOST[:PORT][/PATH]`.
fn target(typed: &str, args: &ObserveArgs) -> Result<Target, WrongUsage> {
    let wrong = |why: &str| {
        WrongUsage(format!("{typed:?} {why}; it looks like http://127.0.0.1:8080/posts/1"))
    };
    let (name, url) = match typed.split_once('=') {
        Some((name, url)) if !name.contains(['/', ':', '?']) => (Some(name), url),
        _ => (None, typed),
    };
    if url.starts_with("https://") {
        return Err(WrongUsage(format!(
            "{typed:?}: requests are sent without TLS; give the plain port behind it, or send \
             them yourself and watch with --foreign-load"
        )));
    }
    let rest = url.strip_prefix("http://").ok_or_else(|| wrong("is no URL"))?;
    let rest = rest.split('#').next().unwrap_or_default();
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (host, path) = rest.split_at(end);
    let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
    let with_port = if has_port(host) { host.to_owned() } else { format!("{host}:80") };
    let address = with_port.to_socket_addrs().ok().and_then(|mut found| found.next());
    let address = address.ok_or_else(|| wrong("leads to no address"))?;
    let name = match name {
        Some(name) => safe_name(name),
        None => safe_name(path.split('?').next().unwrap_or_default()),
    };
    let mut headers = vec![("host".to_owned(), host.to_owned())];
    for header in &args.header {
        let (key, value) = header.split_once(':').ok_or_else(|| {
            WrongUsage(format!("the header {header:?} is not of the form 'NAME: VALUE'"))
        })?;
        if key.trim().eq_ignore_ascii_case("host") {
            headers.remove(0);
        }
        headers.push((key.trim().to_owned(), value.trim().to_owned()));
    }
    let body = args.data.clone().unwrap_or_default();
    let method = args
        .method
        .clone()
        .unwrap_or_else(|| if body.is_empty() { "GET" } else { "POST" }.to_owned());
    Ok(Target { name, method, host: host.to_owned(), path, address, headers, body })
}

fn has_port(host: &str) -> bool {
    // The colons of an IPv6 address stand in brackets.
    host.rsplit(']').next().is_some_and(|after| after.contains(':'))
}

/// A name that can be a folder: letters, digits, `-` and `_`.
pub(super) fn safe_name(text: &str) -> String {
    let mut name = String::new();
    for character in text.chars() {
        match character {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '_' => name.push(character),
            _ if name.is_empty() || name.ends_with('-') => {}
            _ => name.push('-'),
        }
    }
    name.truncate(LONGEST_NAME);
    let name = name.trim_end_matches('-');
    if name.is_empty() { "root".to_owned() } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::{Cli, Command};

    fn read(line: &str) -> Result<Options, String> {
        let words = std::iter::once("assay").chain(line.split(' '));
        let Command::Observe(args) = Cli::try_parse_from(words).unwrap().command else {
            panic!("another command")
        };
        Options::read(&args).map_err(|error| error.to_string())
    }

    #[test]
    fn urls_become_routes_with_names() {
        let line = "observe --url http://127.0.0.1:8080/posts/1?x=2 --url http://127.0.0.1:8080 \
                    --url home=http://127.0.0.1:8080/ --url http://127.0.0.1:8080/posts/1";
        let options = read(line).unwrap();
        let names: Vec<&str> = options.targets.iter().map(|target| &*target.name).collect();
        assert_eq!(names, ["posts-1", "root", "home", "posts-1-2"]);
        assert_eq!(options.targets[0].path, "/posts/1?x=2");
        assert_eq!(options.targets[1].path, "/");
        assert_eq!(options.targets[0].headers, [("host".into(), "127.0.0.1:8080".into())]);
        assert_eq!(options.wanted, Wanted::Port(8080));
    }

    #[test]
    fn a_body_makes_it_a_post() {
        let line = "observe --pid 7 --url http://127.0.0.1:1/x --data a=b --header A:b";
        let options = read(line).unwrap();
        assert_eq!(options.targets[0].method, "POST");
        assert_eq!(options.targets[0].headers[1], ("A".into(), "b".into()));
        assert_eq!(options.wanted, Wanted::Pid(7));
    }

    #[test]
    fn what_cannot_be_is_said_with_what_to_do() {
        for (line, said) in [
            ("observe --url ftp://x/", "is no URL; it looks like http://"),
            ("observe --url https://127.0.0.1/", "sent without TLS"),
            ("observe --port 80", "say what to send: --url URL"),
            ("observe --port 80 --foreign-load --url http://127.0.0.1/", "leave --url away"),
            ("observe --foreign-load", "say which service"),
            ("observe --url http://127.0.0.1:1/ --url http://127.0.0.1:2/", "one address"),
            ("observe --url http://127.0.0.1:1/ --pass allocations", "there is no pass"),
            ("observe --url http://127.0.0.1:1/ --header x", "'NAME: VALUE'"),
        ] {
            let error = read(line).unwrap_err();
            assert!(error.contains(said), "{line}: {error}");
        }
    }
}
