//! From a run directory to a [`Report`]: opens each capture once, feeds the fold of its question,
//! and gathers what comes out. The same directory gives the same report on any machine.

mod allocations;
mod cells;
mod collector;
mod cpu;
mod foreign;
mod sheet;
mod syscalls;
mod usage;
mod wire;

use std::path::Path;

use anyhow::{Context, Result};
use assay_analyses::aa::{self, SelfTest};
use assay_analyses::ablation;
use assay_analyses::claims;
use assay_analyses::comparisons::{self, FairLaps};
use assay_analyses::findings::{self, Evidence};
use assay_analyses::metric::Metric;
use assay_analyses::phases::Rules;
use assay_analyses::{laps, observer};
use assay_captures::capture;
use assay_captures::lap::Lap;
use assay_captures::run_dir;
use assay_captures::run_record::{Arm, RunRecord};
use assay_reports::report::{Paths, Report};

use cells::Cells;
use sheet::Sheet;

/// Whether rates and times of a pass are shown: the one whose laps have no probe, or the only one
/// that there is where others send.
fn is_fair(pass: &str) -> bool {
    matches!(pass, "fair" | "foreign")
}

/// Analyses a run.
pub fn analyze(run: &Path) -> Result<Report> {
    let record = capture::run_record(run)
        .with_context(|| format!("{} is not a run of assay", run.display()))?;
    let mut all = all_laps(run, &record)?;
    let mut sheet = Sheet::new(run);
    foreign::count_requests(&sheet, &mut all);
    let laps: Vec<Lap> = all.iter().filter(|lap| lap.spoiled.is_none()).cloned().collect();
    lost_laps(&mut sheet, &all);
    let fair: Vec<Lap> = laps.iter().filter(|lap| is_fair(&lap.pass)).cloned().collect();
    sheet.costs.extend(laps::costs(&fair));
    let rules = rules(run)?;
    let used = usage::read(&mut sheet, &laps);
    for cell in Cells::of(&laps) {
        wire::read(&mut sheet, &cell);
        collector::read(&mut sheet, &cell);
        syscalls::read(&mut sheet, &cell);
        allocations::read(&mut sheet, &cell);
    }
    cpu::read(&mut sheet, Cells::of(&laps), &used, &rules);
    syscalls::compare_instruments(&mut sheet);
    let mut observer_effects = Vec::new();
    let mut pass_effects = Vec::new();
    for pass in &record.passes {
        let laps: Vec<Lap> = laps.iter().filter(|lap| lap.pass == pass.name).cloned().collect();
        let cpu = used.subject_of(&pass.name);
        observer_effects.extend(observer::effects(&laps, &cpu));
        pass_effects.extend(observer::pooled(&laps, &cpu));
    }
    observer::withhold_times(&mut sheet.costs, &pass_effects);
    let fair_laps = FairLaps { laps: &fair, cpu: &used.fair };
    let mut comparisons = comparisons::all(fair_laps, &sheet.costs, &record.arms);
    if let Some(round_trip) = record.select_1 {
        let seconds = round_trip.seconds();
        comparisons::mark_database_bound(
            &mut comparisons,
            &sheet.costs,
            seconds,
            record.connections,
        );
    }
    let self_tests = self_tests(fair_laps, &record);
    // A copy of the reference differs from others as the reference does: nothing new is in it.
    let own: Vec<Arm> = record.arms.iter().filter(|arm| !is_copy(arm, &record)).cloned().collect();
    let ping_prices = comparisons::ping_prices(fair_laps, &sheet.costs, &own);
    let findings = findings::all(&Evidence {
        arms: &own,
        routes: &record.routes,
        costs: &sheet.costs,
        statements: &sheet.statements,
    });
    let claims = claims::judge(&record.claims, fair_laps, &sheet.costs);
    Ok(Report {
        run: record,
        costs: sheet.costs,
        comparisons,
        ping_prices,
        findings,
        claims,
        self_tests,
        checks: sheet.checks,
        observer_effects,
        pass_effects,
        laps: all,
        lap_cpu: used.fair,
        requests: sheet.requests,
        distributions: sheet.distributions,
        profiles: sheet.profiles,
        paths: paths(),
    })
}

/// Whether an arm is the second copy of the reference.
fn is_copy(arm: &Arm, record: &RunRecord) -> bool {
    let Some(reference) = record.arms.first() else { return false };
    arm.subject == reference.subject && Some(&arm.variant) == record.copy.as_ref()
}

/// The reference against its own copy, where there is one.
fn self_tests(fair: FairLaps<'_>, record: &RunRecord) -> Vec<(Metric, SelfTest)> {
    let copy = record.arms.iter().find(|arm| is_copy(arm, record));
    let (Some(reference), Some(copy)) = (record.arms.first(), copy) else { return Vec::new() };
    aa::self_tests(fair, &ablation::name(reference), &ablation::name(copy))
}

/// Says of each lap that does not count why.
fn lost_laps(sheet: &mut Sheet, laps: &[Lap]) {
    for cell in Cells::of(laps) {
        let mut reasons: Vec<&str> =
            cell.laps.iter().filter_map(|lap| lap.spoiled.as_deref()).collect();
        if reasons.is_empty() {
            continue;
        }
        let lost = reasons.len() as f64;
        reasons.dedup();
        let origin = cell.origin(&run_dir::pass(&cell.first().pass));
        sheet.check(&origin, "laps lost", lost, sheet::Against::none(&reasons.join("; ")));
    }
}

/// The rules for CPU phases: those of the run's experiment, then those that ship.
fn rules(run: &Path) -> Result<Rules> {
    let own = capture::phase_packs(run)?;
    let own: Vec<&str> = own.iter().map(String::as_str).collect();
    Rules::with(&own).context("a file of phase rules of the run")
}

/// The laps of all passes, in the order of the passes.
fn all_laps(run: &Path, record: &RunRecord) -> Result<Vec<Lap>> {
    let mut laps = Vec::new();
    for pass in &record.passes {
        laps.extend(capture::laps(run, &pass.name)?);
    }
    Ok(laps)
}

/// Relative to the run directory, so that the report is the same wherever it lies.
fn paths() -> Paths {
    Paths {
        run: String::new(),
        results: run_dir::RESULTS.to_owned(),
        tables: run_dir::TABLES.to_owned(),
        page: run_dir::PAGE.to_owned(),
    }
}
