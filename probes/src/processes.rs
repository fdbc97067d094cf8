//! The processes of a target: its roots and all their descendants, followed over time.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;

use assay_captures::ids::{Pid, Tid};
use assay_captures::units::Nanos;

use crate::clock;

/// A set of processes that grows and shrinks: roots, their descendants, and descendants whose
/// parent has since gone. Call [`refresh`](Self::refresh), then ask.
///
/// A descendant that comes and goes between two refreshes is never seen; its CPU time is still
/// counted once its parent has waited for it, as `getrusage(RUSAGE_CHILDREN)` would.
#[derive(Debug, Default)]
pub struct ProcessTree {
    roots: Vec<Pid>,
    members: BTreeMap<Pid, Member>,
    /// CPU time of members that have gone, in so far as it is known.
    gone_cpu: Nanos,
    exited: u64,
    unseen: u64,
    text: Vec<u8>,
}

/// What is remembered of a live member.
#[derive(Debug)]
struct Member {
    stat: Stat,
    cpu: Nanos,
    threads: Vec<Tid>,
}

/// What a look at the tree has shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// Processes that were not there at the last look.
    pub appeared: Vec<Pid>,
    /// Processes that were.
    pub vanished: Vec<Pid>,
}

impl ProcessTree {
    /// The tree under these roots; empty until the first refresh.
    #[must_use]
    pub fn new(roots: &[Pid]) -> Self {
        Self { roots: roots.to_vec(), ..Self::default() }
    }

    /// Looks again: who is there, and how much CPU time each has used.
    pub fn refresh(&mut self) -> Change {
        let mut now = BTreeMap::new();
        let mut pending: Vec<Pid> = self.roots.clone();
        // Members are looked at even when their parent has gone and init has adopted them.
        pending.extend(self.members.keys());
        while let Some(pid) = pending.pop() {
            if now.contains_key(&pid) {
                continue;
            }
            let Some(member) = self.look(pid) else { continue };
            self.children(pid, &member.threads, &mut pending);
            now.insert(pid, member);
        }
        self.account(now)
    }

    /// The live processes, ascending.
    pub fn pids(&self) -> impl Iterator<Item = Pid> {
        self.members.keys().copied()
    }

    /// Whether a process was in the tree at the last look.
    #[must_use]
    pub fn contains(&self, pid: Pid) -> bool {
        self.members.contains_key(&pid)
    }

    /// CPU time of all members, with that of members that have gone since the first look and of
    /// descendants that have been waited for since. Only differences mean something. The part of
    /// the gone is known to 10 ms each, since `/proc/PID/stat` has ticks.
    #[must_use]
    pub fn cpu(&self) -> Nanos {
        let live: u64 = self.members.values().map(|member| member.cpu.0).sum();
        Nanos(live + self.gone_cpu.0)
    }

    /// How many members have gone since the first look.
    #[must_use]
    pub fn exited(&self) -> u64 {
        self.exited
    }

    /// How many descendants, at least, have come and gone between two looks: their parents have
    /// waited for time that no member had used.
    #[must_use]
    pub fn unseen(&self) -> u64 {
        self.unseen
    }

    /// The live processes with their threads, as of the last look.
    pub fn threads(&self) -> impl Iterator<Item = (Pid, &[Tid])> {
        self.members.iter().map(|(pid, member)| (*pid, member.threads.as_slice()))
    }

    /// What is known of a live process now; a number that has been given to a new process since
    /// does not count as the old one.
    fn look(&mut self, pid: Pid) -> Option<Member> {
        read(&format!("/proc/{}/stat", pid.0), &mut self.text)?;
        let stat = Stat::parse(&self.text)?;
        let known = self.members.get(&pid);
        let same = known.filter(|known| known.stat.started == stat.started);
        // A number that was a member's and has been given away is nobody's we know, unless it is
        // found again as somebody's child.
        if known.is_some() && same.is_none() && !self.members.contains_key(&stat.parent) {
            return None;
        }
        let before = same.map(|known| known.cpu).unwrap_or_default();
        // A zombie may have no clock any more: then its last reading stands.
        let cpu = clock::process_cpu(pid).unwrap_or(before).max(before);
        // Most processes of a server that forks have one thread: no folder need be listed.
        let threads = if stat.threads == 1 { vec![Tid(pid.0)] } else { threads(pid) };
        Some(Member { stat, cpu, threads })
    }

    fn children(&mut self, pid: Pid, threads: &[Tid], found: &mut Vec<Pid>) {
        for tid in threads {
            let path = format!("/proc/{}/task/{}/children", pid.0, tid.0);
            if read(&path, &mut self.text).is_some() {
                let text = String::from_utf8_lossy(&self.text);
                found.extend(text.split_ascii_whitespace().filter_map(|n| n.parse().ok()).map(Pid));
            }
        }
    }

    /// Compares with the last look, and moves the time of those who have gone.
    fn account(&mut self, now: BTreeMap<Pid, Member>) -> Change {
        let mut change = Change::default();
        // Of each parent: the time of its children that have gone, as last read, and what these
        // had themselves inherited, which is counted already.
        let mut lost: BTreeMap<Pid, (u64, u64)> = BTreeMap::new();
        for (&pid, old) in &self.members {
            if now.get(&pid).is_none_or(|new| new.stat.started != old.stat.started) {
                change.vanished.push(pid);
                let lost = lost.entry(old.stat.parent).or_default();
                lost.0 += old.cpu.0;
                lost.1 += old.stat.children_cpu.0;
            }
        }
        for (&pid, new) in &now {
            let old = self.members.get(&pid).filter(|old| old.stat.started == new.stat.started);
            let Some(old) = old else {
                change.appeared.push(pid);
                continue;
            };
            let waited = new.stat.children_cpu.0.saturating_sub(old.stat.children_cpu.0);
            let gone = lost.remove(&pid);
            let (read, inherited) = gone.unwrap_or_default();
            self.unseen += u64::from(gone.is_none() && waited > 0);
            // Either may be the smaller: ticks are rounded down and parents may not wait, while
            // the last reading lacks what came after it.
            self.gone_cpu.0 += waited.saturating_sub(inherited).max(read);
        }
        self.gone_cpu.0 += lost.values().map(|(read, _)| read).sum::<u64>();
        self.exited += change.vanished.len() as u64;
        self.members = now;
        change
    }
}

