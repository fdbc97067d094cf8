//! What an earlier run measured, to hold a later one against.

use std::collections::BTreeMap;

use super::cells::{part_of_total, total_of};
use crate::cost::{Amount, Cost, Figure, Origin};
use crate::metric::{Kind, Metric};

/// Figures of an earlier run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Baseline {
    /// In a stable order: by route, arm, pass, metric and labels.
    pub figures: Vec<BaselineFigure>,
}

/// One figure of an earlier run.
#[derive(Clone, Debug, PartialEq)]
pub struct BaselineFigure {
    /// Name of the route.
    pub route: String,
    /// Name of the subject.
    pub subject: String,
    /// Name of the variant.
    pub variant: String,
    /// Name of the pass.
    pub pass: String,
    /// What was counted.
    pub metric: Metric,
    /// Which part of it; empty for the total.
    pub labels: BTreeMap<String, String>,
    /// What kind of number it is.
    pub kind: Kind,
    /// How much.
    pub figure: Figure,
}

impl BaselineFigure {
    fn key(&self) -> (&str, &str, &str, &str, &str, &BTreeMap<String, String>) {
        let Self { route, subject, variant, pass, metric, labels, .. } = self;
        (route, subject, variant, pass, metric.name(), labels)
    }
}

impl Baseline {
    /// All figures that were measured.
    #[must_use]
    pub fn of(costs: &[Cost]) -> Self {
        // The capture decides between two instruments that counted the same.
        let mut costs: Vec<&Cost> = costs.iter().collect();
        costs.sort_by_key(|cost| &cost.origin.capture);
        let figures = costs.into_iter().filter_map(|cost| {
            let labels = cost.labels.iter().map(|(&key, value)| (key.to_owned(), value.clone()));
            figure(&cost.origin, cost.metric, labels.collect(), &cost.amount, cost.kind)
        });
        Self { figures: sorted(figures.collect()) }
    }

    /// The figure of the same cell. A part that never happened is not in a baseline: where its
    /// total is, it was 0.
    pub(super) fn find(
        &self,
        origin: &Origin,
        metric: Metric,
        labels: &BTreeMap<String, String>,
    ) -> Option<BaselineFigure> {
        let same = |figure: &&BaselineFigure, metric: Metric, labels: &BTreeMap<String, String>| {
            figure.metric == metric
                && figure.labels == *labels
                && figure.route == origin.route
                && figure.subject == origin.subject
                && figure.variant == origin.variant
                && figure.pass == origin.pass
        };
        let own = self.figures.iter().find(|figure| same(figure, metric, labels));
        if own.is_some() || !part_of_total(labels.iter().map(|(k, v)| (k.as_str(), v.as_str()))) {
            return own.cloned();
        }
        let total =
            self.figures.iter().find(|figure| same(figure, total_of(metric), &BTreeMap::new()))?;
        let nothing = Figure::exact(0.0, total.figure.samples);
        Some(BaselineFigure { metric, labels: labels.clone(), figure: nothing, ..total.clone() })
    }
}

/// A figure to keep; `None` when there is none.
pub(super) fn figure(
    origin: &Origin,
    metric: Metric,
    labels: BTreeMap<String, String>,
    amount: &Amount,
    kind: Kind,
) -> Option<BaselineFigure> {
    let Amount::Measured(figure) = *amount else { return None };
    if ![figure.value, figure.low, figure.high].iter().all(|value| value.is_finite()) {
        return None;
    }
    Some(BaselineFigure {
        route: origin.route.clone(),
        subject: origin.subject.clone(),
        variant: origin.variant.clone(),
        pass: origin.pass.clone(),
        metric,
        labels,
        kind,
        figure,
    })
}

/// In the order of a file; of equal cells the first stays.
pub(super) fn sorted(mut figures: Vec<BaselineFigure>) -> Vec<BaselineFigure> {
    figures.sort_by(|one, other| one.key().cmp(&other.key()));
    figures.dedup_by(|later, first| later.key() == first.key());
    figures
}
