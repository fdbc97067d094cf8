//! What charts show, as plain content: rows, parts, points and the numbers behind them. Drawing is
//! for `svg`; so a chart, its table and its description cannot disagree.

mod changes;
mod cpu;
mod laps;
mod latency;
mod parts;
mod trips;
mod waterfall;

use assay_captures::run_record::Route;

use crate::cost_table::Finder;
use crate::report::Report;

/// One chart.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// What it shows and in which unit. Ours.
    pub title: String,
    /// One sentence: how to read it, or what to beware of.
    pub says: String,
    /// What is drawn.
    pub drawing: Drawing,
    /// The same as numbers.
    pub numbers: Numbers,
}

/// A table of the numbers behind a chart. Foreign text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Numbers {
    /// Titles of the columns; the first names the rows.
    pub head: Vec<String>,
    /// Rows of as many cells.
    pub rows: Vec<Vec<String>>,
}

/// What is drawn.
#[derive(Clone, Debug, PartialEq)]
pub enum Drawing {
    /// Horizontal bars of parts that sum to the whole.
    Stacked(Stacked),
    /// Laps against the best lap of the reference.
    Strip(Strip),
    /// Lines over a common axis.
    Curves(Curves),
    /// Changes to both sides of none.
    Changes(Changes),
    /// One request from its first packet to its last.
    Waterfall(Waterfall),
}

/// Bars of parts, one a row.
#[derive(Clone, Debug, PartialEq)]
pub struct Stacked {
    /// Names of the parts, in the order of drawing.
    pub parts: Vec<String>,
    /// The last part is what is left over.
    pub rest: bool,
    /// The bars.
    pub rows: Vec<StackedRow>,
}

/// One bar.
#[derive(Clone, Debug, PartialEq)]
pub struct StackedRow {
    /// Whose it is.
    pub name: String,
    /// One size a part, in the unit shown; `None` where it was not measured.
    pub sizes: Vec<Option<f64>>,
    /// An interval of the whole, drawn as a whisker.
    pub interval: Option<(f64, f64)>,
    /// What stands at its end: the figure with its mark, or why there is none.
    pub text: String,
}

/// The laps of each arm, as the documents draw them: a bar from best to slowest, a dot at the
/// best, a tick at the median, zero at the reference's best.
#[derive(Clone, Debug, PartialEq)]
pub struct Strip {
    /// One row an arm, the reference first.
    pub rows: Vec<StripRow>,
}

/// One arm of a strip chart, in percent of the reference's best lap.
#[derive(Clone, Debug, PartialEq)]
pub struct StripRow {
    /// Whose it is.
    pub name: String,
    /// Best, median and slowest lap.
    pub best: f64,
    /// The median lap.
    pub median: f64,
    /// The slowest lap.
    pub slowest: f64,
    /// By the spread rule it cannot be told from the reference: the dot is hollow.
    pub hollow: bool,
    /// What stands at its end.
    pub text: String,
}

/// Lines over a common axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Curves {
    /// What the horizontal axis shows, with its ticks at their place (0..=1).
    pub x_title: String,
    /// Ticks of the horizontal axis: place (0..=1) and label.
    pub x_ticks: Vec<(f64, String)>,
    /// What the vertical axis shows.
    pub y_title: String,
    /// Whether the vertical axis has ten times more a step.
    pub y_logarithmic: bool,
    /// The lines.
    pub lines: Vec<CurveLine>,
}

/// One line.
#[derive(Clone, Debug, PartialEq)]
pub struct CurveLine {
    /// Whose it is.
    pub name: String,
    /// Place on the horizontal axis (0..=1), and value.
    pub points: Vec<(f64, f64)>,
}

/// Changes against the reference, in percent.
#[derive(Clone, Debug, PartialEq)]
pub struct Changes {
    /// Titles of the arms that are compared, without the reference.
    pub arms: Vec<String>,
    /// One metric a row.
    pub rows: Vec<ChangesRow>,
}

/// One metric.
#[derive(Clone, Debug, PartialEq)]
pub struct ChangesRow {
    /// What it is, with its unit.
    pub name: String,
    /// One an arm; `None` where nothing can be said.
    pub changes: Vec<Option<Change>>,
}

/// One change.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// In percent; its interval, where it has one.
    pub percent: f64,
    /// The interval in percent, where there is one.
    pub interval: Option<(f64, f64)>,
    /// Nobody can tell whether there is a change: it is drawn hollow.
    pub unsure: bool,
    /// `before → after`, with the change.
    pub text: String,
}

/// One request: what it waited for, and when.
#[derive(Clone, Debug, PartialEq)]
pub struct Waterfall {
    /// From the request in to the response out, in the unit shown.
    pub length: f64,
    /// The unit.
    pub unit: &'static str,
    /// What its trips are made for, each with its colour: the same in all pictures.
    pub kinds: Vec<(String, usize)>,
    /// Its trips in order.
    pub trips: Vec<WaterfallTrip>,
}

/// One trip of a request.
#[derive(Clone, Debug, PartialEq)]
pub struct WaterfallTrip {
    /// Start and end from the request in, in the unit shown.
    pub span: (f64, f64),
    /// Its kind: a place in [`Waterfall::kinds`].
    pub kind: usize,
    /// Nobody waits for it.
    pub unawaited: bool,
    /// Reason and statement.
    pub text: String,
}

/// The charts of one route, in the order of reading; what was not measured has none.
#[must_use]
pub fn of_route(report: &Report, route: &Route) -> Vec<Chart> {
    let finder = Finder::new(report, &route.name);
    let mut charts = Vec::new();
    charts.extend(laps::throughput(&finder));
    charts.extend(laps::strip(&finder));
    charts.extend(latency::percentiles(&finder));
    charts.extend(trips::by_reason(&finder));
    charts.extend(cpu::by_process(&finder));
    charts.extend(cpu::by_phase(&finder, "subject", "the service"));
    charts.extend(cpu::by_phase(&finder, "postgres", "Postgres"));
    charts.extend(trips::syscalls(&finder));
    charts.extend(changes::against_reference(&finder));
    charts.extend(laps::over_time(&finder));
    charts
}

/// The charts of single requests on an idle machine: they stand apart from all that was measured
/// under load.
#[must_use]
pub fn of_requests(report: &Report, route: &Route) -> Vec<Chart> {
    let finder = Finder::new(report, &route.name);
    let mut charts: Vec<Chart> = trips::distribution(&finder).into_iter().collect();
    charts.extend(trips::idle_machine(&finder));
    charts.extend(waterfall::of_route(&finder));
    charts
}
