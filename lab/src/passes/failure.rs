//! What can end a pass, and what ends the whole run.

use std::io;

use crate::load::errors::LoadError;
use crate::load::gate::GateError;
use crate::probe::ProbeError;
use crate::run::Interrupted;

/// Why a step of a pass could not be done.
#[derive(Debug)]
pub(super) enum Failure {
    /// A probe failed: its figures will be missing, the run goes on.
    Probe(ProbeError),
    /// A lap was lost with its subject: it does not count, the run goes on where it can.
    Lost(anyhow::Error),
    /// Nothing more can be measured.
    Run(anyhow::Error),
    /// Somebody wants to stop.
    Cancelled,
}

impl Failure {
    /// What happened, in one line.
    #[must_use]
    pub(super) fn line(&self) -> String {
        let text = match self {
            Self::Cancelled => "cancelled".to_owned(),
            Self::Probe(error) => error.to_string(),
            Self::Lost(error) | Self::Run(error) => format!("{error:#}"),
        };
        // What a subject said last stands in the lines after the first.
        let line = text.lines().next().unwrap_or_default();
        line.strip_suffix("; its last lines:").unwrap_or(line).to_owned()
    }
}

impl From<ProbeError> for Failure {
    fn from(error: ProbeError) -> Self {
        Self::Probe(error)
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        if error.is::<Interrupted>() { Self::Cancelled } else { Self::Run(error) }
    }
}

impl From<LoadError> for Failure {
    fn from(error: LoadError) -> Self {
        Self::Run(error.into())
    }
}

impl From<GateError> for Failure {
    fn from(error: GateError) -> Self {
        Self::Run(error.into())
    }
}

/// What happened while something was written to the run directory.
pub(super) fn unwritten(path: &std::path::Path, error: &io::Error) -> Failure {
    let hint = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "; make room and run it again (what was recorded is kept)"
        }
        _ => "",
    };
    Failure::Run(anyhow::anyhow!("cannot write {}: {error}{hint}", path.display()))
}
