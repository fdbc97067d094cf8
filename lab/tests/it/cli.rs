//! Bad input is answered in one line that says what to do, with the right exit code.

use std::path::Path;
use std::process::{Command, Output};

use assay::probes_build::{ProbePrograms, QUESTIONS};

use crate::guarded_run::{Tiny, services_are_installed};

fn assay(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_assay")).args(words).output().expect("assay starts")
}

/// Exit code and what was said.
fn answer(output: &Output) -> (Option<i32>, String) {
    (output.status.code(), String::from_utf8_lossy(&output.stderr).trim_end().to_owned())
}

/// The last line of an answer, which says why.
fn last_line(output: &Output) -> (Option<i32>, String) {
    let (code, said) = answer(output);
    (code, said.lines().last().unwrap_or_default().to_owned())
}

#[test]
fn wrong_usage_is_one_line_and_exit_code_2() {
    let (code, said) = answer(&assay(&["run"]));
    assert_eq!(code, Some(2));
    assert_eq!(said.lines().count(), 1, "{said}");
    let (code, said) = answer(&assay(&["demmo"]));
    assert_eq!(code, Some(2));
    assert!(said.contains("unrecognized subcommand 'demmo'; tip:"), "{said}");
}

#[test]
fn help_is_a_result_and_no_command_is_wrong_usage() {
    let help = assay(&["--help"]);
    assert_eq!(help.status.code(), Some(0));
    assert!(String::from_utf8_lossy(&help.stdout).contains("assay demo"));
    assert_eq!(assay(&[]).status.code(), Some(2));
}

#[test]
fn an_experiment_that_is_wrong_starts_nothing() {
    let tiny = Tiny::new();
    tiny.change("experiment.toml", "warm_up_s", "warmup_s");
    let output = tiny.command().output().unwrap();
    let (code, said) = answer(&output);
    assert_eq!(code, Some(2));
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.contains("experiment.toml:29: unknown key `warmup_s`"), "{said}");
    assert!(said.contains("did you mean `warm_up_s`?"), "{said}");
    assert!(!tiny.run().exists());
}

#[test]
fn what_is_not_in_the_experiment_is_told_with_what_is() {
    let tiny = Tiny::new();
    let output = tiny.command().args(["--route", "pgae"]).output().unwrap();
    let said = "error: there is no route \"pgae\"; did you mean \"page\"? (there are: page)";
    assert_eq!(answer(&output), (Some(2), said.to_owned()));
}

#[test]
fn a_budget_that_cannot_be_understood_is_told_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let budget = folder.path().join("budget.toml");
    std::fs::write(&budget, "limits = [\n  \"cpu.tme <= 4\",\n]\n").unwrap();
    let budget = budget.display().to_string();
    let (code, said) = answer(&assay(&["check", "runs/x", "--budget", &budget]));
    assert_eq!(code, Some(2));
    let what = "there is no metric \"cpu.tme\"; did you mean \"cpu.time\"?";
    assert_eq!(said, format!("error: {budget}:2: {what}"));
    let (code, said) = answer(&assay(&["check", "runs/x"]));
    assert_eq!(code, Some(2));
    assert!(said.contains("give --budget FILE or --limit"), "{said}");
}

#[test]
fn a_folder_that_cannot_be_written_is_one_line_with_advice() {
    let tiny = Tiny::built();
    let experiment = tiny.path().join("experiment.toml").display().to_string();
    let (code, said) = last_line(&assay(&["run", &experiment, "--out", "/proc/none"]));
    assert_eq!(code, Some(1));
    assert!(said.starts_with("error: cannot write /proc/none: "), "{said}");
    std::fs::create_dir(tiny.run()).unwrap();
    std::fs::write(tiny.run().join("something"), "").unwrap();
    let (code, said) = last_line(&tiny.command().output().unwrap());
    assert_eq!(code, Some(1));
    assert!(said.ends_with("is not empty; give another folder to --out"), "{said}");
}

#[test]
fn a_build_that_fails_shows_its_last_lines() {
    let tiny = Tiny::new();
    tiny.change("experiment.toml", "sleep 1; exec rustc", "echo the reason >&2; exit 3; rustc");
    let (code, said) = answer(&tiny.command().output().unwrap());
    assert_eq!(code, Some(1));
    assert!(said.contains("error: building page failed (exit status: 3):\n  the reason"), "{said}");
    let reason = "building page failed (exit status: 3):";
    assert_eq!(tiny.status(), ("incomplete".to_owned(), reason.to_owned()));
}

