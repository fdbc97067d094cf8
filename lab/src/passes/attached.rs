//! A probe with the folder that it writes to, and what became of the probes of one pass.

use assay_captures::manifest::Status;
use assay_captures::run_record::Pass;

use super::failure::Failure;
use crate::probe::{ProbeError, ProbeSession, ProbeTarget};
use crate::run::Laboratory;

/// A running probe and the folder of its capture.
pub(super) struct Attached {
    /// The question that it answers.
    pub probe: String,
    /// The running program.
    pub session: ProbeSession,
    /// Its capture, relative to the run directory.
    pub folder: String,
}

/// How a probe is to be attached.
pub(super) struct Attachment<'a> {
    /// The question that it answers; names the program.
    pub probe: &'a str,
    /// Its capture, relative to the run directory.
    pub folder: String,
    /// Whom it watches.
    pub targets: Vec<ProbeTarget>,
    /// Its own options.
    pub options: Vec<String>,
    /// Whether it records at once.
    pub recording: bool,
}

impl Attached {
    /// Starts the probe on the load driver's cores.
    pub(super) fn start(
        laboratory: &Laboratory,
        attachment: Attachment<'_>,
    ) -> Result<Self, ProbeError> {
        let Attachment { probe, folder, targets, mut options, recording } = attachment;
        options.extend(laboratory.where_to_look(probe));
        let program = laboratory.probes.program(probe);
        let out = laboratory.run.path().join(&folder);
        let cores = &laboratory.pinning.load;
        let session =
            ProbeSession::start(probe, &program, &out, &targets, &options, recording, cores)?;
        Ok(Self { probe: probe.to_owned(), session, folder })
    }

    /// The question that it answers.
    pub(super) fn name(&self) -> &str {
        self.session.name()
    }
}

/// What went wrong with the probes of one pass.
#[derive(Debug, Default)]
pub(super) struct Troubles {
    list: Vec<String>,
}

impl Troubles {
    /// Notes a probe's failure or a lost lap and goes on; hands back whatever is worse.
    pub(super) fn note<T>(
        &mut self,
        place: &str,
        done: Result<T, Failure>,
    ) -> Result<Option<T>, Failure> {
        match done {
            Ok(value) => Ok(Some(value)),
            Err(Failure::Probe(error)) => {
                self.add(place, &error);
                Ok(None)
            }
            Err(lost @ Failure::Lost(_)) => {
                self.list.push(format!("{} ({place})", lost.line()));
                Ok(None)
            }
            Err(worse) => Err(worse),
        }
    }

    /// Notes a probe's failure.
    pub(super) fn add(&mut self, place: &str, error: &ProbeError) {
        self.list.push(format!("{error} ({place})"));
    }

    /// The first of them, and how many there are beside it.
    #[must_use]
    pub(super) fn reason(&self) -> Option<String> {
        let first = self.list.first()?;
        Some(match self.list.len() - 1 {
            0 => first.clone(),
            more => format!("{first}, and {more} more"),
        })
    }

    /// The record of a pass that went through to its end.
    #[must_use]
    pub(super) fn record(&self, pass: &str, laps: u32) -> Pass {
        let reason = self.reason();
        let status = match (&reason, laps) {
            (None, _) => Status::Complete,
            (Some(_), 0) => Status::Failed,
            (Some(_), _) => Status::Incomplete,
        };
        Pass { name: pass.to_owned(), status, reason }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(reason: &str) -> ProbeError {
        ProbeError { probe: "wire".to_owned(), reason: reason.to_owned(), at_start: false }
    }

    #[test]
    fn a_pass_is_complete_incomplete_or_failed_by_its_troubles_and_laps() {
        let mut troubles = Troubles::default();
        assert_eq!(troubles.record("wire", 4).status, Status::Complete);
        troubles.add("a.b, index", &error("no right"));
        let record = troubles.record("wire", 4);
        assert_eq!(record.status, Status::Incomplete);
        assert_eq!(record.reason.as_deref(), Some("wire: no right (a.b, index)"));
        assert_eq!(troubles.record("wire", 0).status, Status::Failed);
        troubles.add("a.b, detail", &error("disk full"));
        assert_eq!(troubles.reason().as_deref(), Some("wire: no right (a.b, index), and 1 more"));
    }

    #[test]
    fn a_failed_probe_is_noted_and_a_dead_subject_is_handed_on() {
        let mut troubles = Troubles::default();
        assert_eq!(troubles.note("x", Ok(7)).unwrap(), Some(7));
        assert_eq!(troubles.note::<()>("x", Err(Failure::Probe(error("r")))).unwrap(), None);
        let dead = Failure::Run(anyhow::anyhow!("dead"));
        assert!(troubles.note::<()>("x", Err(dead)).is_err());
        assert_eq!(troubles.reason().as_deref(), Some("wire: r (x)"));
    }
}