/// The fields of `/proc/PID/stat` that are used here; see proc_pid_stat(5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stat {
    /// Field 4.
    parent: Pid,
    /// Fields 16 and 17: user and system time of descendants that have been waited for.
    children_cpu: Nanos,
    /// Field 20.
    threads: u64,
    /// Field 22, in ticks since boot: with the pid it names a process for good.
    started: u64,
}

impl Stat {
    fn parse(text: &[u8]) -> Option<Self> {
        // The command name may hold anything, even `) R 1`: the last parenthesis ends it.
        let end = text.iter().rposition(|&byte| byte == b')')?;
        let rest = std::str::from_utf8(text.get(end + 1..)?).ok()?;
        let mut fields = rest.split_ascii_whitespace();
        let parent = fields.nth(1)?.parse().ok()?;
        let user: u64 = fields.nth(11)?.parse().ok()?;
        let system: u64 = fields.next()?.parse().ok()?;
        let threads = fields.nth(2)?.parse().ok()?;
        let started = fields.nth(1)?.parse().ok()?;
        let children_cpu = Nanos((user + system).saturating_mul(1_000_000_000 / ticks()));
        Some(Self { parent: Pid(parent), children_cpu, threads, started })
    }
}

fn threads(pid: Pid) -> Vec<Tid> {
    let Ok(entries) = fs::read_dir(format!("/proc/{}/task", pid.0)) else { return Vec::new() };
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok().map(Tid)).collect()
}

/// Clock ticks per second, as /proc counts them.
pub(crate) fn ticks() -> u64 {
    // Asking the C library is a table look-up; 100 is what every architecture of today says.
    // SAFETY: no pointers.
    u64::try_from(unsafe { libc::sysconf(libc::_SC_CLK_TCK) }).unwrap_or(100).max(1)
}

/// Reads a file of /proc into a buffer that is used again and again.
pub(crate) fn read(path: &str, text: &mut Vec<u8>) -> Option<()> {
    text.clear();
    fs::File::open(path).ok()?.read_to_end(text).ok()?;
    Some(())
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::process::{Child, Command, Stdio};

    use super::*;

    #[test]
    fn stat_is_read_even_when_the_command_looks_like_its_end() {
        let text = b"7 (a) R 1 (b) S 42 7 7 0 -1 4 1 2 3 4 5 6 150 50 20 0 1 0 987 1 2 3";
        let stat = Stat::parse(text).unwrap();
        assert_eq!(stat.parent, Pid(42));
        assert_eq!(stat.children_cpu, Nanos(2_000_000_000));
        assert_eq!((stat.threads, stat.started), (1, 987));
        assert_eq!(Stat::parse(b"7 (a) S 1"), None);
    }

    /// A shell that burns CPU in a child, then waits to be told to end.
    fn family(script: &str) -> Child {
        Command::new("sh")
            .args(["-c", script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap()
    }

    fn wait_for_line(child: &mut Child) {
        let mut byte = [0];
        child.stdout.as_mut().unwrap().read_exact(&mut byte).unwrap();
    }

    #[test]
    fn descendants_are_found_and_the_vanished_leave_their_time_behind() {
        // By another number: a shell gives what it runs beside itself an empty standard input, and
        // the child would be gone before it is looked for.
        let mut shell = family(
            "exec 3<&0; \
             sh -c 'i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; echo; read x <&3' & \
             wait; echo; read x",
        );
        let mut tree = ProcessTree::new(&[Pid(shell.id())]);
        let first = tree.refresh();
        assert!(first.appeared.contains(&Pid(shell.id())));
        wait_for_line(&mut shell);
        let second = tree.refresh();
        assert!(first.appeared.len() + second.appeared.len() >= 2, "{first:?} {second:?}");
        let before = tree.cpu();
        assert!(before.0 > 10_000_000, "the loop takes longer: {before}");

        shell.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
        wait_for_line(&mut shell);
        let third = tree.refresh();
        assert_eq!(third.vanished.len(), 1);
        assert_eq!(tree.exited(), 1);
        assert!(tree.cpu() >= before, "time does not get lost: {} {before}", tree.cpu());
        drop(shell.stdin.take());
        shell.wait().unwrap();
        tree.refresh();
        assert_eq!(tree.pids().count(), 0);
        assert!(tree.cpu() >= before);
    }

    #[test]
    fn a_child_whose_parent_has_gone_stays_in_the_tree() {
        let mut shell =
            family("sh -c 'sleep 60 >/dev/null & echo; read x; exit' <&0; echo; read x");
        let mut tree = ProcessTree::new(&[Pid(shell.id())]);
        wait_for_line(&mut shell);
        tree.refresh();
        let sleeper = tree.pids().max().unwrap();
        assert_eq!(tree.pids().count(), 3);

        shell.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
        wait_for_line(&mut shell);
        assert_eq!(tree.refresh().vanished.len(), 1, "the shell between");
        assert!(tree.contains(sleeper));
        let pid = nix::unistd::Pid::from_raw(sleeper.0 as i32);
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL).unwrap();
        drop(shell.stdin.take());
        shell.wait().unwrap();
    }
}
