//! `assay check`: holds a run against a budget, for continuous integration.

use std::path::Path;

use anyhow::{Context, Result};
use assay_analyses::budget::{Baseline, judge, save_baseline};
use assay_captures::manifest::Status;
use assay_reports::budget_table::{self, Ending, JudgedBudget};
use assay_reports::report::Report;

use super::WrongUsage;
use super::analyze::open;
use crate::budget::{self, Budget, KeptBaseline};
use crate::cli::CheckArgs;
use crate::exit::Exit;
use crate::ui::Ui;

/// Judges a run by a budget, or keeps its figures as a baseline.
pub fn check(ui: &Ui, args: &CheckArgs) -> Result<Exit> {
    let mut budget = match &args.budget {
        Some(file) => Budget::load(file)?,
        None => Budget::default(),
    };
    for limit in &args.limit {
        budget.add(limit)?;
    }
    if budget.limits.is_empty() && args.save_baseline.is_none() {
        let what = "there is nothing to check: give --budget FILE or --limit 'METRIC <= AMOUNT'";
        return Err(WrongUsage(what.to_owned()).into());
    }
    let report = open(&args.run)?;
    budget.check_names(&report.run)?;
    if report.run.status != Status::Complete {
        let reason = report.run.reason.as_deref().unwrap_or("it was cut off");
        ui.warn(&format!("the run is incomplete: {reason}"));
    }
    match &args.save_baseline {
        Some(file) => save(ui, file, &budget, &report),
        None => hold(ui, args, &budget, &report),
    }
}

fn save(ui: &Ui, file: &Path, budget: &Budget, report: &Report) -> Result<Exit> {
    let baseline = save_baseline(&budget.limits, &report.costs);
    let figures = baseline.figures.len();
    if figures == 0 {
        anyhow::bail!("nothing of what the limits are about was measured: no baseline is kept");
    }
    // Not private: it is made to be shared, and holds figures alone.
    std::fs::write(file, KeptBaseline::of(&report.run, baseline).render())
        .with_context(|| format!("cannot write {}", file.display()))?;
    ui.say(&format!("{figures} figures are kept in {}", file.display()));
    Ok(Exit::Done)
}

fn hold(ui: &Ui, args: &CheckArgs, budget: &Budget, report: &Report) -> Result<Exit> {
    let baseline = baseline(ui, args, budget, report)?;
    let judgements = judge(&budget.limits, &report.costs, baseline.as_ref());
    let judged = JudgedBudget {
        limits: &budget.limits,
        places: &budget.places,
        judgements: &judgements,
        strict: args.strict,
    };
    ui.result(&if args.json {
        budget_table::render_json(&judged)
    } else {
        budget_table::render(&judged, ui.columns())
    });
    Ok(exit(&judged))
}

/// What a judged budget means for scripts. A broken limit is certain, whatever else is missing.
pub(crate) fn exit(judged: &JudgedBudget<'_>) -> Exit {
    let endings = judged.endings();
    let any = |ending| endings.contains(&ending);
    if any(Ending::Broken) || (judged.strict && any(Ending::CannotTell)) {
        Exit::Failed
    } else if any(Ending::NotJudged) {
        Exit::CannotMeasure
    } else {
        Exit::Done
    }
}

fn baseline(
    ui: &Ui,
    args: &CheckArgs,
    budget: &Budget,
    report: &Report,
) -> Result<Option<Baseline>> {
    if !budget.needs_baseline() {
        return Ok(None);
    }
    let Some(file) = args.baseline.as_ref().or(budget.baseline.as_ref()) else {
        let what = "a limit names the baseline, and there is none: give --baseline FILE, or \
                    baseline = \"FILE\" in the budget; --save-baseline FILE makes one";
        return Err(WrongUsage(what.to_owned()).into());
    };
    let kept = budget::load_baseline(file)?;
    if kept.experiment != report.run.experiment {
        let (own, other) = (&report.run.experiment, &kept.experiment);
        ui.warn(&format!("the baseline is of experiment {other}, the run of {own}"));
    }
    if !kept.is_of_machine(&report.run) {
        let facts: Vec<&str> = kept.machine.values().map(String::as_str).collect();
        let facts = facts.join(", ");
        ui.warn(&format!("the baseline is of another machine ({facts}): only counts compare"));
    }
    Ok(Some(kept.baseline))
}
