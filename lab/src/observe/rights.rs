//! Without root: what each right that is not there costs, and the line that would give it.

use crate::commands::lacking_rights_of;
use crate::probes_build::ProbePrograms;

/// What is lost without each probe.
const COLUMNS: [(&str, &str); 3] = [
    ("wire", "round trips, statements, rows, bytes and the phases of a request"),
    ("syscalls", "system calls"),
    ("cpu", "the parts of CPU time"),
];

/// One sentence for each probe that may not record, or not all.
#[must_use]
pub fn lost(programs: &ProbePrograms) -> Vec<String> {
    let lost = COLUMNS.into_iter().filter_map(|(question, columns)| {
        let program = programs.program(question);
        let lacking = lacking_rights_of(&program);
        let lost = match (lacking.core.is_empty(), lacking.more.is_empty()) {
            (false, _) => columns,
            (true, false) => &lacking.part,
            (true, true) => return None,
        };
        let (rights, program) = (&lacking.all, program.display());
        Some(format!("{lost}: not measured without root, or: setcap {rights}+ep {program}"))
    });
    lost.collect()
}
