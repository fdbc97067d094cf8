//! What became of a budget: for a terminal, and as JSON.
//!
//! ```text
//! broken       detail: postgres.flights <= 4                                     budget.toml:3
//!                blog.ping · detail                9 of at most 4; 5 too many (+125 %)
//!                  captures/serial/blog.ping/detail/wire
//! kept         postgres.rows <= 20                                                budget.toml:4
//!                nearest: blog.page · detail      14 of at most 20
//! ```

use std::collections::BTreeMap;

use assay_analyses::budget::{Bound, Judgement, Limit, Outcome, Side};
use assay_analyses::cost::Figure;
use serde::Serialize;

use crate::json::{field, records};
use crate::numbers::{self, Scale};
use crate::plain;

/// A budget and what became of it.
#[derive(Clone, Copy, Debug)]
pub struct JudgedBudget<'a> {
    /// The limits.
    pub limits: &'a [Limit],
    /// Where each stands, such as `budget.toml:3`.
    pub places: &'a [String],
    /// From [`assay_analyses::budget::judge`].
    pub judgements: &'a [Judgement],
    /// Whether what nobody can tell counts as broken.
    pub strict: bool,
}

/// How one limit ended, the worst last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ending {
    /// All figures keep it.
    Kept,
    /// At least one has the limit inside its interval, none breaks it.
    CannotTell,
    /// At least one figure is missing.
    NotJudged,
    /// At least one figure breaks it.
    Broken,
}

impl Ending {
    /// The word for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Kept => "kept",
            Self::CannotTell => "cannot tell",
            Self::NotJudged => "not judged",
            Self::Broken => "broken",
        }
    }

    fn of(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Holds => Self::Kept,
            Outcome::CannotTell => Self::CannotTell,
            Outcome::NotJudged(_) => Self::NotJudged,
            Outcome::Broken => Self::Broken,
        }
    }
}

impl JudgedBudget<'_> {
    /// How each limit ended.
    #[must_use]
    pub fn endings(&self) -> Vec<Ending> {
        (0..self.limits.len())
            .map(|limit| {
                let own = self.judgements.iter().filter(|judgement| judgement.limit == limit);
                own.map(|judgement| Ending::of(&judgement.outcome)).max().unwrap_or(Ending::Kept)
            })
            .collect()
    }

    fn of_limit(&self, limit: usize) -> impl Iterator<Item = &Judgement> {
        self.judgements.iter().filter(move |judgement| judgement.limit == limit)
    }
}

/// Columns of the word in front of a limit.
const WORD: usize = 13;

/// The budget for a terminal of `width` columns: what broke first in the eye, then the rest in the
/// order of the file.
#[must_use]
pub fn render(budget: &JudgedBudget<'_>, width: usize) -> String {
    let mut out = String::new();
    let endings = budget.endings();
    for (index, (limit, ending)) in budget.limits.iter().zip(&endings).enumerate() {
        let place = budget.places.get(index).map_or("", String::as_str);
        let room = width.saturating_sub(WORD);
        let text = plain::line(&limit.text, room);
        let place = plain::line(place, room);
        let used = unicode_width::UnicodeWidthStr::width(text.as_str())
            + unicode_width::UnicodeWidthStr::width(place.as_str());
        let gap = " ".repeat(room.saturating_sub(used).max(2));
        out.push_str(&format!("{:WORD$}{text}{gap}{place}\n", ending.word()));
        push_figures(&mut out, budget, index, *ending, width);
    }
    out.push_str(&summary(&endings, budget.strict));
    out
}

