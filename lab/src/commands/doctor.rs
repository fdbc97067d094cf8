//! `assay doctor`: what is there, what each missing piece costs, and the command that gets it.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use anyhow::Result;
use nix::unistd::Uid;
use serde::{Deserialize, Serialize};

use crate::cli::DoctorArgs;
use crate::exit::Exit;
use crate::machine::{self, Steal};
use crate::probes_build::{ProbePrograms, QUESTIONS};
use crate::tools::{CARGO, INITDB, PERF, POSTGRES, REDIS_SERVER, STRACE, Tool, VALGRIND};
use crate::ui::{Ui, printable};

/// Steal is looked at for this long.
const LOOK: Duration = Duration::from_millis(300);
/// More stolen time than this share makes figures noisy.
const STEAL_NOISY: f64 = 0.02;

/// How a piece was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum State {
    /// There.
    Good,
    /// Runs go on without it, and lose what `cost` says.
    Missing,
    /// `assay demo` cannot run without it.
    Required,
    /// There, and makes figures noisy or harder to read.
    Doubtful,
}

/// One line of the examination.
#[derive(Clone, Debug, Serialize)]
struct Check {
    what: String,
    state: State,
    found: String,
    /// What is lost; empty when nothing is.
    cost: String,
    /// The command that mends it; empty when there is none.
    mend: String,
}

impl Check {
    fn good(what: &str, found: impl Into<String>) -> Self {
        let (cost, mend) = (String::new(), String::new());
        Self { what: what.to_owned(), state: State::Good, found: found.into(), cost, mend }
    }

    fn bad(what: &str, state: State, found: &str, cost: &str, mend: &str) -> Self {
        Self {
            what: what.to_owned(),
            state,
            found: found.to_owned(),
            cost: cost.to_owned(),
            mend: mend.to_owned(),
        }
    }
}

/// Examines the machine. Exit code 1 when the demo could not run.
pub fn doctor(ui: &Ui, args: &DoctorArgs) -> Result<Exit> {
    let checks: Vec<Check> =
        tools().into_iter().chain(probes()).chain(kernel()).chain(noise()).collect();
    if args.json {
        ui.result(&serde_json::to_string_pretty(&serde_json::json!({
            "schema": 1,
            "checks": checks,
        }))?);
    } else {
        ui.result(&table(&checks));
    }
    let runs = checks.iter().all(|check| check.state != State::Required);
    Ok(if runs { Exit::Done } else { Exit::CannotMeasure })
}

fn table(checks: &[Check]) -> String {
    let widest = checks.iter().map(|check| check.what.len()).max().unwrap_or_default();
    let mut text = String::new();
    for check in checks {
        let mark = match check.state {
            State::Good => "ok      ",
            State::Missing => "missing ",
            State::Required => "REQUIRED",
            State::Doubtful => "doubtful",
        };
        let found = printable(&check.found);
        let _never = writeln!(text, "{mark}  {:widest$}  {found}", check.what);
        for (label, more) in [("costs", &check.cost), ("mend", &check.mend)] {
            if !more.is_empty() {
                let _never = writeln!(text, "          {:widest$}  {label}: {more}", "");
            }
        }
    }
    text
}

fn tools() -> Vec<Check> {
    let check = |tool: Tool, state: State| match tool.version() {
        Some(version) => Check::good(tool.name, version),
        None => Check::bad(tool.name, state, "not installed", tool.lost, &tool.install()),
    };
    vec![
        check(CARGO, State::Required),
        check(INITDB, State::Required),
        check(POSTGRES, State::Required),
        check(REDIS_SERVER, State::Required),
        check(STRACE, State::Missing),
        check(PERF, State::Missing),
        check(VALGRIND, State::Missing),
    ]
}

/// What a probe says of itself.
#[derive(Debug, Deserialize)]
struct Description {
    summary: String,
    tools: Vec<String>,
    rights: Vec<String>,
}

impl Description {
    /// What it records, with what, and by which rights.
    fn in_words(&self) -> String {
        let mut text = self.summary.clone();
        for (label, names) in [("uses", &self.tools), ("needs", &self.rights)] {
            if !names.is_empty() {
                let _never = write!(text, "; {label} {}", names.join(", "));
            }
        }
        text
    }
}

