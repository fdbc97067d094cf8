//! A user without rights gets what can be had and is told what is lost; with the `setcap` lines
//! that the doctor prints, nothing is.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use assay::probes_build::{ProbePrograms, QUESTIONS};

use crate::guarded_run::{Tiny, services_are_installed};

/// A user who owns nothing: `nobody` on every Linux.
const NOBODY: u32 = 65_534;

/// The tiny experiment and copies of our programs, all belonging to nobody.
struct Elsewhere {
    tiny: Tiny,
}

impl Elsewhere {
    fn new(passes: &str) -> Self {
        let tiny = Tiny::built();
        tiny.change("experiment.toml", "[\"fair\", \"serial\", \"wire\"]", passes);
        let folder = tiny.path().join("bin");
        fs::create_dir(&folder).expect("a folder can be made");
        let built = Path::new(env!("CARGO_BIN_EXE_assay")).parent().expect("it lies in a folder");
        let programs = ProbePrograms::in_folder(built);
        let probes = QUESTIONS.iter().map(|question| programs.program(question));
        let assay = PathBuf::from(env!("CARGO_BIN_EXE_assay"));
        for file in probes.chain([assay, programs.allocation_counter()]) {
            let copy = folder.join(file.file_name().expect("a file has a name"));
            fs::copy(&file, &copy).expect("programs can be copied");
            fs::set_permissions(&copy, PermissionsExt::from_mode(0o755)).expect("it is ours");
        }
        give(tiny.path());
        Self { tiny }
    }

    fn assay(&self, words: &[&str]) -> Output {
        let mut command = Command::new(self.tiny.path().join("bin/assay"));
        command.args(words).uid(NOBODY).gid(NOBODY).env_remove("CARGO");
        command.env("TMPDIR", self.tiny.path().join("tmp")).current_dir(self.tiny.path());
        command.output().expect("assay starts")
    }

    fn run(&self, out: &str) -> Output {
        self.assay(&["run", "experiment.toml", "--out", out])
    }

    /// Name of each check of the doctor → what it found and the command that mends it.
    fn doctor(&self) -> BTreeMap<String, (String, String)> {
        let output = self.assay(&["doctor", "--json"]);
        let told: serde_json::Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
        let word = |check: &serde_json::Value, name: &str| {
            check[name].as_str().unwrap_or_default().to_owned()
        };
        let checks = told["checks"].as_array().expect("it lists checks").iter();
        checks.map(|c| (word(c, "what"), (word(c, "state"), word(c, "mend")))).collect()
    }

    /// Metrics of a run that have a figure, and passes with what became of them.
    fn measured(&self, run: &str) -> (Vec<String>, BTreeMap<String, String>) {
        let text = fs::read(self.tiny.path().join(run).join("results.json")).expect("results");
        let results: serde_json::Value = serde_json::from_slice(&text).expect("they are JSON");
        let costs = results["costs"].as_array().expect("costs").iter();
        let mut metrics: Vec<String> = costs
            // On a busy machine a rate is a lower bound.
            .filter(|cost| !cost["amount"].is_null())
            .map(|cost| cost["metric"].as_str().unwrap_or_default().to_owned())
            .collect();
        metrics.sort();
        metrics.dedup();
        let word = |pass: &serde_json::Value, name: &str| {
            pass[name].as_str().unwrap_or_default().to_owned()
        };
        let passes = results["experiment"]["passes"].as_array().expect("passes").iter();
        (metrics, passes.map(|pass| (word(pass, "name"), word(pass, "status"))).collect())
    }
}

/// Gives a folder and all in it to nobody.
fn give(path: &Path) {
    chown(path, Some(NOBODY), Some(NOBODY)).expect("root may give files away");
    if path.is_dir() {
        for entry in fs::read_dir(path).expect("it can be read").flatten() {
            give(&entry.path());
        }
    }
}

/// Whether rights can be dropped and given here; says so where they cannot.
fn rights_can_be_given() -> bool {
    let mut lacking = Vec::new();
    if !nix::unistd::geteuid().is_root() {
        lacking.push("this is not root");
    }
    if Command::new("/usr/sbin/setcap").arg("-h").output().is_err() {
        lacking.push("setcap is not installed; install it: apt-get install libcap2-bin");
    }
    for what in &lacking {
        let _gone = writeln!(io::stderr(), "left out: {what}");
    }
    lacking.is_empty() && services_are_installed()
}

#[test]
fn a_user_without_rights_gets_what_can_be_had_and_is_told_what_is_lost() {
    if !rights_can_be_given() {
        return;
    }
    let user = Elsewhere::new("[\"fair\", \"wire\"]");
    let output = user.run("run");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("wire: recording packets needs the right cap_net_raw"), "{said}");
    assert!(
        said.trim_end()
            .lines()
            .last()
            .is_some_and(|line| { line.starts_with("error: pass wire gave nothing") }),
        "{said}"
    );
    let (metrics, passes) = user.measured("run");
    for metric in ["throughput", "cpu.time", "context_switches", "memory.resident"] {
        assert!(metrics.iter().any(|measured| measured == metric), "{metric}: {metrics:?}");
    }
    assert_eq!(passes["fair"], "complete");
    assert_eq!(passes["wire"], "failed");
    assert!(String::from_utf8_lossy(&output.stdout).contains("throughput"));
    assert_eq!(user.doctor()["probe wire"].0, "missing");
    assert_eq!(user.assay(&["doctor", "--strict"]).status.code(), Some(1));
}

#[test]
fn the_lines_that_the_doctor_prints_give_every_probe_its_rights() {
    if !rights_can_be_given() {
        return;
    }
    let user = Elsewhere::new("[\"serial\", \"wire\", \"syscalls\", \"cpu\"]");
    for question in ["wire", "syscalls", "cpu", "usage"] {
        let mend = user.doctor()[&format!("probe {question}")].1.clone();
        let words: Vec<&str> = mend.split(' ').collect();
        let ["sudo", "setcap", rights, file] = words[..] else { panic!("{question}: {mend}") };
        let status = Command::new("/usr/sbin/setcap").args([rights, file]).status();
        assert!(status.expect("setcap starts").success(), "{mend}");
        assert_eq!(user.doctor()[&format!("probe {question}")].0, "good", "{mend}");
    }
    let output = user.run("run");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{said}");
    let (metrics, passes) = user.measured("run");
    for (pass, status) in &passes {
        assert_eq!(status, "complete", "{pass}: {said}");
    }
    for metric in ["postgres.flights", "syscalls"] {
        assert!(metrics.iter().any(|measured| measured == metric), "{metric}: {metrics:?}");
    }
    user.tiny.assert_nothing_is_left("a user's run", &[]);
}
