//! Who is asking, and what each probe may do: by this process's own rights or by those of the
//! probe's file.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Command, Stdio};

use nix::sys::statvfs::{FsFlags, statvfs};
use nix::unistd::{Uid, User};
use serde::Deserialize;

use super::{Check, State};
use crate::probes_build::{ProbePrograms, QUESTIONS};

/// Numbers of linux/capability.h, for those that probes use.
const CAPABILITIES: [(&str, u32); 7] = [
    ("cap_net_admin", 12),
    ("cap_net_raw", 13),
    ("cap_sys_ptrace", 19),
    ("cap_sys_admin", 21),
    ("cap_syslog", 34),
    ("cap_perfmon", 38),
    ("cap_bpf", 39),
];

/// What a probe says of itself.
#[derive(Clone, Debug, Deserialize)]
struct Description {
    summary: String,
    tools: Vec<String>,
    rights: Vec<String>,
    #[serde(default)]
    more_rights: Vec<String>,
    #[serde(default)]
    more: String,
    #[serde(default)]
    without: String,
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
        if !self.more_rights.is_empty() {
            let _never = write!(text, "; {} for {}", self.more_rights.join(", "), self.more);
        }
        text
    }

    /// Each right that it or a part of it needs.
    fn all(&self) -> impl Iterator<Item = &str> {
        self.rights.iter().chain(&self.more_rights).map(String::as_str)
    }
}

/// The rights of this process and of the probes' files, as sets of bits.
#[derive(Debug)]
pub(super) struct Rights {
    ours: u64,
    programs: Option<ProbePrograms>,
    files: BTreeMap<&'static str, u64>,
}

impl Rights {
    /// Looks at this process and at the probes beside it.
    pub(super) fn look() -> Self {
        let programs = ProbePrograms::beside_this_program().ok();
        let mut files = BTreeMap::new();
        if let Some(programs) = &programs {
            files.extend(QUESTIONS.map(|q| (q, of_file(&programs.program(q)))));
        }
        Self { ours: effective(), programs, files }
    }

    /// Whether a probe, started from here, has a right.
    pub(super) fn of_probe(&self, question: &str, right: &str) -> bool {
        let number = CAPABILITIES.iter().find(|(known, _)| *known == right);
        let held = self.ours | self.files.get(question).copied().unwrap_or_default();
        number.is_some_and(|(_, number)| held >> number & 1 == 1)
    }
}

/// The set of this process: `CapEff` of /proc/self/status, in hexadecimal digits.
fn effective() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let digits = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    digits.and_then(|digits| u64::from_str_radix(digits.trim(), 16).ok()).unwrap_or_default()
}

/// What a file permits whoever runs it; nothing on a file system that ignores it (`nosuid`).
fn of_file(file: &Path) -> u64 {
    if is_nosuid(file) { 0 } else { stored_in(file) }
}

fn is_nosuid(file: &Path) -> bool {
    statvfs(file).is_ok_and(|system| system.flags().contains(FsFlags::ST_NOSUID))
}

/// `security.capability`: a word of flags, then permitted and inheritable, low words first.
fn stored_in(file: &Path) -> u64 {
    let Ok(path) = CString::new(file.as_os_str().as_bytes()) else { return 0 };
    let mut bytes = [0u8; 24];
    let name = c"security.capability";
    // SAFETY: both strings end in zero, and the buffer has the length that is given.
    let length = unsafe {
        nix::libc::getxattr(path.as_ptr(), name.as_ptr(), bytes.as_mut_ptr().cast(), bytes.len())
    };
    let word = |at: usize| -> u64 {
        let bytes = bytes[at..].first_chunk::<4>();
        bytes.map_or(0, |bytes| u64::from(u32::from_le_bytes(*bytes)))
    };
    // Version 2 has 20 bytes, version 3 names a user namespace in four more.
    if length < 20 || word(0) & 1 == 0 { 0 } else { word(4) | word(12) << 32 }
}

