//! `assay doctor`: what is there, what each missing piece costs, and the command that gets it.

mod rights;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use anyhow::Result;
use assay_reports::plain;
use nix::unistd::Uid;
use serde::Serialize;

pub use rights::lacking_rights_of;
use rights::{Rights, probes, user};

use crate::cli::DoctorArgs;
use crate::exit::Exit;
use crate::machine::{self, Steal};
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

/// Examines the machine. Exit code 1 when the demo could not run; with `--strict` also when a
/// piece is missing that some figure needs.
pub fn doctor(ui: &Ui, args: &DoctorArgs) -> Result<Exit> {
    let rights = Rights::look();
    let checks: Vec<Check> = std::iter::once(user(&rights))
        .chain(tools())
        .chain(probes(&rights))
        .chain(kernel(&rights))
        .chain(noise())
        .collect();
    if args.json {
        ui.result(&serde_json::to_string_pretty(&serde_json::json!({
            "schema": 1,
            "checks": checks,
        }))?);
    } else {
        ui.result(&table(&checks, ui.columns()));
    }
    let any = |state| checks.iter().any(|check| check.state == state);
    let lacking = any(State::Required) || (args.strict && any(State::Missing));
    Ok(if lacking { Exit::CannotMeasure } else { Exit::Done })
}

fn table(checks: &[Check], columns: usize) -> String {
    let widest = checks.iter().map(|check| check.what.len()).max().unwrap_or_default();
    let indent = 10 + widest + 2;
    let mut text = String::new();
    for check in checks {
        let mark = match check.state {
            State::Good => "ok",
            State::Missing => "missing",
            State::Required => "REQUIRED",
            State::Doubtful => "doubtful",
        };
        let mut lead = format!("{mark:8}  {:widest$}  ", check.what);
        let found = printable(&check.found);
        for line in plain::wrap(&found, columns.saturating_sub(indent).max(20)) {
            let _never = writeln!(text, "{lead}{line}");
            lead = " ".repeat(indent);
        }
        if !check.cost.is_empty() {
            let label = if check.state == State::Doubtful { "but" } else { "lost" };
            let costs = format!("{label}: {}", printable(&check.cost));
            for line in plain::wrap(&costs, columns.saturating_sub(indent).max(20)) {
                let _never = writeln!(text, "{:indent$}{line}", "");
            }
        }
        // A command stays in one line, to be copied.
        if !check.mend.is_empty() {
            let _never = writeln!(text, "{:indent$}get it: {}", "", printable(&check.mend));
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

fn setting(path: &str) -> Option<i64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

fn kernel(rights: &Rights) -> Vec<Check> {
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
        Some(level) if level > 0 && !rights.of_probe("cpu", "cap_perfmon") => Check::bad(
            "perf_event_paranoid",
            State::Missing,
            &format!("{level}: only who has cap_perfmon may sample whole CPUs"),
            PERF.lost,
            "sudo sysctl kernel.perf_event_paranoid=0 (or the setcap line of probe cpu)",
        ),
        Some(level) => Check::good("perf_event_paranoid", level.to_string()),
    });
    checks.push(match setting("/proc/sys/kernel/yama/ptrace_scope") {
        Some(scope) if scope > 0 && !rights.of_probe("syscalls", "cap_sys_ptrace") => Check::bad(
            "ptrace_scope",
            State::Missing,
            &format!("{scope}: only who has cap_sys_ptrace may trace"),
            STRACE.lost,
            "sudo sysctl kernel.yama.ptrace_scope=0 (or the setcap line of probe syscalls)",
        ),
        Some(scope) => Check::good("ptrace_scope", scope.to_string()),
        None => Check::good("ptrace_scope", "not restricted"),
    });
    checks.push(match setting("/proc/sys/kernel/kptr_restrict") {
        Some(level) if level > 1 || (level == 1 && !rights.of_probe("cpu", "cap_syslog")) => {
            Check::bad(
                "kptr_restrict",
                State::Missing,
                &level.to_string(),
                "names of kernel functions, so that kernel phases become `other`",
                "sudo sysctl kernel.kptr_restrict=0",
            )
        }
        level => Check::good("kptr_restrict", level.map_or("unknown".into(), |l| l.to_string())),
    });
    checks.push(if Path::new("/sys/kernel/btf/vmlinux").exists() {
        Check::good("BTF", "there")
    } else {
        let cost = "system calls of children that end soon: the counters cannot follow each fork";
        Check::bad("BTF", State::Doubtful, "not there", cost, "")
    });
    let bpf = setting("/proc/sys/kernel/unprivileged_bpf_disabled");
    let found = match bpf {
        None => "this kernel has no bpf(2), or does not tell".to_owned(),
        Some(0) => "0".to_owned(),
        Some(level) if root => level.to_string(),
        Some(level) => format!("{level}: counting needs cap_bpf and cap_perfmon (probe syscalls)"),
    };
    checks.push(Check::good("unprivileged_bpf_disabled", found));
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
    checks.push(turbo());
    checks.push(counters());
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

/// Whether the clock may rise above its nominal rate while the machine is cool.
fn turbo() -> Check {
    // (file, its value when the clock may rise, the command that holds it)
    let switches = [
        ("/sys/devices/system/cpu/intel_pstate/no_turbo", 0, "echo 1"),
        ("/sys/devices/system/cpu/cpufreq/boost", 1, "echo 0"),
    ];
    for (file, rises, hold) in switches {
        match setting(file) {
            None => {}
            Some(value) if value == rises => {
                let cost = "the clock depends on heat and on what other cores do: times wander";
                let mend = format!("{hold} | sudo tee {file}");
                return Check::bad("turbo", State::Doubtful, "on", cost, &mend);
            }
            Some(_) => return Check::good("turbo", "off"),
        }
    }
    Check::good("turbo", "not controlled here")
}

/// Hardware counters of the processor, which many virtual machines do not have.
fn counters() -> Check {
    let known = |name: &str| name == "cpu" || name == "cpu_core" || name.starts_with("armv8");
    let devices = fs::read_dir("/sys/bus/event_source/devices").into_iter().flatten().flatten();
    let mut names = devices.filter_map(|device| device.file_name().into_string().ok());
    if names.any(|name| known(&name)) {
        return Check::good("hardware counters", "there");
    }
    let found = format!("none ({})", machine::virtualisation());
    let cost = "cycles and cache misses by perf; no pass of Assay needs them: it samples by the \
                clock";
    Check::bad("hardware counters", State::Doubtful, &found, cost, "")
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
