//! Prints the JSON Schema of `results.json`:
//! `cargo run -p assay-reports --example results_schema > reports/results.schema.json`

use std::io::{self, Write};

fn main() -> io::Result<()> {
    io::stdout().lock().write_all(assay_reports::json::schema().as_bytes())
}
