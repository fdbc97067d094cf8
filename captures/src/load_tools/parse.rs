//! Bytes → reports: streams of results line by line, everything else as a whole.

use crate::document::Document;
use crate::load_tools::k6_stream::K6Stream;
use crate::load_tools::model::Report;
use crate::load_tools::recognise::{Form, form};
use crate::load_tools::{ab, hey, k6, oha, vegeta, wrk};
use crate::parsed::{Place, Problem, Sink};
use crate::text_lines::{Line, Lines};

/// How much is looked at to tell the tool.
const HEAD: usize = 64 * 1024;

/// Reads a load generator's output of any known form.
#[derive(Default)]
pub struct Decoder {
    state: State,
}

enum State {
    Head(Vec<u8>),
    Whole(Form, Document),
    Results(Lines, Box<dyn Results>),
    Unknown,
}

impl Default for State {
    fn default() -> Self {
        Self::Head(Vec::new())
    }
}

/// Adds up a stream of single results.
pub(super) trait Results {
    /// Takes one line; the problem's text if it is not a result.
    fn line(&mut self, line: &Line<'_>) -> Result<(), String>;
    /// What they add up to.
    fn report(&mut self) -> Report;
}

impl Decoder {
    /// Takes the next bytes of the output.
    pub fn feed(&mut self, bytes: &[u8], sink: &mut impl Sink<Report>) {
        match &mut self.state {
            State::Head(head) => {
                head.extend_from_slice(bytes);
                if head.len() >= HEAD {
                    self.decide(sink);
                }
            }
            State::Whole(_, document) => document.feed(bytes),
            State::Results(lines, results) => {
                lines.feed(bytes, |found| line(&found, results.as_mut(), sink));
            }
            State::Unknown => {}
        }
    }

    /// Reads what was collected.
    pub fn finish(&mut self, sink: &mut impl Sink<Report>) {
        if matches!(self.state, State::Head(_)) {
            self.decide(sink);
        }
        match std::mem::replace(&mut self.state, State::Unknown) {
            State::Whole(form, document) => match document.whole() {
                Ok(bytes) => whole(form, bytes, sink),
                Err(problem) => sink.problem(problem),
            },
            State::Results(mut lines, mut results) => {
                lines.finish(|found| line(&found, results.as_mut(), sink));
                sink.record(results.report().settle());
            }
            State::Head(_) | State::Unknown => {}
        }
    }

    fn decide(&mut self, sink: &mut impl Sink<Report>) {
        let State::Head(head) = std::mem::replace(&mut self.state, State::Unknown) else {
            return;
        };
        self.state = match form(&head) {
            Some(Form::K6Stream) => State::Results(Lines::default(), Box::new(K6Stream::default())),
            Some(Form::HeyCsv) => State::Results(Lines::default(), Box::new(hey::Csv::default())),
            Some(Form::VegetaResults) => {
                State::Results(Lines::default(), Box::new(vegeta::Encoded::default()))
            }
            Some(form) => State::Whole(form, Document::default()),
            None => {
                let message = "not the output of oha, k6, wrk, wrk2, hey, ab or vegeta";
                return sink.problem(Problem::new(Place::Line(1), message));
            }
        };
        self.feed(&head, sink);
    }
}

fn line(line: &Line<'_>, results: &mut dyn Results, sink: &mut impl Sink<Report>) {
    if line.text.trim_ascii().is_empty() {
        return;
    }
    if let Err(message) = results.line(line) {
        let message = if line.ended { message } else { format!("{message}: the file was cut") };
        sink.problem(Problem::new(Place::Line(line.number), message));
    }
}

fn whole(form: Form, bytes: &[u8], sink: &mut impl Sink<Report>) {
    let json = match form {
        Form::OhaJson => oha::json(bytes),
        Form::K6Summary => k6::summary(bytes),
        Form::VegetaJson => vegeta::json(bytes),
        _ => return text(form, &plain(bytes), sink),
    };
    match json {
        Ok(report) => sink.record(report.settle()),
        Err(problem) => sink.problem(problem),
    }
}

/// Reads one run of a tool's text.
type ReadText = fn(&str) -> Result<Report, &'static str>;

/// Several runs in one file are several reports.
fn text(form: Form, text: &str, sink: &mut impl Sink<Report>) {
    let (begins, read): (&str, ReadText) = match form {
        Form::Wrk => ("Running ", wrk::text),
        Form::Ab => ("This is ApacheBench", ab::text),
        Form::Hey => ("Summary:", hey::text),
        Form::OhaText => ("Summary:", oha::text),
        _ => ("Requests      [", vegeta::text),
    };
    let mut starts: Vec<(usize, u64)> = Vec::new();
    let mut offset = 0;
    for (number, line) in (1..).zip(text.split_inclusive('\n')) {
        if line.trim_start().starts_with(begins) {
            starts.push((offset, number));
        }
        offset += line.len();
    }
    // What stands before the first start belongs to it; a file without any is one run.
    match starts.first_mut() {
        Some(first) => *first = (0, 1),
        None => starts.push((0, 1)),
    }
    for (index, &(start, line)) in starts.iter().enumerate() {
        let end = starts.get(index + 1).map_or(text.len(), |next| next.0);
        match read(&text[start..end]) {
            Ok(report) => sink.record(report.settle()),
            Err(message) => sink.problem(Problem::new(Place::Line(line), message)),
        }
    }
}

/// Text without colours.
fn plain(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    if !text.contains('\u{1b}') {
        return text.into_owned();
    }
    let mut plain = String::with_capacity(text.len());
    let mut pieces = text.split("\u{1b}[");
    plain.push_str(pieces.next().unwrap_or_default());
    for piece in pieces {
        let end = piece.find(|symbol: char| symbol.is_ascii_alphabetic());
        plain.push_str(end.map_or("", |end| &piece[end + 1..]));
    }
    plain
}
