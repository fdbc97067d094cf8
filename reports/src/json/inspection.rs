//! What `assay inspect --json` prints: the same flat records of costs, for files of any origin.

use assay_analyses::cost::Cost;

use crate::json::{SCHEMA, convert, field, records};

/// What was found in files.
#[derive(Clone, Debug, Default)]
pub struct Inspected {
    /// The files, and what each holds.
    pub source: Vec<Source>,
    /// One record a figure.
    pub costs: Vec<Cost>,
    /// What limits the figures: drops, gaps, cuts, refusals.
    pub integrity: Vec<String>,
    /// Conclusions.
    pub findings: Vec<String>,
    /// What could not be understood, with its place.
    pub problems: Vec<String>,
}

/// A file.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Source {
    /// Its name, as it was given.
    pub file: String,
    /// Its format.
    pub holds: String,
    /// What, when, how complete: one line each.
    pub about: Vec<String>,
}

impl Inspected {
    /// Says something about a file that is among the sources.
    pub fn about(&mut self, file: &str, line: impl Into<String>) {
        if let Some(source) = self.source.iter_mut().rfind(|source| source.file == file) {
            source.about.push(line.into());
        }
    }
}

/// The inspection as JSON, one line for each record.
#[must_use]
pub fn render_inspection(inspected: &Inspected) -> String {
    let costs: Vec<_> = inspected.costs.iter().map(convert::cost).collect();
    let fields = [
        field("schema", &SCHEMA),
        records("source", &inspected.source),
        records("costs", &costs),
        records("integrity", &inspected.integrity),
        records("findings", &inspected.findings),
        records("problems", &inspected.problems),
    ];
    format!("{{\n{}\n}}\n", fields.join(",\n"))
}
