//! Adds a profile up: what each function costs by itself and with all it calls.

use std::collections::BTreeMap;

use crate::callgrind::inclusive::{Cycles, Edge, Inclusive, inclusive};
use crate::callgrind::model::{Derived, Function, FunctionId, Record};
use crate::callgrind::names::NumberMap;
use crate::parsed::{Place, Problem, Sink};

/// How many problems are kept word for word.
const PROBLEMS_KEPT: usize = 100;

/// A part of the file: one dump, or one thread's share of it. Costs are per event of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// What the lines of this part add up to.
    pub lines: Vec<u64>,
    /// What its head claims, if it does.
    pub summary: Option<Vec<u64>>,
    /// What its end claims, if it does.
    pub totals: Option<Vec<u64>>,
    /// The thread that it is of, where the file says.
    pub thread: Option<String>,
}

/// The total of one event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Total {
    /// What the tool says that was spent; at least what the lines add up to.
    pub spent: u64,
    /// What the lines add up to, and so what functions can be charged with.
    pub lines: u64,
}

/// What one function costs, per event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionCosts {
    /// Which.
    pub function: Function,
    /// Its own lines.
    pub own: Vec<u64>,
    /// With all it calls.
    pub inclusive: Vec<Inclusive>,
    /// How often it was called.
    pub calls: u64,
}

/// The sums of a whole file, all its parts together.
#[derive(Default)]
pub struct Profile {
    /// Head lines by key: `creator`, `cmd`, `pid`, …; of repeated ones the last.
    pub headers: BTreeMap<String, String>,
    /// What could not be understood, the first hundred.
    pub problems: Vec<Problem>,
    /// Lines whose cost was refused, the first hundred: with any, no total can be given.
    pub refused: Vec<Place>,
    /// Events that are computed from others.
    pub derived: Vec<Derived>,
    events: Vec<String>,
    /// Which event of the file each column of the current part is.
    columns: Vec<usize>,
    parts: Vec<Part>,
    functions: Vec<Function>,
    own: Vec<Vec<u64>>,
    calls: NumberMap<(u32, u32), usize>,
    call_sums: Vec<CallSum>,
}

struct CallSum {
    caller: u32,
    callee: u32,
    count: u64,
    costs: Vec<u64>,
}

impl Profile {
    /// Names of the events that were counted.
    #[must_use]
    pub fn events(&self) -> &[String] {
        &self.events
    }

    /// The parts of the file that hold anything.
    pub fn parts(&self) -> impl Iterator<Item = &Part> {
        let says = |part: &&Part| {
            !part.lines.is_empty() || part.summary.is_some() || part.totals.is_some()
        };
        self.parts.iter().filter(says)
    }

    /// The total of an event over all parts. The head's claim counts what was spent outside of
    /// any function too; where it is missing or 0 (collection was switched off at the end) the
    /// claim at the end stands; and no total is less than its lines.
    #[must_use]
    pub fn total(&self, event: usize) -> Total {
        let mut total = Total { spent: 0, lines: 0 };
        for part in &self.parts {
            let lines = at(&part.lines, event);
            let claim = |claim: &Option<Vec<u64>>| {
                claim.as_deref().map(|costs| at(costs, event)).filter(|&cost| cost > 0)
            };
            let claimed = claim(&part.summary).or(claim(&part.totals)).unwrap_or(0);
            total.lines = total.lines.saturating_add(lines);
            total.spent = total.spent.saturating_add(claimed.max(lines));
        }
        total
    }

