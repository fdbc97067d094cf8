//! The processes of the machine, as `/proc` shows them: who descends from whom, and signals to
//! all of them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// One process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its number.
    pub pid: Pid,
    /// Its parent's number.
    pub parent: Pid,
    /// Its name, cut by the kernel to 15 bytes.
    pub name: String,
    /// Whether it has ended and only waits to be reaped.
    pub zombie: bool,
}

/// The process with this number, if there is one.
#[must_use]
pub fn process(pid: Pid) -> Option<Process> {
    parse(pid, &fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// `PID (name) state ppid …`; the name may hold spaces and parentheses, so the last one closes it.
fn parse(pid: Pid, stat: &str) -> Option<Process> {
    let (open, close) = (stat.find('(')?, stat.rfind(')')?);
    let name = stat.get(open + 1..close)?.to_owned();
    let mut rest = stat.get(close + 1..)?.split_ascii_whitespace();
    let state = rest.next()?;
    let parent = Pid::from_raw(rest.next()?.parse().ok()?);
    Some(Process { pid, parent, name, zombie: matches!(state, "Z" | "X") })
}

/// Every process that can be seen.
#[must_use]
pub fn all() -> Vec<Process> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter_map(|pid| process(Pid::from_raw(pid)))
        .collect()
}

/// The descendants of `root` that have not ended, itself left out.
#[must_use]
pub fn descendants(root: Pid) -> Vec<Process> {
    let mut descendants = below(root, all());
    descendants.retain(|process| !process.zombie);
    descendants
}

fn below(root: Pid, all: Vec<Process>) -> Vec<Process> {
    let mut children: BTreeMap<Pid, Vec<Process>> = BTreeMap::new();
    for process in all {
        children.entry(process.parent).or_default().push(process);
    }
    let mut found = Vec::new();
    let mut seen = BTreeSet::from([root]);
    let mut next = vec![root];
    while let Some(pid) = next.pop() {
        for child in children.remove(&pid).unwrap_or_default() {
            // A number that was taken anew while /proc was read could close a circle.
            if seen.insert(child.pid) {
                next.push(child.pid);
                found.push(child);
            }
        }
    }
    found
}

/// Sends a signal to `root` and all its descendants. Who has ended in the meantime is passed over.
pub fn signal_tree(root: Pid, signal: Signal) {
    let _gone = kill(root, signal);
    for process in descendants(root) {
        let _gone = kill(process.pid, signal);
    }
}

/// The process that listens on a TCP port of this machine: of several that share the socket, the
/// one whose parent is not among them.
#[must_use]
pub fn listener_on(port: u16) -> Option<Pid> {
    let mut inodes = Vec::new();
    for table in ["/proc/net/tcp", "/proc/net/tcp6"] {
        let text = fs::read_to_string(table).unwrap_or_default();
        inodes.extend(text.lines().skip(1).filter_map(|line| listening_inode(line, port)));
    }
    let holders: Vec<Process> =
        all().into_iter().filter(|process| holds_socket(process.pid, &inodes)).collect();
    let is_holder = |pid: Pid| holders.iter().any(|holder| holder.pid == pid);
    holders.iter().find(|holder| !is_holder(holder.parent)).map(|holder| holder.pid)
}

/// `sl local remote state … inode`: state `0A` is LISTEN, the port is in hexadecimal digits.
fn listening_inode(line: &str, port: u16) -> Option<String> {
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    let (_, local) = fields.get(1)?.rsplit_once(':')?;
    let listens = *fields.get(3)? == "0A" && u16::from_str_radix(local, 16).ok()? == port;
    listens.then(|| fields.get(9).map(|&inode| inode.to_owned())).flatten()
}

fn holds_socket(pid: Pid, inodes: &[String]) -> bool {
    let Ok(files) = fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
    files.flatten().filter_map(|file| fs::read_link(file.path()).ok()).any(|target| {
        let target = target.to_string_lossy();
        let inode = target.strip_prefix("socket:[").and_then(|rest| rest.strip_suffix(']'));
        inode.is_some_and(|inode| inodes.iter().any(|known| known == inode))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: i32, parent: i32) -> Process {
        let (pid, parent) = (Pid::from_raw(pid), Pid::from_raw(parent));
        Process { pid, parent, name: "x".to_owned(), zombie: false }
    }

    #[test]
    fn a_name_with_parentheses_does_not_hide_the_parent() {
        let process = parse(Pid::from_raw(7), "7 (a) S 1 (b)) Z 3 7 7 0").unwrap();
        assert_eq!(process.name, "a) S 1 (b)");
        assert_eq!(process.parent, Pid::from_raw(3));
        assert!(process.zombie);
        assert_eq!(parse(Pid::from_raw(7), "7 (cut"), None);
    }

    #[test]
    fn descendants_are_found_at_any_depth_and_in_any_order() {
        //  1 ── 2 ── 4 ── 5
        //  └─── 3         6 (someone else's)
        let all = vec![process(5, 4), process(6, 9), process(4, 2), process(2, 1), process(3, 1)];
        let mut found: Vec<i32> =
            below(Pid::from_raw(1), all).iter().map(|process| process.pid.as_raw()).collect();
        found.sort_unstable();
        assert_eq!(found, [2, 3, 4, 5]);
    }

    #[test]
    fn a_listener_is_found_by_its_port() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        assert_eq!(listener_on(port), Some(nix::unistd::getpid()));
        drop(listener);
        assert_eq!(listener_on(port), None);
    }

    #[test]
    fn a_circle_ends() {
        assert_eq!(below(Pid::from_raw(1), vec![process(2, 1), process(1, 2)]).len(), 1);
    }
}
