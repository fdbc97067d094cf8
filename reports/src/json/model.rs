//! The shape of `results.json`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

/// Results of one run.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "Assay results", deny_unknown_fields)]
pub struct Results {
    /// Version of this shape: 1.
    pub schema: u32,
    /// What was run.
    pub experiment: Experiment,
    /// Facts about the machine.
    pub machine: BTreeMap<String, String>,
    /// Versions of tools and services.
    pub versions: BTreeMap<String, String>,
    /// One record a figure.
    pub costs: Vec<Cost>,
    /// Every lap of every pass.
    pub laps: Vec<Lap>,
    /// Each arm against the reference.
    pub comparisons: Vec<Comparison>,
    /// What a saved round trip is worth.
    pub ping_prices: Vec<PingPrice>,
    /// Conclusions with their evidence.
    pub findings: Vec<Finding>,
    /// Causes that the experiment names, and what the run says to them.
    pub ablations: Vec<Ablation>,
    /// The reference against its own copy, where one was measured.
    pub self_tests: Vec<SelfTest>,
    /// What the instruments say about themselves and about each other.
    pub integrity: Vec<Check>,
    /// What each probe cost the service, by arm and route.
    pub observer_effects: Vec<ObserverEffect>,
    /// What the probes of each pass cost the service.
    pub pass_effects: Vec<PassEffect>,
    /// What the calibration of this machine came to; null when it is not calibrated.
    pub calibration: Option<Calibration>,
}

/// What a calibration came to.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Calibration {
    /// When it was made, such as `2026-12-01 10:02 UTC`.
    pub made: String,
    /// Version of the assay that was calibrated.
    pub assay: String,
    /// Facts and versions that make it this machine's.
    pub machine: BTreeMap<String, String>,
    /// Whether it was the short one.
    pub quick: bool,
    /// Figures within their limits.
    pub hold: usize,
    /// Figures that were too noisy to tell, by name.
    pub cannot_tell: Vec<String>,
    /// Figures that were not measured, by name.
    pub not_measured: Vec<String>,
    /// Figures outside their limits, by name.
    pub broken: Vec<String>,
}

/// What was run.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Experiment {
    /// Its name.
    pub name: String,
    /// `complete`, `incomplete`, `failed`, or `recording` when it was cut off.
    pub status: String,
    /// Why it is incomplete.
    pub reason: Option<String>,
    /// Version of the assay that ran it.
    pub assay: String,
    /// The command that repeats it.
    pub command: Vec<String>,
    /// When it began, in seconds since the Unix epoch.
    pub started: f64,
    /// When it ended, likewise.
    pub ended: Option<f64>,
    /// Connections of the closed load.
    pub connections: u32,
    /// Median seconds of one `SELECT 1`.
    pub select_1: Option<f64>,
    /// CPU sets by part.
    pub pinning: BTreeMap<String, String>,
    /// The arms, the reference first.
    pub arms: Vec<Arm>,
    /// The routes.
    pub routes: Vec<Route>,
    /// The services.
    pub services: Vec<Service>,
    /// What happened to each pass.
    pub passes: Vec<Pass>,
    /// What a reader must know about the whole run.
    pub notes: Vec<String>,
}

/// One subject in one variant.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Arm {
    /// Name of the subject.
    pub subject: String,
    /// Name of its variant.
    pub variant: String,
    /// What tables call it.
    pub title: String,
    /// Environment of the variant.
    pub environment: BTreeMap<String, String>,
}

/// One route.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Route {
    /// Its name.
    pub name: String,
    /// HTTP method.
    pub method: String,
    /// Path template.
    pub path: String,
    /// SQL statements that it may use.
    pub query_budget: Option<u32>,
}

/// One service.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Service {
    /// `postgres` or `redis`.
    pub kind: String,
    /// Its version.
    pub version: String,
    /// Whether it was started for this run alone.
    pub private: bool,
    /// Settings that were asked for.
    pub settings: BTreeMap<String, String>,
}

/// One pass.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Pass {
    /// Its name.
    pub name: String,
    /// `complete`, `incomplete`, `failed` or `recording`.
    pub status: String,
    /// Why it is not complete.
    pub reason: Option<String>,
}

/// One figure.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Cost {
    /// Name of the subject.
    pub subject: String,
    /// Name of its variant.
    pub variant: String,
    /// Name of the route.
    pub route: String,
    /// Name of the pass.
    pub pass: String,
    /// What was counted.
    pub metric: String,
    /// Which part of it; empty for the total.
    pub labels: BTreeMap<String, String>,
    /// Unit, as UCUM spells it: `s`, `By`, `1`, `1/s`.
    pub unit: String,
    /// `request` or `capture`; null for rates, times and sizes.
    pub per: Option<String>,
    /// Whether there is a figure.
    pub status: CostStatus,
    /// The figure; null when not measured.
    pub amount: Option<f64>,
    /// Lower end of its 95 % interval; for exact counts of single requests, the smallest.
    pub low: Option<f64>,
    /// Upper end, likewise.
    pub high: Option<f64>,
    /// How many requests, laps or profile samples it rests on.
    pub samples: Option<u64>,
    /// What kind of number it is.
    pub kind: CostKind,
    /// Folder of the capture, relative to the run directory; null for the load driver's own.
    pub capture: Option<String>,
    /// Why it is not measured, or only a lower bound.
    pub reason: Option<String>,
    /// What limits its meaning.
    pub doubts: Vec<String>,
}

