//! What rules may look at.

use assay_captures::run_record::{Arm, Route};

use crate::ablation::{self, Ablation};
use crate::compare::ArmName;
use crate::cost::{Cost, Labels};
use crate::metric::Metric;

/// Passes that count round trips, the most exact first.
const COUNTING: [&str; 2] = ["serial", "wire"];

/// Counts per request that differ by less are the same: noise of load, or a prepare in between.
pub(super) const SAME: f64 = 0.05;

/// Everything that is known of a run.
#[derive(Clone, Copy, Debug)]
pub struct Evidence<'a> {
    /// The arms, the reference first.
    pub arms: &'a [Arm],
    /// The routes.
    pub routes: &'a [Route],
    /// All costs.
    pub costs: &'a [Cost],
    /// All statements seen on the wire.
    pub statements: &'a [StatementUse],
}

/// How often one statement was run on one route by one arm.
#[derive(Clone, Debug, PartialEq)]
pub struct StatementUse {
    /// The arm.
    pub arm: ArmName,
    /// Name of the route.
    pub route: String,
    /// Name of the pass.
    pub pass: String,
    /// Its text, without values.
    pub sql: String,
    /// Whether this is one statement, not all of those whose texts are unknown.
    pub told_apart: bool,
    /// Why it was run: `user`, `transaction`, `pool ping`, …
    pub reason: String,
    /// Whether it only asks whether the connection lives.
    pub looks_like_a_check: bool,
    /// Executions per request.
    pub per_request: f64,
    /// How often it was prepared per request.
    pub prepared_per_request: f64,
}

impl<'a> Evidence<'a> {
    /// The names of all arms.
    pub(super) fn arms(&self) -> impl Iterator<Item = ArmName> + use<'a> {
        self.arms.iter().map(ablation::name)
    }

    /// What tables call an arm.
    pub(super) fn title(&self, name: &ArmName) -> &'a str {
        let named = |arm: &&Arm| arm.subject == name.subject && arm.variant == name.variant;
        self.arms.iter().find(named).map_or("?", |arm| arm.title.as_str())
    }

    /// The route of this name.
    pub(super) fn route(&self, name: &str) -> Option<&'a Route> {
        self.routes.iter().find(|route| route.name == name)
    }

    /// The figure of a cost from the first of `passes` that measured it.
    pub(super) fn figure(
        &self,
        (arm, route): (&ArmName, &str),
        metric: Metric,
        labels: &[(&'static str, &str)],
        passes: &[&str],
    ) -> Option<f64> {
        let labels: Labels = labels.iter().map(|&(key, value)| (key, value.to_owned())).collect();
        let of_arm = |cost: &&Cost| {
            cost.metric == metric
                && cost.labels == labels
                && cost.origin.route == route
                && cost.origin.subject == arm.subject
                && cost.origin.variant == arm.variant
        };
        passes.iter().find_map(|pass| {
            let mut found = self.costs.iter().filter(of_arm);
            found
                .find(|cost| cost.origin.pass == *pass && cost.amount.figure().is_some())
                .and_then(|cost| cost.amount.figure())
                .map(|figure| figure.value)
        })
    }

    /// A count per request from the wire.
    pub(super) fn counted(&self, arm: &ArmName, route: &str, metric: Metric) -> Option<f64> {
        self.figure((arm, route), metric, &[], &COUNTING)
    }

    /// Flights of one reason. Where flights were counted and none had it, there were none.
    pub(super) fn flights(&self, arm: &ArmName, route: &str, reason: &str) -> Option<f64> {
        let labels = [("reason", reason)];
        let part = self.figure((arm, route), Metric::PostgresFlights, &labels, &COUNTING);
        part.or_else(|| self.counted(arm, route, Metric::PostgresFlights).map(|_| 0.0))
    }

    /// Pool pings that a request waits for, and those that nobody waits for; `None` where it is
    /// not known which are awaited.
    pub(super) fn pings(&self, arm: &ArmName, route: &str) -> Option<(f64, f64)> {
        let pings = self.flights(arm, route, "pool ping")?;
        let all = self.counted(arm, route, Metric::PostgresFlights)?;
        let awaited = self.counted(arm, route, Metric::PostgresAwaitedFlights)?;
        let unawaited = (all - awaited).clamp(0.0, pings);
        Some((pings - unawaited, unawaited))
    }

    /// The statements of an arm on a route, from the most exact pass that has any.
    pub(super) fn statements(&self, arm: &ArmName, route: &str) -> Vec<&'a StatementUse> {
        let of_pass = |pass: &&str| -> Option<Vec<&'a StatementUse>> {
            let found: Vec<&StatementUse> = self
                .statements
                .iter()
                .filter(|used| used.arm == *arm && used.route == route && used.pass == **pass)
                .collect();
            (!found.is_empty()).then_some(found)
        };
        COUNTING.iter().find_map(of_pass).unwrap_or_default()
    }

    /// The pairs of arms that differ in one variable.
    pub(super) fn ablations(&self) -> Vec<Ablation> {
        ablation::ablations(self.arms)
    }
}
