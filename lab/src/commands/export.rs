//! `assay export`: a part of a run in the format of another program.

use std::fs;

use anyhow::{Context, Result};
use assay_analyses::compare::ArmName;
use assay_analyses::cost::Cost;
use assay_reports::export;
use assay_reports::report::{OneRequest, Profile, Report};

use super::WrongUsage;
use super::analyze::open;
use crate::cli::{ExportArgs, ExportFormat};
use crate::exit::Exit;
use crate::ui::Ui;

/// Writes the export to standard output, or to the file that is asked for.
pub fn export(ui: &Ui, args: &ExportArgs) -> Result<Exit> {
    let report = open(&args.run)?;
    let chosen = Chosen { args };
    chosen.check(&report)?;
    let name = args.run.display().to_string();
    let bytes = match args.format {
        ExportFormat::Folded => export::folded(&chosen.profiles(&report)?).into_bytes(),
        ExportFormat::Speedscope => {
            export::speedscope(&name, &chosen.profiles(&report)?).into_bytes()
        }
        ExportFormat::Pprof => export::pprof(&chosen.profiles(&report)?),
        ExportFormat::ChromeTrace => export::chrome_trace(&chosen.requests(&report)?).into_bytes(),
        ExportFormat::Bencher => export::bencher(&chosen.costs(&report)).into_bytes(),
        ExportFormat::GithubActionBenchmark => {
            export::github_action_benchmark(&chosen.costs(&report)).into_bytes()
        }
    };
    match &args.out {
        Some(path) => {
            fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))?;
        }
        None if args.format == ExportFormat::Pprof && ui.is_terminal() => {
            let what = "a pprof file is no text: give --out FILE, or send it to a program";
            return Err(WrongUsage(what.to_owned()).into());
        }
        None => ui.bytes(&bytes),
    }
    Ok(Exit::Done)
}

/// What of the run is wanted.
struct Chosen<'a> {
    args: &'a ExportArgs,
}

impl Chosen<'_> {
    /// What was named must be there.
    fn check(&self, report: &Report) -> Result<(), WrongUsage> {
        let arms = report.run.arms.iter().map(|arm| format!("{}.{}", arm.subject, arm.variant));
        let routes = report.run.routes.iter().map(|route| route.name.clone());
        known("arm", self.args.arm.as_deref(), arms)?;
        known("route", self.args.route.as_deref(), routes)
    }

    fn wants(&self, arm: &ArmName, route: &str) -> bool {
        let name = format!("{}.{}", arm.subject, arm.variant);
        self.args.arm.as_ref().is_none_or(|wanted| *wanted == name)
            && self.args.route.as_ref().is_none_or(|wanted| *wanted == route)
    }

    fn profiles<'r>(&self, report: &'r Report) -> Result<Vec<&'r Profile>> {
        let of_process = |profile: &&Profile| {
            self.args.process.as_ref().is_none_or(|wanted| *wanted == profile.process)
        };
        let profiles = report.profiles.iter().filter(|p| self.wants(&p.arm, &p.route));
        let profiles: Vec<&Profile> = profiles.filter(of_process).collect();
        anyhow::ensure!(
            !profiles.is_empty(),
            "no stacks of that are in the run: they come from the pass cpu"
        );
        Ok(profiles)
    }

    fn requests<'r>(&self, report: &'r Report) -> Result<Vec<&'r OneRequest>> {
        let requests = report.requests.iter().filter(|r| self.wants(&r.arm, &r.route));
        let requests: Vec<&OneRequest> = requests.collect();
        anyhow::ensure!(
            !requests.is_empty(),
            "no single request of that is in the run: they come from the pass serial"
        );
        Ok(requests)
    }

    fn costs<'r>(&self, report: &'r Report) -> Vec<&'r Cost> {
        let of = |cost: &&Cost| {
            let origin = &cost.origin;
            let arm = ArmName { subject: origin.subject.clone(), variant: origin.variant.clone() };
            self.wants(&arm, &origin.route)
        };
        report.costs.iter().filter(of).collect()
    }
}

fn known(
    what: &str,
    wanted: Option<&str>,
    mut there: impl Iterator<Item = String> + Clone,
) -> Result<(), WrongUsage> {
    let Some(wanted) = wanted else { return Ok(()) };
    let list = there.clone().collect::<Vec<_>>().join(", ");
    if there.any(|name| name == wanted) {
        return Ok(());
    }
    Err(WrongUsage(format!("there is no {what} {wanted:?} (there are: {list})")))
}
