//! Which figures a limit is about.

use std::collections::{BTreeMap, BTreeSet};

use assay_captures::syscall_names::Architecture;

use super::baseline::{self, BaselineFigure};
use super::{ArmPattern, Limit};
use crate::cost::{Amount, Cost, Figure, Origin};
use crate::metric::{Kind, Metric};
use crate::trips::Reason;

/// A figure that a limit is about, or the reason why there is none.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Reading {
    pub(super) origin: Origin,
    pub(super) metric: Metric,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) amount: Amount,
    pub(super) kind: Kind,
}

impl Reading {
    /// The figure as it is held against a limit: the range of single requests is no doubt about
    /// an exact count.
    pub(super) fn held(&self) -> Option<Figure> {
        let figure = self.amount.figure()?;
        Some(match self.kind {
            Kind::Exact => Figure::exact(figure.value, figure.samples),
            Kind::Noisy | Kind::Sampled => figure,
        })
    }

    pub(super) fn into_baseline(self) -> Option<BaselineFigure> {
        baseline::figure(&self.origin, self.metric, self.labels, &self.amount, self.kind)
    }
}

/// One reading for each arm, route and set of labels that match, in the order of the costs.
pub(super) fn readings(limit: &Limit, costs: &[Cost]) -> Vec<Reading> {
    let mut cells: Vec<(&Origin, Vec<&Cost>)> = Vec::new();
    let wanted = |cost: &&Cost| {
        (cost.metric == limit.metric || cost.metric == total_of(limit.metric))
            && matches_place(limit, &cost.origin)
    };
    for cost in costs.iter().filter(wanted) {
        match cells.iter_mut().find(|(origin, _)| same_cell(origin, &cost.origin)) {
            Some((_, costs)) => costs.push(cost),
            None => cells.push((&cost.origin, vec![cost])),
        }
    }
    cells.into_iter().flat_map(|(_, costs)| of_cell(limit, &costs)).collect()
}

fn same_cell(one: &Origin, other: &Origin) -> bool {
    one.route == other.route && one.subject == other.subject && one.variant == other.variant
}

fn matches_place(limit: &Limit, origin: &Origin) -> bool {
    (limit.routes.is_empty() || limit.routes.contains(&origin.route))
        && (limit.arms.is_empty() || limit.arms.iter().any(|arm| arm.matches(origin)))
        && limit.pass.as_ref().is_none_or(|pass| *pass == origin.pass)
}

impl ArmPattern {
    fn matches(&self, origin: &Origin) -> bool {
        self.subject == origin.subject
            && self.variant.as_ref().is_none_or(|variant| *variant == origin.variant)
    }
}

/// The readings of one arm on one route: of the best pass that has any.
fn of_cell(limit: &Limit, costs: &[&Cost]) -> Vec<Reading> {
    let mut passes: Vec<&str> = limit.metric.passes().to_vec();
    for cost in costs {
        if !passes.contains(&cost.origin.pass.as_str()) {
            passes.push(&cost.origin.pass);
        }
    }
    passes
        .into_iter()
        .map(|pass| of_pass(limit, costs.iter().copied().filter(|c| c.origin.pass == pass)))
        .find(|readings| !readings.is_empty())
        .unwrap_or_default()
}

fn of_pass<'a>(limit: &Limit, costs: impl Iterator<Item = &'a Cost> + Clone) -> Vec<Reading> {
    let mut matching: Vec<&Cost> = costs
        .clone()
        .filter(|cost| cost.metric == limit.metric && matches_labels(limit, cost))
        .collect();
    // Two instruments may have counted the same: measured ones first, then by capture.
    matching.sort_by_key(|c| (&c.labels, c.amount.figure().is_none(), &c.origin.capture));
    matching.dedup_by(|later, first| later.labels == first.labels);
    if !matching.is_empty() {
        return matching.into_iter().map(reading).collect();
    }
    let asked: Option<BTreeMap<String, String>> =
        limit.labels.iter().map(|(key, value)| Some((key.clone(), value.clone()?))).collect();
    let Some(labels) = asked else { return Vec::new() };
    if !part_of_total(labels.iter().map(|(key, value)| (key.as_str(), value.as_str()))) {
        return Vec::new();
    }
    let mut totals: Vec<&Cost> = costs
        .filter(|cost| cost.metric == total_of(limit.metric) && cost.labels.is_empty())
        .collect();
    totals.sort_by_key(|cost| (cost.amount.figure().is_none(), &cost.origin.capture));
    totals.first().map(|total| nothing_of(limit.metric, labels, total)).into_iter().collect()
}

