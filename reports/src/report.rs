//! Everything that a report shows, as one plain value. Each renderer is a function of it, so no
//! two can disagree.

use assay_analyses::aa::SelfTest;
use assay_analyses::claims::JudgedClaim;
use assay_analyses::compare::{ArmName, Comparison};
use assay_analyses::comparisons::LapCpu;
use assay_analyses::cost::Cost;
use assay_analyses::costs::wire::{Distribution, RequestRecord};
use assay_analyses::findings::Finding;
use assay_analyses::flame::Tree;
use assay_analyses::metric::Metric;
use assay_analyses::observer::{ObserverEffect, PassEffect};
use assay_analyses::ping_price::PingPrice;
use assay_captures::lap::Lap;
use assay_captures::run_record::RunRecord;

/// One run, analysed.
#[derive(Clone, Debug)]
pub struct Report {
    /// What was run and on what: experiment, arms (the reference first), routes, machine,
    /// versions, pinning, passes with reasons, notes. Copied from `run.json` as it is.
    pub run: RunRecord,
    /// Every cost of every arm, route and pass, in any order; renderers pick and sort. Those of
    /// fair laps come from [`assay_analyses::laps::costs`].
    pub costs: Vec<Cost>,
    /// Each arm against the reference, from [`assay_analyses::comparisons::all`] and then
    /// [`assay_analyses::comparisons::mark_database_bound`].
    pub comparisons: Vec<Comparison>,
    /// What a saved round trip is worth, from [`assay_analyses::comparisons::ping_prices`].
    pub ping_prices: Vec<PingPrice>,
    /// Conclusions, from [`assay_analyses::findings::all`], in its order.
    pub findings: Vec<Finding>,
    /// Causes that the experiment names, from [`assay_analyses::claims::judge`].
    pub claims: Vec<JudgedClaim>,
    /// The reference against its own copy, from [`assay_analyses::aa::self_tests`]; empty where
    /// no copy was measured.
    pub self_tests: Vec<(Metric, SelfTest)>,
    /// What the instruments say about themselves and about each other.
    pub checks: Vec<Check>,
    /// What each probe cost each arm on each route, from [`assay_analyses::observer::effects`] of
    /// each pass with a probe.
    pub observer_effects: Vec<ObserverEffect>,
    /// What the probes of each pass cost, from [`assay_analyses::observer::pooled`].
    pub pass_effects: Vec<PassEffect>,
    /// The laps of all passes, as the load driver wrote them.
    pub laps: Vec<Lap>,
    /// CPU seconds per request of fair laps, by [`Lap::order`] and process (`subject`,
    /// `postgres`, `redis`, `load`): shown with the laps in results.
    pub lap_cpu: LapCpu,
    /// Single requests of the serial pass, to be looked at.
    pub requests: Vec<OneRequest>,
    /// How the requests of the serial pass are distributed over counts.
    pub distributions: Vec<Spread>,
    /// The calls of each process under load.
    pub profiles: Vec<Profile>,
    /// Where things are, as the reader should see them.
    pub paths: Paths,
}

/// One request of the serial pass.
#[derive(Clone, Debug, PartialEq)]
pub struct OneRequest {
    /// Whose it is.
    pub arm: ArmName,
    /// Name of the route.
    pub route: String,
    /// What it stands for.
    pub which: Which,
    /// What it did.
    pub record: RequestRecord,
}

/// What a single request stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// The one of median length.
    Median,
    /// The longest.
    Slowest,
}

/// How requests of one arm on one route are distributed over a count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spread {
    /// Whose they are.
    pub arm: ArmName,
    /// Name of the route.
    pub route: String,
    /// The count and its distribution.
    pub distribution: Distribution,
}

/// Where one process of one arm spends its CPU time on one route.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// Whose it is.
    pub arm: ArmName,
    /// Name of the route.
    pub route: String,
    /// `subject` or `postgres`.
    pub process: String,
    /// Calls with their samples.
    pub tree: Tree,
    /// CPU seconds per request of fair laps, which all samples together stand for.
    pub per_request: f64,
}

/// One check: a capture's own integrity counter, or two sources against each other.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// The pass that it belongs to, such as `wire`.
    pub pass: String,
    /// The arm; `None` when it is about the whole pass.
    pub arm: Option<ArmName>,
    /// Name of the route; `None` when it is about all.
    pub route: Option<String>,
    /// Folder of the capture, relative to the run directory.
    pub capture: Option<String>,
    /// What is counted, as a plural noun phrase: `packets dropped`, `responses on the wire`,
    /// `statements by pg_stat_statements`. Checks with the same pass and words are summed in
    /// tables.
    pub counted: String,
    /// How many there were.
    pub found: f64,
    /// How many there should be: 0 for drops and gaps.
    pub expected: f64,
    /// What the expectation comes from, such as `responses the driver received`; empty when it
    /// is zero.
    pub against: String,
    /// What follows.
    pub outcome: Outcome,
}

/// What follows from a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// As it should be.
    Holds,
    /// Not as it should be, and what that means for the figures, in one sentence.
    Broken(String),
    /// Could not be checked, and why.
    NotChecked(String),
}

/// Where things are. Printed as they stand.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Paths {
    /// The run directory.
    pub run: String,
    /// `results.json`.
    pub results: String,
    /// `tables.md`.
    pub tables: String,
    /// `report.html`.
    pub page: String,
}

impl Report {
    /// What tables call an arm; the variant's name when the run does not know it.
    #[must_use]
    pub fn title<'a>(&'a self, name: &'a ArmName) -> &'a str {
        self.run
            .arms
            .iter()
            .find(|arm| arm.subject == name.subject && arm.variant == name.variant)
            .map_or(&name.variant, |arm| &arm.title)
    }
}
