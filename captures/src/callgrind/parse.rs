//! Bytes → records, one line at a time.

use std::borrow::Cow;

use crate::callgrind::model::{Derived, Function, FunctionId, Record, Term};
use crate::callgrind::names::{NumberMap, Space, Texts};
use crate::parsed::{Place, Problem, Sink};
use crate::text_lines::{Line, Lines};

/// Reads a profile as it comes in.
#[derive(Default)]
pub struct Decoder {
    lines: Lines,
    reader: Reader,
}

impl Decoder {
    /// Takes the next bytes of the file.
    pub fn feed<S>(&mut self, bytes: &[u8], sink: &mut S)
    where
        S: for<'a> Sink<Record<'a>>,
    {
        let reader = &mut self.reader;
        self.lines.feed(bytes, |line| reader.line(line, sink));
    }

    /// Says that the file is over.
    pub fn finish<S>(&mut self, sink: &mut S)
    where
        S: for<'a> Sink<Record<'a>>,
    {
        let reader = &mut self.reader;
        self.lines.finish(|line| reader.line(line, sink));
        if !matches!(reader.after, After::Nothing) {
            refuse(Place::Line(reader.number), "the file ends before a call's cost", sink);
        }
    }
}

/// What the next position line belongs to.
#[derive(Clone, Copy, Default)]
enum After {
    /// A cost of the current function.
    #[default]
    Nothing,
    /// The inclusive cost of a call that was announced.
    Calls { count: u64, callee: FunctionId, believed: bool },
    /// A jump: a position without cost.
    Jump,
}

/// State between lines.
struct Reader {
    number: u64,
    texts: Texts,
    objects: Space,
    files: Space,
    functions: Space,
    ids: NumberMap<(u32, u32, u32), FunctionId>,
    object: u32,
    file: u32,
    function: Option<FunctionId>,
    /// Object, file and name of the next call's target; unset ones are the caller's.
    target: (Option<u32>, Option<u32>, Option<u32>),
    after: After,
    /// How many position columns there are, and which of them is the line.
    columns: usize,
    line_column: Option<usize>,
    position: [u64; 2],
    events: Vec<String>,
    costs: Vec<u64>,
    /// Whether the current part has cost lines already.
    body: bool,
}

impl Default for Reader {
    fn default() -> Self {
        let mut texts = Texts::default();
        let nothing = texts.number(b"");
        Self {
            number: 0,
            texts,
            objects: Space::default(),
            files: Space::default(),
            functions: Space::default(),
            ids: NumberMap::default(),
            object: nothing,
            file: nothing,
            function: None,
            target: (None, None, None),
            after: After::Nothing,
            columns: 1,
            line_column: Some(0),
            position: [0; 2],
            events: Vec::new(),
            costs: Vec::new(),
            body: false,
        }
    }
}

