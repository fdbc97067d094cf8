//! The commands, one a file.

mod analyze;
mod calibrate;
pub(crate) mod check;
mod demo;
mod doctor;
mod export;
mod inspect;
mod observe;
mod observe_command;
mod observe_follow;
mod report;
mod run;
mod runs;

pub use analyze::analyze;
pub use calibrate::calibrate;
pub use check::check;
pub use demo::demo;
pub use doctor::{doctor, lacking_rights_of};
pub use export::export;
pub use inspect::inspect;
pub use observe::observe;
pub use report::report;
pub use run::run;
pub use runs::runs;

use crate::exit::Exit;
use crate::experiment::ExperimentError;
use crate::experiment::plan::PlanError;
use crate::run::Interrupted;
use crate::ui::Ui;

/// Says why a command failed, and which exit code that is.
pub fn blame(ui: &Ui, error: &anyhow::Error) -> Exit {
    if error.is::<Interrupted>() {
        return Exit::Interrupted;
    }
    ui.fail(&format!("{error:#}"));
    if error.is::<ExperimentError>() || error.is::<PlanError>() || error.is::<WrongUsage>() {
        Exit::WrongUsage
    } else {
        Exit::CannotMeasure
    }
}

/// Something was asked for that cannot be: one line, what and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct WrongUsage(pub String);
