//! Without root: what each right that is not there costs, and the line that would give it.

use crate::commands::lacking_rights_of;
use crate::probes_build::ProbePrograms;

/// What is lost without each probe.
const COLUMNS: [(&str, &str); 3] = [
    ("wire", "round trips, statements, rows, bytes and the phases of a request"),
    ("syscalls", "system calls"),
    ("cpu", "the parts of CPU time"),
];

/// One sentence for each probe that may not record.
#[must_use]
pub fn lost(programs: &ProbePrograms) -> Vec<String> {
    let lost = COLUMNS.into_iter().filter_map(|(question, columns)| {
        let program = programs.program(question);
        let rights = lacking_rights_of(&program);
        (!rights.is_empty()).then(|| {
            let (rights, program) = (rights.join(","), program.display());
            format!("{columns}: not measured without root, or: setcap {rights}+ep {program}")
        })
    });
    lost.collect()
}