fn push_figures(
    out: &mut String,
    budget: &JudgedBudget<'_>,
    index: usize,
    ending: Ending,
    width: usize,
) {
    let limit = &budget.limits[index];
    if ending == Ending::Kept {
        let reach = |judgement: &Judgement| judgement.excess(limit.side).unwrap_or(f64::MIN);
        let nearest = budget.of_limit(index).max_by(|a, b| reach(a).total_cmp(&reach(b)));
        let many = budget.of_limit(index).count();
        if let Some(nearest) = nearest {
            let lead = if many > 1 { format!("nearest of {many}: ") } else { String::new() };
            push_figure(out, limit, nearest, &lead, width);
        }
        return;
    }
    let mut kept = 0;
    for judgement in budget.of_limit(index) {
        match judgement.outcome {
            Outcome::Holds => kept += 1,
            Outcome::Broken | Outcome::CannotTell | Outcome::NotJudged(_) => {
                push_figure(out, limit, judgement, "", width);
            }
        }
    }
    if kept > 0 {
        let figures = if kept == 1 { "figure keeps" } else { "figures keep" };
        out.push_str(&format!("{:1$}{kept} more {figures} it\n", "", WORD + 2));
    }
}

fn push_figure(out: &mut String, limit: &Limit, judgement: &Judgement, lead: &str, width: usize) {
    let indent = " ".repeat(WORD + 2);
    let room = width.saturating_sub(indent.len());
    let mut line = lead.to_owned();
    if let Some((origin, labels)) = &judgement.place {
        let mut place = format!("{}.{} · {}", origin.subject, origin.variant, origin.route);
        if limit.labels.values().any(Option::is_none) {
            let pairs: Vec<String> = labels.iter().map(|(key, v)| format!("{key}={v}")).collect();
            place.push_str(&format!(" {{{}}}", pairs.join(", ")));
        }
        line.push_str(&plain::line(&place, 50));
        line.push_str(": ");
    }
    line.push_str(&told(limit, judgement));
    for (number, part) in plain::wrap(&plain::line(&line, plain::SENTENCE), room).iter().enumerate()
    {
        let more = if number > 0 { "  " } else { "" };
        out.push_str(&format!("{indent}{more}{part}\n"));
    }
    let capture = judgement.place.as_ref().and_then(|(origin, _)| origin.capture.as_ref());
    if let (Some(capture), false) = (capture, judgement.outcome == Outcome::Holds) {
        out.push_str(&format!("{indent}  {}\n", plain::line(capture, room.saturating_sub(2))));
    }
}

/// Reading, limit and what lies between, in words.
fn told(limit: &Limit, judgement: &Judgement) -> String {
    if let Outcome::NotJudged(reason) = &judgement.outcome {
        return reason.clone();
    }
    let (Some(reading), Some(bound)) = (judgement.reading, judgement.bound) else {
        return String::new();
    };
    let half = |figure: Figure| (figure.high - figure.low) / 2.0;
    let amounts = [(reading.value, half(reading)), (bound.value, half(bound))];
    let scale = Scale::of(limit.metric.unit(), "", &amounts);
    let amount = |value: f64| match scale.unit {
        "" => scale.show(value),
        unit => format!("{} {unit}", scale.show(value)),
    };
    let interval = |figure: Figure| {
        if figure.low == figure.high {
            amount(figure.value)
        } else {
            let ends = format!("{} – {}", scale.show(figure.low), scale.show(figure.high));
            format!("{} ({ends})", amount(figure.value))
        }
    };
    let side = match limit.side {
        Side::AtMost => "at most",
        Side::Below => "less than",
        Side::AtLeast => "at least",
        Side::Above => "more than",
    };
    let of = match limit.bound {
        Bound::Amount(_) => format!("{side} {}", amount(bound.value)),
        Bound::Baseline { .. } => format!("{side} {} by the baseline", interval(bound)),
    };
    let excess = judgement.excess(limit.side).unwrap_or_default();
    let share = (bound.value != 0.0)
        .then(|| (reading.value - bound.value) / bound.value.abs())
        .filter(|_| excess > 0.0)
        .map_or(String::new(), |share| format!(" ({})", numbers::percent(share, None)));
    let beyond = if excess > 0.0 {
        let much = if limit.side.is_upper() { "too much" } else { "too little" };
        format!("; {} {much}{share}", amount(excess))
    } else {
        String::new()
    };
    format!("{}, {of}{beyond}", interval(reading))
}

