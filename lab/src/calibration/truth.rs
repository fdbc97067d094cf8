//! What each route of the reference subject costs, asked of the program itself.

use std::collections::BTreeMap;
use std::process::Command;

use anyhow::{Context, Result, anyhow, bail};
use assay_analyses::calibration::Truth;
use serde::Deserialize;

use crate::experiment::Experiment;

/// Truths by the name of their route.
pub(super) type Truths = BTreeMap<String, Vec<Truth>>;

/// One line of what the program says.
#[derive(Deserialize)]
struct Record {
    metric: String,
    labels: BTreeMap<String, String>,
    amount: f64,
}

/// Asks for every route. The subject must have been built.
pub(super) fn all(experiment: &Experiment) -> Result<Truths> {
    let subject = experiment.subjects.first().ok_or_else(|| anyhow!("there is no subject"))?;
    let program = subject.command.first().map(|program| subject.dir.join(program));
    let program = program.ok_or_else(|| anyhow!("the subject has no program"))?;
    let mut truths = Truths::new();
    for route in &experiment.routes {
        let mut command = Command::new(&program);
        command.env_clear().arg("--truth").arg(&route.path);
        let output = command.output().with_context(|| format!("cannot ask {program:?}"))?;
        let said = String::from_utf8_lossy(&output.stdout);
        if !output.status.success() {
            bail!("the subject does not know {}: {}", route.path, output.status);
        }
        let records = said.lines().map(|line| {
            let record: Record = serde_json::from_str(line)
                .with_context(|| format!("route {}: {line}", route.name))?;
            Ok(Truth { metric: record.metric, labels: record.labels, amount: record.amount })
        });
        truths.insert(route.name.clone(), records.collect::<Result<_>>()?);
    }
    Ok(truths)
}