    /// Whether a part that valgrind wrote lacks its end: the file was cut.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        let valgrind = self.headers.get("creator").is_some_and(|by| by.starts_with("callgrind-"));
        valgrind && self.parts().any(|part| part.totals.is_none())
    }

    /// The total of a derived event; `None` when it is made of events that were not counted.
    #[must_use]
    pub fn derived_total(&self, derived: &Derived) -> Option<u64> {
        derived.terms.iter().try_fold(0_u64, |sum, term| {
            let event = self.events.iter().position(|name| *name == term.event)?;
            let cost = self.total(event).spent.saturating_mul(term.factor);
            Some(sum.saturating_add(cost))
        })
    }

    /// What every function costs, in order of appearance.
    #[must_use]
    pub fn functions(&self) -> Vec<FunctionCosts> {
        let edge = |(costs, call): (usize, &CallSum)| Edge {
            caller: call.caller as usize,
            callee: call.callee as usize,
            costs,
        };
        let edges: Vec<Edge> = self.call_sums.iter().enumerate().map(edge).collect();
        let cycles = Cycles::find(self.functions.len(), &edges);
        let per_event: Vec<Vec<Inclusive>> = (0..self.events.len())
            .map(|event| {
                inclusive(
                    &cycles,
                    &edges,
                    |function| at(&self.own[function], event),
                    |costs| at(&self.call_sums[costs].costs, event),
                    self.total(event).lines,
                )
            })
            .collect();
        let mut called = vec![0_u64; self.functions.len()];
        for call in &self.call_sums {
            let count = &mut called[call.callee as usize];
            *count = count.saturating_add(call.count);
        }
        let costs = |(index, function): (usize, &Function)| FunctionCosts {
            function: function.clone(),
            own: (0..self.events.len()).map(|event| at(&self.own[index], event)).collect(),
            inclusive: per_event.iter().map(|functions| functions[index]).collect(),
            calls: called[index],
        };
        self.functions.iter().enumerate().map(costs).collect()
    }

    fn part(&mut self) -> &mut Part {
        if self.parts.is_empty() {
            self.parts.push(Part::default());
        }
        let last = self.parts.len() - 1;
        &mut self.parts[last]
    }

    fn set_events(&mut self, names: &[String]) {
        self.columns.clear();
        for name in names {
            let known = self.events.iter().position(|event| event == name);
            let index = known.unwrap_or_else(|| {
                self.events.push(name.clone());
                self.events.len() - 1
            });
            self.columns.push(index);
        }
    }

    fn in_order(&self, costs: &[u64]) -> Vec<u64> {
        let mut ordered = Vec::new();
        add(&mut ordered, &self.columns, costs);
        ordered
    }
}

fn at(costs: &[u64], event: usize) -> u64 {
    costs.get(event).copied().unwrap_or(0)
}

fn add(sums: &mut Vec<u64>, columns: &[usize], costs: &[u64]) {
    for (&column, &cost) in columns.iter().zip(costs) {
        if sums.len() <= column {
            sums.resize(column + 1, 0);
        }
        sums[column] = sums[column].saturating_add(cost);
    }
}

impl Sink<Record<'_>> for Profile {
    fn record(&mut self, record: Record<'_>) {
        match record {
            Record::Header { key, value } => {
                if key == "thread" {
                    self.part().thread = Some(value.to_owned());
                }
                self.headers.insert(key.to_owned(), value.to_owned());
            }
            Record::Part => self.parts.push(Part::default()),
            Record::Events(names) => self.set_events(names),
            Record::Derived(derived) => {
                if !self.derived.contains(&derived) {
                    self.derived.push(derived);
                }
            }
            Record::Function { function, .. } => {
                self.functions.push(function);
                self.own.push(Vec::new());
            }
            Record::Cost { function: FunctionId(function), costs, .. } => {
                self.part();
                let last = self.parts.len() - 1;
                add(&mut self.parts[last].lines, &self.columns, costs);
                add(&mut self.own[function as usize], &self.columns, costs);
            }
            Record::Call { caller, callee, count, costs } => {
                self.part();
                let next = self.call_sums.len();
                let index = *self.calls.entry((caller.0, callee.0)).or_insert(next);
                if index == next {
                    let (caller, callee) = (caller.0, callee.0);
                    self.call_sums.push(CallSum { caller, callee, count: 0, costs: Vec::new() });
                }
                let sum = &mut self.call_sums[index];
                sum.count = sum.count.saturating_add(count);
                add(&mut sum.costs, &self.columns, costs);
            }
            Record::Summary(costs) => {
                let costs = self.in_order(costs);
                self.part().summary = Some(costs);
            }
            Record::Totals(costs) => {
                let costs = self.in_order(costs);
                self.part().totals = Some(costs);
            }
            Record::Refused(place) => {
                if self.refused.len() < PROBLEMS_KEPT {
                    self.refused.push(place);
                }
            }
        }
    }

    fn problem(&mut self, problem: Problem) {
        if self.problems.len() < PROBLEMS_KEPT {
            self.problems.push(problem);
        }
    }
}