#[test]
fn a_missing_tool_is_named_with_what_installs_it() {
    let tiny = Tiny::built();
    let output = tiny.command().env("PATH", "/nowhere").output().unwrap();
    let (code, said) = last_line(&output);
    assert_eq!(code, Some(1));
    if assay::tools::REDIS_SERVER.find().is_some() {
        assert!(said.contains("redis-server is not installed: "), "{said}");
        assert!(said.ends_with("install it: apt-get install redis-server"), "{said}");
    }
}

#[test]
fn a_subject_that_gives_up_shows_its_last_lines() {
    if !services_are_installed() {
        return;
    }
    let tiny = Tiny::built();
    tiny.change("experiment.toml", "SPAWN = 1", "FAIL = 1");
    let (code, said) = answer(&tiny.command().output().unwrap());
    assert_eq!(code, Some(1));
    let told = "page.one ended before it was ready (exit status: 7); its last lines:\n  \
                the first line of trouble\n  the last line of trouble";
    assert!(said.contains(told), "{said}");
    let reason = "page.one ended before it was ready (exit status: 7); its last lines:";
    assert_eq!(tiny.status(), ("incomplete".to_owned(), reason.to_owned()));
}

#[test]
fn a_subject_that_never_listens_is_given_up() {
    if !services_are_installed() {
        return;
    }
    let tiny = Tiny::built();
    tiny.change(
        "experiment.toml",
        "SPAWN = 1 }",
        "SLOW_S = 99 }\nready = { path = \"/\", timeout_s = 1 }",
    );
    let (code, said) = last_line(&tiny.command().output().unwrap());
    assert_eq!(code, Some(1));
    assert!(said.contains("page.one is not ready after 1s (GET / at 127.0.0.1:"), "{said}");
    assert!(said.contains("it printed nothing"), "{said}");
    assert_eq!(tiny.status().0, "incomplete");
    assert!(said.ends_with(&tiny.status().1), "{said}");
}

#[test]
fn a_postgres_that_cannot_be_reached_is_one_line() {
    let tiny = Tiny::built();
    let url = "postgres://me:secret@127.0.0.1:1/x";
    let (code, said) = last_line(&tiny.command().args(["--postgres-url", url]).output().unwrap());
    assert_eq!(code, Some(1));
    assert!(said.starts_with("error: cannot connect to postgres: "), "{said}");
    let record = std::fs::read_to_string(tiny.run().join("run.json")).unwrap();
    assert!(!record.contains("secret"), "the password was kept");
}

#[test]
fn the_doctor_names_what_each_probe_says_that_it_uses_and_needs() {
    let programs = ProbePrograms::in_folder(
        Path::new(env!("CARGO_BIN_EXE_assay")).parent().expect("a program lies in a folder"),
    );
    let doctor = assay(&["doctor", "--json"]);
    let doctor: serde_json::Value = serde_json::from_slice(&doctor.stdout).unwrap();
    for question in QUESTIONS {
        let described = Command::new(programs.program(question)).arg("--describe").output();
        let described: serde_json::Value =
            serde_json::from_slice(&described.unwrap().stdout).unwrap();
        let checks = doctor["checks"].as_array().unwrap();
        let what = format!("probe {question}");
        let check = checks.iter().find(|check| check["what"] == what.as_str()).unwrap();
        let line = check["found"].as_str().unwrap();
        for list in ["tools", "rights"] {
            for name in described[list].as_array().unwrap() {
                assert!(line.contains(name.as_str().unwrap()), "{list} of {question}: {line}");
            }
        }
    }
}

#[test]
fn the_doctor_has_json_and_the_list_of_runs_too() {
    let doctor = assay(&["doctor", "--json"]);
    let checks: serde_json::Value = serde_json::from_slice(&doctor.stdout).unwrap();
    assert!(checks["checks"].as_array().unwrap().len() > 10);
    let runs = assay(&["runs", "--json", "--folder", "/nowhere"]);
    assert_eq!(String::from_utf8_lossy(&runs.stdout), "[]\n");
}
