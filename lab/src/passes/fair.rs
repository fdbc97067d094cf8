//! The fair pass: no probe but the reading of process clocks, arms in balanced order.

use std::collections::BTreeMap;

use assay_captures::lap::ProbeState;

use super::attached::Troubles;
use super::balance;
use super::bench::{Bench, LapPlan};
use super::failure::Failure;
use super::log::LapLog;
use super::usage::UsageProbes;
use crate::experiment::plan::{Cell, PlannedPass};
use crate::ui::Progress;

/// Rounds outermost, so that a slow minute of the machine falls on every route; within a round
/// the arms of a route are neighbours.
pub(super) fn run(
    bench: &mut Bench<'_>,
    pass: &PlannedPass,
    log: &mut LapLog,
    troubles: &mut Troubles,
    progress: &Progress,
) -> Result<(), Failure> {
    let mut usage = UsageProbes::default();
    let mut started: BTreeMap<usize, u32> = BTreeMap::new();
    let mut done = Ok(());
    for (round, cell) in laps(pass) {
        if !bench.takes_part(cell.arm) {
            progress.step();
            continue;
        }
        bench.now(progress, cell);
        if pass.restart && started.insert(cell.arm, round).is_some_and(|last| last != round) {
            usage.close(bench, cell.arm, troubles);
            done = bench.restart(cell.arm);
            if done.is_err() {
                break;
            }
        }
        done = one_lap(bench, pass, cell, round, &mut usage, log, troubles);
        if done.is_err() {
            break;
        }
        progress.step();
    }
    usage.stop(bench, troubles);
    done
}

fn one_lap(
    bench: &mut Bench<'_>,
    pass: &PlannedPass,
    cell: Cell,
    round: u32,
    usage: &mut UsageProbes,
    log: &mut LapLog,
    troubles: &mut Troubles,
) -> Result<(), Failure> {
    let attached = usage.of(bench, log.pass(), cell.arm, troubles)?;
    let captures = attached.iter().map(|usage| ("usage".to_owned(), usage.folder.clone()));
    let plan = LapPlan {
        cell,
        round,
        probe: ProbeState::None,
        load: pass.load(),
        stop: pass.stop(),
        captures: captures.collect(),
        statements: false,
    };
    let mut marked: Vec<_> = attached.into_iter().map(|usage| &mut usage.session).collect();
    let driven = bench.with_arm(cell, pass, |bench| bench.lap(plan, &mut marked, log));
    let title = bench.cell_title(cell);
    match troubles.note(&title, driven)? {
        // It watches a subject that is no more.
        None => usage.give_up(cell.arm),
        Some(driven) => {
            for (_, error) in driven.failed {
                troubles.add(&title, &error);
                usage.give_up(cell.arm);
            }
        }
    }
    Ok(())
}

/// Every lap of the pass, with its round, in the order in which they are run.
fn laps(pass: &PlannedPass) -> impl Iterator<Item = (u32, Cell)> {
    let routes = arms_by_route(pass);
    (0..pass.rounds).flat_map(move |round| {
        let in_round = |(&route, arms): (&usize, &Vec<usize>)| {
            let order = balance::order(arms.len(), round);
            let cells = order.into_iter().map(|index| (round, Cell { arm: arms[index], route }));
            cells.collect::<Vec<_>>()
        };
        routes.iter().flat_map(in_round).collect::<Vec<_>>()
    })
}

/// The arms of each route, in the plan's order.
fn arms_by_route(pass: &PlannedPass) -> BTreeMap<usize, Vec<usize>> {
    let mut arms: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for cell in &pass.cells {
        arms.entry(cell.route).or_default().push(cell.arm);
    }
    arms
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::experiment::PassKind;

    #[test]
    fn each_cell_has_a_lap_in_each_round_and_arms_of_a_route_are_neighbours() {
        let cell = |route, arm| Cell { arm, route };
        let pass = PlannedPass {
            kind: PassKind::Fair,
            cells: vec![cell(0, 0), cell(0, 1), cell(1, 0), cell(1, 1), cell(2, 0)],
            rounds: 2,
            lap: Duration::ZERO,
            iterations: None,
            restart: false,
            requests: 0,
            warm_up: Duration::ZERO,
            connections: 1,
            rate: None,
            gap: Duration::ZERO,
        };
        let laps: Vec<_> = laps(&pass).map(|(round, cell)| (round, cell.route, cell.arm)).collect();
        assert_eq!(
            laps,
            [
                // round, route, arm: AB in the first round, BA in the second
                (0, 0, 0),
                (0, 0, 1),
                (0, 1, 0),
                (0, 1, 1),
                (0, 2, 0),
                (1, 0, 1),
                (1, 0, 0),
                (1, 1, 1),
                (1, 1, 0),
                (1, 2, 0),
            ]
        );
    }
}
