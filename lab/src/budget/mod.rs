//! Budget files: limits on what a request may cost, for continuous integration.
//!
//! ```toml
//! baseline = "baseline.json"          # beside this file; for limits that name the baseline
//! limits = [
//!   "detail: postgres.flights <= 4",
//!   "allocations.blocks <= +2 % of baseline",
//! ]
//! ```

mod baseline;
mod grammar;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use assay_analyses::budget::{Bound, Limit};
use assay_captures::run_record::RunRecord;
use serde::Deserialize;
use toml::Spanned;

pub use baseline::{KeptBaseline, Machine};

use crate::commands::WrongUsage;
use crate::experiment::nearest;
use crate::experiment::position::line_at;

/// Limits, with where each stands.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Budget {
    /// The limits, in the order of the file.
    pub limits: Vec<Limit>,
    /// `FILE:LINE` of each, for people.
    pub places: Vec<String>,
    /// The baseline that the file names.
    pub baseline: Option<PathBuf>,
}

/// What was typed.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct BudgetFile {
    baseline: Option<PathBuf>,
    limits: Vec<Spanned<String>>,
}

impl Budget {
    /// Reads a budget file. Its baseline lies beside it unless it says otherwise.
    ///
    /// # Errors
    ///
    /// [`WrongUsage`] with `FILE:LINE: what` when a limit cannot be understood.
    pub fn load(file: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(file)
            .map_err(|error| WrongUsage(format!("cannot read {}: {error}", file.display())))?;
        let mut budget = parse(&file.display().to_string(), &text)?;
        let folder = file.parent().unwrap_or(Path::new(""));
        budget.baseline = budget.baseline.map(|baseline| folder.join(baseline));
        Ok(budget)
    }

    /// Adds a limit of the command line.
    pub fn add(&mut self, text: &str) -> Result<(), WrongUsage> {
        let limit = grammar::limit(text)
            .map_err(|error| WrongUsage(format!("--limit {text:?}: {error}")))?;
        self.limits.push(limit);
        self.places.push("--limit".to_owned());
        Ok(())
    }

    /// Whether a limit is held against the baseline.
    #[must_use]
    pub fn needs_baseline(&self) -> bool {
        self.limits.iter().any(|limit| matches!(limit.bound, Bound::Baseline { .. }))
    }

    /// Refuses routes, subjects, variants and passes that the run does not have.
    pub fn check_names(&self, run: &RunRecord) -> Result<(), WrongUsage> {
        let routes: Vec<&str> = run.routes.iter().map(|route| route.name.as_str()).collect();
        let subjects: Vec<&str> = run.arms.iter().map(|arm| arm.subject.as_str()).collect();
        let passes: Vec<&str> = run.passes.iter().map(|pass| pass.name.as_str()).collect();
        for (limit, place) in self.limits.iter().zip(&self.places) {
            for route in &limit.routes {
                known(place, "route", route, &routes)?;
            }
            for arm in &limit.arms {
                known(place, "subject", &arm.subject, &subjects)?;
                let of_subject = run.arms.iter().filter(|known| known.subject == arm.subject);
                let variants: Vec<&str> = of_subject.map(|arm| arm.variant.as_str()).collect();
                if let Some(variant) = &arm.variant {
                    known(place, "variant", variant, &variants)?;
                }
            }
            if let Some(pass) = &limit.pass {
                known(place, "pass", pass, &passes)?;
            }
        }
        Ok(())
    }
}

fn known(place: &str, what: &str, name: &str, names: &[&str]) -> Result<(), WrongUsage> {
    if names.contains(&name) {
        return Ok(());
    }
    let hint = nearest(name, names.iter().copied())
        .map_or(String::new(), |near| format!("; did you mean {near:?}?"));
    let mut names = names.to_vec();
    names.dedup();
    let there = names.join(", ");
    let what =
        format!("{place}: there is no {what} {name:?} in this run{hint} (there are: {there})");
    Err(WrongUsage(what))
}

fn parse(file: &str, text: &str) -> Result<Budget> {
    let typed: BudgetFile = toml::from_str(text).map_err(|error| {
        let line = error.span().map_or(1, |span| line_at(text, span.start));
        let message = crate::experiment::read::reworded(error.message());
        WrongUsage(format!("{file}:{line}: {message}"))
    })?;
    if typed.limits.is_empty() {
        let what = "it limits nothing: limits = [\"postgres.flights <= 4\"] is one";
        return Err(WrongUsage(format!("{file}:1: {what}")).into());
    }
    let mut budget = Budget { baseline: typed.baseline, ..Budget::default() };
    for written in &typed.limits {
        let place = format!("{file}:{}", line_at(text, written.span().start));
        let limit = grammar::limit(written.get_ref())
            .map_err(|error| WrongUsage(format!("{place}: {error}")))?;
        budget.limits.push(limit);
        budget.places.push(place);
    }
    Ok(budget)
}

/// Reads a baseline file.
pub fn load_baseline(file: &Path) -> Result<KeptBaseline> {
    let text = std::fs::read_to_string(file)
        .with_context(|| format!("cannot read the baseline {}", file.display()))?;
    KeptBaseline::parse(&text).map_err(|error| {
        let what = format!("{} is no baseline of assay check: {error}", file.display());
        WrongUsage(what).into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        parse("budget.toml", text).unwrap_err().to_string()
    }

    #[test]
    fn limits_are_read_with_their_lines() {
        let text = "baseline = \"b.json\"\nlimits = [\n  \"syscalls <= 4\",\n\n  # no more\n  \
                    \"detail: postgres.rows <= 9\",\n]\n";
        let budget = parse("budget.toml", text).unwrap();
        assert_eq!(budget.places, ["budget.toml:3", "budget.toml:6"]);
        assert_eq!(budget.limits[1].text, "detail: postgres.rows <= 9");
        assert_eq!(budget.baseline, Some(PathBuf::from("b.json")));
        assert!(!budget.needs_baseline());
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        assert_eq!(
            refused("limits = [\n  \"syscalls <= 4\",\n  \"syscals <= 4\",\n]\n"),
            "budget.toml:3: there is no metric \"syscals\"; did you mean \"syscalls\"?"
        );
        assert_eq!(
            refused("\nlimit = []\n"),
            "budget.toml:2: unknown key `limit`; did you mean `limits`? (keys here: baseline, \
             limits)"
        );
        assert!(refused("limits = []").starts_with("budget.toml:1: it limits nothing"));
        assert!(refused("limits = [").starts_with("budget.toml:1: "));
    }
}
