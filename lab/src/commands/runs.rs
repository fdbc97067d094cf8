//! `assay runs`: what is kept.

use std::fmt::Write as _;

use anyhow::{Context, Result};
use assay_captures::capture;
use assay_captures::manifest::Status;
use assay_captures::run_record::RunRecord;
use serde::Serialize;

use super::run::is_run;
use crate::cli::RunsArgs;
use crate::exit::Exit;
use crate::ui::{Ui, printable};

#[derive(Debug, Serialize)]
struct Line {
    path: String,
    experiment: Option<String>,
    status: String,
    reason: Option<String>,
}

/// Lists runs, the newest last.
pub fn runs(ui: &Ui, args: &RunsArgs) -> Result<Exit> {
    let mut lines = Vec::new();
    if args.folder.exists() {
        let entries = args.folder.read_dir();
        let entries = entries.with_context(|| format!("cannot read {}", args.folder.display()))?;
        let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
        paths.retain(|path| is_run(path));
        paths.sort();
        for path in paths {
            lines.push(line(&path.display().to_string(), capture::run_record(&path)));
        }
    }
    if args.json {
        ui.result(&serde_json::to_string_pretty(&lines)?);
        return Ok(Exit::Done);
    }
    if lines.is_empty() {
        ui.say(&format!("no run is kept in {}; make one: assay demo", args.folder.display()));
        return Ok(Exit::Done);
    }
    let widest = lines.iter().map(|line| line.path.len()).max().unwrap_or_default();
    let mut text = String::new();
    for line in &lines {
        let reason = line.reason.as_ref().map_or(String::new(), |reason| format!(": {reason}"));
        let path = printable(&line.path);
        let _never = writeln!(text, "{path:widest$}  {}{}", line.status, printable(&reason));
    }
    ui.result(&text);
    Ok(Exit::Done)
}

fn line(path: &str, record: Result<RunRecord, capture::OpenError>) -> Line {
    let path = path.to_owned();
    match record {
        Err(error) => {
            let reason = format!("{:#}", anyhow::Error::from(error));
            Line { path, experiment: None, status: "unreadable".to_owned(), reason: Some(reason) }
        }
        Ok(record) => {
            let status = match record.status {
                Status::Recording => "recording, or killed",
                Status::Complete => "complete",
                Status::Incomplete => "incomplete",
                Status::Failed => "failed",
            };
            Line {
                path,
                experiment: Some(record.experiment),
                status: status.to_owned(),
                reason: record.reason,
            }
        }
    }
}