fn summary(endings: &[Ending], strict: bool) -> String {
    let count = |ending: Ending| endings.iter().filter(|&&own| own == ending).count();
    let parts: Vec<String> = [Ending::Broken, Ending::NotJudged, Ending::CannotTell, Ending::Kept]
        .into_iter()
        .filter(|&ending| count(ending) > 0)
        .map(|ending| {
            let counted =
                if ending == Ending::CannotTell && strict { " (counts as broken)" } else { "" };
            format!("{} {}{counted}", count(ending), ending.word())
        })
        .collect();
    let limits = if endings.len() == 1 { "limit" } else { "limits" };
    format!("{} {limits}: {}\n", endings.len(), parts.join(", "))
}

#[derive(Serialize)]
struct LimitRecord<'a> {
    limit: &'a str,
    place: &'a str,
    metric: &'a str,
    unit: &'a str,
    outcome: &'a str,
}

#[derive(Serialize)]
struct JudgementRecord<'a> {
    limit: &'a str,
    outcome: &'a str,
    reason: Option<&'a str>,
    subject: Option<&'a str>,
    variant: Option<&'a str>,
    route: Option<&'a str>,
    pass: Option<&'a str>,
    metric: &'a str,
    labels: BTreeMap<&'a str, &'a str>,
    unit: &'a str,
    amount: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
    bound: Option<f64>,
    bound_low: Option<f64>,
    bound_high: Option<f64>,
    excess: Option<f64>,
    capture: Option<&'a str>,
}

/// The budget as JSON: one line for each limit, and one for each figure held against it.
#[must_use]
pub fn render_json(budget: &JudgedBudget<'_>) -> String {
    let endings = budget.endings();
    let worst = endings.iter().copied().max().unwrap_or(Ending::Kept);
    let limits: Vec<LimitRecord<'_>> = (budget.limits.iter().zip(budget.places).zip(&endings))
        .map(|((limit, place), ending)| LimitRecord {
            limit: &limit.text,
            place,
            metric: limit.metric.name(),
            unit: limit.metric.unit(),
            outcome: ending.word(),
        })
        .collect();
    let judgements: Vec<JudgementRecord<'_>> = (budget.judgements.iter())
        .filter_map(|judgement| Some(record(budget.limits.get(judgement.limit)?, judgement)))
        .collect();
    let fields = [
        field("schema", &crate::json::SCHEMA),
        field("outcome", &worst.word()),
        field("strict", &budget.strict),
        records("limits", &limits),
        records("judgements", &judgements),
    ];
    format!("{{\n{}\n}}\n", fields.join(",\n"))
}

fn record<'a>(limit: &'a Limit, judgement: &'a Judgement) -> JudgementRecord<'a> {
    let place = judgement.place.as_ref();
    let origin = place.map(|(origin, _)| origin);
    let labels = place.map(|(_, labels)| labels).into_iter().flatten();
    let finite = |value: Option<f64>| value.filter(|value| value.is_finite());
    JudgementRecord {
        limit: &limit.text,
        outcome: Ending::of(&judgement.outcome).word(),
        reason: match &judgement.outcome {
            Outcome::NotJudged(reason) => Some(reason),
            _ => None,
        },
        subject: origin.map(|origin| origin.subject.as_str()),
        variant: origin.map(|origin| origin.variant.as_str()),
        route: origin.map(|origin| origin.route.as_str()),
        pass: origin.map(|origin| origin.pass.as_str()),
        metric: limit.metric.name(),
        labels: labels.map(|(key, value)| (key.as_str(), value.as_str())).collect(),
        unit: limit.metric.unit(),
        amount: finite(judgement.reading.map(|figure| figure.value)),
        low: finite(judgement.reading.map(|figure| figure.low)),
        high: finite(judgement.reading.map(|figure| figure.high)),
        bound: finite(judgement.bound.map(|figure| figure.value)),
        bound_low: finite(judgement.bound.map(|figure| figure.low)),
        bound_high: finite(judgement.bound.map(|figure| figure.high)),
        excess: finite(judgement.excess(limit.side)),
        capture: origin.and_then(|origin| origin.capture.as_deref()),
    }
}

#[cfg(test)]
mod tests;
