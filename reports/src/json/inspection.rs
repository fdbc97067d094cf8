//! What `assay inspect --json` prints: the same flat records of costs, for files of any origin.

use assay_analyses::cost::Cost;

use crate::json::{SCHEMA, convert, field, records};

/// What was found in files.
#[derive(Clone, Debug, Default)]
pub struct Inspected {
    /// The files, and what each holds.
    pub source: Vec<(String, String)>,
    /// One record a figure.
    pub costs: Vec<Cost>,
    /// What limits the figures: drops, gaps, cuts, refusals.
    pub integrity: Vec<String>,
    /// Conclusions.
    pub findings: Vec<String>,
    /// What could not be understood, with its place.
    pub problems: Vec<String>,
}

/// The inspection as JSON, one line for each record.
#[must_use]
pub fn render_inspection(inspected: &Inspected) -> String {
    #[derive(serde::Serialize)]
    struct Source<'a> {
        file: &'a str,
        holds: &'a str,
    }
    let source: Vec<_> =
        inspected.source.iter().map(|(file, holds)| Source { file, holds }).collect();
    let costs: Vec<_> = inspected.costs.iter().map(convert::cost).collect();
    let fields = [
        field("schema", &SCHEMA),
        records("source", &source),
        records("costs", &costs),
        records("integrity", &inspected.integrity),
        records("findings", &inspected.findings),
        records("problems", &inspected.problems),
    ];
    format!("{{\n{}\n}}\n", fields.join(",\n"))
}
