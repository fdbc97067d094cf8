//! What a run will do: which arm is loaded on which route in which pass, for how long.

use std::time::Duration;

use assay_captures::lap::Load;

use super::{Experiment, PassKind, PassSettings};
use crate::load::Stop;

/// One arm on one route.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cell {
    /// Index into the experiment's arms.
    pub arm: usize,
    /// Index into the experiment's routes.
    pub route: usize,
}

/// A route with its requests worked out: every parameter has its values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedRoute {
    /// Its name.
    pub name: String,
    /// HTTP method.
    pub method: String,
    /// Path template, such as `/post/{slug}`.
    pub path: String,
    /// The requests to send, in turn; never empty.
    pub targets: Vec<RequestTarget>,
    /// Whether only the status of answers is checked.
    pub answers_vary: bool,
    /// SQL statements that the page may use.
    pub query_budget: Option<u32>,
}

/// One request, ready to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestTarget {
    /// Path and query, percent-encoded.
    pub path: String,
    /// Header fields beside those that the driver sends (`host`, `content-length`).
    pub headers: Vec<(String, String)>,
    /// The body; empty for none.
    pub body: Vec<u8>,
}

/// The passes of a run, in order.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// What will be run; never empty.
    pub passes: Vec<PlannedPass>,
}

/// One pass over its cells.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedPass {
    /// Which.
    pub kind: PassKind,
    /// Its cells, routes outermost, so that arms which are compared are neighbours in time.
    pub cells: Vec<Cell>,
    /// Laps of each cell. A pass with a probe takes each of them twice: probe on, probe off.
    pub rounds: u32,
    /// Length of a lap under load.
    pub lap: Duration,
    /// Requests of a lap under load, instead of its length.
    pub iterations: Option<u64>,
    /// Whether every arm is started anew for each round: the layout of a start moves results.
    pub restart: bool,
    /// Requests of a serial lap.
    pub requests: u32,
    /// Load before the first lap of a cell.
    pub warm_up: Duration,
    /// Connections of the closed load.
    pub connections: u32,
    /// Requests a second, started on a schedule; `None` for closed load.
    pub rate: Option<u32>,
    /// How long the service's connections must be quiet before the next serial request.
    pub gap: Duration,
}

impl PlannedPass {
    /// When a lap under load ends.
    #[must_use]
    pub fn stop(&self) -> Stop {
        self.iterations.map_or(Stop::After(self.lap), Stop::Requests)
    }

    /// How requests are sent in laps under load.
    #[must_use]
    pub fn load(&self) -> Load {
        let connections = self.connections;
        match self.rate {
            None => Load::Closed { connections },
            Some(rate) => Load::FixedRate { connections, rate: rate.into() },
        }
    }
}

/// What the command line narrows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    /// Only these subjects, or `subject.variant`; empty for all, or for those of the short plan.
    pub only: Vec<String>,
    /// Only these routes; empty for all.
    pub routes: Vec<String>,
    /// Only these passes; empty for the experiment's.
    pub passes: Vec<String>,
    /// The short plan of the experiment's `[quick]`.
    pub quick: bool,
    /// More rounds, and every arm started anew for each.
    pub rigorous: bool,
    /// Laps of each cell of the fair pass, instead of the experiment's.
    pub rounds: Option<u32>,
    /// Length of laps under load, instead of the experiment's.
    pub lap: Option<Duration>,
}

/// Rounds of the fair pass of a rigorous run, where nothing else is said.
const RIGOROUS_ROUNDS: u32 = 10;

/// Why a plan cannot be made: one line, fit to follow `cannot plan the run: `.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PlanError(pub String);

impl Plan {
    /// Lays out the run of `experiment`, narrowed by `choice`.
    pub fn make(experiment: &Experiment, choice: &Choice) -> Result<Self, PlanError> {
        let arms = chosen_arms(experiment, choice)?;
        let routes = chosen_routes(experiment, &choice.routes)?;
        let kinds = chosen_passes(experiment, choice)?;
        let cells = cells(experiment, &arms, &routes, choice.quick);
        let passes = kinds
            .into_iter()
            .map(|kind| planned_pass(experiment, kind, cells.clone(), choice))
            .collect();
        Ok(Self { passes })
    }

    /// The arms that any pass uses, ascending.
    #[must_use]
    pub fn arms(&self) -> Vec<usize> {
        self.used(|cell| cell.arm)
    }

    /// The routes that any pass uses, ascending.
    #[must_use]
    pub fn routes(&self) -> Vec<usize> {
        self.used(|cell| cell.route)
    }

