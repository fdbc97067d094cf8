//! `/proc/net/tcp` and `/proc/net/tcp6`: one line a socket.
//!
//! Specification: the kernel's `Documentation/networking/proc_net_tcp.rst`.
//!
//! ```text
//!   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid timeout inode
//!    0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0 0 31337
//! ```

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// One TCP socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Socket {
    /// Its own end.
    pub local: SocketAddr,
    /// The other end; unspecified while it listens.
    pub remote: SocketAddr,
    /// What it does.
    pub state: State,
    /// Its number; processes that hold it have a descriptor `socket:[inode]`. Zero for one that
    /// no process holds any more.
    pub inode: u64,
}

/// What a socket does, as far as it matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It takes connections.
    Listening,
    /// It is one end of a connection, or was until a moment ago.
    Connected,
    /// It is on its way to or from one of these.
    Other,
}

/// The sockets of one table, version 4 or 6. Lines that are none are passed over.
pub(super) fn sockets(table: &str) -> impl Iterator<Item = Socket> {
    table.lines().filter_map(socket)
}

fn socket(line: &str) -> Option<Socket> {
    let mut fields = line.split_ascii_whitespace().skip(1);
    let local = address(fields.next()?)?;
    let remote = address(fields.next()?)?;
    let state = match fields.next()? {
        "0A" => State::Listening,
        // ESTABLISHED, and CLOSE_WAIT: the server has hung up, the service has not noticed.
        "01" | "08" => State::Connected,
        _ => State::Other,
    };
    let inode = fields.nth(5)?.parse().ok()?;
    Some(Socket { local, remote, state, inode })
}

/// `0100007F:1F90`: words of the address as this machine reads them from memory, and the port.
fn address(text: &str) -> Option<SocketAddr> {
    let (address, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let word = |at: usize| {
        let digits = address.get(at * 8..at * 8 + 8)?;
        u32::from_str_radix(digits, 16).ok().map(u32::to_ne_bytes)
    };
    let address = match address.len() {
        8 => IpAddr::V4(Ipv4Addr::from(word(0)?)),
        32 => {
            let mut bytes = [0; 16];
            for (at, place) in bytes.chunks_exact_mut(4).enumerate() {
                place.copy_from_slice(&word(at)?);
            }
            // A version 4 connection of a version 6 socket is the same as any other.
            Ipv6Addr::from(bytes).to_canonical()
        }
        _ => return None,
    };
    Some(SocketAddr::new(address, port))
}

/// A Unix socket that takes connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnixListener {
    /// Its number.
    pub inode: u64,
    /// Where it is; an abstract name begins with `@`.
    pub path: String,
}

/// What `/proc/net/unix` says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnixSockets {
    /// Those that take connections and have a name.
    pub listeners: Vec<UnixListener>,
    /// Numbers of the streams that are connected.
    pub connected: BTreeSet<u64>,
}

/// `Num: RefCount Protocol Flags Type St Inode Path`, one a line; lines that are none are passed
/// over.
pub(super) fn unix_sockets(table: &str) -> UnixSockets {
    let mut found = UnixSockets::default();
    for line in table.lines() {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let (Some(&flags), Some(&kind), Some(&state)) = (words.get(3), words.get(4), words.get(5))
        else {
            continue;
        };
        let Some(inode) = words.get(6).and_then(|word| word.parse().ok()) else { continue };
        match (kind, flags, state) {
            // __SO_ACCEPTCON.
            ("0001", "00010000", _) if words.len() == 8 => {
                found.listeners.push(UnixListener { inode, path: words[7].to_owned() });
            }
            ("0001", _, "03") => drop(found.connected.insert(inode)),
            _ => {}
        }
    }
    found
}

/// The addresses that a namespace itself has, from its `/proc/net/fib_trie` and
/// `/proc/net/if_inet6`.
#[must_use]
pub(super) fn own_addresses(fib_trie: &str, if_inet6: &str) -> BTreeSet<IpAddr> {
    let mut found = BTreeSet::new();
    let mut last = None;
    for line in fib_trie.lines().map(str::trim) {
        // `|-- 127.0.0.1` and below it `/32 host LOCAL`.
        if let Some(address) = line.strip_prefix("|-- ") {
            last = address.parse().ok();
        } else if line.starts_with("/32 host LOCAL") {
            found.extend(last.map(IpAddr::V4));
        }
    }
    for line in if_inet6.lines() {
        let digits = line.split_ascii_whitespace().next().unwrap_or_default();
        if let (32, Ok(address)) = (digits.len(), u128::from_str_radix(digits, 16)) {
            found.insert(IpAddr::V6(Ipv6Addr::from(address)));
        }
    }
    found
}
