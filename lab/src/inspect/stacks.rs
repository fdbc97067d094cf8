//! Profiles that are stacks in text: `perf script` and folded stacks.

use std::collections::{BTreeMap, HashMap, HashSet};

use anyhow::Result;
use assay_analyses::cost::{Amount, Cost, Figure};
use assay_analyses::costs::foreign::View;
use assay_analyses::metric::{Kind, Metric};
use assay_captures::parsed::{Problem, Sink};
use assay_captures::perf_script::Sample;
use assay_captures::units::{Moment, Nanos, Span};
use assay_captures::{folded, perf_script};
use assay_reports::json::Inspected;
use foldhash::fast::RandomState;

use super::input::Input;
use super::problems;

/// How many problems are kept of a file.
const PROBLEMS_KEPT: usize = 1000;

pub(super) fn perf_script(
    name: &str,
    file: &Input,
    view: &View,
    span: Option<Span>,
    found: &mut Inspected,
) -> Result<()> {
    let mut decoder = perf_script::Decoder::default();
    let mut samples = Samples { span, ..Samples::default() };
    file.feed(|bytes| decoder.feed(bytes, &mut samples))?;
    decoder.finish(&mut samples);
    for (event, of) in &samples.events {
        let shown = if event.is_empty() { "unnamed" } else { event };
        found.costs.extend(of.samples.costs(shown, "samples", view));
        if of.samples.count == of.weighed {
            found.costs.extend(of.periods.costs(shown, unit(shown), view));
        }
        if of.bare > 0 {
            let (bare, all) = (of.bare, of.samples.count);
            found.integrity.push(format!("{name}: {shown}: {bare} of {all} samples have no stack"));
        }
    }
    if let Some((first, last)) = samples.times {
        let text = format!(
            "samples from {:.6} s on, over {:.6} s, by the recorder's own clock",
            first.seconds(),
            Nanos(last.0 - first.0).seconds()
        );
        found.about(name, text);
    }
    if samples.outside > 0 {
        let outside = samples.outside;
        found.integrity.push(format!("{name}: {outside} samples lie outside the span"));
    }
    problems(name, &samples.problems, found);
    Ok(())
}

/// What a period is counted in: clocks count nanoseconds, other events themselves.
fn unit(event: &str) -> &str {
    let base = event.split(':').next().unwrap_or(event);
    if base.ends_with("-clock") { "ns" } else { base }
}

/// Samples per event; a period is a weight, not a count, and is added up apart.
#[derive(Default)]
struct Samples {
    events: BTreeMap<String, Event>,
    span: Option<Span>,
    /// Samples outside the span, or without a time.
    outside: u64,
    /// The first and the last within.
    times: Option<(Nanos, Nanos)>,
    problems: Vec<Problem>,
}

#[derive(Default)]
struct Event {
    samples: Sums,
    periods: Sums,
    /// Samples with a period, and without a stack.
    weighed: u64,
    bare: u64,
}

impl Sink<Sample<'_>> for Samples {
    fn record(&mut self, sample: Sample<'_>) {
        let within = |span: Span| sample.time.is_some_and(|at| span.contains(Moment(at.0)));
        if !self.span.is_none_or(within) {
            self.outside += 1;
            return;
        }
        if let Some(at) = sample.time {
            let (first, last) = self.times.get_or_insert((at, at));
            *first = at.min(*first);
            *last = at.max(*last);
        }
        let event = match self.events.get_mut(sample.event) {
            Some(event) => event,
            None => self.events.entry(sample.event.to_owned()).or_default(),
        };
        let stack = || sample.frames.iter().map(|frame| frame.symbol);
        event.samples.add(Some(sample.thread), stack(), 1.0);
        if let Some(period) = sample.period {
            event.weighed += 1;
            event.periods.add(Some(sample.thread), stack(), period as f64);
        }
        event.bare += u64::from(sample.frames.is_empty());
    }

    fn problem(&mut self, problem: Problem) {
        if self.problems.len() < PROBLEMS_KEPT {
            self.problems.push(problem);
        }
    }
}

