//! Facts about the machine that figures depend on, and the versions of what measured them.

use std::collections::BTreeMap;
use std::fs;
use std::process::{Command, Stdio};

use nix::sys::utsname::uname;

use crate::tools::{CARGO, PERF, STRACE};

/// Facts for the run record: `cpu`, `cores`, `memory`, `kernel`, `distribution`, `governor`,
/// `virtualisation`, `steal`, `irq_time_accounting`. What cannot be read says `unknown`.
#[must_use]
pub fn facts() -> BTreeMap<String, String> {
    let cpuinfo = read("/proc/cpuinfo");
    let release = read("/etc/os-release");
    let facts = [
        ("cpu", field(&cpuinfo, "model name", ':')),
        ("cores", Some(cores(&cpuinfo).to_string())),
        ("memory", memory(&read("/proc/meminfo"))),
        ("kernel", uname().ok().map(|name| name.release().to_string_lossy().into_owned())),
        ("distribution", field(&release, "PRETTY_NAME", '=')),
        ("governor", Some(governor())),
        ("virtualisation", Some(virtualisation_of(&cpuinfo))),
        ("steal", Steal::now().map(Steal::since_boot)),
        ("irq_time_accounting", Some(irq_time_accounting())),
    ];
    facts
        .into_iter()
        .map(|(name, fact)| (name.to_owned(), fact.unwrap_or_else(|| "unknown".to_owned())))
        .collect()
}

/// Versions for the run record, of what is there: `assay`, `rustc`, `strace`, `perf`. Services add
/// their own.
#[must_use]
pub fn versions() -> BTreeMap<String, String> {
    let assay = Some(env!("CARGO_PKG_VERSION").to_owned());
    let rustc = CARGO.find().map(|cargo| cargo.with_file_name("rustc")).and_then(|rustc| {
        let output = Command::new(rustc).arg("--version").stderr(Stdio::null()).output().ok()?;
        let line = String::from_utf8_lossy(&output.stdout).lines().next()?.to_owned();
        Some(line)
    });
    [("assay", assay), ("rustc", rustc), ("strace", STRACE.version()), ("perf", PERF.version())]
        .into_iter()
        .filter_map(|(name, line)| Some((name.to_owned(), number(&line?))))
        .collect()
}

/// The version in what a tool says of itself: `strace -- version 6.1` and `rustc 1.95.0 (… …)`
/// name the tool again, and the commit. The whole line where it has no number.
fn number(line: &str) -> String {
    let number =
        line.split(' ').find(|word| word.starts_with(|first: char| first.is_ascii_digit()));
    number.unwrap_or(line).to_owned()
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// The value of a `name SEPARATOR value` line, quotes taken off.
fn field(text: &str, name: &str, separator: char) -> Option<String> {
    text.lines()
        .filter_map(|line| line.split_once(separator))
        .find(|(key, _)| key.trim() == name)
        .map(|(_, value)| value.trim().trim_matches('"').to_owned())
}

fn cores(cpuinfo: &str) -> usize {
    cpuinfo.lines().filter(|line| line.starts_with("processor")).count()
}

fn memory(meminfo: &str) -> Option<String> {
    let total: u64 = field(meminfo, "MemTotal", ':')?.split(' ').next()?.parse().ok()?;
    Some(format!("{:.1} GiB", total as f64 / 1024.0 / 1024.0))
}

/// How the frequency of the first core is chosen.
#[must_use]
pub fn governor() -> String {
    let text = read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
    if text.is_empty() { "not controlled here".to_owned() } else { text.trim().to_owned() }
}

/// Whether this is a virtual machine, and whose.
#[must_use]
pub fn virtualisation() -> String {
    virtualisation_of(&read("/proc/cpuinfo"))
}

fn virtualisation_of(cpuinfo: &str) -> String {
    let flags = field(cpuinfo, "flags", ':').unwrap_or_default();
    if !flags.split(' ').any(|flag| flag == "hypervisor") {
        return "none seen".to_owned();
    }
    let vendor = read("/sys/class/dmi/id/sys_vendor");
    match vendor.trim() {
        "" => "virtual machine".to_owned(),
        vendor => format!("virtual machine ({vendor})"),
    }
}

/// CPU time that the hypervisor gave to others, in ticks, and all CPU time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Steal {
    stolen: u64,
    total: u64,
}

