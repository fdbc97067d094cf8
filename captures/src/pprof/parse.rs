//! Bytes → profile.

use std::collections::BTreeSet;
use std::io::Write;

use flate2::write::MultiGzDecoder;

use crate::document::Document;
use crate::parsed::{Place, Problem, Sink};
use crate::pprof::model::{FunctionValue, Profile};
use crate::pprof::tables::Tables;
use crate::pprof::wire::{Broken, Value, field, fields};
use crate::units::{Moment, Nanos};

/// Collects the file, unpacked, and delivers its one profile at the end.
#[derive(Default)]
pub struct Decoder {
    first: Vec<u8>,
    input: Input,
}

#[derive(Default)]
enum Input {
    #[default]
    Unknown,
    Plain(Document),
    Gzip(Box<MultiGzDecoder<Unpacked>>),
    Broken,
}

/// Where the unpacked bytes go.
#[derive(Default)]
struct Unpacked(Document);

impl Write for Unpacked {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.feed(bytes);
        match self.0.whole() {
            Ok(_) => Ok(bytes.len()),
            Err(problem) => Err(std::io::Error::other(problem.message.into_owned())),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Decoder {
    /// Takes the next bytes of the file.
    pub fn feed(&mut self, bytes: &[u8], sink: &mut impl Sink<Profile>) {
        match &mut self.input {
            Input::Unknown => {
                self.first.extend_from_slice(bytes);
                if self.first.len() >= 2 {
                    self.open(sink);
                }
            }
            Input::Plain(document) => document.feed(bytes),
            Input::Gzip(gzip) => {
                if let Err(error) = gzip.write_all(bytes) {
                    sink.problem(Problem::new(Place::Byte(0), format!("broken gzip: {error}")));
                    self.input = Input::Broken;
                }
            }
            Input::Broken => {}
        }
    }

    /// Reads what was collected.
    pub fn finish(&mut self, sink: &mut impl Sink<Profile>) {
        if matches!(self.input, Input::Unknown) {
            self.open(sink);
        }
        let document = match std::mem::take(&mut self.input) {
            Input::Plain(document) => document,
            Input::Gzip(gzip) => match gzip.finish() {
                Ok(unpacked) => unpacked.0,
                Err(error) => {
                    let message = format!("broken gzip: {error}; the file was cut");
                    return sink.problem(Problem::new(Place::Byte(0), message));
                }
            },
            Input::Unknown | Input::Broken => return,
        };
        match document.whole().and_then(read) {
            Ok(profile) => sink.record(profile),
            Err(problem) => sink.problem(problem),
        }
    }

    fn open(&mut self, sink: &mut impl Sink<Profile>) {
        let first = std::mem::take(&mut self.first);
        self.input = match first.starts_with(&[0x1f, 0x8b]) {
            true => Input::Gzip(Box::new(MultiGzDecoder::new(Unpacked::default()))),
            false => Input::Plain(Document::default()),
        };
        self.feed(&first, sink);
    }
}

fn read(bytes: &[u8]) -> Result<Profile, Problem> {
    if let Some(form) = old_form(bytes) {
        let message = format!(
            "{form}, which is older than profile.proto and is not read; convert it with \
             `go tool pprof -proto PROGRAM FILE`"
        );
        return Err(Problem::new(Place::Byte(0), message));
    }
    profile(bytes).map_err(|broken| {
        let at = bytes.len().saturating_sub(broken.left) as u64;
        Problem::new(Place::Byte(at), "not a pprof profile, or one that was cut")
    })
}

/// Recognises the forms from before profile.proto by their first bytes and names them.
#[must_use]
pub fn old_form(bytes: &[u8]) -> Option<&'static str> {
    const TEXTS: [(&[u8], &str); 8] = [
        (b"--- contentionz", "a contention profile in text"),
        (b"--- contention", "a contention profile in text"),
        (b"--- mutex", "a mutex profile in text"),
        (b"--- threadz", "a thread profile in text"),
        (b"--- heapz", "a heap profile in text"),
        (b"--- Thread", "a thread profile in text"),
        (b"heap profile:", "a heap profile in text"),
        (b"--- symbol", "a symbolized gperftools profile"),
    ];
    let text = TEXTS.iter().find(|(start, _)| bytes.starts_with(start));
    if let Some((_, form)) = text {
        return Some(form);
    }
    let line = bytes.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let line = &line[..line.len().min(200)];
    // `threadcreate profile: total 7`, `goroutine profile: total 3`
    let count = memchr::memmem::find(line, b" profile: total ");
    if count.is_some_and(|at| at > 0 && line[..at].iter().all(u8::is_ascii_lowercase)) {
        return Some("a count profile in text");
    }
    gperftools(bytes).then_some("a CPU profile of gperftools in binary words")
}

/// Whether the first bytes can be those of a profile: fields of `Profile` with types that they
/// have, as far as the bytes go.
#[must_use]
pub fn looks_like(head: &[u8]) -> bool {
    let mut rest = head;
    let mut messages = 0;
    while !rest.is_empty() {
        let Ok((number, value)) = field(&mut rest) else {
            // The last field is cut where the head ends.
            return messages > 0;
        };
        let message = matches!(number, 1..=6 | 11);
        let scalar = matches!(number, 7..=10 | 12..=15);
        if !(message && matches!(value, Value::Bytes(_)) || scalar) {
            return false;
        }
        messages += u64::from(message);
    }
    messages > 0
}

/// A gperftools CPU profile begins with the words 0, 3, version, period, 0, in either width and
/// byte order. Java's agent writes version 1.
fn gperftools(bytes: &[u8]) -> bool {
    let word = |width: usize, index: usize, big: bool| {
        let word = bytes.get(index * width..(index + 1) * width)?;
        let fold = |number: u64, &byte: &u8| number << 8 | u64::from(byte);
        Some(match big {
            true => word.iter().fold(0, fold),
            false => word.iter().rev().fold(0, fold),
        })
    };
    [(4, true), (4, false), (8, true), (8, false)].into_iter().any(|(width, big)| {
        let word = |index| word(width, index, big);
        word(0) == Some(0)
            && word(1) == Some(3)
            && word(2).is_some_and(|version| version <= 1)
            && word(3).is_some_and(|period| period > 0)
            && word(4) == Some(0)
    })
}

fn profile(bytes: &[u8]) -> Result<Profile, Broken> {
    let tables = Tables::read(bytes)?;
    let mut profile = Profile {
        sample_types: Vec::new(),
        default_type: None,
        totals: Vec::new(),
        samples: 0,
        locations: tables.locations(),
        mappings: tables.mappings,
        symbolized: tables.symbolized,
        start: None,
        duration: None,
        period_type: None,
        period: 0,
        label_keys: Vec::new(),
        functions: Vec::new(),
    };
    let mut default_type = 0;
    fields(bytes, |number, value| {
        match number {
            1 => profile.sample_types.push(tables.sample_type(value)?),
            9 => profile.start = positive(value).map(Moment),
            10 => profile.duration = positive(value).map(Nanos),
            11 => profile.period_type = Some(tables.sample_type(value)?),
            12 => profile.period = value.number() as i64,
            14 => default_type = value.number(),
            _ => {}
        }
        Ok(())
    })?;
    // Sums are kept per function and type; real profiles have at most a dozen types.
    if profile.sample_types.len() > TYPES_MOST {
        return Err(Broken { left: bytes.len() });
    }
    let default = tables.string(default_type);
    profile.default_type = profile.sample_types.iter().position(|kind| kind.kind == default);
    let mut sums = Sums::new(&tables, profile.sample_types.len());
    fields(bytes, |number, value| if number == 2 { sums.sample(value) } else { Ok(()) })?;
    sums.into(&mut profile);
    Ok(profile)
}

/// How many values a sample can have.
const TYPES_MOST: usize = 64;

fn positive(value: Value<'_>) -> Option<u64> {
    i64::try_from(value.number()).ok().filter(|&nanos| nanos > 0).map(i64::cast_unsigned)
}

/// Adds samples up.
struct Sums<'a> {
    tables: &'a Tables,
    totals: Vec<i64>,
    samples: u64,
    /// Own and inclusive values of function `n` are at `n * types ..`.
    own: Vec<i64>,
    inclusive: Vec<i64>,
    /// The last sample that counted each function: a stack counts a function once.
    counted: Vec<u64>,
    labels: BTreeSet<u64>,
    stack: Vec<u64>,
    values: Vec<i64>,
}

