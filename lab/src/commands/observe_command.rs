//! `assay observe -- COMMAND`: what a command says to Postgres and Redis, from its first process to
//! its last.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use assay_analyses::budget::judge;
use assay_reports::budget_table::{self, JudgedBudget};
use assay_reports::json::render_inspection;

use super::WrongUsage;
use super::check;
use crate::budget::Budget;
use crate::cli::ObserveArgs;
use crate::exit::Exit;
use crate::observe::{Held, Said, read_command};
use crate::pinning::{CoreSet, usable_cores};
use crate::probe::ProbeSession;
use crate::probes_build::ProbePrograms;
use crate::scratch::{Scratch, sweep};
use crate::ui::Ui;

/// The capture, below the folder that is kept.
const CAPTURE: &str = "captures/command/wire";

/// Runs the command and says what it cost. Standard output stays the command's own: whatever is
/// said here goes to standard error.
pub(super) fn observe_command(ui: &Ui, args: &ObserveArgs) -> Result<Exit> {
    let budget = args.budget.as_deref().map(load).transpose()?;
    sweep();
    let kept = Kept::make(args.out.as_deref())?;
    let words = args.command.iter().map(|word| word.to_string_lossy());
    let name = words.collect::<Vec<_>>().join(" ");
    let folder = kept.path().join(CAPTURE);
    let held = Held::start(&args.command)?;
    let probe = match record(&folder, &held) {
        Ok(probe) => probe,
        Err(error) => {
            held.give_up();
            return Err(error);
        }
    };
    let began = Instant::now();
    let ended = held.run()?;
    let took = began.elapsed();
    let own = Exit::OfCommand(ended.code);
    let said = probe
        .stop()
        .map_err(anyhow::Error::from)
        .and_then(|()| read_command(&folder, &program(&args.command)));
    let said = match said {
        Ok(said) => said,
        Err(error) => {
            ui.fail(&format!("{error:#}"));
            return Ok(if ended.code == 0 { Exit::CannotMeasure } else { own });
        }
    };
    let records = render_inspection(&said.records(&name));
    if args.out.is_some() {
        crate::run_directory::write_private(&kept.path().join("results.json"), records.as_bytes())?;
    }
    if args.json {
        ui.say(records.trim_end());
    } else {
        ui.say(said.table(&name, ended, took).trim_end());
    }
    let verdict = budget.map_or(Exit::Done, |budget| hold(ui, &budget, &said));
    // A command that has failed by itself says so, whatever it cost.
    Ok(if ended.code == 0 && verdict != Exit::Done { verdict } else { own })
}

fn load(file: &Path) -> Result<Budget> {
    let budget = Budget::load(file)?;
    if budget.needs_baseline() {
        let what = "a limit names the baseline: for a command, limits are amounts, such as \
                    'postgres.flights <= 400'";
        return Err(WrongUsage(format!("{}: {what}", file.display())).into());
    }
    if budget.limits.iter().any(|limit| !limit.routes.is_empty() || !limit.arms.is_empty()) {
        let what = "a command has no routes and subjects: write 'postgres.flights <= 400'";
        return Err(WrongUsage(format!("{}: {what}", file.display())).into());
    }
    Ok(budget)
}

fn hold(ui: &Ui, budget: &Budget, said: &Said) -> Exit {
    let judgements = judge(&budget.limits, &said.outcome.costs, None);
    let judged = JudgedBudget {
        limits: &budget.limits,
        places: &budget.places,
        judgements: &judgements,
        strict: false,
    };
    ui.say(budget_table::render(&judged, ui.columns()).trim_end());
    check::exit(&judged)
}

fn record(folder: &Path, held: &Held) -> Result<ProbeSession> {
    let program = ProbePrograms::beside_this_program()?.program("wire");
    if !program.is_file() {
        bail!(
            "the probe {} is not there; put the probe programs beside assay ({})",
            program.display(),
            ProbePrograms::BUILD
        );
    }
    let cores = CoreSet::new(usable_cores()?).context("there is no core to run on")?;
    let target = format!("subject:pid={}", held.pid().0);
    let options = ["--target".to_owned(), target, "--sockets".to_owned(), "all".to_owned()];
    ProbeSession::start("wire", &program, folder, &[], &options, true, &cores)
        .context("the command was not run")
}

/// The program of a command, without its folder.
fn program(command: &[OsString]) -> String {
    let first = command.first().map(PathBuf::from).unwrap_or_default();
    first.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

/// The folder that a run is kept in, or one that is removed at the end.
enum Kept {
    Given(PathBuf),
    ForNow(Scratch),
}

impl Kept {
    fn make(out: Option<&Path>) -> Result<Self> {
        match out {
            Some(path) => {
                if std::fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_some()) {
                    let what = format!("{} is not empty: give --out a new folder", path.display());
                    return Err(WrongUsage(what).into());
                }
                std::fs::create_dir_all(path)
                    .with_context(|| format!("cannot make {}", path.display()))?;
                Ok(Self::Given(path.to_path_buf()))
            }
            // What a killed one leaves is swept by the next.
            None => Ok(Self::ForNow(Scratch::create()?)),
        }
    }

    fn path(&self) -> &Path {
        match self {
            Self::Given(path) => path,
            Self::ForNow(folder) => folder.path(),
        }
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        if let Self::ForNow(folder) = self {
            // Best effort: otherwise the next start sweeps it.
            let _gone = std::fs::remove_dir_all(folder.path());
        }
    }
}