pub(super) fn folded(name: &str, file: &Input, view: &View, found: &mut Inspected) -> Result<()> {
    let (mut decoder, mut stacks) = (folded::Decoder::default(), Stacks::default());
    file.feed(|bytes| decoder.feed(bytes, &mut stacks))?;
    decoder.finish(&mut stacks);
    if stacks.compares {
        found.costs.extend(stacks.earlier.costs("earlier stacks", "1", view));
    }
    found.costs.extend(stacks.now.costs("stacks", "1", view));
    let count = stacks.now.count;
    let unit = "the file does not say in which unit they are weighed";
    found.about(name, format!("{count} stacks; {unit}"));
    if stacks.open {
        let what = "the last line has no end: digits of its weight may be missing";
        found.integrity.push(format!("{name}: {what}"));
    }
    problems(name, &stacks.problems, found);
    Ok(())
}

#[derive(Default)]
struct Stacks {
    now: Sums,
    earlier: Sums,
    compares: bool,
    open: bool,
    problems: Vec<Problem>,
}

impl Sink<folded::Stack<'_>> for Stacks {
    fn record(&mut self, stack: folded::Stack<'_>) {
        self.now.add(None, stack.frames().rev(), stack.weight);
        if let Some(earlier) = stack.earlier {
            self.compares = true;
            self.earlier.add(None, stack.frames().rev(), earlier);
        }
        self.open |= !stack.ended;
    }

    fn problem(&mut self, problem: Problem) {
        if self.problems.len() < PROBLEMS_KEPT {
            self.problems.push(problem);
        }
    }
}

/// What each name weighs.
type Weights = HashMap<String, f64, RandomState>;

/// Stacks added up: in all, by thread, and by function, by itself and with all that it calls.
#[derive(Default)]
struct Sums {
    count: u64,
    total: f64,
    threads: Weights,
    own: Weights,
    inclusive: Weights,
}

impl Sums {
    /// Adds a stack, leaf first. A function that calls itself has it once.
    fn add<'a>(
        &mut self,
        thread: Option<&str>,
        mut stack: impl Iterator<Item = &'a str>,
        weight: f64,
    ) {
        self.count += 1;
        self.total += weight;
        if let Some(thread) = thread {
            grow(&mut self.threads, thread, weight);
        }
        let Some(leaf) = stack.next() else { return };
        grow(&mut self.own, leaf, weight);
        grow(&mut self.inclusive, leaf, weight);
        let mut seen: HashSet<&str, RandomState> = HashSet::default();
        seen.insert(leaf);
        for function in stack {
            if seen.insert(function) {
                grow(&mut self.inclusive, function, weight);
            }
        }
    }

    fn costs(&self, event: &str, unit: &str, view: &View) -> Vec<Cost> {
        let figure = |value: f64| match view.requests {
            Some(requests) => Figure::exact(value / requests.max(1) as f64, self.count),
            None => Figure::exact(value, self.count),
        };
        let per = view.per();
        let cost = |metric, value: f64| {
            let cost = view.origin.cost(metric, per, Amount::Measured(figure(value)));
            cost.of_kind(Kind::Sampled).with("event", event).with("unit", unit)
        };
        let mut costs = vec![cost(Metric::ProfileValue, self.total)];
        for (metric, label, of) in [
            (Metric::ProfileValue, "thread", &self.threads),
            (Metric::ProfileSelf, "function", &self.own),
            (Metric::ProfileTotal, "function", &self.inclusive),
        ] {
            let mut rows: Vec<_> = of.iter().collect();
            // Equal ones by name, so that two readings give one answer.
            rows.sort_by(|one, other| other.1.total_cmp(one.1).then(one.0.cmp(other.0)));
            let rows = rows.into_iter().take(view.top);
            costs.extend(rows.map(|(name, &value)| cost(metric, value).with(label, name)));
        }
        costs
    }
}

/// Allocates for the first of a name only.
fn grow(of: &mut Weights, name: &str, weight: f64) {
    match of.get_mut(name) {
        Some(sum) => *sum += weight,
        None => {
            of.insert(name.to_owned(), weight);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_that_calls_itself_has_its_stack_once() {
        let mut sums = Sums::default();
        sums.add(None, "f;g;f".split(';').rev(), 2.0);
        sums.add(None, "f;g".split(';').rev(), 1.0);
        assert_eq!((sums.total, sums.inclusive["f"], sums.inclusive["g"]), (3.0, 3.0, 3.0));
        assert_eq!((sums.own["f"], sums.own["g"]), (2.0, 1.0));
    }

    #[test]
    fn clocks_count_nanoseconds_and_other_events_themselves() {
        assert_eq!(unit("cpu-clock:pppH"), "ns");
        assert_eq!(unit("cycles:u"), "cycles");
    }
}
