//! The table of one route as plain content: which rows it has and what stands in their cells.
//! Renderers only dress it, so that they cannot disagree.

mod cpu;
mod finder;
mod groups;
mod legend;
mod notes;

use assay_analyses::verdict::Verdict;
use assay_captures::run_record::Route;

use crate::numbers;
use crate::report::Report;

pub(crate) use finder::{Finder, Wanted};
pub(crate) use groups::REASONS;
pub use legend::LEGEND;

/// Everything to be shown of one route.
#[derive(Clone, Debug, PartialEq)]
pub struct CostTable {
    /// Name of the route.
    pub route: String,
    /// Method and path template.
    pub request: String,
    /// One title a column; the first is the reference. Foreign text, not yet made harmless.
    pub titles: Vec<String>,
    /// The parts of the table.
    pub groups: Vec<Group>,
    /// Notes that lines refer to; the first is number 1. Foreign text.
    pub notes: Vec<String>,
}

/// A part of the table.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// What its lines count, and per what.
    pub title: &'static str,
    /// How it was measured, in a few words.
    pub how: String,
    /// Its lines.
    pub lines: Vec<Line>,
    /// Sentences below the lines.
    pub remarks: Vec<Remark>,
}

/// A sentence below lines. Foreign text.
#[derive(Clone, Debug, PartialEq)]
pub struct Remark {
    /// The sentence.
    pub text: String,
    /// Numbers of the notes that limit it, ascending.
    pub notes: Vec<usize>,
}

/// One line.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// What it counts. Foreign text.
    pub name: String,
    /// How deep it is indented: a part of the line above with less.
    pub indent: usize,
    /// Unit of all of its figures.
    pub unit: &'static str,
    /// One a column.
    pub entries: Vec<Entry>,
    /// Numbers of the notes that limit it, ascending.
    pub notes: Vec<usize>,
}

/// What stands in one column of a line.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Entry {
    /// The figure, or words that take the place of figure and change.
    pub value: String,
    /// Its change against the first column; empty in that one, and where there is nothing to
    /// say.
    pub change: String,
    /// Whether `value` is words.
    pub words: bool,
}

/// The table of one route.
#[must_use]
pub fn cost_table(report: &Report, route: &Route) -> CostTable {
    let mut notes = notes::Notes::default();
    let finder = finder::Finder::new(report, &route.name);
    let mut groups = groups::all(&finder, &mut notes);
    let notes = notes.number(&mut groups, finder.arms.len().saturating_sub(1));
    CostTable {
        route: route.name.clone(),
        request: format!("{} {}", route.method, route.path),
        titles: finder.arms.iter().map(|arm| arm.title.clone()).collect(),
        groups,
        notes,
    }
}

/// The routes to show: those named, or else those that were run at all.
pub fn routes<'a>(report: &'a Report, named: &'a [String]) -> impl Iterator<Item = &'a Route> {
    report.run.routes.iter().filter(move |route| match named {
        [] => report.costs.iter().any(|cost| cost.origin.route == route.name),
        named => named.contains(&route.name),
    })
}

/// The mark of a verdict, always beside a figure or a word.
#[must_use]
pub fn mark(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Faster => "▲",
        Verdict::Slower => "▼",
        Verdict::Indistinguishable => "≈",
        Verdict::CannotTell { .. } => "?",
        Verdict::NotJudged { overlap: true } => "~",
        Verdict::Same => "=",
        Verdict::NotJudged { overlap: false } | Verdict::Fewer | Verdict::More => "",
    }
}

/// A verdict in words, short enough for a column.
#[must_use]
pub fn words(verdict: Verdict, half_width: Option<f64>) -> String {
    let half = half_width.map(numbers::plus_minus);
    match (verdict, half) {
        (Verdict::Faster | Verdict::Slower | Verdict::CannotTell { .. }, Some(half)) => {
            format!("{} {half}", verdict.word())
        }
        _ => verdict.word().to_owned(),
    }
}
