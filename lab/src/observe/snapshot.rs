//! What `/proc` shows at one moment.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use super::routes::{self, Route};
use super::tables::{self, Socket, UnixSockets};
use crate::processes;

/// Processes and the TCP tables of every network namespace among them.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// By number.
    pub processes: BTreeMap<u32, Seen>,
    /// By the number of the namespace.
    pub networks: BTreeMap<u64, Network>,
}

/// One process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Its parent's number.
    pub parent: u32,
    /// Its name, cut by the kernel to 15 bytes.
    pub name: String,
    /// The file that it runs; `None` where that may not be seen.
    pub program: Option<PathBuf>,
    /// Number of its network namespace.
    pub network: u64,
    /// Numbers of the sockets that it holds; `None` where they may not be seen.
    pub sockets: Option<BTreeSet<u64>>,
    /// Where it passes everything on to, where it does nothing else.
    pub forwards_to: Option<SocketAddr>,
}

/// One network namespace.
#[derive(Clone, Debug, Default)]
pub struct Network {
    /// All TCP sockets in it.
    pub sockets: Vec<Socket>,
    /// The addresses that it has itself.
    pub addresses: BTreeSet<IpAddr>,
    /// The ways out of it.
    pub routes: Vec<Route>,
    /// Its Unix sockets.
    pub unix: UnixSockets,
    /// A process in it.
    pub through: u32,
}

impl Snapshot {
    /// Looks at everything now.
    #[must_use]
    pub fn take() -> Self {
        let own = network_of("self").unwrap_or_default();
        let mut snapshot = Self::default();
        for process in processes::all() {
            let Ok(pid) = u32::try_from(process.pid.as_raw()) else { continue };
            if process.zombie {
                continue;
            }
            // Of a process whose namespace may not be seen, ours is the best guess.
            let network = network_of(&pid.to_string()).unwrap_or(own);
            snapshot.networks.entry(network).or_insert_with(|| Network::read(pid));
            let seen = Seen {
                parent: u32::try_from(process.parent.as_raw()).unwrap_or(0),
                name: process.name,
                program: fs::read_link(format!("/proc/{pid}/exe")).ok(),
                network,
                sockets: sockets_of(pid),
                forwards_to: fs::read(format!("/proc/{pid}/cmdline"))
                    .ok()
                    .and_then(|line| forwards_to(&String::from_utf8_lossy(&line))),
            };
            snapshot.processes.insert(pid, seen);
        }
        snapshot
    }

    /// `roots` and all their descendants.
    #[must_use]
    pub fn tree(&self, roots: &[u32]) -> BTreeSet<u32> {
        let mut tree: BTreeSet<u32> = roots.iter().copied().collect();
        let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for (&pid, seen) in &self.processes {
            children.entry(seen.parent).or_default().push(pid);
        }
        let mut next: Vec<u32> = roots.to_vec();
        while let Some(pid) = next.pop() {
            for &child in children.get(&pid).into_iter().flatten() {
                if tree.insert(child) {
                    next.push(child);
                }
            }
        }
        tree
    }

    /// Who holds one of these sockets.
    #[must_use]
    pub fn holders(&self, network: u64, inodes: &BTreeSet<u64>) -> BTreeSet<u32> {
        let holds = |seen: &Seen| {
            let sockets = seen.sockets.as_ref();
            seen.network == network && sockets.is_some_and(|sockets| !sockets.is_disjoint(inodes))
        };
        self.processes.iter().filter(|(_, seen)| holds(seen)).map(|(&pid, _)| pid).collect()
    }
}

impl Network {
    fn read(pid: u32) -> Self {
        let read = |name: &str| fs::read_to_string(format!("/proc/{pid}/net/{name}"));
        let text = |name: &str| read(name).unwrap_or_default();
        let sockets = ["tcp", "tcp6"]
            .iter()
            .flat_map(|name| tables::sockets(&text(name)).collect::<Vec<_>>());
        Self {
            sockets: sockets.collect(),
            addresses: tables::own_addresses(&text("fib_trie"), &text("if_inet6")),
            routes: routes::routes(&text("route"), &text("ipv6_route")),
            unix: tables::unix_sockets(&text("unix")),
            through: pid,
        }
    }
}

/// What Docker starts for a published port: it listens here and passes on into the container.
pub(super) fn forwards_to(command: &str) -> Option<SocketAddr> {
    let mut words = command.split('\0');
    words.next()?.rsplit('/').next().filter(|&name| name == "docker-proxy")?;
    let words: Vec<&str> = words.collect();
    let after = |option: &str| {
        let at = words.iter().position(|word| word.trim_start_matches('-') == option)?;
        words.get(at + 1).copied()
    };
    let address: IpAddr = after("container-ip")?.parse().ok()?;
    Some(SocketAddr::new(address, after("container-port")?.parse().ok()?))
}

/// The number of a process's network namespace: `net:[4026531840]`.
fn network_of(pid: &str) -> Option<u64> {
    numbered(&fs::read_link(format!("/proc/{pid}/ns/net")).ok()?.to_string_lossy(), "net:[")
}

fn sockets_of(pid: u32) -> Option<BTreeSet<u64>> {
    let files = fs::read_dir(format!("/proc/{pid}/fd")).ok()?;
    let targets = files.flatten().filter_map(|file| fs::read_link(file.path()).ok());
    Some(targets.filter_map(|target| numbered(&target.to_string_lossy(), "socket:[")).collect())
}

fn numbered(text: &str, before: &str) -> Option<u64> {
    text.strip_prefix(before)?.strip_suffix(']')?.parse().ok()
}