impl<'a> Sums<'a> {
    fn new(tables: &'a Tables, types: usize) -> Self {
        let functions = tables.names.len();
        Self {
            tables,
            totals: vec![0; types],
            samples: 0,
            own: vec![0; functions * types],
            inclusive: vec![0; functions * types],
            counted: vec![0; functions],
            labels: BTreeSet::new(),
            stack: Vec::new(),
            values: Vec::new(),
        }
    }

    fn sample(&mut self, message: Value<'_>) -> Result<(), Broken> {
        let (stack, values, labels) = (&mut self.stack, &mut self.values, &mut self.labels);
        stack.clear();
        values.clear();
        fields(message.bytes(), |number, value| {
            match number {
                1 => value.numbers(|location| stack.push(location))?,
                2 => value.numbers(|number| values.push(number as i64))?,
                3 => fields(value.bytes(), |number, value| {
                    if number == 1 {
                        labels.insert(value.number());
                    }
                    Ok(())
                })?,
                _ => {}
            }
            Ok(())
        })?;
        self.samples += 1;
        let types = self.totals.len();
        self.values.resize(types, 0);
        add(&mut self.totals, &self.values);
        let mut innermost = true;
        for location in &self.stack {
            for &function in self.tables.functions(*location).unwrap_or_default() {
                let function = function as usize;
                let at = function * types..(function + 1) * types;
                if std::mem::take(&mut innermost) {
                    add(&mut self.own[at.clone()], &self.values);
                }
                if std::mem::replace(&mut self.counted[function], self.samples) != self.samples {
                    add(&mut self.inclusive[at], &self.values);
                }
            }
        }
        Ok(())
    }

    fn into(self, profile: &mut Profile) {
        let types = self.totals.len();
        let function = |(index, name): (usize, &String)| FunctionValue {
            name: name.clone(),
            own: self.own[index * types..(index + 1) * types].to_vec(),
            inclusive: self.inclusive[index * types..(index + 1) * types].to_vec(),
        };
        let names = self.tables.names.iter().enumerate();
        let appears = |(index, _): &(usize, &String)| self.counted[*index] > 0;
        profile.functions = names.filter(appears).map(function).collect();
        profile.label_keys =
            self.labels.iter().map(|&key| self.tables.string(key).to_owned()).collect();
        profile.label_keys.sort();
        profile.totals = self.totals;
        profile.samples = self.samples;
    }
}

fn add(sums: &mut [i64], values: &[i64]) {
    for (sum, value) in sums.iter_mut().zip(values) {
        *sum = sum.saturating_add(*value);
    }
}
