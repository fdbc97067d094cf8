//! Where the certificate of this machine is kept, and when it is one of this machine.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

use anyhow::{Context, Result};
use assay_captures::run_record::Calibration;
use assay_reports::json;

use crate::machine;
use crate::run_directory::write_private;

/// Facts that figures depend on and that do not change by themselves.
const FACTS: [&str; 6] = ["cpu", "cores", "memory", "kernel", "distribution", "virtualisation"];
/// Tools that measure.
const TOOLS: [&str; 2] = ["perf", "strace"];

/// What makes a certificate this machine's.
#[must_use]
pub fn identity() -> BTreeMap<String, String> {
    let (facts, versions) = (machine::facts(), machine::versions());
    let facts = facts.into_iter().filter(|(name, _)| FACTS.contains(&name.as_str()));
    let tools = versions.into_iter().filter(|(name, _)| TOOLS.contains(&name.as_str()));
    facts.chain(tools).collect()
}

/// What the last calibration of this machine, with this version of Assay, came to.
#[must_use]
pub fn stored() -> Option<Calibration> {
    let text = fs::read_to_string(file()?).ok()?;
    json::read_calibration(&text).filter(is_of_here)
}

fn is_of_here(calibration: &Calibration) -> bool {
    calibration.assay == env!("CARGO_PKG_VERSION") && calibration.machine == identity()
}

/// Keeps a certificate for later runs; returns where, or `None` where there is no such place.
pub fn keep(certificate: &str) -> Result<Option<PathBuf>> {
    let Some(file) = file() else { return Ok(None) };
    if let Some(folder) = file.parent() {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .with_context(|| format!("cannot make {}", folder.display()))?;
    }
    write_private(&file, certificate.as_bytes())?;
    Ok(Some(file))
}

/// In `$XDG_STATE_HOME`, or where that is when it is not set.
fn file() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let state = set("XDG_STATE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let state = state.or_else(|| Some(PathBuf::from(set("HOME")?).join(".local/state")))?;
    Some(state.join("assay/calibration.json"))
}
