//! `assay inspect --folded`: profiles that are stacks in text, as folded stacks.

use std::collections::HashMap;
use std::fmt::Write;

use anyhow::{Result, bail};
use assay_captures::demangle::readable;
use assay_captures::parsed::{Problem, Sink};
use assay_captures::perf_script::{Frame, Sample};
use assay_captures::recognise::Kind;
use assay_captures::units::{Moment, Span};
use assay_captures::{folded, perf_script};
use foldhash::fast::RandomState;

use super::{Question, input, ours};
use crate::commands::WrongUsage;

/// Stacks, each once.
#[derive(Debug)]
pub struct Folded {
    /// One stack a line, root first, and its weight: periods of the event where every sample has
    /// one, else samples. Sorted.
    pub text: String,
    /// What is to be known beside it.
    pub notes: Vec<String>,
}

/// Reads files and adds equal stacks up. Of several events, `event` chooses one.
///
/// # Errors
/// When a file cannot be read or is no profile of stacks in text, when several events are there
/// and none is chosen, and when no stack is there.
pub fn fold(question: &Question, event: Option<&str>) -> Result<Folded> {
    let mut folding = Folding {
        event,
        span: question.span,
        events: HashMap::default(),
        line: String::new(),
        problems: Vec::new(),
    };
    for path in &ours::expand(&question.files)? {
        let file = input::open(path)?;
        let name = path.display();
        match file.kind {
            Kind::PerfScript => {
                let mut decoder = perf_script::Decoder::default();
                file.feed(|bytes| decoder.feed(bytes, &mut folding))?;
                decoder.finish(&mut folding);
            }
            Kind::Folded if question.span.is_none() => {
                let mut decoder = folded::Decoder::default();
                file.feed(|bytes| decoder.feed(bytes, &mut folding))?;
                decoder.finish(&mut folding);
            }
            Kind::Folded => {
                bail!(WrongUsage(format!("{name}: folded stacks have no times to cut by")));
            }
            Kind::Manifest => {}
            kind => bail!(WrongUsage(format!(
                "{name}: {}: only perf script and folded stacks can be folded",
                kind.name()
            ))),
        }
    }
    folding.finish()
}

/// The weights of one event's stacks.
#[derive(Default)]
struct Event {
    samples: u64,
    /// Samples whose period is known.
    weighed: u64,
    stacks: HashMap<String, Weight, RandomState>,
}

#[derive(Clone, Copy, Default)]
struct Weight {
    samples: u64,
    periods: f64,
}

struct Folding<'a> {
    event: Option<&'a str>,
    span: Option<Span>,
    events: HashMap<String, Event, RandomState>,
    /// The stack that is put together; kept for its room.
    line: String,
    problems: Vec<Problem>,
}

impl Folding<'_> {
    fn add(&mut self, event: &str, samples: u64, period: Option<f64>) {
        let found = match self.events.get_mut(event) {
            Some(found) => found,
            None => self.events.entry(event.to_owned()).or_default(),
        };
        found.samples += samples;
        found.weighed += if period.is_some() { samples } else { 0 };
        let weight = match found.stacks.get_mut(self.line.as_str()) {
            Some(weight) => weight,
            None => found.stacks.entry(self.line.clone()).or_default(),
        };
        weight.samples += samples;
        weight.periods += period.unwrap_or_default();
    }

    fn finish(mut self) -> Result<Folded> {
        let mut notes: Vec<String> = self.problems.iter().map(ToString::to_string).collect();
        let mut names: Vec<String> = self.events.keys().cloned().collect();
        names.sort_unstable();
        let name = match names.as_slice() {
            [] => bail!("no stack was found{}", self.event.map(of).unwrap_or_default()),
            [only] => only,
            several => {
                let several = several.join(", ");
                bail!(WrongUsage(format!("several events: choose one with --event: {several}")));
            }
        };
        let Some(event) = self.events.remove(name) else { bail!("no stack was found") };
        let by_period = event.samples == event.weighed;
        if !by_period && event.weighed > 0 {
            let (weighed, all) = (event.weighed, event.samples);
            notes.push(format!("weights are samples: {weighed} of {all} have a period"));
        }
        let mut stacks: Vec<(String, Weight)> = event.stacks.into_iter().collect();
        stacks.sort_unstable_by(|one, other| one.0.cmp(&other.0));
        let mut text = String::new();
        for (stack, Weight { samples, periods }) in stacks {
            let _never = match by_period {
                true => writeln!(text, "{stack} {periods}"),
                false => writeln!(text, "{stack} {samples}"),
            };
        }
        Ok(Folded { text, notes })
    }
}

fn of(event: &str) -> String {
    format!(" of the event {event}")
}

