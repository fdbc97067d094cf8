//! What analysing gathers: costs, checks, statements.

use std::path::{Path, PathBuf};

use assay_analyses::compare::ArmName;
use assay_analyses::cost::{Amount, Cost, Origin, Per};
use assay_analyses::findings::StatementUse;
use assay_analyses::metric::Metric;
use assay_captures::capture::{self, OpenError};
use assay_captures::manifest::{Manifest, Status};
use assay_reports::report::{Check, OneRequest, Outcome, Profile, Spread};

/// The sheet that everything is written on.
#[derive(Debug)]
pub(super) struct Sheet {
    run: PathBuf,
    pub(super) costs: Vec<Cost>,
    pub(super) checks: Vec<Check>,
    pub(super) statements: Vec<StatementUse>,
    pub(super) requests: Vec<OneRequest>,
    pub(super) distributions: Vec<Spread>,
    pub(super) profiles: Vec<Profile>,
}

impl Sheet {
    /// An empty sheet for a run.
    pub(super) fn new(run: &Path) -> Self {
        Self {
            run: run.to_path_buf(),
            costs: Vec::new(),
            checks: Vec::new(),
            statements: Vec::new(),
            requests: Vec::new(),
            distributions: Vec::new(),
            profiles: Vec::new(),
        }
    }

    /// Where a capture's folder is on this machine.
    pub(super) fn folder(&self, capture: &str) -> PathBuf {
        self.run.join(capture)
    }

    /// The manifest of a capture that has an end; otherwise the metrics are not measured, and the
    /// sheet says why.
    pub(super) fn manifest(&mut self, origin: &Origin, metrics: &[Metric]) -> Option<Manifest> {
        let capture = origin.capture.clone().unwrap_or_default();
        let manifest = match capture::manifest(&self.folder(&capture)) {
            Ok(manifest) => manifest,
            Err(error) => {
                self.not_measured(origin, metrics, &lost(&error));
                return None;
            }
        };
        match manifest.status {
            Status::Complete => Some(manifest),
            Status::Recording | Status::Incomplete => {
                self.not_measured(origin, metrics, "the capture has no end: its probe was killed");
                None
            }
            Status::Failed => {
                let reason = manifest.reason.as_deref().unwrap_or("for a reason it did not give");
                self.not_measured(origin, metrics, &format!("the probe failed: {reason}"));
                None
            }
        }
    }

    /// Says of each metric that it was not measured.
    pub(super) fn not_measured(&mut self, origin: &Origin, metrics: &[Metric], reason: &str) {
        let costs = metrics.iter().map(|&metric| {
            origin.cost(metric, Per::Request, Amount::NotMeasured(reason.to_owned()))
        });
        self.costs.extend(costs);
    }

    /// Notes that something was counted which should be `expected`.
    pub(super) fn check(
        &mut self,
        origin: &Origin,
        counted: &str,
        found: f64,
        against: Against<'_>,
    ) {
        let outcome = if (found - against.expected).abs() <= against.tolerance {
            Outcome::Holds
        } else {
            Outcome::Broken(against.otherwise.to_owned())
        };
        self.push_check(origin, counted, found, against.expected, against.source, outcome);
    }

    /// Notes that something could not be checked.
    pub(super) fn unchecked(&mut self, origin: &Origin, counted: &str, why: &str) {
        let outcome = Outcome::NotChecked(why.to_owned());
        self.push_check(origin, counted, 0.0, 0.0, "", outcome);
    }

    fn push_check(
        &mut self,
        origin: &Origin,
        counted: &str,
        found: f64,
        expected: f64,
        against: &str,
        outcome: Outcome,
    ) {
        let arm = ArmName { subject: origin.subject.clone(), variant: origin.variant.clone() };
        self.checks.push(Check {
            pass: origin.pass.clone(),
            arm: Some(arm),
            route: Some(origin.route.clone()),
            capture: origin.capture.clone(),
            counted: counted.to_owned(),
            found,
            expected,
            against: against.to_owned(),
            outcome,
        });
    }
}

/// What a count should be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Against<'a> {
    /// How many there should be.
    pub(super) expected: f64,
    /// How far from it is still fine.
    pub(super) tolerance: f64,
    /// Where the expectation comes from; empty when it is zero.
    pub(super) source: &'a str,
    /// What follows when it is not so.
    pub(super) otherwise: &'a str,
}

impl<'a> Against<'a> {
    /// There should be none.
    pub(super) fn none(otherwise: &'a str) -> Self {
        Self { expected: 0.0, tolerance: 0.0, source: "", otherwise }
    }
}

/// Why a file of a capture could not be read, as the reason of a figure that is not there.
pub(super) fn lost(error: &OpenError) -> String {
    match error {
        OpenError::Unreadable { source, .. } => format!("the capture cannot be read: {source}"),
        other => format!("the capture cannot be read: {other}"),
    }
}