fn refuse<S>(place: Place, message: impl Into<Cow<'static, str>>, sink: &mut S)
where
    S: for<'a> Sink<Record<'a>>,
{
    sink.problem(Problem::new(place, message));
    sink.record(Record::Refused(place));
}

impl Reader {
    fn line<S>(&mut self, line: Line<'_>, sink: &mut S)
    where
        S: for<'a> Sink<Record<'a>>,
    {
        self.number = line.number;
        if line.cut {
            return refuse(Place::Line(line.number), "line is too long", sink);
        }
        let text = line.text.trim_ascii();
        match text.first() {
            None | Some(b'#') => {}
            Some(b'0'..=b'9' | b'+' | b'-' | b'*') => self.position_line(text, sink),
            Some(_) => self.named_line(text, sink),
        }
    }

    fn named_line<S>(&mut self, text: &[u8], sink: &mut S)
    where
        S: for<'a> Sink<Record<'a>>,
    {
        // A header's colon comes before any `=`; names may hold both.
        let Some(end) = memchr::memchr2(b'=', b':', text) else {
            return self.problem("not a line of a callgrind profile", sink);
        };
        let (key, value) = (&text[..end], text[end + 1..].trim_ascii());
        if text[end] == b':' {
            return self.header(key.trim_ascii(), value, sink);
        }
        match key {
            b"ob" => self.object = self.resolve_object(value, sink),
            b"fl" | b"fi" | b"fe" => self.file = self.resolve_file(value, sink),
            b"fn" => {
                let name = self.resolve_function(value, sink);
                self.function = Some(self.id((self.object, self.file, name), sink));
            }
            b"cob" => self.target.0 = Some(self.resolve_object(value, sink)),
            b"cfi" | b"cfl" => self.target.1 = Some(self.resolve_file(value, sink)),
            b"cfn" => self.target.2 = Some(self.resolve_function(value, sink)),
            b"calls" => self.calls(value, sink),
            b"jump" | b"jcnd" => self.after = After::Jump,
            // Targets of jumps into other functions: nothing is charged, but names are defined.
            b"jfi" | b"jfl" => drop(self.resolve_file(value, sink)),
            b"jfn" => drop(self.resolve_function(value, sink)),
            _ => self.problem("not a line of a callgrind profile", sink),
        }
    }

    fn problem<S>(&self, message: impl Into<Cow<'static, str>>, sink: &mut S)
    where
        S: for<'a> Sink<Record<'a>>,
    {
        sink.problem(Problem::new(Place::Line(self.number), message));
    }

    fn resolve_object<S>(&mut self, name: &[u8], sink: &mut S) -> u32
    where
        S: for<'a> Sink<Record<'a>>,
    {
        let number = self.objects.resolve(name, &mut self.texts);
        self.known(number, "object", sink)
    }

    fn resolve_file<S>(&mut self, name: &[u8], sink: &mut S) -> u32
    where
        S: for<'a> Sink<Record<'a>>,
    {
        let number = self.files.resolve(name, &mut self.texts);
        self.known(number, "file", sink)
    }

    fn resolve_function<S>(&mut self, name: &[u8], sink: &mut S) -> u32
    where
        S: for<'a> Sink<Record<'a>>,
    {
        let number = self.functions.resolve(name, &mut self.texts);
        self.known(number, "function", sink)
    }

    fn known<S>(&self, number: Result<u32, u32>, what: &str, sink: &mut S) -> u32
    where
        S: for<'a> Sink<Record<'a>>,
    {
        number.unwrap_or_else(|undefined| {
            let name = self.texts.text(undefined);
            self.problem(format!("{what} {name} is used but was never named"), sink);
            undefined
        })
    }

    fn id<S>(&mut self, key: (u32, u32, u32), sink: &mut S) -> FunctionId
    where
        S: for<'a> Sink<Record<'a>>,
    {
        if let Some(&id) = self.ids.get(&key) {
            return id;
        }
        let id = FunctionId(u32::try_from(self.ids.len()).unwrap_or(u32::MAX));
        self.ids.insert(key, id);
        let text = |number| self.texts.text(number).to_owned();
        let function = Function { object: text(key.0), file: text(key.1), name: text(key.2) };
        sink.record(Record::Function { id, function });
        id
    }

    fn header<S>(&mut self, key: &[u8], value: &[u8], sink: &mut S)
    where
        S: for<'a> Sink<Record<'a>>,
    {
        let (key, value) = (String::from_utf8_lossy(key), String::from_utf8_lossy(value));
        match key.as_ref() {
            "part" => self.part(sink),
            "version" | "creator" if self.body => {
                // Another file was appended: it counts its names from the beginning.
                self.objects.clear();
                self.files.clear();
                self.functions.clear();
                self.part(sink);
            }
            "positions" => self.positions(&value, sink),
            "events" => {
                if self.body {
                    self.part(sink);
                }
                self.events = value.split_whitespace().map(str::to_owned).collect();
                sink.record(Record::Events(&self.events));
            }
            "event" => match derived(&value) {
                Ok(Some(derived)) => sink.record(Record::Derived(derived)),
                Ok(None) => {}
                Err(message) => self.problem(message, sink),
            },
            "summary" | "totals" => return self.claim(&key, &value, sink),
            _ => {}
        }
        sink.record(Record::Header { key: &key, value: &value });
    }

    fn part<S>(&mut self, sink: &mut S)
    where
        S: for<'a> Sink<Record<'a>>,
    {
        self.body = false;
        self.function = None;
        self.target = (None, None, None);
        self.position = [0; 2];
        sink.record(Record::Part);
    }

    fn positions<S>(&mut self, value: &str, sink: &mut S)
    where
        S: for<'a> Sink<Record<'a>>,
    {
        let names: Vec<&str> = value.split_whitespace().collect();
        if names.is_empty() || names.len() > 2 {
            return self.problem("positions are instr, line, or both", sink);
        }
        self.columns = names.len();
        self.line_column = names.iter().position(|&name| name == "line");
    }

    fn claim<S>(&mut self, key: &str, value: &str, sink: &mut S)
    where
        S: for<'a> Sink<Record<'a>>,
    {
        self.costs.clear();
        for word in value.split_whitespace() {
            match number(word.as_bytes()) {
                Ok(cost) => self.costs.push(cost),
                Err(message) => return self.problem(format!("{key}: {message}"), sink),
            }
        }
        sink.record(match key {
            "summary" => Record::Summary(&self.costs),
            _ => Record::Totals(&self.costs),
        });
    }

    fn calls<S>(&mut self, value: &[u8], sink: &mut S)
    where
        S: for<'a> Sink<Record<'a>>,
    {
        let count = value.split(u8::is_ascii_whitespace).next().unwrap_or_default();
        let (object, file, name) = std::mem::take(&mut self.target);
        let name = name.unwrap_or_else(|| {
            self.problem("calls without cfn: the called function is not named", sink);
            self.texts.number(b"???")
        });
        let key = (object.unwrap_or(self.object), file.unwrap_or(self.file), name);
        let callee = self.id(key, sink);
        let count = number(count);
        if let Err(message) = count {
            refuse(Place::Line(self.number), format!("calls: {message}"), sink);
        }
        self.after = After::Calls { count: count.unwrap_or(0), callee, believed: count.is_ok() };
    }

    fn position_line<S>(&mut self, text: &[u8], sink: &mut S)
    where
        S: for<'a> Sink<Record<'a>>,
    {
        let after = std::mem::take(&mut self.after);
        let mut words = text.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        for column in 0..self.columns {
            let Some(word) = words.next() else {
                return refuse(Place::Line(self.number), "a position is missing", sink);
            };
            match position(word, self.position[column]) {
                Ok(place) => self.position[column] = place,
                Err(message) => return refuse(Place::Line(self.number), message, sink),
            }
        }
        if matches!(after, After::Jump) {
            return;
        }
        self.costs.clear();
        for word in words {
            match number(word) {
                Ok(cost) => self.costs.push(cost),
                Err(message) => return refuse(Place::Line(self.number), message, sink),
            }
        }
        if self.costs.len() > self.events.len() {
            return refuse(Place::Line(self.number), "more costs than events", sink);
        }
        self.body = true;
        let function = match self.function {
            Some(function) => function,
            None => {
                let unnamed = self.texts.number(b"???");
                self.id((self.object, self.file, unnamed), sink)
            }
        };
        match after {
            After::Calls { count, callee, believed: true } => {
                sink.record(Record::Call { caller: function, callee, count, costs: &self.costs });
            }
            After::Calls { .. } => {}
            _ => {
                let line = self.line_column.map_or(0, |column| self.position[column]);
                sink.record(Record::Cost { function, line, costs: &self.costs });
            }
        }
    }
}

/// The largest cost that is believed: every tool counts in 64 bits, and none has run for decades.
const LARGEST: u64 = i64::MAX as u64;

/// A cost or count: decimal, or hexadecimal after `0x`.
fn number(word: &[u8]) -> Result<u64, &'static str> {
    let number = match word.strip_prefix(b"0x") {
        Some(digits) => hexadecimal(digits),
        None if word.first() == Some(&b'-') => return Err("a negative cost"),
        None => decimal(word),
    };
    match number {
        Some(number) if number <= LARGEST => Ok(number),
        Some(_) => Err("a cost too large to be true"),
        None if !word.is_empty() && word.iter().all(u8::is_ascii_digit) => {
            Err("a cost too large to be true")
        }
        None => Err("not a number"),
    }
}

fn decimal(word: &[u8]) -> Option<u64> {
    if word.is_empty() {
        return None;
    }
    word.iter().try_fold(0_u64, |sum, byte| {
        let digit = byte.wrapping_sub(b'0');
        (digit < 10).then_some(())?;
        sum.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

fn hexadecimal(digits: &[u8]) -> Option<u64> {
    u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

/// A position: absolute, or relative to the last one in the same column.
fn position(word: &[u8], last: u64) -> Result<u64, &'static str> {
    let absolute = |word: &[u8]| match word.strip_prefix(b"0x") {
        Some(digits) => hexadecimal(digits),
        None => decimal(word),
    };
    let place = match word {
        b"*" => Some(last),
        [b'+', rest @ ..] => absolute(rest).map(|step| last.wrapping_add(step)),
        [b'-', rest @ ..] => absolute(rest).map(|step| last.wrapping_sub(step)),
        _ => absolute(word),
    };
    place.ok_or("not a position")
}

/// `CEst = Ir + 10 I1mr : Cycle Estimation`; `None` where only a long name is given.
fn derived(value: &str) -> Result<Option<Derived>, &'static str> {
    let definition = value.split_once(':').map_or(value, |(definition, _)| definition);
    let Some((name, formula)) = definition.split_once('=') else {
        return Ok(None);
    };
    let terms = formula.split('+').map(term).collect::<Option<_>>();
    let terms = terms.ok_or("event: not a sum of multiples of events")?;
    Ok(Some(Derived { name: name.trim().to_owned(), terms }))
}

fn term(text: &str) -> Option<Term> {
    let text = text.trim();
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (factor, event) = text.split_at(digits);
    let event = event.trim_start().trim_start_matches('*').trim();
    let factor = if factor.is_empty() { 1 } else { factor.parse().ok()? };
    let plain = !event.is_empty() && !event.contains(char::is_whitespace);
    plain.then(|| Term { factor, event: event.to_owned() })
}
