//! However a run dies, and at whatever stage: no process, no shared memory and no temporary
//! directory stays, and what was recorded says that it is not whole.

use std::os::unix::process::ExitStatusExt;

use nix::sys::signal::Signal;

use crate::guarded_run::{Tiny, Watched, services_are_installed};

/// Who is hit, by what.
#[derive(Clone, Copy, Debug)]
enum Fault {
    /// Ctrl-C, as the terminal sends it.
    Interrupt,
    /// SIGKILL of the process that the user started.
    KillFront,
    /// SIGKILL of the process that does the work.
    KillWorker,
    /// SIGKILL of the process that clears up.
    KillGuardian,
}

const FAULTS: [Fault; 4] =
    [Fault::Interrupt, Fault::KillFront, Fault::KillWorker, Fault::KillGuardian];

/// Starts a run, waits until it says `stage`, and lets each fault happen in turn.
pub(crate) fn survives(stage: &str, tiny: impl Fn() -> Tiny) {
    if !services_are_installed() {
        return;
    }
    for fault in FAULTS {
        one(fault, stage, &tiny());
    }
}

fn one(fault: Fault, stage: &str, tiny: &Tiny) {
    let what = format!("{fault:?} at {stage:?}");
    let mut run = Watched::start(tiny.command());
    run.wait_for(stage);
    let creators = run.everyone();
    tiny.assert_something_is_there(&what);
    match fault {
        Fault::Interrupt => run.send(run.front_pid(), Signal::SIGINT),
        Fault::KillFront => run.send(run.front_pid(), Signal::SIGKILL),
        Fault::KillWorker => run.send(run.worker(), Signal::SIGKILL),
        Fault::KillGuardian => run.send(run.guardian(), Signal::SIGKILL),
    }
    let (status, said) = run.end();
    tiny.assert_nothing_is_left(&what, &creators);
    let (record, reason) = tiny.status();
    match fault {
        Fault::Interrupt => assert_eq!(status.code(), Some(130), "{what}: {said}"),
        Fault::KillFront => assert_eq!(status.signal(), Some(9), "{what}: {said}"),
        Fault::KillWorker | Fault::KillGuardian => {
            assert_eq!(status.code(), Some(1), "{what}: {said}");
        }
    }
    match fault {
        // Nobody was left to write more than the beginning.
        Fault::KillWorker => assert_eq!(record, "recording", "{what}"),
        _ => assert_eq!((&*record, &*reason), ("incomplete", "interrupted"), "{what}"),
    }
}

#[test]
fn nothing_is_left_of_a_run_that_dies_while_it_builds() {
    survives("build page …", Tiny::new);
}

#[test]
fn nothing_is_left_of_a_run_that_dies_while_services_start() {
    survives("start postgres …", Tiny::built);
}

#[test]
fn nothing_is_left_of_a_run_that_dies_while_it_seeds() {
    survives("seed postgres …", || {
        let tiny = Tiny::built();
        tiny.change("seed.sql", "pg_sleep(0)", "pg_sleep(60)");
        tiny
    });
}

#[test]
fn nothing_is_left_of_a_run_that_dies_while_subjects_start() {
    survives("start …", || {
        let tiny = Tiny::built();
        tiny.change("experiment.toml", "SPAWN = 1", "SPAWN = 1, SLOW_S = 20");
        tiny
    });
}

#[test]
fn nothing_is_left_of_a_run_that_dies_under_load() {
    survives("fair …", || {
        let tiny = Tiny::built();
        tiny.change("experiment.toml", "lap_s = 0.4", "lap_s = 20");
        tiny
    });
}

#[test]
fn nothing_is_left_of_a_run_that_dies_while_a_probe_records() {
    survives("wire …", || {
        let tiny = Tiny::built();
        tiny.change("experiment.toml", "[\"fair\", \"serial\", \"wire\"]", "[\"wire\"]");
        tiny.change("experiment.toml", "rounds = 2, lap_s = 0.4", "rounds = 2, lap_s = 20");
        tiny
    });
}

#[test]
fn a_run_that_reaches_its_end_leaves_nothing_and_says_complete() {
    if !services_are_installed() {
        return;
    }
    let tiny = Tiny::built();
    let mut run = Watched::start(tiny.command());
    run.wait_for("fair …");
    let creators = run.everyone();
    let (status, said) = run.end();
    assert_eq!(status.code(), Some(0), "{said}");
    assert_eq!(tiny.status().0, "complete");
    tiny.assert_nothing_is_left("a whole run", &creators);
}

#[test]
fn a_folder_that_a_dead_run_left_is_swept_by_the_next() {
    if !services_are_installed() {
        return;
    }
    let tiny = Tiny::built();
    let mut run = Watched::start(tiny.command());
    run.wait_for("seed postgres …");
    let creators = run.everyone();
    let all = [run.guardian(), run.worker(), run.front_pid()];
    // Stopped first, so that none of them sees another one go.
    for signal in [Signal::SIGSTOP, Signal::SIGKILL] {
        for pid in all {
            run.send(pid, signal);
        }
    }
    run.end();
    assert!(std::fs::read_dir(tiny.path().join("tmp")).unwrap().next().is_some());
    std::fs::remove_dir_all(tiny.run()).unwrap();
    tiny.change("experiment.toml", "[\"fair\", \"serial\", \"wire\"]", "[\"fair\"]");
    let (status, said) = Watched::start(tiny.command()).end();
    assert_eq!(status.code(), Some(0), "{said}");
    tiny.assert_nothing_is_left("swept", &creators);
}
