//! Picking a service out of a snapshot.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::{IpAddr, SocketAddr};

use assay_captures::ids::{Pid, Port, Role};

use super::routes::{default_interface, interface_to};
use super::snapshot::{Network, Snapshot};
use super::tables::{Socket, State, UnixListener};

/// How a service was named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Whoever listens there.
    Port(u16),
    /// This process, and all below it.
    Pid(u32),
    /// Every process with this name, and all below them.
    Name(String),
}

/// A service that runs: its processes, where it listens, whom it talks to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// What people call it: the name of its first process.
    pub name: String,
    /// The processes that all others descend from, ascending.
    pub roots: Vec<Pid>,
    /// All of its processes with their names, ascending.
    pub processes: BTreeMap<Pid, String>,
    /// Number of its network namespace.
    pub network: u64,
    /// A process of that namespace, to look or enter through.
    pub through: Pid,
    /// Whether that is the namespace of this process too.
    pub network_is_ours: bool,
    /// Where it listens, ascending by port.
    pub listens: Vec<SocketAddr>,
    /// The interfaces of its namespace by which requests come.
    pub clients: BTreeSet<String>,
    /// The interface of its namespace that leads to everywhere else.
    pub way_out: Option<String>,
    /// Whether it has connections on Unix sockets.
    pub unix: bool,
    /// Whom its connections lead to, ascending by place.
    pub services: Vec<FoundService>,
    /// Whether the sockets of some of its processes may not be seen, so that services are missing.
    pub hidden: bool,
}

/// Something that a service has connections to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundService {
    /// Its end of the connections.
    pub place: Place,
    /// How many connections there were.
    pub connections: usize,
    /// What it is, as far as is known.
    pub role: Option<Role>,
    /// Whether that was heard on the wire; otherwise it is told by process or port.
    pub heard: bool,
    /// Whether a pooler's connections lead there.
    pub behind: bool,
    /// Whether the service's own connections lead there.
    pub direct: bool,
    /// Whether everything passes through TLS.
    pub encrypted: bool,
    /// Its process, where it runs on this machine and may be seen.
    pub server: Option<FoundServer>,
    /// Whether it runs on this machine, and who it is may not be seen.
    pub hidden: bool,
    /// The interface of the service's namespace by which its packets pass; none where it is not
    /// known, and for a Unix socket.
    pub interface: Option<String>,
}

/// Where a server is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// An address and a port.
    Inet(SocketAddr),
    /// A Unix socket, and the port that stands for it in captures.
    Unix(String, u16),
}

impl Place {
    /// Its port in captures.
    #[must_use]
    pub fn port(&self) -> Port {
        match self {
            Self::Inet(address) => Port(address.port()),
            Self::Unix(_, port) => Port(*port),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Inet(address) => address.fmt(out),
            Self::Unix(path, _) => path.fmt(out),
        }
    }
}

/// The process behind a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundServer {
    /// The process that its others descend from.
    pub root: Pid,
    /// Its name.
    pub name: String,
}

/// Why there is nothing to observe: one line, what and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NotFound(pub String);

impl Found {
    /// The services that are known to speak a role's protocol.
    pub fn of(&self, role: Role) -> impl Iterator<Item = &FoundService> {
        self.services.iter().filter(move |service| service.role == Some(role))
    }

    /// Takes what a later look has found as well.
    pub fn merge(&mut self, later: Self) {
        self.processes.extend(later.processes);
        self.clients.extend(later.clients);
        self.unix |= later.unix;
        for service in later.services {
            self.add(service);
        }
    }

    /// Takes one more server, or more connections to one that is known.
    pub fn add(&mut self, service: FoundService) {
        match self.services.iter_mut().find(|known| known.place == service.place) {
            Some(known) => {
                known.connections = known.connections.max(service.connections);
                known.behind |= service.behind;
                known.direct |= service.direct;
            }
            None => self.services.push(service),
        }
        self.services.sort_by(|one, other| one.place.cmp(&other.place));
    }

