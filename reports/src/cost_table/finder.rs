//! Looks costs and comparisons of one route up, and turns them into lines.

use assay_analyses::compare::Comparison;
use assay_analyses::cost::{Amount, Cost, Figure};
use assay_analyses::metric::{Kind, Metric};
use assay_analyses::verdict::Verdict;
use assay_captures::lap::Lap;
use assay_captures::run_record::Arm;

use super::notes::Notes;
use super::{Entry, Line, mark, words};
use crate::numbers::{self, Scale};
use crate::report::Report;

/// One route of a report.
pub(crate) struct Finder<'a> {
    pub(crate) report: &'a Report,
    pub(crate) route: &'a str,
    /// The arms that were run on it, the reference first.
    pub(crate) arms: Vec<&'a Arm>,
}

/// What a line shows.
#[derive(Clone)]
pub(crate) struct Wanted<'a> {
    pub(crate) name: String,
    pub(crate) indent: usize,
    pub(crate) metric: Metric,
    pub(crate) labels: Vec<(&'a str, &'a str)>,
    /// The passes to take it from, the best first; the first that has it in any arm is taken
    /// for all of them.
    pub(crate) passes: &'a [&'a str],
    /// Unit of a count.
    pub(crate) count: &'static str,
    /// The metric that this is a part of: where that was measured, what was never seen of it
    /// is 0.
    pub(crate) total: Option<Metric>,
    /// A figure that stands near, in the metric's unit: both are shown in one unit.
    pub(crate) beside: f64,
    /// A doubt that the group's title says already.
    pub(crate) said: &'a str,
}

impl<'a> Wanted<'a> {
    pub(crate) fn new(
        name: impl Into<String>,
        metric: Metric,
        count: &'static str,
        passes: &'a [&'a str],
    ) -> Self {
        let labels = Vec::new();
        Self {
            name: name.into(),
            indent: 1,
            metric,
            labels,
            passes,
            count,
            total: None,
            beside: 0.0,
            said: "",
        }
    }

    pub(crate) fn with(mut self, label: &'a str, value: &'a str) -> Self {
        self.labels.push((label, value));
        self
    }

    pub(crate) fn part(mut self) -> Self {
        self.indent += 1;
        self.total = Some(self.metric);
        self
    }

    pub(crate) fn inside(mut self) -> Self {
        self.indent += 1;
        self
    }
}

impl<'a> Finder<'a> {
    pub(crate) fn new(report: &'a Report, route: &'a str) -> Self {
        let was_run = |arm: &&Arm| {
            report.costs.iter().any(|cost| cost.origin.route == route && is_of(cost, arm))
        };
        Self { report, route, arms: report.run.arms.iter().filter(was_run).collect() }
    }

    /// The laps of an arm in which no probe ran.
    pub(crate) fn fair_laps(&self, arm: &Arm) -> impl Iterator<Item = &'a Lap> + use<'a> {
        let (report, route) = (self.report, self.route.to_owned());
        let (subject, variant) = (arm.subject.clone(), arm.variant.clone());
        report.laps.iter().filter(move |lap| {
            lap.pass == "fair"
                && lap.route == route
                && lap.subject == subject
                && lap.variant == variant
        })
    }

    /// Whether a cost is one of the first column.
    pub(crate) fn is_first(&self, cost: &Cost) -> bool {
        self.arms.first().is_some_and(|arm| is_of(cost, arm))
    }

    pub(crate) fn costs(&self, metric: Metric) -> impl Iterator<Item = &'a Cost> + use<'a> {
        let (report, route) = (self.report, self.route.to_owned());
        report.costs.iter().filter(move |cost| cost.metric == metric && cost.origin.route == route)
    }

    /// One cost an arm, all of the same pass.
    pub(crate) fn find(&self, wanted: &Wanted<'_>) -> Vec<Option<&'a Cost>> {
        for pass in wanted.passes {
            let found: Vec<Option<&Cost>> =
                self.arms.iter().map(|arm| self.one(arm, wanted, pass)).collect();
            if found.iter().any(Option::is_some) {
                return found;
            }
        }
        vec![None; self.arms.len()]
    }

    fn one(&self, arm: &Arm, wanted: &Wanted<'_>, pass: &str) -> Option<&'a Cost> {
        let of_arm = |cost: &&'a Cost| cost.origin.pass == pass && is_of(cost, arm);
        let labelled = |cost: &&'a Cost| {
            cost.labels.len() == wanted.labels.len()
                && wanted
                    .labels
                    .iter()
                    .all(|&(label, value)| cost.labels.get(label).is_some_and(|own| own == value))
        };
        let mut found: Vec<&Cost> =
            self.costs(wanted.metric).filter(of_arm).filter(labelled).collect();
        // Two instruments may have counted the same: measured ones first, then by capture.
        found.sort_by_key(|cost| (cost.amount.figure().is_none(), &cost.origin.capture));
        found.first().copied()
    }

    /// How a cost compares with the reference's.
    pub(crate) fn comparison(&self, cost: &Cost) -> Option<&'a Comparison> {
        self.report.comparisons.iter().find(|comparison| {
            let cell = &comparison.cell;
            cell.metric == cost.metric
                && cell.route == cost.origin.route
                && cell.pass == cost.origin.pass
                && cell.labels == cost.labels
                && comparison.arm.subject == cost.origin.subject
                && comparison.arm.variant == cost.origin.variant
                // Another instrument's comparison of the same cell has other amounts.
                && (comparison.effect.is_some()
                    || cost.amount.figure().is_some_and(|figure| {
                        (figure.value - comparison.arm_amount).abs()
                            <= 1e-9 * figure.value.abs()
                    }))
        })
    }