fn probes() -> Vec<Check> {
    let Ok(programs) = ProbePrograms::beside_this_program() else { return Vec::new() };
    let mut checks: Vec<Check> =
        QUESTIONS.iter().map(|question| probe(&programs, question)).collect();
    let counter = programs.allocation_counter();
    checks.push(if counter.is_file() {
        Check::good("allocation counter", "there")
    } else {
        missing_probe("allocation counter", &counter)
    });
    checks
}

fn missing_probe(what: &str, file: &Path) -> Check {
    let found = format!("{} is not there", file.display());
    let cost = "its pass; assay demo builds it by itself inside a source checkout";
    Check::bad(what, State::Missing, &found, cost, ProbePrograms::BUILD)
}

fn probe(programs: &ProbePrograms, question: &str) -> Check {
    let what = format!("probe {question}");
    let program = programs.program(question);
    let output = Command::new(&program)
        .arg("--describe")
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output();
    let Ok(output) = output else { return missing_probe(&what, &program) };
    let Ok(described) = serde_json::from_slice::<Description>(&output.stdout) else {
        return missing_probe(&what, &program);
    };
    let lacking = lacking_rights(&described.rights, &program);
    if lacking.is_empty() {
        return Check::good(&what, described.in_words());
    }
    let rights = lacking.join(",");
    let mend = format!("setcap {rights}+ep {} (as root), or run assay as root", program.display());
    let cost = format!("{} cannot be recorded", described.summary);
    let found = format!("lacks {rights}: {}", described.in_words());
    Check::bad(&what, State::Missing, &found, &cost, &mend)
}

/// The capabilities that this probe says it needs and does not have; none where it says nothing.
pub fn lacking_rights_of(program: &Path) -> Vec<String> {
    let output = Command::new(program).arg("--describe").stdin(Stdio::null()).output();
    let described =
        output.ok().and_then(|output| serde_json::from_slice::<Description>(&output.stdout).ok());
    described.map_or_else(Vec::new, |described| lacking_rights(&described.rights, program))
}

/// The capabilities that a probe needs and that neither this process nor the program's file has.
fn lacking_rights(rights: &[String], program: &Path) -> Vec<String> {
    let ours = effective_capabilities();
    let filed = Command::new("getcap").arg(program).stderr(Stdio::null()).output();
    let filed = filed.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let filed = filed.unwrap_or_default();
    let has = |right: &str| {
        let number = capability(right);
        number.is_some_and(|number| ours >> number & 1 == 1) || filed.contains(right)
    };
    rights.iter().filter(|right| !has(right)).cloned().collect()
}

/// Numbers of linux/capability.h, for those that probes use.
fn capability(name: &str) -> Option<u32> {
    let numbers = [
        ("cap_net_admin", 12),
        ("cap_net_raw", 13),
        ("cap_sys_ptrace", 19),
        ("cap_sys_admin", 21),
        ("cap_perfmon", 38),
        ("cap_bpf", 39),
    ];
    numbers.into_iter().find(|(known, _)| *known == name).map(|(_, number)| number)
}

/// The set of this process: `CapEff` of /proc/self/status, in hexadecimal digits.
fn effective_capabilities() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let digits = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    digits.and_then(|digits| u64::from_str_radix(digits.trim(), 16).ok()).unwrap_or_default()
}

fn setting(path: &str) -> Option<i64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

