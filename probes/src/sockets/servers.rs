//! The servers that sockets lead to: what each speaks, and the address that frames give it.

use std::collections::BTreeMap;
use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};

use assay_captures::ids::{Port, Role};
use assay_captures::manifest::Target;
use assay_captures::pcap::Endpoint;

/// Where all servers on Unix sockets seem to be: loopback, where nobody else is.
const UNIX: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 85, 0, 2));
/// Where free ports are looked for when a server's own is taken by one that speaks otherwise.
const FREE: u16 = 20_000;
const POSTGRES: u16 = 5432;
const REDIS: u16 = 6379;

/// A server as its clients name it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Name {
    /// A Unix socket; an abstract one begins with `@`.
    Path(String),
    /// An address and a port.
    Inet(IpAddr, u16),
}

/// Gives a port to each target that has a path alone.
pub fn give_ports(targets: &mut [Target]) {
    for index in 0..targets.len() {
        let Some(path) = targets[index].path.clone() else { continue };
        if targets[index].port.is_none() {
            let role = targets[index].role;
            let port = Servers::new(targets).free(wished(&path, role), role);
            targets[index].port = Some(Port(port));
        }
    }
}

/// What is known of servers.
#[derive(Debug, Default)]
pub struct Servers {
    given: BTreeMap<PathBuf, (Role, Port)>,
    known: BTreeMap<Name, (Role, Endpoint)>,
    ports: BTreeMap<u16, Role>,
}

impl Servers {
    /// Those that are given by path, and the ports that are taken.
    #[must_use]
    pub fn new(targets: &[Target]) -> Self {
        let mut servers = Self::default();
        for target in targets {
            if let Some(port) = target.port {
                servers.ports.insert(port.0, target.role);
                if let Some(path) = &target.path {
                    servers.given.insert(real(Path::new(path)), (target.role, port));
                }
            }
        }
        servers
    }

    /// What a server is known to speak before a byte is seen.
    #[must_use]
    pub fn role(&self, name: &Name) -> Option<Role> {
        if let Some((role, _)) = self.known.get(name) {
            return Some(*role);
        }
        let Name::Path(path) = name else { return None };
        let path = Path::new(path);
        if let Some((role, _)) = self.given.get(&real(path)) {
            return Some(*role);
        }
        // Postgres names its sockets by its port, and clients look for that name.
        let file = path.file_name()?.to_str()?;
        file.starts_with(".s.PGSQL.").then_some(Role::Postgres)
    }

    /// The address of a server in frames.
    pub fn endpoint(&mut self, name: &Name, role: Role) -> Endpoint {
        if let Some((_, endpoint)) = self.known.get(name) {
            return *endpoint;
        }
        let endpoint = match name {
            Name::Path(path) => {
                let given = self.given.get(&real(Path::new(path))).map(|(_, port)| port.0);
                let port = given.unwrap_or_else(|| self.free(wished(path, role), role));
                Endpoint { address: UNIX, port }
            }
            Name::Inet(address, port) => {
                Endpoint { address: *address, port: self.free(*port, role) }
            }
        };
        self.ports.insert(endpoint.port, role);
        self.known.insert(name.clone(), (role, endpoint));
        endpoint
    }

    /// The servers that were found, beside those that were given.
    pub fn found<'a>(&'a self, targets: &'a [Target]) -> impl Iterator<Item = Target> + 'a {
        self.known.iter().filter_map(|(name, &(role, endpoint))| {
            let path = match name {
                Name::Path(path) => Some(path.clone()),
                Name::Inet(..) => None,
            };
            let target = Target { role, pids: Vec::new(), port: Some(Port(endpoint.port)), path };
            let known = |given: &&Target| given.role == role && given.port == target.port;
            targets.iter().find(known).is_none().then_some(target)
        })
    }

    /// `port`, unless something else is spoken there.
    fn free(&self, port: u16, role: Role) -> u16 {
        let usable = |port: &u16| self.ports.get(port).is_none_or(|other| *other == role);
        if usable(&port) {
            return port;
        }
        (FREE..u16::MAX).find(usable).unwrap_or(port)
    }
}

/// The port that a path speaks of, or the usual one.
fn wished(path: &str, role: Role) -> u16 {
    let number = path.rsplit_once(".s.PGSQL.").and_then(|(_, number)| number.parse().ok());
    number.unwrap_or(if role == Role::Redis { REDIS } else { POSTGRES })
}

/// Without symbolic links, where it can be reached: `/var/run` is one.
fn real(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf())
}

/// As people write it.
#[must_use]
pub fn path_name(path: &[u8]) -> String {
    match path.split_first() {
        Some((0, name)) => format!("@{}", String::from_utf8_lossy(name)),
        _ => String::from_utf8_lossy(path).into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(role: Role, port: u16, path: Option<&str>) -> Target {
        let path = path.map(str::to_owned);
        Target { role, pids: Vec::new(), port: Some(Port(port)), path }
    }

    #[test]
    fn a_port_speaks_one_protocol_and_servers_keep_theirs() {
        let targets = [target(Role::Subject, 5432, None), target(Role::Redis, 7, Some("/no/x"))];
        let mut servers = Servers::new(&targets);
        let postgres = Name::Path("/no/.s.PGSQL.5432".into());
        assert_eq!(servers.role(&postgres), Some(Role::Postgres));
        assert_eq!(servers.endpoint(&postgres, Role::Postgres).port, FREE, "5432 is the subject");
        assert_eq!(servers.endpoint(&postgres, Role::Postgres).port, FREE);
        let second = Name::Path("/no/.s.PGSQL.5433".into());
        assert_eq!(servers.endpoint(&second, Role::Postgres).port, 5433);
        let given = Name::Path("/no/x".into());
        assert_eq!(servers.role(&given), Some(Role::Redis));
        assert_eq!(servers.endpoint(&given, Role::Redis).port, 7);
        let there = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
        assert_eq!(servers.role(&Name::Inet(there, 6379)), None);
        let inet = servers.endpoint(&Name::Inet(there, 6379), Role::Redis);
        assert_eq!(inet, Endpoint { address: there, port: 6379 });
        let found: Vec<_> = servers.found(&targets).filter_map(|target| target.port).collect();
        assert_eq!(found, [Port(FREE), Port(5433), Port(6379)]);
    }

    #[test]
    fn abstract_names_are_written_with_an_at_sign() {
        assert_eq!(path_name(b"\0redis"), "@redis");
        assert_eq!(path_name(b"/run/x"), "/run/x");
    }
}
