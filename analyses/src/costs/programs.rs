//! Which program made the system calls of a trace: a process can run several, one after the
//! other, and so can its children.

use std::collections::{BTreeMap, HashMap};

use assay_captures::ids::Tid;
use assay_captures::strace::{Call, Outcome, program};
use foldhash::fast::RandomState;

use super::foreign::View;
use crate::cost::Cost;
use crate::metric::Metric;

/// Programs told apart.
const PROGRAMS_LIMIT: usize = 1_000;
/// Names of calls told apart in one program.
const NAMES_LIMIT: usize = 1_000;
/// What calls are charged to that came before any `execve` of their thread.
const BEFORE: &str = "(before the first execve)";

/// Calls by program and name.
#[derive(Clone, Debug, Default)]
pub(super) struct Programs {
    /// Programs in the order of their first start.
    names: Vec<String>,
    /// What each thread runs now.
    running: HashMap<Option<Tid>, usize, RandomState>,
    /// By program: what the calls of threads are whose program is not known, first.
    calls: Vec<HashMap<String, u64, RandomState>>,
}

impl Programs {
    /// Charges a call to what its thread ran when it was entered.
    pub(super) fn call(&mut self, call: &Call<'_>) {
        // While there is one process, strace prints no pid.
        let known = self.running.get(&call.tid).or_else(|| self.running.get(&None));
        let at = known.copied().unwrap_or(0);
        if self.calls.len() <= at {
            self.calls.resize_with(at + 1, HashMap::default);
        }
        let calls = &mut self.calls[at];
        if let Some(count) = calls.get_mut(call.name) {
            *count += 1;
        } else {
            // A broken file can have any number of names.
            let name = if calls.len() < NAMES_LIMIT { call.name } else { "(more names)" };
            *calls.entry(name.to_owned()).or_default() += 1;
        }
        if let Some(started) = program(call) {
            let started = String::from_utf8_lossy(started);
            let known = self.names.iter().position(|name| *name == started);
            if known.is_none() && self.names.len() < PROGRAMS_LIMIT {
                self.names.push(started.into_owned());
            }
            let index = known.unwrap_or(self.names.len() - 1);
            self.running.insert(call.tid, index + 1);
        }
        // A child runs what its parent does until it starts something else. Its own calls can
        // stand before its parent's return; those are charged to no program.
        if let (true, Outcome::Returned { value, errno: None, .. }) =
            (forks(call.name), call.outcome)
            && let Ok(child) = u32::try_from(value)
            && at > 0
        {
            self.running.entry(Some(Tid(child))).or_insert(at);
        }
    }

    /// Calls by program and name, where the trace holds more than one program.
    pub(super) fn costs(&self, view: &View) -> Vec<Cost> {
        if self.names.len() < 2 {
            return Vec::new();
        }
        let named = self.names.iter().map(String::as_str);
        let programs = named.zip(self.calls.iter().skip(1));
        let before = self.calls.first().map(|calls| (BEFORE, calls));
        let mut costs = Vec::new();
        for (name, calls) in programs.chain(before) {
            let by_name: BTreeMap<&String, u64> = calls.iter().map(|(k, &v)| (k, v)).collect();
            let mut by_name: Vec<_> = by_name.into_iter().collect();
            by_name.sort_by_key(|&(_, count)| std::cmp::Reverse(count));
            let sum: u64 = by_name.iter().map(|&(_, count)| count).sum();
            if sum == 0 {
                continue;
            }
            costs.push(view.count(Metric::Syscalls, sum as f64).with("program", name));
            costs.extend(by_name.into_iter().take(view.top).map(|(call, count)| {
                let cost = view.count(Metric::Syscalls, count as f64);
                cost.with("program", name).with("name", call)
            }));
        }
        costs
    }
}

fn forks(name: &str) -> bool {
    matches!(name, "clone" | "clone3" | "fork" | "vfork")
}