fn kernel() -> Vec<Check> {
    let root = Uid::effective().is_root();
    let mut checks = Vec::new();
    checks.push(match setting("/proc/sys/kernel/perf_event_paranoid") {
        None => Check::bad(
            "perf_event_paranoid",
            State::Missing,
            "this kernel has no perf events",
            PERF.lost,
            "",
        ),
        Some(level) if level > 0 && !root => Check::bad(
            "perf_event_paranoid",
            State::Missing,
            &level.to_string(),
            PERF.lost,
            "sysctl kernel.perf_event_paranoid=0, or run assay as root",
        ),
        Some(level) => Check::good("perf_event_paranoid", level.to_string()),
    });
    checks.push(match setting("/proc/sys/kernel/yama/ptrace_scope") {
        Some(scope) if scope > 0 && !root => Check::bad(
            "ptrace_scope",
            State::Missing,
            &scope.to_string(),
            STRACE.lost,
            "sysctl kernel.yama.ptrace_scope=0, or run assay as root",
        ),
        Some(scope) => Check::good("ptrace_scope", scope.to_string()),
        None => Check::good("ptrace_scope", "not restricted"),
    });
    checks.push(match setting("/proc/sys/kernel/kptr_restrict") {
        Some(level) if level > 1 || (level == 1 && !root) => Check::bad(
            "kptr_restrict",
            State::Missing,
            &level.to_string(),
            "kernel functions have no names, so kernel phases become `other`",
            "sysctl kernel.kptr_restrict=0",
        ),
        level => Check::good("kptr_restrict", level.map_or("unknown".into(), |l| l.to_string())),
    });
    checks.push(if Path::new("/sys/kernel/btf/vmlinux").exists() {
        Check::good("BTF", "there")
    } else {
        let cost = "nothing yet: the counters that ship do without it";
        Check::bad("BTF", State::Doubtful, "not there", cost, "")
    });
    let accounting = machine::irq_time_accounting();
    checks.push(if accounting == "no" {
        let cost = "interrupts are charged to whom they interrupt: on loopback the sender pays for \
                    the receiver's network work (true on most kernels; reports say so)";
        Check::bad("IRQ_TIME_ACCOUNTING", State::Doubtful, "no", cost, "")
    } else {
        Check::good("IRQ_TIME_ACCOUNTING", accounting)
    });
    checks
}

fn noise() -> Vec<Check> {
    let mut checks = Vec::new();
    let governor = machine::governor();
    checks.push(if matches!(governor.as_str(), "powersave" | "ondemand" | "schedutil") {
        let mend = "cpupower frequency-set --governor performance";
        let cost = "the clock follows the load: times of short laps wander";
        Check::bad("governor", State::Doubtful, &governor, cost, mend)
    } else {
        Check::good("governor", governor)
    });
    checks.push(steal());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load: f64 = load.split(' ').next().and_then(|load| load.parse().ok()).unwrap_or_default();
    let found = format!("{load:.2} on {cores} cores");
    checks.push(if load > cores as f64 / 2.0 {
        let cost = "someone else is working here: figures will be noisy";
        Check::bad("load average", State::Doubtful, &found, cost, "wait, or end what runs: top")
    } else {
        Check::good("load average", found)
    });
    checks.push(if cores < 2 {
        let cost = "subject and load driver share a core: rates are those of both together";
        Check::bad("cores", State::Doubtful, &cores.to_string(), cost, "")
    } else {
        Check::good("cores", cores.to_string())
    });
    checks.push(space(&std::env::temp_dir()));
    checks
}

fn steal() -> Check {
    let before = Steal::now();
    sleep(LOOK);
    let share = before.and_then(|before| Steal::now()?.since(before));
    let found = share.map_or("unknown".to_owned(), |share| format!("{:.1} %", share * 100.0));
    if share.is_some_and(|share| share > STEAL_NOISY) {
        let cost = "the hypervisor gives CPU time to others: times wander";
        Check::bad("steal", State::Doubtful, &found, cost, "")
    } else {
        Check::good("steal", found)
    }
}

/// Room for a throwaway cluster and the logs of subjects.
fn space(folder: &PathBuf) -> Check {
    const NEEDED: u64 = 1 << 30;
    let what = "temporary space";
    let Ok(stat) = nix::sys::statvfs::statvfs(folder) else {
        return Check::good(what, "unknown");
    };
    let free = stat.blocks_available() * stat.fragment_size();
    let found = format!("{:.1} GiB in {}", free as f64 / f64::from(1 << 30), folder.display());
    if free < NEEDED {
        let cost = "a private Postgres may fill it";
        Check::bad(what, State::Doubtful, &found, cost, "give another folder: TMPDIR=DIR assay …")
    } else {
        Check::good(what, found)
    }
}
