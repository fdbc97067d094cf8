//! Bars whose parts sum to a whole: the shape of most charts of costs.

use assay_analyses::cost::{Amount, Cost};

use super::laps::beside;
use super::{Chart, Drawing, Numbers, Stacked, StackedRow};
use crate::cost_table::{Finder, Wanted, mark};
use crate::numbers::{self, Scale};

/// The parts of a whole, and the whole itself where it is a cost of its own.
pub(super) struct Whole<'a> {
    pub(super) title: &'static str,
    pub(super) says: String,
    /// The whole; its comparison stands at the end of the bar.
    pub(super) whole: Option<Wanted<'a>>,
    pub(super) parts: Vec<Wanted<'a>>,
    /// What of the whole is in no part is drawn as a part of this name.
    pub(super) rest: Option<&'static str>,
}

/// A chart of parts; `None` where nothing of it was measured, or all is zero.
pub(super) fn chart(finder: &Finder<'_>, whole: &Whole<'_>) -> Option<Chart> {
    let wholes = whole.whole.as_ref().map(|wanted| finder.find(wanted));
    let parts: Vec<(&str, Vec<Option<&Cost>>)> =
        whole.parts.iter().map(|wanted| (wanted.name.as_str(), finder.find(wanted))).collect();
    let parts: Vec<(&str, Vec<Option<&Cost>>)> =
        parts.into_iter().filter(|(_, costs)| costs.iter().flatten().any(is_something)).collect();
    let totals: Vec<Option<f64>> = (0..finder.arms.len())
        .map(|arm| match &wholes {
            Some(wholes) => wholes[arm].and_then(value),
            None => {
                let of_arm = || parts.iter().filter_map(|(_, costs)| costs[arm]);
                of_arm().any(|cost| is_some(&cost)).then(|| of_arm().filter_map(value).sum())
            }
        })
        .collect();
    let amounts: Vec<(f64, f64)> = totals.iter().flatten().map(|total| (*total, 0.0)).collect();
    if amounts.iter().all(|(total, _)| *total == 0.0) {
        return None;
    }
    let metric = whole.whole.as_ref().or(whole.parts.first())?;
    let scale = Scale::of(metric.metric.unit(), metric.count, &amounts);
    let mut names: Vec<String> = parts.iter().map(|(name, _)| (*name).to_owned()).collect();
    names.extend(whole.rest.map(str::to_owned));
    let mut rows = Vec::new();
    let mut table = Vec::new();
    for (index, arm) in finder.arms.iter().enumerate() {
        let total = totals[index];
        let mut sizes: Vec<Option<f64>> =
            parts.iter().map(|(_, costs)| costs[index].and_then(value)).collect();
        if whole.rest.is_some() {
            let known: f64 = sizes.iter().flatten().sum();
            sizes.push(total.map(|total| (total - known).max(0.0)));
        }
        let said = wholes.as_ref().and_then(|wholes| wholes[index]);
        let text = text(finder, said, total, &scale);
        let cells = sizes.iter().map(|size| size.map_or("–".to_owned(), |s| scale.show(s)));
        table.push(std::iter::once(arm.title.clone()).chain(cells).chain([text.clone()]).collect());
        rows.push(StackedRow {
            name: arm.title.clone(),
            sizes: sizes.iter().map(|size| size.map(|size| size * scale.factor)).collect(),
            interval: None,
            text,
        });
    }
    let mut head = vec!["variant".to_owned()];
    head.extend(names.iter().map(|name| format!("{name}, {}", scale.unit)));
    head.push("together".to_owned());
    Some(Chart {
        title: if metric.metric.unit() == "1" {
            format!("{}, per request", whole.title)
        } else {
            format!("{}, {} per request", whole.title, scale.unit)
        },
        says: whole.says.clone(),
        drawing: Drawing::Stacked(Stacked { parts: names, rest: whole.rest.is_some(), rows }),
        numbers: Numbers { head, rows: table },
    })
}

fn is_some(cost: &&Cost) -> bool {
    value(cost).is_some()
}

/// A part that is zero everywhere would only stand in the legend.
fn is_something(cost: &&Cost) -> bool {
    value(cost).is_some_and(|value| value > 0.0)
}

fn value(cost: &Cost) -> Option<f64> {
    cost.amount.figure().map(|figure| figure.value)
}

/// The figure at the end of a bar, with its change and mark, or that there is none.
fn text(finder: &Finder<'_>, whole: Option<&Cost>, total: Option<f64>, scale: &Scale) -> String {
    let Some(total) = total else { return "not measured".to_owned() };
    let least = matches!(whole.map(|cost| &cost.amount), Some(Amount::LowerBound(..)));
    let figure = format!("{}{}", if least { "≥" } else { "" }, scale.show(total));
    let Some(judged) = whole.and_then(|cost| finder.comparison(cost)) else { return figure };
    let change = match judged.change() {
        Some(change) if judged.effect.is_some() => {
            numbers::percent(change, judged.effect.map(|effect| effect.half_width()))
        }
        _ => scale.show_difference(judged.difference()).unwrap_or_default(),
    };
    beside(&figure, format!("{change} {}", mark(judged.verdict)).trim())
}
