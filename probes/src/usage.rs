//! Reads what the processes of a role have used, from their CPU clocks and from /proc.

use std::collections::HashMap;

use assay_captures::ids::{Pid, Role, Tid};
use assay_captures::manifest::Target;
use assay_captures::units::Nanos;
use assay_captures::usage::{Group, Machine};

use crate::processes::{ProcessTree, read, ticks};

/// Follows all processes of one role.
#[derive(Debug)]
pub struct Reader {
    role: Role,
    tree: ProcessTree,
    /// The last counts of each live thread.
    threads: HashMap<Tid, Counts>,
    /// The counts of threads that have exited.
    gone: Counts,
    thread_exits: u64,
    text: Vec<u8>,
}

/// Counters of one thread, or sums of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    voluntary: u64,
    involuntary: u64,
    run_queue_wait: u64,
    /// The sample that saw the thread last.
    seen: u64,
}

impl Counts {
    fn add(&mut self, other: Self) {
        self.voluntary += other.voluntary;
        self.involuntary += other.involuntary;
        self.run_queue_wait += other.run_queue_wait;
    }
}

impl Reader {
    /// One reader for each role among the targets, in their order.
    #[must_use]
    pub fn of_targets(targets: &[Target]) -> Vec<Self> {
        let mut roots: Vec<(Role, Vec<Pid>)> = Vec::new();
        for target in targets {
            match roots.iter_mut().find(|(role, _)| *role == target.role) {
                Some((_, pids)) => pids.extend(&target.pids),
                None => roots.push((target.role, target.pids.clone())),
            }
        }
        roots.into_iter().map(|(role, pids)| Self::new(role, &pids)).collect()
    }

    /// A reader for the processes under `roots`.
    #[must_use]
    pub fn new(role: Role, roots: &[Pid]) -> Self {
        Self {
            role,
            tree: ProcessTree::new(roots),
            threads: HashMap::new(),
            gone: Counts::default(),
            thread_exits: 0,
            text: Vec::new(),
        }
    }

    /// Processes and threads that have exited since the first reading, as far as was noticed.
    #[must_use]
    pub fn exits(&self) -> u64 {
        self.thread_exits + self.tree.unseen()
    }

    /// Reads everything now. Proportional memory makes the kernel walk the page tables of each
    /// process, so it is read only when asked for.
    pub fn read(&mut self, proportional: bool) -> Group {
        let looked = self.gone.seen + 1;
        self.gone.seen = looked;
        self.tree.refresh();
        let mut group = Group {
            role: self.role,
            cpu: self.tree.cpu(),
            voluntary: 0,
            involuntary: 0,
            run_queue_wait: Nanos(0),
            processes: 0,
            threads: 0,
            exits: 0,
            resident: 0,
            peak: 0,
            proportional: proportional.then_some(0),
        };
        // The tree is put back below; meanwhile `self` is needed whole.
        let tree = std::mem::take(&mut self.tree);
        for (pid, tids) in tree.threads() {
            group.processes += 1;
            group.threads += tids.len() as u64;
            for &tid in tids {
                self.thread(pid, tid, &mut group);
            }
            if let Some(sum) = &mut group.proportional {
                let known = read(&format!("/proc/{}/smaps_rollup", pid.0), &mut self.text)
                    .and_then(|()| kilobytes(&self.text, b"Pss:"));
                *sum += known.unwrap_or(0);
            }
        }
        self.tree = tree;
        let sum = self.sum(looked);
        group.voluntary = sum.voluntary;
        group.involuntary = sum.involuntary;
        group.run_queue_wait = Nanos(sum.run_queue_wait);
        group.exits = self.exits();
        group
    }

    /// Reads one thread; the main thread's file tells of the process's memory too.
    fn thread(&mut self, pid: Pid, tid: Tid, group: &mut Group) {
        let folder = format!("/proc/{}/task/{}", pid.0, tid.0);
        if read(&format!("{folder}/status"), &mut self.text).is_none() {
            return;
        }
        if pid.0 == tid.0 {
            group.resident += kilobytes(&self.text, b"VmRSS:").unwrap_or(0);
            group.peak += kilobytes(&self.text, b"VmHWM:").unwrap_or(0);
        }
        let mut counts = Counts {
            voluntary: number(&self.text, b"voluntary_ctxt_switches:").unwrap_or(0),
            involuntary: number(&self.text, b"nonvoluntary_ctxt_switches:").unwrap_or(0),
            run_queue_wait: 0,
            seen: self.gone.seen,
        };
        if read(&format!("{folder}/schedstat"), &mut self.text).is_some() {
            // Time on CPU, time runnable, time slices.
            let second = self.text.split(|&byte| byte == b' ').nth(1);
            counts.run_queue_wait = second.and_then(digits).unwrap_or(0);
        }
        if let Some(before) = self.threads.insert(tid, counts)
            && before.voluntary > counts.voluntary
        {
            // The number has been given to a new thread.
            self.gone.add(before);
            self.thread_exits += 1;
        }
    }