    /// The port of the service itself: the one asked for, where it listens there itself, or the
    /// first that it listens on.
    #[must_use]
    pub fn port(&self, wanted: &Wanted) -> Option<Port> {
        let mut own = self.listens.iter().map(SocketAddr::port);
        let first = own.clone().next();
        let asked = match wanted {
            Wanted::Port(port) => own.find(|own| own == port),
            _ => None,
        };
        asked.or(first).map(Port)
    }
}

/// Picks out the service that is `wanted`; `ours` is the network namespace to prefer.
pub fn find(snapshot: &Snapshot, wanted: &Wanted, ours: u64) -> Result<Found, NotFound> {
    let roots = match wanted {
        Wanted::Port(port) => by_port(snapshot, *port, ours)?,
        Wanted::Pid(pid) if snapshot.processes.contains_key(pid) => vec![*pid],
        Wanted::Pid(pid) => {
            return Err(NotFound(format!("there is no process {pid}; is it still running?")));
        }
        Wanted::Name(name) => by_name(snapshot, name)?,
    };
    let first = roots.first().copied().unwrap_or_default();
    let (network, name) = snapshot
        .processes
        .get(&first)
        .map(|seen| (seen.network, seen.name.clone()))
        .unwrap_or_default();
    let tree = snapshot.tree(&roots);
    let inodes: BTreeSet<u64> = tree
        .iter()
        .filter_map(|pid| snapshot.processes.get(pid)?.sockets.as_ref())
        .flatten()
        .copied()
        .collect();
    let mut members = tree.iter().filter_map(|pid| snapshot.processes.get(pid));
    let hidden = members.any(|seen| seen.sockets.is_none());
    let nowhere = Network::default();
    let tables = snapshot.networks.get(&network).unwrap_or(&nowhere);
    let own = || tables.sockets.iter().filter(|socket| inodes.contains(&socket.inode));
    let mut listens: Vec<SocketAddr> = own()
        .filter(|socket| socket.state == State::Listening)
        .map(|socket| socket.local)
        .collect();
    listens.sort_by_key(|address| (address.port(), address.ip()));
    listens.dedup();
    let accepted = own().filter(|socket| accepted(socket, &listens));
    let ways = accepted.filter_map(|socket| tables.interface_to(socket.remote.ip()));
    let clients = ways.map(str::to_owned).collect();
    let services = services(snapshot, network, &tree, own(), &listens);
    let named = |&pid: &u32| Some((Pid(pid), snapshot.processes.get(&pid)?.name.clone()));
    Ok(Found {
        name,
        roots: roots.into_iter().map(Pid).collect(),
        processes: tree.iter().filter_map(named).collect(),
        network,
        through: Pid(first),
        network_is_ours: network == ours,
        clients,
        way_out: default_interface(&tables.routes).map(str::to_owned),
        unix: !inodes.is_disjoint(&tables.unix.connected),
        listens,
        services,
        hidden,
    })
}

/// The processes that hold the listening socket, in this namespace or else in another one, and
/// which of them the others descend from.
fn by_port(snapshot: &Snapshot, port: u16, ours: u64) -> Result<Vec<u32>, NotFound> {
    let mut places: Vec<u64> = Vec::new();
    for (&number, network) in &snapshot.networks {
        let listening =
            |socket: &Socket| socket.state == State::Listening && socket.local.port() == port;
        if network.sockets.iter().any(listening) {
            places.push(number);
        }
    }
    let network = match places.as_slice() {
        [] => return Err(NotFound(format!("nothing listens on port {port}; is it started?"))),
        [only] => *only,
        several if several.contains(&ours) => ours,
        several => {
            let through = several.iter().filter_map(|number| snapshot.networks.get(number));
            let pids: Vec<String> = through.map(|network| network.through.to_string()).collect();
            return Err(NotFound(format!(
                "port {port} is listened on in {} network namespaces, none of them this one; \
                 name the service by --pid (processes there: {})",
                several.len(),
                pids.join(", ")
            )));
        }
    };
    let holders = listeners(snapshot, network, |address| address.port() == port);
    if holders.is_empty() {
        return Err(NotFound(format!(
            "something listens on port {port}, but who may not be seen: run it as root, or name \
             the service by --pid"
        )));
    }
    let forwarded = holders.iter().find_map(|pid| snapshot.processes.get(pid)?.forwards_to);
    let behind = forwarded.map(|to| listeners_at(snapshot, network, to)).unwrap_or_default();
    Ok(topmost(snapshot, if behind.is_empty() { &holders } else { &behind }))
}