impl Steal {
    /// Reads it.
    #[must_use]
    pub fn now() -> Option<Self> {
        Self::parse(&read("/proc/stat"))
    }

    /// `cpu user nice system idle iowait irq softirq steal guest guest_nice`; guest time is in
    /// user time already.
    fn parse(stat: &str) -> Option<Self> {
        let line = stat.lines().next()?.strip_prefix("cpu ")?;
        let ticks: Vec<u64> =
            line.split_ascii_whitespace().take(8).filter_map(|tick| tick.parse().ok()).collect();
        Some(Self { stolen: *ticks.get(7)?, total: ticks.iter().sum() })
    }

    /// The share since `earlier`, 0 to 1; `None` when no tick has passed.
    #[must_use]
    pub fn since(self, earlier: Self) -> Option<f64> {
        let total = self.total.checked_sub(earlier.total).filter(|&total| total > 0)?;
        Some(self.stolen.saturating_sub(earlier.stolen) as f64 / total as f64)
    }

    fn since_boot(self) -> String {
        let nothing = Self { stolen: 0, total: 0 };
        let share = self.since(nothing).unwrap_or_default();
        format!("{:.2} % since boot", share * 100.0)
    }
}

/// How many processes wanted to run in the last minute, on average.
#[must_use]
pub fn load_average() -> Option<f64> {
    read("/proc/loadavg").split(' ').next()?.parse().ok()
}

/// Whether interrupts are charged to nobody (`yes`) or to whom they interrupt (`no`).
#[must_use]
pub fn irq_time_accounting() -> String {
    let Some(config) = kernel_config() else { return "unknown".to_owned() };
    let on = config.lines().any(|line| line == "CONFIG_IRQ_TIME_ACCOUNTING=y");
    if on { "yes" } else { "no" }.to_owned()
}

fn kernel_config() -> Option<String> {
    let release = uname().ok()?.release().to_string_lossy().into_owned();
    if let Ok(text) = fs::read_to_string(format!("/boot/config-{release}")) {
        return Some(text);
    }
    let output = Command::new("gzip")
        .args(["-dc", "/proc/config.gz"])
        .stderr(Stdio::null())
        .output()
        .ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steal_is_a_share_of_all_ticks_between_two_readings() {
        let read = |line: &str| Steal::parse(line).unwrap();
        let before = read("cpu  100 0 100 700 0 0 0 100 0 0\n");
        let after = read("cpu  150 0 100 700 0 0 0 150 50 0\n");
        assert_eq!(after.since(before), Some(0.5));
        assert_eq!(before.since(before), None);
        assert_eq!(Steal::parse("cpu  1 2"), None);
    }

    #[test]
    fn a_version_is_a_number_without_the_name_of_its_tool() {
        assert_eq!(number("strace -- version 6.1"), "6.1");
        assert_eq!(number("rustc 1.95.0 (59807616e 2026-04-14)"), "1.95.0");
        assert_eq!(number("unknown"), "unknown");
    }

    #[test]
    fn every_fact_has_a_value() {
        let facts = facts();
        assert_eq!(facts.len(), 9);
        assert!(facts.values().all(|fact| !fact.is_empty()));
        assert_ne!(facts["kernel"], "unknown");
    }

    #[test]
    fn fields_are_read_with_or_without_quotes() {
        assert_eq!(field("A=\"x y\"\nB=z", "A", '='), Some("x y".to_owned()));
        assert_eq!(field("model name\t: Some CPU", "model name", ':'), Some("Some CPU".to_owned()));
        assert_eq!(memory("MemTotal:       24656452 kB"), Some("23.5 GiB".to_owned()));
    }
}
