//! What a Go subject prints of its garbage collections during a lap (`GODEBUG=gctrace=1`). The
//! lines between two lengths of its output are the lap's, so no clocks have to be brought together.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::log::{create, make_folder};
use crate::experiment::{Arm, Experiment};
use crate::subject::{Life, RunningSubject};

/// Where a lap's lines begin.
pub(super) struct Trace {
    output: PathBuf,
    from: u64,
}

/// Whether an arm prints its collections.
pub(super) fn is_traced(experiment: &Experiment, arm: &Arm) -> bool {
    let subject = &experiment.subjects[arm.subject];
    let debug = arm.variant.env.get("GODEBUG").or_else(|| subject.env.get("GODEBUG"));
    debug.is_some_and(|debug| debug.split(',').any(|option| option == "gctrace=1"))
}

/// Name of the file with the lines of the lap at this place in its pass.
fn file(order: u32) -> String {
    format!("lap-{order}.txt")
}

impl Trace {
    /// Lines from here on are the lap's; `None` where the subject's output is not ours to read.
    pub(super) fn begin(running: &RunningSubject) -> Option<Self> {
        let Life::Ours { output, .. } = &running.life else { return None };
        let from = fs::metadata(output).ok()?.len();
        Some(Self { output: output.clone(), from })
    }

    /// Writes the lines until now into the cell's folder.
    pub(super) fn end(self, folder: &Path, order: u32) -> io::Result<()> {
        let mut output = File::open(&self.output)?;
        output.seek(SeekFrom::Start(self.from))?;
        let mut lines = Vec::new();
        output.read_to_end(&mut lines)?;
        make_folder(folder)?;
        create(&folder.join(file(order)))?.write_all(&lines)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lap_gets_the_lines_printed_during_it() {
        let folder = tempfile::tempdir().unwrap();
        let output = folder.path().join("output.log");
        fs::write(&output, "gc 1 @0.1s\n").unwrap();
        let trace = Trace { output: output.clone(), from: 11 };
        fs::write(&output, "gc 1 @0.1s\ngc 2 @0.2s\n").unwrap();
        let cell = folder.path().join("gctrace");
        trace.end(&cell, 7).unwrap();
        assert_eq!(fs::read_to_string(cell.join("lap-7.txt")).unwrap(), "gc 2 @0.2s\n");
    }
}
