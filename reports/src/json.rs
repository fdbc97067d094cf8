//! `results.json`: the report for machines, in types of its own, so that renaming a field of an
//! analysis changes nothing here.
//!
//! ```text
//! {
//!   "schema": 1,
//!   "costs": [
//!     {"subject":"…","variant":"…","route":"detail","pass":"serial","metric":"redis.flights",…},
//! ```
//!
//! Times are in seconds, sizes in bytes (UCUM units). A new metric adds records, never columns.

mod certificate;
mod claims;
mod convert;
mod inspection;
pub mod model;

pub use certificate::{read_calibration, render_certificate};
pub use inspection::{Inspected, Source, render_inspection};
use serde::Serialize;

use crate::report::Report;

/// Version of the shape.
pub const SCHEMA: u32 = 1;

/// The results: one line for each record, keys in a fixed order, the same bytes for the same
/// report.
#[must_use]
pub fn render(report: &Report) -> String {
    let results = convert::results(report);
    let fields = [
        field("schema", &results.schema),
        field("experiment", &results.experiment),
        field("machine", &results.machine),
        field("versions", &results.versions),
        records("costs", &results.costs),
        records("laps", &results.laps),
        records("comparisons", &results.comparisons),
        records("ping_prices", &results.ping_prices),
        records("findings", &results.findings),
        records("ablations", &results.ablations),
        records("self_tests", &results.self_tests),
        records("integrity", &results.integrity),
        records("observer_effects", &results.observer_effects),
        records("pass_effects", &results.pass_effects),
        field("calibration", &results.calibration),
    ];
    format!("{{\n{}\n}}\n", fields.join(",\n"))
}

pub(crate) fn field(name: &str, value: &impl Serialize) -> String {
    format!("  \"{name}\": {}", text(value))
}

pub(crate) fn records(name: &str, records: &[impl Serialize]) -> String {
    if records.is_empty() {
        return field(name, &records);
    }
    let lines: Vec<String> = records.iter().map(|record| format!("    {}", text(record))).collect();
    format!("  \"{name}\": [\n{}\n  ]", lines.join(",\n"))
}

fn text(value: &impl Serialize) -> String {
    // Plain structs with string keys cannot fail to become JSON.
    serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned())
}

/// The JSON Schema of [`render`]'s output, as `results.schema.json` has it.
#[must_use]
pub fn schema() -> String {
    let schema = schemars::schema_for!(model::Results);
    let mut text = serde_json::to_string_pretty(&schema).unwrap_or_default();
    text.push('\n');
    text
}

#[cfg(test)]
mod tests;
