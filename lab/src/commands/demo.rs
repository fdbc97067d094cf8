//! `assay demo`: the main job on the experiment that ships.

use anyhow::Result;

use super::WrongUsage;
use super::run::{Request, guarded_run};
use crate::cli::MeasureArgs;
use crate::exit::Exit;
use crate::probes_build::checkout;
use crate::ui::Ui;

/// Measures the blog by the short plan.
pub fn demo(ui: &Ui, args: &MeasureArgs) -> Result<Exit> {
    let file = checkout().map(|checkout| checkout.join("lab/experiments/blog/experiment.toml"));
    let Some(experiment) = file.filter(|file| file.is_file()) else {
        let what = "the experiment that ships is not here; run assay inside its source checkout, \
                    or give an experiment: assay run EXPERIMENT.toml";
        return Err(WrongUsage(what.to_owned()).into());
    };
    let request = Request {
        experiment,
        choice: args.choice(true),
        aa: false,
        given: args.given(),
        out: args.out.clone(),
    };
    guarded_run(ui, &request)
}
