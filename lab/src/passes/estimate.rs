//! How long a run will take, said before it begins.

use std::time::Duration;

use super::serial;
use crate::experiment::PassKind;
use crate::experiment::plan::{Plan, PlannedPass};

/// Quiet before and after a lap, marks, and the load after an arm was let go on.
const AROUND_LAP: Duration = Duration::from_millis(60);
const RESUME: Duration = Duration::from_millis(120);
/// Requests a second of a lap that ends by their number, for lack of a better guess.
const SUPPOSED_RATE: f64 = 10_000.0;
/// A serial request beside its gap: an answer, and the timers around it.
const SERIAL_ANSWER: Duration = Duration::from_millis(2);
/// A serial request under strace.
const STRACE_ANSWER: Duration = Duration::from_millis(10);

/// How many laps a pass has, by which its progress is told.
#[must_use]
pub fn laps(pass: &PlannedPass) -> u64 {
    let cells = pass.cells.len() as u64;
    let rounds = u64::from(pass.rounds);
    match pass.kind {
        PassKind::Fair | PassKind::Allocations | PassKind::Foreign => cells * rounds,
        PassKind::Serial => cells,
        PassKind::Wire
        | PassKind::Syscalls
        | PassKind::Cpu
        | PassKind::Usage
        | PassKind::Together => 2 * cells * rounds,
    }
}

/// How long the passes of a plan will take, without what comes before them.
#[must_use]
pub fn of_plan(plan: &Plan) -> Duration {
    let passes: Duration = plan.passes.iter().map(of_pass).sum();
    // A cell is warmed up at length only once, by whichever pass has it first.
    let cells = plan.passes.iter().map(|pass| pass.cells.len()).max().unwrap_or(0);
    let warm_up = plan.passes.first().map(|pass| pass.warm_up).unwrap_or_default();
    passes + warm_up * u32::try_from(cells).unwrap_or(u32::MAX)
}

fn of_pass(pass: &PlannedPass) -> Duration {
    let cells = u32::try_from(pass.cells.len()).unwrap_or(u32::MAX);
    // How long a number of requests takes is not known before.
    let counted = |requests: u64| Duration::from_secs_f64(requests as f64 / SUPPOSED_RATE);
    let lap = pass.iterations.map_or(pass.lap, counted) + AROUND_LAP;
    match pass.kind {
        // What was started anew is warmed up anew.
        PassKind::Fair if pass.restart => cells * pass.rounds * (lap + pass.warm_up),
        PassKind::Fair => cells * pass.rounds * (lap + RESUME),
        PassKind::Serial => {
            // A third more for the empty slots.
            let slots = |requests: u32, answer: Duration| (pass.gap + answer) * (requests * 4 / 3);
            let plain = slots(pass.requests, SERIAL_ANSWER);
            let strace = slots(serial::strace_requests(pass), STRACE_ANSWER);
            cells * (plain + strace + 2 * RESUME + probe_overhead(pass.kind))
        }
        PassKind::Foreign => cells * (pass.rounds * pass.lap + probe_overhead(pass.kind)),
        PassKind::Allocations => cells * (pass.rounds * lap + pass.warm_up + RESUME),
        PassKind::Wire
        | PassKind::Syscalls
        | PassKind::Cpu
        | PassKind::Usage
        | PassKind::Together => {
            cells * (2 * pass.rounds * lap + RESUME + probe_overhead(pass.kind))
        }
    }
}

/// Starting a probe and closing its capture.
fn probe_overhead(kind: PassKind) -> Duration {
    Duration::from_millis(match kind {
        PassKind::Fair | PassKind::Allocations | PassKind::Syscalls | PassKind::Usage => 100,
        PassKind::Wire | PassKind::Together => 500,
        PassKind::Serial => 600,
        PassKind::Cpu | PassKind::Foreign => 2_000,
    })
}

/// A length of time as people say it: `about 3 min 20 s`.
#[must_use]
pub fn in_words(length: Duration) -> String {
    let seconds = length.as_secs_f64().ceil() as u64;
    match (seconds / 60, seconds % 60) {
        (0, seconds) => format!("about {seconds} s"),
        (minutes, seconds) => format!("about {minutes} min {seconds} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::plan::Cell;

    fn pass(kind: PassKind, cells: usize) -> PlannedPass {
        let standard = kind.standard(true);
        PlannedPass {
            kind,
            cells: (0..cells).map(|arm| Cell { arm, route: 0 }).collect(),
            rounds: standard.rounds,
            lap: standard.lap,
            iterations: None,
            restart: false,
            requests: standard.requests,
            warm_up: Duration::from_millis(500),
            connections: 50,
            rate: None,
            gap: Duration::from_millis(3),
        }
    }

    #[test]
    fn the_quick_plan_of_twelve_cells_is_estimated_below_four_minutes() {
        let passes = PassKind::STANDARD.into_iter().map(|kind| pass(kind, 12)).collect();
        let estimate = of_plan(&Plan { passes });
        assert!(estimate < Duration::from_secs(230), "{estimate:?}");
        assert!(estimate > Duration::from_secs(90), "{estimate:?}");
    }

    #[test]
    fn minutes_and_seconds_are_said_as_people_say_them() {
        assert_eq!(in_words(Duration::from_millis(4_200)), "about 5 s");
        assert_eq!(in_words(Duration::from_secs(200)), "about 3 min 20 s");
    }
}