    /// All counts so far, moving those of the threads that this look no longer saw.
    fn sum(&mut self, looked: u64) -> Counts {
        let mut live = Counts::default();
        let (gone, exits) = (&mut self.gone, &mut self.thread_exits);
        self.threads.retain(|_, counts| {
            if counts.seen == looked {
                live.add(*counts);
                true
            } else {
                gone.add(*counts);
                *exits += 1;
                false
            }
        });
        live.add(self.gone);
        live
    }
}

/// Softirq, steal and load of the whole machine.
#[must_use]
pub fn machine() -> Machine {
    let mut text = Vec::new();
    // cpu  user nice system idle iowait irq softirq steal …
    let known = read("/proc/stat", &mut text);
    let line = text.split(|&byte| byte == b'\n').next().filter(|_| known.is_some());
    let mut fields =
        line.unwrap_or_default().split(|&byte| byte == b' ').filter(|field| !field.is_empty());
    let mut ticks_at = |skipped: usize| {
        let count = fields.nth(skipped).and_then(digits).unwrap_or(0);
        Nanos(count.saturating_mul(1_000_000_000 / ticks()))
    };
    let (softirq, steal) = (ticks_at(7), ticks_at(0));
    let known = read("/proc/loadavg", &mut text);
    let load_average = known
        .and_then(|()| std::str::from_utf8(&text).ok()?.split(' ').next()?.parse().ok())
        .unwrap_or(0.0);
    Machine { softirq, steal, load_average }
}

/// A line such as `VmRSS:    7784 kB`, in bytes.
fn kilobytes(text: &[u8], label: &[u8]) -> Option<u64> {
    number(text, label).map(|kilobytes| kilobytes.saturating_mul(1024))
}

/// The number behind a label at the start of a line.
fn number(text: &[u8], label: &[u8]) -> Option<u64> {
    text.split(|&byte| byte == b'\n').find_map(|line| digits(line.strip_prefix(label)?))
}

/// The first run of digits.
fn digits(text: &[u8]) -> Option<u64> {
    let text = text.trim_ascii_start();
    let end = text.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    std::str::from_utf8(&text[..end]).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_status_are_found_by_their_whole_label() {
        let text = b"Name:\tx\nVmHWM:\t    7856 kB\nVmRSS:\t 12 kB\n\
            voluntary_ctxt_switches:\t5\nnonvoluntary_ctxt_switches:\t77\n";
        assert_eq!(kilobytes(text, b"VmHWM:"), Some(7856 * 1024));
        assert_eq!(number(text, b"voluntary_ctxt_switches:"), Some(5));
        assert_eq!(number(text, b"nonvoluntary_ctxt_switches:"), Some(77));
        assert_eq!(number(text, b"VmSwap:"), None);
    }

    #[test]
    fn switches_of_threads_that_have_exited_are_kept_and_their_exit_is_told() {
        let mut reader = Reader::new(Role::Subject, &[Pid(std::process::id())]);
        let (ask, asked) = std::sync::mpsc::channel::<()>();
        let (say, said) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            for _ in 0..100 {
                std::thread::sleep(std::time::Duration::from_micros(10));
            }
            say.send(()).unwrap();
            asked.recv().unwrap_err();
        });
        said.recv().unwrap();
        let during = reader.read(true);
        assert!(during.voluntary >= 100);
        assert!(during.threads >= 2);
        assert!(during.resident > 0 && during.peak >= during.resident);
        assert!(during.proportional.is_some_and(|bytes| bytes > 0));
        drop(ask);
        thread.join().unwrap();
        let after = reader.read(false);
        assert!(after.voluntary >= during.voluntary && after.cpu >= during.cpu);
        assert!(after.exits > during.exits);
        assert_eq!(after.proportional, None);
    }

    #[test]
    fn the_machine_has_a_load() {
        assert!(machine().load_average >= 0.0);
    }
}