fn by_name(snapshot: &Snapshot, name: &str) -> Result<Vec<u32>, NotFound> {
    let called = |seen: &super::Seen| {
        // The kernel's name is cut to 15 bytes; the file's is not.
        let file = seen.program.as_deref().and_then(|program| program.file_name());
        seen.name == name || file.is_some_and(|file| file.to_string_lossy() == name)
    };
    let own = std::process::id();
    let named: BTreeSet<u32> = snapshot
        .processes
        .iter()
        .filter(|&(&pid, seen)| pid != own && called(seen))
        .map(|(&pid, _)| pid)
        .collect();
    if named.is_empty() {
        return Err(NotFound(format!("there is no process named {name:?}; see `ps -e`")));
    }
    Ok(topmost(snapshot, &named))
}

fn listeners(
    snapshot: &Snapshot,
    network: u64,
    mut here: impl FnMut(&SocketAddr) -> bool,
) -> BTreeSet<u32> {
    let Some(tables) = snapshot.networks.get(&network) else { return BTreeSet::new() };
    let listening = tables.sockets.iter().filter(|socket| socket.state == State::Listening);
    let inodes =
        listening.filter(|socket| here(&socket.local)).map(|socket| socket.inode).collect();
    snapshot.holders(network, &inodes)
}

/// Those whose parent is not among them, and instead of several workers that share a program with
/// their parent, the parent: with `SO_REUSEPORT` it holds no socket itself.
fn topmost(snapshot: &Snapshot, members: &BTreeSet<u32>) -> Vec<u32> {
    // Who starts everything else also holds sockets for it, where they are handed over.
    let init = |pid: u32| pid <= 1;
    let only_init = members.iter().all(|&pid| init(pid));
    let members: BTreeSet<u32> =
        members.iter().copied().filter(|&pid| only_init || !init(pid)).collect();
    let mut roots = BTreeSet::new();
    for &member in &members {
        let mut top = member;
        while let Some(seen) = snapshot.processes.get(&top) {
            let siblings = |&pid: &u32| {
                let other = snapshot.processes.get(&pid);
                pid != top && other.is_some_and(|other| other.parent == seen.parent)
            };
            let alike = |parent: &super::Seen| {
                parent.program.is_some()
                    && parent.program == seen.program
                    && members.iter().any(siblings)
            };
            let parent = snapshot.processes.get(&seen.parent);
            let climbs = parent.is_some_and(|parent| {
                !init(seen.parent) && (members.contains(&seen.parent) || alike(parent))
            });
            if !climbs {
                break;
            }
            top = seen.parent;
        }
        roots.insert(top);
    }
    roots.into_iter().collect()
}

/// Whether a connection came in.
fn accepted(socket: &Socket, listens: &[SocketAddr]) -> bool {
    let here = listens.iter().any(|listens| listens.port() == socket.local.port());
    socket.state == State::Connected && here
}

