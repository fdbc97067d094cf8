//! Shares of CPU samples in functions whose true shares are known, lap by lap.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, bail};
use assay_analyses::calibration::{SampledShare, Share, share};
use assay_analyses::cost::{Figure, Origin};
use assay_analyses::costs::cpu::{CpuFold, CpuFolds, Profile};
use assay_analyses::phases::Rules;
use assay_analyses::window::Window;
use assay_captures::capture;
use assay_captures::ids::Role;
use assay_captures::lap::Lap;
use assay_captures::perf_script::{Decoder, FILE};

use super::ledger::{FUNCTIONS, Ledger, Used};

/// What each function's samples say in each of these laps, against the subject's own clocks.
pub(super) fn shares<'a>(
    run: &Path,
    laps: impl Iterator<Item = &'a Lap>,
    ledger: &Ledger,
) -> Result<Vec<Share>> {
    let laps: Vec<&Lap> = laps.collect();
    let recordings = match laps.first().and_then(|lap| lap.captures.get("cpu")) {
        Some(folder) => recordings(&run.join(folder), run, &laps)?,
        None => Vec::new(),
    };
    let functions = FUNCTIONS.iter().enumerate();
    let shares = functions.map(|(index, function)| {
        let shares: Vec<SampledShare> = laps
            .iter()
            .zip(&recordings)
            .filter_map(|(lap, profile)| {
                let used = ledger.over(lap.span);
                (used.requests == lap.requests).then_some(())?;
                of_function(function, used.burnt[index], &used, profile)
            })
            .collect();
        share(function, &shares)
    });
    Ok(shares.collect())
}

/// The samples of each lap by itself.
fn recordings(folder: &Path, run: &Path, laps: &[&Lap]) -> Result<Vec<Profile>> {
    let Ok(manifest) = capture::manifest(folder) else { return Ok(Vec::new()) };
    let packs = capture::phase_packs(run)?;
    let packs: Vec<&str> = packs.iter().map(String::as_str).collect();
    if packs.is_empty() {
        bail!("the run has no rules for the functions that burn CPU");
    }
    let rules = Rules::with(&packs).context("the rules for the functions that burn CPU")?;
    let folds =
        laps.iter().map(|&lap| CpuFold::new(&[Window::from(lap)], &manifest.targets, &rules));
    let mut folds = CpuFolds(folds.collect());
    let mut decoder = Decoder::default();
    let path = folder.join(FILE);
    capture::feed_file(&path, |bytes| decoder.feed(bytes, &mut folds))?;
    decoder.finish(&mut folds);
    Ok(folds.0.into_iter().map(CpuFold::finish).collect())
}

/// `None` where there are too few samples to say anything.
fn of_function(function: &str, burnt: f64, used: &Used, profile: &Profile) -> Option<SampledShare> {
    let origin = Origin {
        subject: String::new(),
        variant: String::new(),
        route: String::new(),
        pass: String::new(),
        capture: None,
    };
    // Of a whole of one, figures are shares, and their intervals are those of sampling alone.
    let whole = BTreeMap::from([(Role::Subject, Figure::exact(1.0, 1))]);
    let costs = profile.costs(&origin, &whole);
    let is = |labels: &BTreeMap<&'static str, String>, label: &str, value: &str| {
        labels.get(label).is_some_and(|found| found == value)
    };
    let cost = costs.iter().find(|cost| {
        is(&cost.labels, "phase", function) && is(&cost.labels, "view", "exclusive")
    })?;
    let figure = cost.amount.figure()?;
    let truth = burnt / used.cpu;
    Some(SampledShare { truth, value: figure.value, low: figure.low, high: figure.high })
}