    fn used(&self, of: impl Fn(&Cell) -> usize) -> Vec<usize> {
        let mut indices: Vec<usize> =
            self.passes.iter().flat_map(|pass| pass.cells.iter().map(&of)).collect();
        indices.sort_unstable();
        indices.dedup();
        indices
    }
}

fn planned_pass(
    experiment: &Experiment,
    kind: PassKind,
    cells: Vec<Cell>,
    choice: &Choice,
) -> PlannedPass {
    let quick = choice.quick;
    let full = experiment.passes.of(kind);
    let settings: PassSettings =
        if quick { experiment.quick.passes.of(kind).or(full) } else { full };
    let standard = kind.standard(quick);
    let load = &experiment.load;
    let fair = kind == PassKind::Fair;
    let unsaid = if fair && choice.rigorous { RIGOROUS_ROUNDS } else { standard.rounds };
    let rounds = if fair { choice.rounds } else { None };
    PlannedPass {
        kind,
        cells,
        rounds: rounds.or(settings.rounds).unwrap_or(unsaid),
        lap: choice.lap.or(settings.lap).unwrap_or(standard.lap),
        iterations: settings.iterations.filter(|_| choice.lap.is_none()),
        restart: fair && choice.rigorous,
        requests: settings.requests.unwrap_or(standard.requests),
        warm_up: if quick {
            experiment.quick.warm_up.unwrap_or(load.warm_up)
        } else {
            load.warm_up
        },
        connections: load.connections,
        rate: None,
        gap: load.gap,
    }
}

/// Routes outermost; in a quick run, routes that are not named in `every_variant_on` get the
/// first chosen arm of each subject alone.
fn cells(experiment: &Experiment, arms: &[usize], routes: &[usize], quick: bool) -> Vec<Cell> {
    let mut cells = Vec::new();
    for &route in routes {
        let every = !quick || experiment.quick.every_variant_on.contains(&route);
        let mut seen = Vec::new();
        for &arm in arms {
            let subject = experiment.arms[arm].subject;
            if every || !seen.contains(&subject) {
                seen.push(subject);
                cells.push(Cell { arm, route });
            }
        }
    }
    cells
}

fn chosen_arms(experiment: &Experiment, choice: &Choice) -> Result<Vec<usize>, PlanError> {
    let only = &choice.only;
    let quick = &experiment.quick.subjects;
    let unsaid = |index: usize| {
        !choice.quick || quick.is_empty() || quick.contains(&experiment.arms[index].subject)
    };
    let names: Vec<(String, String)> = experiment
        .arms
        .iter()
        .map(|arm| {
            let subject = experiment.subjects[arm.subject].name.clone();
            let full = format!("{subject}.{}", arm.variant.name);
            (subject, full)
        })
        .collect();
    for wanted in only {
        if !names.iter().any(|(subject, full)| wanted == subject || wanted == full) {
            let known = names.iter().map(|(_, full)| full.as_str());
            return Err(unknown("subject or subject.variant", wanted, known));
        }
    }
    Ok((0..names.len())
        .filter(|&index| {
            let (subject, full) = &names[index];
            if experiment.copy == Some(index) {
                true
            } else if only.is_empty() {
                unsaid(index)
            } else {
                only.contains(subject) || only.contains(full)
            }
        })
        .collect())
}

fn chosen_routes(experiment: &Experiment, wanted: &[String]) -> Result<Vec<usize>, PlanError> {
    let known = || experiment.routes.iter().map(|route| route.name.as_str());
    for name in wanted {
        if !known().any(|known| known == name) {
            return Err(unknown("route", name, known()));
        }
    }
    Ok((0..experiment.routes.len())
        .filter(|&index| wanted.is_empty() || wanted.contains(&experiment.routes[index].name))
        .collect())
}

fn chosen_passes(experiment: &Experiment, choice: &Choice) -> Result<Vec<PassKind>, PlanError> {
    let wanted = &choice.passes;
    for name in wanted {
        if PassKind::from_word(name).is_none() {
            return Err(unknown("pass", name, PassKind::ALL.iter().map(|kind| kind.word())));
        }
    }
    let run = if choice.quick { &experiment.quick.passes.run } else { &experiment.passes.run };
    Ok(PassKind::ALL
        .into_iter()
        .filter(|kind| {
            if wanted.is_empty() {
                run.contains(kind)
            } else {
                wanted.iter().any(|name| name == kind.word())
            }
        })
        .collect())
}

fn unknown<'a>(what: &str, name: &str, known: impl Iterator<Item = &'a str>) -> PlanError {
    let known: Vec<&str> = known.collect();
    let near = super::nearest(name, known.iter().copied());
    let hint = near.map_or(String::new(), |near| format!("; did you mean {near:?}?"));
    PlanError(format!("there is no {what} {name:?}{hint} (there are: {})", known.join(", ")))
}
