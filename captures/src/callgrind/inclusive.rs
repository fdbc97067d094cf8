//! What a function costs together with all it calls.
//!
//! A profile has no stacks, only sums per caller and callee. Outside of cycles the inclusive cost
//! is exact: own cost plus the calls that leave. In a cycle the costs of inner calls are held by
//! outer ones already, so adding them up would count time several times; there only bounds can be
//! told, except for a function through which the whole cycle is entered.

/// An inclusive cost, or the bounds that it lies between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inclusive {
    /// Known.
    Exact(u64),
    /// The function is part of a cycle of several functions.
    Between {
        /// Own cost and the calls that leave the cycle, or what calls from outside cost.
        least: u64,
        /// What the whole cycle costs.
        most: u64,
    },
}

impl Inclusive {
    /// The cost, or the least that it can be.
    #[must_use]
    pub fn least(self) -> u64 {
        match self {
            Self::Exact(cost) | Self::Between { least: cost, .. } => cost,
        }
    }

    fn at_most(self, total: u64) -> Self {
        match self {
            Self::Exact(cost) => Self::Exact(cost.min(total)),
            Self::Between { least, most } if least.min(total) == most.min(total) => {
                Self::Exact(most.min(total))
            }
            Self::Between { least, most } => {
                Self::Between { least: least.min(total), most: most.min(total) }
            }
        }
    }
}

/// Calls between two functions, by their indexes, and where their costs are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edge {
    pub(super) caller: usize,
    pub(super) callee: usize,
    /// Index of the call's costs.
    pub(super) costs: usize,
}

/// Which cycle each function belongs to.
pub(super) struct Cycles {
    of: Vec<usize>,
    sizes: Vec<usize>,
}

impl Cycles {
    /// Finds the strongly connected components (Tarjan 1972, without recursion: a call graph can
    /// be deeper than our own stack).
    pub(super) fn find(functions: usize, edges: &[Edge]) -> Self {
        let mut starts = vec![0; functions + 1];
        for edge in edges {
            starts[edge.caller + 1] += 1;
        }
        for index in 0..functions {
            starts[index + 1] += starts[index];
        }
        let mut next = starts.clone();
        let mut callees = vec![0; edges.len()];
        for edge in edges {
            callees[next[edge.caller]] = edge.callee;
            next[edge.caller] += 1;
        }
        let mut search = Search {
            starts,
            callees,
            order: vec![UNSEEN; functions],
            low: vec![0; functions],
            found: Self { of: vec![UNSEEN; functions], sizes: Vec::new() },
            open: Vec::new(),
            seen: 0,
        };
        for function in 0..functions {
            if search.order[function] == UNSEEN {
                search.from(function);
            }
        }
        search.found
    }
}

const UNSEEN: usize = usize::MAX;

struct Search {
    /// Where each caller's callees start in `callees`.
    starts: Vec<usize>,
    callees: Vec<usize>,
    order: Vec<usize>,
    low: Vec<usize>,
    found: Cycles,
    open: Vec<usize>,
    seen: usize,
}

impl Search {
    fn enter(&mut self, function: usize, path: &mut Vec<(usize, usize)>) {
        self.order[function] = self.seen;
        self.low[function] = self.seen;
        self.seen += 1;
        self.open.push(function);
        path.push((function, self.starts[function]));
    }

    fn from(&mut self, root: usize) {
        let mut path = Vec::new();
        self.enter(root, &mut path);
        while let Some((function, edge)) = path.last_mut() {
            let function = *function;
            if *edge < self.starts[function + 1] {
                let callee = self.callees[*edge];
                *edge += 1;
                if self.order[callee] == UNSEEN {
                    self.enter(callee, &mut path);
                } else if self.found.of[callee] == UNSEEN {
                    self.low[function] = self.low[function].min(self.order[callee]);
                }
                continue;
            }
            path.pop();
            if let Some(&(caller, _)) = path.last() {
                self.low[caller] = self.low[caller].min(self.low[function]);
            }
            if self.low[function] == self.order[function] {
                self.close(function);
            }
        }
    }

    fn close(&mut self, function: usize) {
        let cycle = self.found.sizes.len();
        let mut size = 0;
        while let Some(member) = self.open.pop() {
            self.found.of[member] = cycle;
            size += 1;
            if member == function {
                break;
            }
        }
        self.found.sizes.push(size);
    }
}

/// The inclusive cost of every function for one event. `own(function)` and `call(costs)` give
/// that event's costs, `total` is what all functions cost together.
pub(super) fn inclusive(
    cycles: &Cycles,
    edges: &[Edge],
    own: impl Fn(usize) -> u64,
    call: impl Fn(usize) -> u64,
    total: u64,
) -> Vec<Inclusive> {
    let functions = cycles.of.len();
    let mut leaving: Vec<u64> = (0..functions).map(&own).collect();
    let mut entering = vec![0_u64; functions];
    let mut entries = vec![Entry::None; cycles.sizes.len()];
    for edge in edges {
        let cycle = cycles.of[edge.callee];
        if cycles.of[edge.caller] != cycle {
            let cost = call(edge.costs);
            leaving[edge.caller] = leaving[edge.caller].saturating_add(cost);
            entering[edge.callee] = entering[edge.callee].saturating_add(cost);
            entries[cycle] = entries[cycle].and(edge.callee);
        }
    }
    let mut whole = vec![0_u64; cycles.sizes.len()];
    for (function, &cost) in leaving.iter().enumerate() {
        let cycle = &mut whole[cycles.of[function]];
        *cycle = cycle.saturating_add(cost);
    }
    let cost = |function: usize| {
        let cycle = cycles.of[function];
        if cycles.sizes[cycle] == 1 || entries[cycle] == Entry::One(function) {
            Inclusive::Exact(whole[cycle])
        } else {
            let least = leaving[function].max(entering[function]).min(whole[cycle]);
            Inclusive::Between { least, most: whole[cycle] }
        }
    };
    (0..functions).map(|function| cost(function).at_most(total)).collect()
}

/// How a cycle is entered from outside.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Entry {
    None,
    One(usize),
    Several,
}

impl Entry {
    fn and(self, function: usize) -> Self {
        match self {
            Self::None => Self::One(function),
            Self::One(other) if other == function => self,
            _ => Self::Several,
        }
    }
}