fn services<'a>(
    snapshot: &Snapshot,
    network: u64,
    tree: &BTreeSet<u32>,
    own: impl Iterator<Item = &'a Socket>,
    listens: &[SocketAddr],
) -> Vec<FoundService> {
    let mut remotes: BTreeMap<SocketAddr, usize> = BTreeMap::new();
    for socket in own.filter(|socket| socket.state == State::Connected) {
        if !accepted(socket, listens) {
            *remotes.entry(socket.remote).or_default() += 1;
        }
    }
    let mut found = Vec::new();
    for (address, connections) in remotes {
        let behind = server(snapshot, network, address);
        if behind.as_ref().is_some_and(|server| tree.contains(&server.root.0)) {
            continue;
        }
        let role = likely_role(behind.as_ref().map(|server| server.name.as_str()), address.port());
        let tables = snapshot.networks.get(&network);
        found.push(FoundService {
            place: Place::Inet(address),
            connections,
            role,
            heard: false,
            behind: false,
            direct: true,
            encrypted: false,
            hidden: behind.is_none() && place(snapshot, network, address).is_some(),
            interface: tables.and_then(|tables| tables.interface_to(address.ip())).map(Into::into),
            server: behind,
        });
    }
    found
}

/// Who listens at an address.
fn server(snapshot: &Snapshot, network: u64, address: SocketAddr) -> Option<FoundServer> {
    first_of(snapshot, &listeners_at(snapshot, network, address))
}

/// The server on a Unix socket, whichever namespace it is in: clients reach it by its file.
#[must_use]
pub(super) fn unix_server(snapshot: &Snapshot, path: &str) -> Option<FoundServer> {
    let there = |listener: &&UnixListener| listener.path == path;
    let all = snapshot.networks.values().flat_map(|network| &network.unix.listeners);
    let inodes: BTreeSet<u64> = all.filter(there).map(|listener| listener.inode).collect();
    let holds = |seen: &super::Seen| {
        seen.sockets.as_ref().is_some_and(|sockets| !sockets.is_disjoint(&inodes))
    };
    let holders = snapshot.processes.iter().filter(|(_, seen)| holds(seen));
    first_of(snapshot, &holders.map(|(&pid, _)| pid).collect())
}

fn first_of(snapshot: &Snapshot, holders: &BTreeSet<u32>) -> Option<FoundServer> {
    let root = *topmost(snapshot, holders).first()?;
    Some(FoundServer { root: Pid(root), name: snapshot.processes.get(&root)?.name.clone() })
}

fn listeners_at(snapshot: &Snapshot, network: u64, address: SocketAddr) -> BTreeSet<u32> {
    let here = |listens: &SocketAddr| {
        let any = listens.ip().is_unspecified();
        listens.port() == address.port() && (any || listens.ip() == address.ip())
    };
    let place = place(snapshot, network, address);
    place.map(|place| listeners(snapshot, place, here)).unwrap_or_default()
}

impl Network {
    /// The interface by which an address is reached; what a namespace sends to an address of its
    /// own goes through its loopback.
    fn interface_to(&self, address: IpAddr) -> Option<&str> {
        let own = address.is_loopback() || self.addresses.contains(&address);
        if own { Some("lo") } else { interface_to(&self.routes, address) }
    }
}

/// The namespace that an address leads to: the same one, or the one that has the address.
fn place(snapshot: &Snapshot, network: u64, address: SocketAddr) -> Option<u64> {
    let has = |number: u64| {
        let addresses = snapshot.networks.get(&number).map(|network| &network.addresses);
        match address.ip().is_loopback() {
            true => number == network,
            false => addresses.is_some_and(|addresses| addresses.contains(&address.ip())),
        }
    };
    let mut numbers = std::iter::once(network).chain(snapshot.networks.keys().copied());
    numbers.find(|&number| has(number))
}

/// What a server is, by its process or by its port. What is said on the wire decides later.
pub(super) fn likely_role(name: Option<&str>, port: u16) -> Option<Role> {
    match (name, port) {
        (Some("postgres" | "postmaster"), _) => Some(Role::Postgres),
        (Some("pgbouncer" | "odyssey" | "pgcat" | "pgpool"), _) => Some(Role::Pooler),
        (Some("redis-server" | "valkey-server" | "keydb-server" | "dragonfly"), _) => {
            Some(Role::Redis)
        }
        (_, 5432 | 6432) => Some(Role::Postgres),
        (_, 6379 | 6380) => Some(Role::Redis),
        _ => None,
    }
}