impl Sink<Sample<'_>> for Folding<'_> {
    fn record(&mut self, sample: Sample<'_>) {
        let within = |span: Span| sample.time.is_some_and(|at| span.contains(Moment(at.0)));
        if !self.span.is_none_or(within) || self.event.is_some_and(|event| event != sample.event) {
            return;
        }
        self.line.clear();
        push(&mut self.line, sample.thread);
        for frame in sample.frames.iter().rev() {
            self.line.push(';');
            frame_of(&mut self.line, frame);
        }
        self.add(sample.event, 1, sample.period.map(|period| period as f64));
    }

    fn problem(&mut self, problem: Problem) {
        if self.problems.len() < super::PROBLEMS_SHOWN {
            self.problems.push(problem);
        }
    }
}

impl Sink<folded::Stack<'_>> for Folding<'_> {
    fn record(&mut self, stack: folded::Stack<'_>) {
        self.line.clear();
        self.line.push_str(stack.text);
        self.add("", 1, Some(stack.weight));
    }

    fn problem(&mut self, problem: Problem) {
        Sink::<Sample<'_>>::problem(self, problem);
    }
}

/// A function without a name is told by its file.
fn frame_of(line: &mut String, frame: &Frame<'_>) {
    if frame.symbol != "[unknown]" {
        push(line, &readable(frame.symbol));
        return;
    }
    let file = frame.module.rsplit('/').next().unwrap_or_default();
    match file {
        "" | "[unknown]" => line.push_str("[unknown]"),
        _ if file.starts_with('[') => push(line, file),
        _ => {
            line.push('[');
            push(line, file);
            line.push(']');
        }
    }
}

/// What separates frames cannot be in one, nor what separates lines.
fn push(line: &mut String, name: &str) {
    if name.bytes().any(|byte| matches!(byte, b';' | b'\n' | b'\r')) {
        line.extend(name.chars().map(|letter| match letter {
            ';' => ':',
            '\n' | '\r' => ' ',
            other => other,
        }));
    } else {
        line.push_str(name);
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use assay_analyses::costs::wire::WirePorts;

    use super::*;

    fn folded(text: &str, event: Option<&str>, span: Option<Span>) -> Result<Folded> {
        let folder = tempfile::tempdir().unwrap();
        let path: PathBuf = folder.path().join("profile");
        std::fs::write(&path, text).unwrap();
        let question = Question {
            files: vec![path],
            ports: WirePorts::default(),
            requests: None,
            span,
            top: 20,
        };
        fold(&question, event)
    }

    const TWO: &str = "app 7/8 [000] 1.000001: 500 cpu-clock:\n\
                       \tffffffff8a1c0e2b sys_send+0x1b ([kernel.kallsyms])\n\
                       \tabc _ZN4tera8renderer6render17h0123456789abcdefE+0x2 (/srv/app)\n\
                       \tabd [unknown] (/srv/lib/libx.so)\n\n\
                       app 7/8 [000] 2.000001: 500 cpu-clock:\n\
                       \tffffffff8a1c0e2b sys_send+0x1b ([kernel.kallsyms])\n\
                       \tabc _ZN4tera8renderer6render17h0123456789abcdefE+0x2 (/srv/app)\n\
                       \tabd [unknown] (/srv/lib/libx.so)\n\n\
                       a;b 7/8 [000] 3.000001: 500 cpu-clock:\n\
                       \tabc operator;+0x2 (/srv/app)\n\n";

    #[test]
    fn equal_stacks_are_one_line_root_first_and_weigh_their_periods() {
        let expected = "a:b;operator: 500\n\
                        app;[libx.so];tera::renderer::render;sys_send 1000\n";
        assert_eq!(folded(TWO, None, None).unwrap().text, expected);
        let until = Span { start: Moment(0), end: Moment(1_500_000_000) };
        let first = "app;[libx.so];tera::renderer::render;sys_send 500\n";
        assert_eq!(folded(TWO, None, Some(until)).unwrap().text, first);
    }

    #[test]
    fn what_was_folded_can_be_folded_again() {
        let once = folded(TWO, None, None).unwrap().text;
        assert_eq!(folded(&once, None, None).unwrap().text, once);
        assert_eq!(folded(&format!("{once}{once}"), None, None).unwrap().text.lines().count(), 2);
    }

    #[test]
    fn of_several_events_one_must_be_chosen() {
        let two = format!("{TWO}{}", TWO.replace("500 cpu-clock", "1 faults"));
        let error = folded(&two, None, None).unwrap_err().to_string();
        assert_eq!(error, "several events: choose one with --event: cpu-clock, faults");
        assert!(folded(&two, Some("faults"), None).unwrap().text.contains("sys_send 2\n"));
        let error = folded(&two, Some("cycles"), None).unwrap_err().to_string();
        assert_eq!(error, "no stack was found of the event cycles");
    }

    #[test]
    fn what_has_no_stacks_is_refused() {
        let error = folded("gc 1 @0.1s 2%: 0+0+0 ms clock\n", None, None).err().unwrap();
        assert!(error.to_string().contains("can be folded"), "{error}");
    }
}
