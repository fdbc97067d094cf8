//! `assay calibrate`: how far off is each instrument on this machine, and what does it cost?

use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow, bail};
use assay_analyses::calibration::Certificate;
use assay_captures::run_record::Calibration;
use assay_reports::certificate::{self, Calibrated};
use assay_reports::json;

use super::run::record;
use super::{WrongUsage, blame};
use crate::calibration::stages::{self, Stage};
use crate::calibration::{self, store};
use crate::cli::CalibrateArgs;
use crate::exit::Exit;
use crate::experiment::{self, Experiment};
use crate::guardian::{self, Worker};
use crate::machine::{Steal, load_average};
use crate::pinning::{Pinning, usable_cores};
use crate::run::{GivenServices, Laboratory, Materials, runs_folder};
use crate::run_directory::{now, stamped, stamped_minute, write_private};
use crate::ui::Ui;
use crate::unmasked;

/// File names of the certificate in the calibration's folder.
const JSON: &str = "certificate.json";
const MARKDOWN: &str = "certificate.md";

/// Measures the reference subject and prints the certificate.
pub fn calibrate(ui: &Ui, args: &CalibrateArgs) -> Result<Exit> {
    let Some(file) = calibration::experiment_file() else {
        let what = "the reference subject that ships is not here; run assay inside its source \
                    checkout";
        return Err(WrongUsage(what.to_owned()).into());
    };
    if let Some(unknown) = args.only.iter().find(|name| !stages::names().any(|n| n == **name)) {
        let known: Vec<&str> = stages::names().collect();
        let what = format!("there is no stage {unknown:?} (there are: {})", known.join(", "));
        return Err(WrongUsage(what).into());
    }
    let experiment = experiment::load(&file)?;
    let stages = stages::all(&experiment, args.quick, &args.only)?;
    let pinning = Pinning::choose(&experiment.pinning, &usable_cores()?)
        .map_err(|reason| anyhow!("{}: {reason}", file.display()))?;
    guardian::guarded(ui, |worker| {
        let measured = measure(ui, args, experiment, &stages, pinning, worker);
        measured.unwrap_or_else(|error| blame(ui, &error))
    })
}

fn measure(
    ui: &Ui,
    args: &CalibrateArgs,
    experiment: Experiment,
    stages: &[Stage],
    pinning: Pinning,
    worker: Worker,
) -> Result<Exit> {
    let before = Before { load: load_average(), steal: Steal::now() };
    let out = match &args.out {
        Some(out) => out.clone(),
        None => runs_folder().join(stamped(now(), "calibration")),
    };
    if out.read_dir().is_ok_and(|mut entries| entries.next().is_some()) {
        bail!("{} is not empty; give another folder to --out", out.display());
    }
    ui.say(&format!("calibration {}", out.display()));
    let places = format!("on CPUs: {}", named(&pinning));
    let certificate = with_laboratory(ui, experiment, stages, pinning, &worker, &out)?;
    let mut circumstances = before.circumstances();
    circumstances.push(places);
    if cfg!(debug_assertions) {
        circumstances
            .push("a debug build: its probes cost more than those of a release".to_owned());
    }
    let calibrated = Calibrated {
        about: about(args.quick, &certificate),
        certificate,
        circumstances,
        folder: out.display().to_string(),
    };
    finish(ui, args, &calibrated, &out)
}

fn with_laboratory(
    ui: &Ui,
    experiment: Experiment,
    stages: &[Stage],
    pinning: Pinning,
    worker: &Worker,
    out: &Path,
) -> Result<Certificate> {
    let given = GivenServices::default();
    let first = stages.first().ok_or_else(|| anyhow!("there is nothing to calibrate"))?;
    let record = record(&experiment, &first.plan, &pinning, &given);
    let run = calibration::directory(&out.join(first.name), &experiment, record)?;
    unmasked::remember(worker.scratch.path(), run.path());
    let materials = Materials {
        experiment,
        plan: first.plan.clone(),
        pinning,
        run,
        scratch: worker.scratch.path().to_path_buf(),
        ui: ui.clone(),
        cancel: worker.cancel.clone(),
    };
    let prepared = Laboratory::prepare(materials, &given);
    let mut laboratory = prepared.map_err(|unprepared| unprepared.error)?;
    let certificate = calibration::run(&mut laboratory, stages, out);
    let run = laboratory.close();
    unmasked::remove(run.path());
    certificate
}

/// The machine before anything was started.
struct Before {
    load: Option<f64>,
    steal: Option<Steal>,
}

impl Before {
    fn circumstances(&self) -> Vec<String> {
        let mut circumstances = Vec::new();
        if let (Some(before), Some(after)) = (self.load, load_average()) {
            circumstances.push(format!(
                "load average of the machine: {before:.2} before, {after:.2} after; about two of it \
                 are the calibration's own"
            ));
        }
        let steal = self.steal.zip(Steal::now()).and_then(|(before, now)| now.since(before));
        if let Some(share) = steal {
            circumstances
                .push(format!("CPU time that the hypervisor took: {:.1} %", share * 100.0));
        }
        circumstances
    }
}

fn about(quick: bool, certificate: &Certificate) -> Calibration {
    let summary = certificate.summary();
    Calibration {
        made: stamped_minute(now()),
        assay: env!("CARGO_PKG_VERSION").to_owned(),
        machine: store::identity(),
        quick,
        hold: summary.hold,
        cannot_tell: summary.cannot_tell,
        not_measured: summary.not_measured,
        broken: summary.broken,
    }
}

/// Keeps the certificate and prints it.
fn finish(ui: &Ui, args: &CalibrateArgs, calibrated: &Calibrated, out: &Path) -> Result<Exit> {
    let text = json::render_certificate(calibrated);
    write_private(&out.join(JSON), text.as_bytes())?;
    write_private(&out.join(MARKDOWN), certificate::markdown(calibrated).as_bytes())?;
    let kept: Option<PathBuf> = if args.only.is_empty() { store::keep(&text)? } else { None };
    ui.result(&if args.json {
        text
    } else if args.markdown {
        certificate::markdown(calibrated)
    } else {
        certificate::terminal(calibrated, ui.columns())
    });
    match kept {
        Some(file) => ui.say(&format!(
            "kept in {}: reports of later runs on this machine carry it",
            file.display()
        )),
        None if !args.only.is_empty() => ui.say("not kept: it is not the whole calibration"),
        None => ui.warn("there is no home folder: later runs will not know of this calibration"),
    }
    let about = &calibrated.about;
    Ok(match (about.broken.is_empty(), about.not_measured.is_empty()) {
        (false, _) => Exit::Failed,
        (true, false) => Exit::CannotMeasure,
        (true, true) => Exit::Done,
    })
}

fn named(pinning: &Pinning) -> String {
    let places = pinning.record();
    let places = places.iter().map(|(part, cores)| format!("{part} {cores}"));
    places.collect::<Vec<_>>().join(" · ")
}
