//! The runs that a calibration is made of: several loads, one process and several.

use std::time::Duration;

use anyhow::{Result, anyhow};

use crate::experiment::plan::{Cell, Plan, PlannedPass};
use crate::experiment::{Experiment, PassKind};

/// One run.
#[derive(Clone, Debug)]
pub struct Stage {
    /// Names its folder.
    pub name: &'static str,
    /// For the person who waits.
    pub title: &'static str,
    /// Under which load and by how many processes, as tables say it.
    pub condition: &'static str,
    /// What it is for.
    pub purpose: Purpose,
    /// Connections that are kept open.
    pub connections: u32,
    /// What is run.
    pub plan: Plan,
}

/// What a stage is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Figures against the truth.
    Figures,
    /// Shares of CPU samples.
    Shares,
    /// What probes cost.
    Costs,
}

/// What is measured on which routes.
type Passes = &'static [(PassKind, &'static [&'static str])];

/// A stage before its experiment is known.
struct Order {
    name: &'static str,
    title: &'static str,
    condition: &'static str,
    purpose: Purpose,
    arm: &'static str,
    connections: u32,
    rate: Option<u32>,
    passes: Passes,
    /// Whether the short calibration has it.
    quick: bool,
}

const ONE_AT_A_TIME: (PassKind, &[&str]) =
    (PassKind::Serial, &["postgres", "prepares", "redis", "calls"]);
const CLOCKS: (PassKind, &[&str]) = (PassKind::Fair, &["burn", "switches", "sleep"]);
const WIRE: (PassKind, &[&str]) = (PassKind::Wire, &["postgres", "prepares", "redis", "nothing"]);
const CALLS: (PassKind, &[&str]) = (PassKind::Syscalls, &["calls", "postgres", "switches"]);
const HEAP: (PassKind, &[&str]) = (PassKind::Allocations, &["heap"]);
const ALL: Passes = &[CLOCKS, ONE_AT_A_TIME, WIRE, CALLS, HEAP];
const LOADED: Passes = &[CLOCKS, WIRE, CALLS, HEAP];
const PAGE: &[&str] = &["page"];

const ORDERS: [Order; 6] = [
    Order {
        name: "one-connection",
        title: "figures, on one connection",
        condition: "1 connection, 1 process",
        purpose: Purpose::Figures,
        arm: "one",
        connections: 1,
        rate: None,
        passes: ALL,
        quick: true,
    },
    Order {
        name: "eight-connections",
        title: "figures, on eight connections",
        condition: "8 connections, 1 process",
        purpose: Purpose::Figures,
        arm: "one",
        connections: 8,
        rate: None,
        passes: LOADED,
        quick: false,
    },
    Order {
        name: "three-processes",
        title: "figures, on 32 connections to three processes",
        condition: "32 connections, 3 processes",
        purpose: Purpose::Figures,
        arm: "three",
        connections: 32,
        rate: None,
        passes: LOADED,
        quick: true,
    },
    Order {
        name: "fixed-rate",
        title: "figures, at a fixed rate to three processes",
        condition: "200 requests/s, 3 processes",
        purpose: Purpose::Figures,
        arm: "three",
        connections: 16,
        rate: Some(200),
        passes: LOADED,
        quick: false,
    },
    Order {
        name: "shares",
        title: "shares of CPU samples, in twenty recordings",
        condition: "2 connections, 1 process",
        purpose: Purpose::Shares,
        arm: "one",
        connections: 2,
        rate: None,
        passes: &[(PassKind::Cpu, &["burn"])],
        quick: true,
    },
    Order {
        name: "costs",
        title: "what each probe costs the service",
        condition: "8 connections, 1 process",
        purpose: Purpose::Costs,
        arm: "one",
        connections: 8,
        rate: None,
        passes: &[
            (PassKind::Wire, PAGE),
            (PassKind::Syscalls, PAGE),
            (PassKind::Usage, PAGE),
            (PassKind::Cpu, PAGE),
            (PassKind::Together, PAGE),
        ],
        quick: true,
    },
];

/// Names of all stages.
pub fn names() -> impl Iterator<Item = &'static str> {
    ORDERS.iter().map(|order| order.name)
}

/// The stages of a calibration with this experiment; those in `only`, where it names any.
pub fn all(experiment: &Experiment, quick: bool, only: &[String]) -> Result<Vec<Stage>> {
    let wanted = ORDERS.iter().filter(|order| {
        if only.is_empty() {
            order.quick || !quick
        } else {
            only.iter().any(|name| name == order.name)
        }
    });
    wanted.map(|order| stage(order, experiment, quick)).collect()
}

fn stage(order: &Order, experiment: &Experiment, quick: bool) -> Result<Stage> {
    let arm = experiment.arms.iter().position(|arm| arm.variant.name == order.arm);
    let arm = arm.ok_or_else(|| anyhow!("the experiment has no variant {:?}", order.arm))?;
    let cells = |routes: &[&str]| -> Result<Vec<Cell>> {
        let find = |name: &&str| {
            let route = experiment.routes.iter().position(|route| route.name == **name);
            let route = route.ok_or_else(|| anyhow!("the experiment has no route {name:?}"))?;
            Ok(Cell { arm, route })
        };
        routes.iter().map(find).collect()
    };
    let passes = order.passes.iter().map(|&(kind, routes)| {
        let (rounds, lap) = lengths(order.purpose, kind, quick);
        Ok(PlannedPass {
            kind,
            cells: cells(routes)?,
            rounds,
            lap,
            iterations: None,
            restart: false,
            requests: if quick { 50 } else { 200 },
            warm_up: experiment.load.warm_up,
            connections: order.connections,
            rate: order.rate,
            gap: experiment.load.gap,
        })
    });
    Ok(Stage {
        name: order.name,
        title: order.title,
        condition: order.condition,
        purpose: order.purpose,
        connections: order.connections,
        plan: Plan { passes: passes.collect::<Result<_>>()? },
    })
}

/// Rounds, and the length of a lap.
fn lengths(purpose: Purpose, kind: PassKind, quick: bool) -> (u32, Duration) {
    let (rounds, milliseconds) = match (purpose, kind, quick) {
        (Purpose::Figures, PassKind::Fair, false) => (4, 1_000),
        (Purpose::Figures, _, false) => (2, 500),
        (Purpose::Figures, _, true) => (2, 300),
        // One round is one recording.
        (Purpose::Shares, _, false) => (assay_analyses::calibration::RUNS, 1_000),
        (Purpose::Shares, _, true) => (assay_analyses::calibration::RUNS, 700),
        (Purpose::Costs, _, false) => (40, 500),
        (Purpose::Costs, _, true) => (10, 300),
    };
    (rounds, Duration::from_millis(milliseconds))
}