/// A part that was never seen: 0 where the whole was measured.
fn nothing_of(metric: Metric, labels: BTreeMap<String, String>, total: &Cost) -> Reading {
    let amount = match &total.amount {
        Amount::Measured(figure) => Amount::Measured(Figure::exact(0.0, figure.samples)),
        Amount::LowerBound(figure, reason) => {
            Amount::LowerBound(Figure::exact(0.0, figure.samples), reason.clone())
        }
        Amount::NotMeasured(reason) => Amount::NotMeasured(reason.clone()),
    };
    Reading { origin: total.origin.clone(), metric, labels, amount, kind: total.kind }
}

fn reading(cost: &Cost) -> Reading {
    let labels = cost.labels.iter().map(|(&key, value)| (key.to_owned(), value.clone()));
    Reading {
        origin: cost.origin.clone(),
        metric: cost.metric,
        labels: labels.collect(),
        amount: cost.amount.clone(),
        kind: cost.kind,
    }
}

fn matches_labels(limit: &Limit, cost: &Cost) -> bool {
    cost.labels.len() == limit.labels.len()
        && limit.labels.iter().all(|(key, wanted)| {
            let own = cost.labels.get(key.as_str());
            own.is_some_and(|own| wanted.as_ref().is_none_or(|wanted| wanted == own))
        })
}

/// The metric whose figure without labels holds all parts of this one.
pub(super) fn total_of(metric: Metric) -> Metric {
    match metric {
        Metric::SyscallErrors => Metric::Syscalls,
        other => other,
    }
}

/// Whether these labels name a part that could have been seen and counts 0 when it was not. A
/// word that nothing here knows is more likely a slip of the pen.
pub(super) fn part_of_total<'a>(mut labels: impl Iterator<Item = (&'a str, &'a str)>) -> bool {
    let mut any = false;
    labels.all(|(key, value)| {
        any = true;
        match key {
            "reason" => Reason::ALL.iter().any(|reason| reason.word() == value),
            "name" => [Architecture::X86_64, Architecture::Aarch64]
                .iter()
                .any(|architecture| architecture.number(value).is_some()),
            "errno" => value.starts_with('E'),
            _ => false,
        }
    }) && any
}

/// What a limit asks for and no cost has, in words.
pub(super) fn unmatched(limit: &Limit, costs: &[Cost], readings: &[Reading]) -> Vec<String> {
    let mut missing = Vec::new();
    let any_route = [String::new()];
    let routes = if limit.routes.is_empty() { &any_route[..] } else { &limit.routes };
    let any_arm = [None];
    let arms: Vec<Option<&ArmPattern>> = limit.arms.iter().map(Some).collect();
    let arms = if arms.is_empty() { &any_arm[..] } else { &arms };
    for route in routes {
        for arm in arms {
            let here = |origin: &Origin| {
                (route.is_empty() || origin.route == *route)
                    && arm.is_none_or(|arm| arm.matches(origin))
            };
            if !readings.iter().any(|reading| here(&reading.origin)) {
                missing.push(nothing_at(limit, route, *arm, costs));
            }
        }
    }
    missing
}

fn nothing_at(limit: &Limit, route: &str, arm: Option<&ArmPattern>, costs: &[Cost]) -> String {
    let mut place = String::new();
    if !route.is_empty() {
        place.push_str(&format!(" on route {route}"));
    }
    if let Some(arm) = arm {
        let variant = arm.variant.as_ref().map_or(String::new(), |variant| format!(".{variant}"));
        place.push_str(&format!(" of {}{variant}", arm.subject));
    }
    if let Some(pass) = &limit.pass {
        place.push_str(&format!(" in pass {pass}"));
    }
    let metric = limit.metric.name();
    let of_metric: Vec<&Cost> = costs.iter().filter(|cost| cost.metric == limit.metric).collect();
    if of_metric.is_empty() {
        return format!("matches nothing: there is no {metric} in this run");
    }
    let fits = |cost: &&&Cost| {
        matches_place(limit, &cost.origin)
            && (route.is_empty() || cost.origin.route == route)
            && arm.is_none_or(|arm| arm.matches(&cost.origin))
    };
    let here: Vec<&Cost> = of_metric.iter().filter(fits).copied().collect();
    if here.is_empty() {
        return format!("matches nothing: there is no {metric}{place}");
    }
    let known: BTreeSet<String> = here.iter().map(|cost| in_braces(cost)).collect();
    let (few, more) = (known.iter().take(8).cloned().collect::<Vec<_>>(), known.len() > 8);
    let more = if more { ", …" } else { "" };
    format!(
        "matches nothing: {metric}{place} has no figure with these labels; there are: {}{more}",
        few.join(", ")
    )
}

/// The labels of a cost as a budget writes them.
fn in_braces(cost: &Cost) -> String {
    if cost.labels.is_empty() {
        return "one without labels".to_owned();
    }
    let pairs: Vec<String> =
        cost.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    format!("{{{}}}", pairs.join(", "))
}
