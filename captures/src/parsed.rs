//! What every parser delivers: records, and problems with their place.

use std::borrow::Cow;
use std::fmt;

/// Where in the input something was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// A line of a text format, 1-based as editors count.
    Line(u64),
    /// A byte offset in a binary format, 0-based as hex dumps count.
    Byte(u64),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(number) => write!(f, "line {number}"),
            Self::Byte(offset) => write!(f, "byte {offset}"),
        }
    }
}

/// Something in the input that could not be understood. Malformed input is data: the parser
/// says so and goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Where it starts.
    pub place: Place,
    /// Lower-case fragment that reads after "line 7: ".
    pub message: Cow<'static, str>,
}

impl Problem {
    /// A problem at `place`.
    pub fn new(place: Place, message: impl Into<Cow<'static, str>>) -> Self {
        Self { place, message: message.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.message)
    }
}

/// Takes what a decoder delivers, in input order. A decoder is `feed(bytes, &mut sink)`; records
/// may borrow from the bytes, so a sink that keeps one copies what it needs.
pub trait Sink<R> {
    /// Takes a record.
    fn record(&mut self, record: R);
    /// Takes a problem.
    fn problem(&mut self, problem: Problem);
}

/// Keeps everything: a convenience of tests and of small inputs.
#[derive(Clone, Debug, PartialEq)]
pub struct Parsed<R> {
    /// The records, in input order.
    pub records: Vec<R>,
    /// The problems, in input order.
    pub problems: Vec<Problem>,
}

impl<R> Default for Parsed<R> {
    fn default() -> Self {
        Self { records: Vec::new(), problems: Vec::new() }
    }
}

impl<R> Sink<R> for Parsed<R> {
    fn record(&mut self, record: R) {
        self.records.push(record);
    }

    fn problem(&mut self, problem: Problem) {
        self.problems.push(problem);
    }
}