/// What a probe may not do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lacking {
    /// The capabilities without which it records nothing.
    pub core: Vec<String>,
    /// Those without which a part is missing.
    pub more: Vec<String>,
    /// That part, as the subject of a sentence.
    pub part: String,
    /// All that it needs, as `setcap` takes them: what it sets replaces what was there.
    pub all: String,
}

/// The capabilities that this probe says it needs and that neither this process nor the probe's
/// file has; none where it says nothing.
pub fn lacking_rights_of(program: &Path) -> Lacking {
    let output = Command::new(program).arg("--describe").stdin(Stdio::null()).output();
    let described =
        output.ok().and_then(|output| serde_json::from_slice::<Description>(&output.stdout).ok());
    let held = effective() | of_file(program);
    let has = |right: &String| {
        let number = CAPABILITIES.iter().find(|(known, _)| known == right);
        number.is_some_and(|(_, number)| held >> number & 1 == 1)
    };
    let Some(described) = described else { return Lacking::default() };
    let all = described.all().collect::<Vec<_>>().join(",");
    let without = |mut rights: Vec<String>| {
        rights.retain(|right| !has(right));
        rights
    };
    let (core, more) = (without(described.rights), without(described.more_rights));
    Lacking { core, more, part: described.more, all }
}

/// Who is asking.
pub(super) fn user(rights: &Rights) -> Check {
    let uid = Uid::effective();
    let name = User::from_uid(uid).ok().flatten().map_or(uid.to_string(), |user| user.name);
    let found = match (uid.is_root(), rights.ours) {
        (true, _) => "root: every probe may record what it needs".to_owned(),
        (false, 0) => format!("{name}, without rights of its own; probes can have theirs, below"),
        (false, _) => format!("{name}, with some rights of its own"),
    };
    Check::good("user", found)
}

/// Each probe, and the library that counts allocations.
pub(super) fn probes(rights: &Rights) -> Vec<Check> {
    let Some(programs) = &rights.programs else { return Vec::new() };
    let mut checks: Vec<Check> =
        QUESTIONS.iter().map(|question| probe(rights, programs, question)).collect();
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

fn probe(rights: &Rights, programs: &ProbePrograms, question: &str) -> Check {
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
    let without = |needed: &[String]| -> Vec<String> {
        let lacking = needed.iter().filter(|right| !rights.of_probe(question, right));
        lacking.cloned().collect()
    };
    let (core, more) = (without(&described.rights), without(&described.more_rights));
    let lacking = [&core[..], &more].concat();
    if lacking.is_empty() {
        return Check::good(&what, described.in_words());
    }
    let mut found = format!("lacks {}: {}", lacking.join(", "), described.in_words());
    if is_nosuid(&program) {
        found.push_str("; its file system is mounted nosuid, so setcap does nothing there");
    }
    // setcap replaces what was there: all rights, not the missing ones alone.
    let all: Vec<&str> = described.all().collect();
    let mend = format!("sudo setcap {}=ep {}", all.join(","), program.display());
    let part = core.is_empty();
    // A part of it is still measured, so nothing is missing that a run cannot do without.
    let state = if part || question == "usage" { State::Doubtful } else { State::Missing };
    let cost = if part { &described.more } else { &described.without };
    Check::bad(&what, state, &found, cost, &mend)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_right_is_that_of_the_process_or_of_the_probes_file() {
        let rights =
            Rights { ours: 1 << 13, programs: None, files: [("cpu", 1 << 38), ("wire", 0)].into() };
        assert!(rights.of_probe("wire", "cap_net_raw"));
        assert!(rights.of_probe("cpu", "cap_perfmon"));
        assert!(!rights.of_probe("wire", "cap_perfmon"));
        assert!(!rights.of_probe("cpu", "cap_unheard_of"));
    }

    #[test]
    fn a_file_without_rights_permits_nothing() {
        assert_eq!(stored_in(Path::new(env!("CARGO_MANIFEST_DIR"))), 0);
        assert_eq!(stored_in(Path::new("/nowhere")), 0);
    }
}