/// Whether there is a figure.
#[derive(Debug, Serialize, JsonSchema)]
pub enum CostStatus {
    /// There is.
    #[serde(rename = "measured")]
    Measured,
    /// The true amount is at least this.
    #[serde(rename = "lower bound")]
    LowerBound,
    /// There is none.
    #[serde(rename = "not measured")]
    NotMeasured,
}

/// What kind of number a figure is.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CostKind {
    /// Two runs that differ have differed.
    Exact,
    /// A measurement with noise.
    Noisy,
    /// A share of samples.
    Sampled,
}

/// One lap.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Lap {
    /// Name of the pass.
    pub pass: String,
    /// Name of the subject.
    pub subject: String,
    /// Name of its variant.
    pub variant: String,
    /// Name of the route.
    pub route: String,
    /// The round that it belongs to, from 0.
    pub round: u32,
    /// Its place in the pass, from 0.
    pub order: u32,
    /// `none`, `on` or `off`: whether the probe of the pass was recording.
    pub probe: String,
    /// `closed`, `fixed-rate` or `serial`.
    pub load: String,
    /// Connections; 1 in serial laps.
    pub connections: u32,
    /// Requests per second of a fixed-rate lap.
    pub target_rate: Option<f64>,
    /// When it began, in seconds since the Unix epoch.
    pub start: f64,
    /// When everything was quiet again, likewise.
    pub end: f64,
    /// Seconds from the start to the last send.
    pub seconds: f64,
    /// Answers per second in that time.
    pub rate: f64,
    /// Requests sent.
    pub requests: u64,
    /// Answers with a 2xx status and the expected body.
    pub good: u64,
    /// Answers with another status.
    pub non_2xx: u64,
    /// 2xx answers with another body.
    pub mismatched: u64,
    /// Requests without answer, by kind of error.
    pub errors: BTreeMap<String, u64>,
    /// Bytes of response bodies.
    pub body_bytes: u64,
    /// Seconds by `min`, `mean`, `max` and quantile; empty without answers.
    pub latency: BTreeMap<String, f64>,
    /// CPU seconds per request, by process.
    pub cpu: BTreeMap<String, f64>,
    /// Second by second; empty in laps under a second.
    pub timeline: Vec<Slice>,
    /// Statements that pg_stat_statements counted.
    pub postgres_calls: Option<u64>,
    /// CPU seconds of the load driver.
    pub generator_cpu: Option<f64>,
    /// Seconds in which the load driver waited for a CPU.
    pub generator_run_queue_wait: Option<f64>,
    /// Why no figure was made of it; null where it counts.
    pub spoiled: Option<String>,
    /// Captures that cover it: probe → folder.
    pub captures: BTreeMap<String, String>,
}

/// One second of a lap.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Slice {
    /// Answers that came in it.
    pub answers: u64,
    /// Seconds within which half of them came; null without any.
    pub p50: Option<f64>,
    /// Seconds within which 99 in 100 came; null without any.
    pub p99: Option<f64>,
    /// Seconds of the longest; null without any.
    pub max: Option<f64>,
    /// Share of the machine's CPUs that was busy.
    pub machine_busy: Option<f64>,
}

/// One subject's variant.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ArmName {
    /// Name of the subject.
    pub subject: String,
    /// Name of its variant.
    pub variant: String,
}

/// The reference against its own copy, pooled over routes.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct SelfTest {
    /// What was compared.
    pub metric: String,
    /// How many routes.
    pub routes: usize,
    /// The chance of differences as large as these between equals.
    pub p_value: f64,
    /// Relative noise of one lap.
    pub noise: f64,
    /// Whether a difference was found between equals, at 0.001.
    pub rejected: bool,
}

/// A cause that the experiment names, and the variant that flips it alone.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Ablation {
    /// Its name.
    pub name: String,
    /// The cause.
    pub cause: String,
    /// The arm that has the cause.
    pub base: ArmName,
    /// The arm that differs in it alone.
    pub flipped: ArmName,
    /// `shown`, `not shown` or `contradicted`.
    pub outcome: String,
    /// What was expected of single figures, and how they are.
    pub expectations: Vec<Expectation>,
}

/// What was expected of one figure, and how it is.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Expectation {
    /// Name of the route.
    pub route: String,
    /// What was measured.
    pub metric: String,
    /// Which part of it.
    pub labels: BTreeMap<String, String>,
    /// `falls`, `rises` or `stays`.
    pub expected: String,
    /// By how much at least, relative; at most, for `stays`.
    pub by: Option<f64>,
    /// `shown`, `not shown` or `contradicted`.
    pub outcome: String,
    /// The base's amount in the metric's unit; null where it was not measured.
    pub base_amount: Option<f64>,
    /// The flipped arm's, likewise.
    pub flipped_amount: Option<f64>,
    /// Relative change; null from zero.
    pub change: Option<f64>,
    /// Its smallest credible value.
    pub low: Option<f64>,
    /// Its largest credible value; null where any rise is credible.
    pub high: Option<f64>,
    /// `rounds`, `counts` or `intervals`: how that range was made.
    pub range_by: Option<String>,
    /// Paired rounds, where it was made by them.
    pub rounds: Option<usize>,
    /// Why there are no figures.
    pub reason: Option<String>,
}

