//! What a load generator reports, in one meaning for all of them.

use crate::units::Nanos;

/// A load generator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    /// <https://github.com/hatoo/oha>
    Oha,
    /// <https://github.com/grafana/k6>
    K6,
    /// <https://github.com/wg/wrk>
    Wrk,
    /// <https://github.com/giltene/wrk2>: a fixed rate, latency from the intended start.
    Wrk2,
    /// <https://github.com/rakyll/hey>
    Hey,
    /// <https://httpd.apache.org/docs/current/programs/ab.html>
    Ab,
    /// <https://github.com/tsenart/vegeta>: a fixed rate.
    Vegeta,
}

impl Tool {
    /// Its name as people type it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Oha => "oha",
            Self::K6 => "k6",
            Self::Wrk => "wrk",
            Self::Wrk2 => "wrk2",
            Self::Hey => "hey",
            Self::Ab => "ab",
            Self::Vegeta => "vegeta",
        }
    }
}

/// Something that a tool may say, and that may be believed.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Stated<T> {
    /// Said, and believed.
    Value(T),
    /// Said, but it cannot be true; or it would follow from something of that kind. Why.
    Refused(String),
    /// Not said.
    #[default]
    Absent,
}

impl<T> Stated<T> {
    /// The value, if it is believed.
    pub fn value(&self) -> Option<&T> {
        match self {
            Self::Value(value) => Some(value),
            _ => None,
        }
    }

    /// A refusal, in words.
    pub(crate) fn refused(why: impl Into<String>) -> Self {
        Self::Refused(why.into())
    }
}

impl<T> From<Option<T>> for Stated<T> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Absent, Self::Value)
    }
}

/// Requests that failed in one way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorCount {
    /// `status 503`, `connect`, `read`, `timeout`, or the tool's own words.
    pub kind: String,
    /// How many.
    pub count: u64,
    /// Whether the server answered, with an error status; otherwise the transport failed.
    pub answered: bool,
}

/// One point of the latency distribution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Latency {
    /// `0.5`, `0.99`, …; `mean`, `min`, `max`.
    pub quantile: String,
    /// From the request's send (from its intended send where the tool keeps a rate) to the answer.
    pub time: Nanos,
}

/// A pass mark of k6, and whether it was reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Threshold {
    /// Of which metric.
    pub metric: String,
    /// Its expression, such as `p(95)<200`.
    pub rule: String,
    /// Whether it held.
    pub passed: bool,
}

/// What one run of a load generator says.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// Which tool.
    pub tool: Tool,
    /// The URL, where the tool says it.
    pub target: Option<String>,
    /// Requests that came to an end, by an answer or (where the tool counts those in) an error.
    pub requests: Stated<u64>,
    /// Answers with a status of 200 to 399, or what the script expected.
    pub good: Stated<u64>,
    /// Failures by kind.
    pub errors: Vec<ErrorCount>,
    /// How long the load was kept up.
    pub duration: Stated<Nanos>,
    /// All requests per second, as the tool says; error answers are in it.
    pub rate: Stated<f64>,
    /// Good answers per second.
    pub good_rate: Stated<f64>,
    /// The latency distribution, as far as the tool gives it.
    pub latency: Stated<Vec<Latency>>,
    /// Threads of the tool.
    pub threads: Option<u64>,
    /// Connections or virtual users.
    pub connections: Option<u64>,
    /// Pass marks.
    pub thresholds: Vec<Threshold>,
    /// Checks of a k6 script that failed.
    pub checks_failed: Option<u64>,
    /// What limits the meaning of the figures, one sentence each.
    pub notes: Vec<String>,
}

impl Report {
    /// A report in which nothing is said yet.
    pub(crate) fn of(tool: Tool) -> Self {
        Self {
            tool,
            target: None,
            requests: Stated::Absent,
            good: Stated::Absent,
            errors: Vec::new(),
            duration: Stated::Absent,
            rate: Stated::Absent,
            good_rate: Stated::Absent,
            latency: Stated::Absent,
            threads: None,
            connections: None,
            thresholds: Vec::new(),
            checks_failed: None,
            notes: Vec::new(),
        }
    }

    /// Adds failures of one kind, if there are any.
    pub(crate) fn error(&mut self, kind: impl Into<String>, count: u64, answered: bool) {
        if count > 0 {
            self.errors.push(ErrorCount { kind: kind.into(), count, answered });
        }
    }

    /// Answers with an error status, or failures of the transport.
    #[must_use]
    pub fn error_count(&self, answered: bool) -> u64 {
        let of_kind = self.errors.iter().filter(|error| error.answered == answered);
        of_kind.fold(0, |sum, error| sum.saturating_add(error.count))
    }

    /// Works out the rate of good answers, and says what the latency is of.
    pub(crate) fn settle(mut self) -> Self {
        if matches!(self.good_rate, Stated::Absent) {
            self.good_rate = match (&self.good, &self.duration) {
                (Stated::Value(good), Stated::Value(duration)) if duration.0 > 0 => {
                    Stated::Value(*good as f64 / duration.seconds())
                }
                (Stated::Refused(why), _) | (_, Stated::Refused(why)) => {
                    Stated::Refused(why.clone())
                }
                _ => Stated::Absent,
            };
        }
        let bad = self.error_count(true);
        if bad > 0 && self.latency.value().is_some() {
            self.notes.push(if self.good.value() == Some(&0) {
                "latency is that of error answers: no answer was good".to_owned()
            } else {
                format!("latency includes that of {bad} error answers")
            });
        }
        self
    }
}
