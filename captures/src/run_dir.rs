//! Names inside a run directory.
//!
//! ```text
//! run.json                                    what was run (RunRecord)
//! experiment.toml                             the experiment, as it was typed
//! phases.<n>.toml                             its own phase rules, if any
//! captures/<pass>/laps.jsonl                  one line a lap, appended as it ends (Lap)
//! captures/<pass>/<subject>.<variant>/<route>/requests.jsonl      serial pass (Slot)
//! captures/<pass>/<subject>.<variant>/<route>/<probe>/manifest.json and the native file
//! captures/<pass>/<probe>/                    one capture of all arms, told apart by process
//! captures/<pass>/<subject>.<variant>/usage/  clocks of all routes of a pass
//! results.json, tables.md                     rendered; never read back
//! ```

/// File name of the run record.
pub const RUN_RECORD: &str = "run.json";
/// File name of the experiment's copy.
pub const EXPERIMENT: &str = "experiment.toml";
/// File name of a pass's laps.
pub const LAPS: &str = "laps.jsonl";
/// File name of a serial lap's requests.
pub const REQUESTS: &str = "requests.jsonl";
/// File name of a capture's manifest.
pub const MANIFEST: &str = "manifest.json";
/// File name of the machine-readable results.
pub const RESULTS: &str = "results.json";
/// File name of the Markdown tables.
pub const TABLES: &str = "tables.md";
/// Everything as one page for a browser.
pub const PAGE: &str = "report.html";

/// Copy of one of the experiment's files of phase rules.
#[must_use]
pub fn phase_pack(index: usize) -> String {
    format!("phases.{index}.toml")
}

/// Folder of a pass.
#[must_use]
pub fn pass(pass: &str) -> String {
    format!("captures/{pass}")
}

/// Folder of one capture over all routes of an arm.
#[must_use]
pub fn arm_capture(pass: &str, subject: &str, variant: &str, probe: &str) -> String {
    format!("captures/{pass}/{subject}.{variant}/{probe}")
}

/// Folder of one capture over all arms and routes of a pass.
#[must_use]
pub fn pass_capture(pass: &str, probe: &str) -> String {
    format!("captures/{pass}/{probe}")
}

/// Folder of what belongs to one route of an arm.
#[must_use]
pub fn route(pass: &str, subject: &str, variant: &str, route: &str) -> String {
    format!("captures/{pass}/{subject}.{variant}/{route}")
}

/// Folder of one capture of one route of an arm.
#[must_use]
pub fn capture(pass: &str, subject: &str, variant: &str, route: &str, probe: &str) -> String {
    format!("captures/{pass}/{subject}.{variant}/{route}/{probe}")
}