/// One arm against the reference.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Comparison {
    /// Name of the route.
    pub route: String,
    /// Name of the pass.
    pub pass: String,
    /// What was compared.
    pub metric: String,
    /// Which part of it.
    pub labels: BTreeMap<String, String>,
    /// Unit of the amounts.
    pub unit: String,
    /// The reference.
    pub reference: ArmName,
    /// The arm that is judged.
    pub arm: ArmName,
    /// The reference's median lap or exact count.
    pub reference_amount: f64,
    /// The arm's, likewise.
    pub arm_amount: f64,
    /// The arm's amount less the reference's.
    pub difference: f64,
    /// Relative change (0.288 is +28.8 %); null against zero.
    pub change: Option<f64>,
    /// Lower end of its 95 % interval; null where no rounds pair the two.
    pub low: Option<f64>,
    /// Upper end, likewise.
    pub high: Option<f64>,
    /// Paired rounds.
    pub rounds: Option<u32>,
    /// After Holm's correction over the table's cells of this metric.
    pub p_value: Option<f64>,
    /// `faster`, `slower`, `indistinguishable`, `cannot tell`; for exact counts `fewer`, `more`,
    /// `same`; `not judged` for noisy figures without paired rounds.
    pub verdict: String,
    /// Rounds that the next run needs to be sure of a verdict, when it cannot tell.
    pub rounds_needed: Option<u32>,
    /// The spread rule, which other benchmarks use.
    pub spread: Option<Spread>,
    /// What limits its meaning.
    pub doubts: Vec<String>,
}

/// The spread rule: indistinguishable iff the best laps differ by less than the wider spread.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Spread {
    /// The reference's best lap.
    pub reference_best: f64,
    /// The arm's best lap.
    pub arm_best: f64,
    /// The larger of both best − worst.
    pub spread: f64,
    /// What the rule says.
    pub indistinguishable: bool,
    /// (reference's best − arm's best) ÷ reference's best; null when that is zero.
    pub overhead: Option<f64>,
}

/// What a saved round trip is worth.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct PingPrice {
    /// Name of the route.
    pub route: String,
    /// The arm with more trips.
    pub with: ArmName,
    /// The arm with fewer.
    pub without: ArmName,
    /// Whose CPU time.
    pub process: String,
    /// Trips per request saved.
    pub trips_saved: f64,
    /// CPU seconds a trip.
    pub amount: f64,
    /// Lower end of its 95 % interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Paired rounds.
    pub rounds: u64,
    /// What limits its meaning.
    pub doubts: Vec<String>,
}

/// A conclusion.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Finding {
    /// Name of the rule.
    pub rule: String,
    /// Name of the route.
    pub route: String,
    /// The arms that it holds for.
    pub arms: Vec<ArmName>,
    /// The figure.
    pub what: String,
    /// The cause.
    pub why: String,
    /// How it was shown.
    pub shown: String,
    /// What was left open.
    pub not_shown: Option<String>,
    /// Whether the cause is a guess: no variant flips it alone.
    pub hypothesis: bool,
}

/// One check.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Check {
    /// Name of the pass.
    pub pass: String,
    /// The arm; null when it is about the whole pass.
    pub arm: Option<ArmName>,
    /// Name of the route; null when it is about all.
    pub route: Option<String>,
    /// Folder of the capture.
    pub capture: Option<String>,
    /// What was counted.
    pub counted: String,
    /// How many there were; null where it was not checked.
    pub found: Option<f64>,
    /// How many there should be; null where it was not checked.
    pub expected: Option<f64>,
    /// What the expectation comes from.
    pub against: String,
    /// `holds`, `broken` or `not checked`.
    pub outcome: String,
    /// What it means, or why it was not checked.
    pub reason: Option<String>,
}

/// What a probe cost the service.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ObserverEffect {
    /// Name of the pass.
    pub pass: String,
    /// The arm.
    pub arm: ArmName,
    /// Name of the route.
    pub route: String,
    /// `throughput`, or `cpu.time` of the subject.
    pub of: String,
    /// Relative change from off to on.
    pub change: f64,
    /// Lower end of its 95 % interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Pairs of neighbouring laps.
    pub pairs: u32,
}

/// What the probes of a pass cost the service, over all its pairs of laps.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct PassEffect {
    /// Name of the pass.
    pub pass: String,
    /// `throughput`, or `cpu.time` of the subject.
    pub of: String,
    /// Relative change from off to on.
    pub change: f64,
    /// Lower end of its 95 % interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Pairs of neighbouring laps of all arms and routes.
    pub pairs: u32,
    /// Whether the pass's times enter no table of times.
    pub spoils_times: bool,
}