    /// The line of what is wanted; `None` when no arm has anything to show.
    pub(super) fn line(&self, wanted: &Wanted<'_>, notes: &mut Notes) -> Option<Line> {
        let costs = self.find(wanted);
        if costs.iter().all(Option::is_none) {
            return None;
        }
        let figures: Vec<(f64, f64)> = costs.iter().flatten().filter_map(|c| amount(c)).collect();
        // The line of the total says what there is to say of parts that are all zero or unknown.
        if wanted.total.is_some() && figures.iter().all(|(value, _)| *value == 0.0) {
            return None;
        }
        let scale = Scale::beside(wanted.metric.unit(), wanted.count, &figures, wanted.beside);
        let mut numbers = Vec::new();
        let pass = costs.iter().flatten().next().map_or("", |cost| cost.origin.pass.as_str());
        let entries = costs
            .iter()
            .zip(&self.arms)
            .map(|(cost, arm)| match cost {
                Some(cost) => self.entry(cost, &scale, wanted.said, notes, &mut numbers),
                None if self.has_total(arm, wanted, pass) => {
                    Entry { value: "0".into(), ..Entry::default() }
                }
                None => Entry { value: "–".into(), ..Entry::default() },
            })
            .collect();
        numbers.sort_unstable();
        numbers.dedup();
        Some(Line {
            name: wanted.name.clone(),
            indent: wanted.indent,
            unit: scale.unit,
            entries,
            notes: numbers,
        })
    }

    fn has_total(&self, arm: &Arm, wanted: &Wanted<'_>, pass: &str) -> bool {
        wanted.total.is_some_and(|metric| {
            let total = Wanted { metric, labels: Vec::new(), ..wanted.clone() };
            self.one(arm, &total, pass).is_some_and(|cost| cost.amount.figure().is_some())
        })
    }

    fn entry(
        &self,
        cost: &Cost,
        scale: &Scale,
        said: &str,
        notes: &mut Notes,
        numbers: &mut Vec<usize>,
    ) -> Entry {
        for doubt in cost.doubts.iter().filter(|doubt| *doubt != said) {
            numbers.push(notes.of_line(doubt));
        }
        let value = match &cost.amount {
            Amount::Measured(figure) => scale.show(figure.value),
            Amount::LowerBound(figure, reason) => {
                numbers.push(notes.of_line(&format!("at least: {reason}")));
                format!("≥{}", scale.show(figure.value))
            }
            Amount::NotMeasured(reason) => {
                numbers.push(notes.of_line(&format!("not measured: {reason}")));
                return Entry { value: "n/a".into(), ..Entry::default() };
            }
        };
        let change = self.comparison(cost).map_or_else(String::new, |comparison| {
            for doubt in &comparison.doubts {
                let title = self.report.title(&comparison.arm);
                numbers.push(notes.of_column(title, doubt));
            }
            change(comparison, scale)
        });
        Entry { value, change, words: false }
    }

    /// The verdicts on what is wanted, in words; `None` when nothing was judged by rounds.
    pub(super) fn verdicts(&self, wanted: &Wanted<'_>, notes: &mut Notes) -> Option<Line> {
        let costs = self.find(wanted);
        let mut judged = false;
        let mut needed = Vec::new();
        let entries = costs
            .iter()
            .map(|cost| {
                let comparison = cost.and_then(|cost| self.comparison(cost));
                let Some(comparison) = comparison else { return Entry::default() };
                let half = comparison.effect.map(|effect| effect.half_width());
                judged = true;
                if let Verdict::CannotTell { rounds_needed: Some(rounds), .. } = comparison.verdict
                {
                    needed.push(rounds);
                }
                Entry { value: words(comparison.verdict, half), words: true, ..Entry::default() }
            })
            .collect();
        let numbers = needed.iter().max().map(|rounds| {
            notes.of_line(&format!("with this noise, {rounds} rounds would be sure of a verdict"))
        });
        judged.then(|| Line {
            name: "verdict".into(),
            indent: wanted.indent + 1,
            unit: "",
            entries,
            notes: numbers.into_iter().collect(),
        })
    }
}

fn is_of(cost: &Cost, arm: &Arm) -> bool {
    cost.origin.subject == arm.subject && cost.origin.variant == arm.variant
}

/// Value and half-width of a cost with a figure. The range of an exact count is that of single
/// requests, not a doubt about the figure.
fn amount(cost: &Cost) -> Option<(f64, f64)> {
    let Figure { value, low, high, .. } = cost.amount.figure()?;
    Some((value, if cost.kind == Kind::Exact { 0.0 } else { (high - low) / 2.0 }))
}

/// A change: counts by their difference, the rest in percent.
fn change(comparison: &Comparison, scale: &Scale) -> String {
    let verdict = comparison.verdict;
    let sign = mark(verdict);
    match verdict {
        Verdict::Same | Verdict::NotJudged { overlap: true } | Verdict::Indistinguishable => {
            return sign.to_owned();
        }
        _ => {}
    }
    let count = comparison.cell.metric.unit() == "1";
    let text = if count || comparison.change().is_none() {
        scale.show_difference(comparison.difference()).unwrap_or_else(|| "=".to_owned())
    } else {
        let half = comparison.effect.map(|effect| effect.half_width());
        numbers::percent(comparison.change().unwrap_or_default(), half)
    };
    match (text.as_str(), sign) {
        (_, "") => text,
        ("=", sign) => sign.to_owned(),
        (text, sign) => format!("{text} {sign}"),
    }
}
