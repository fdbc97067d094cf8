//! What a running service costs right now, as a picture of the last seconds or as a line each.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::time::Duration;

use assay_analyses::costs::wire::{Count, Counts, Protocol, RouteCost, RouteTrips, Taken};
use assay_analyses::trips::Reason;
use assay_reports::numbers;

use crate::ui::printable;

/// Seconds that the second column is about.
const SECONDS: usize = 10;
const ROUTES: usize = 8;
const STATEMENTS: usize = 6;
/// Columns of the label, and of each figure.
const LABEL: usize = 34;
const FIGURE: usize = 14;

/// What one second held.
#[derive(Clone, Debug)]
pub struct Second {
    /// How long it was.
    pub length: Duration,
    /// What passed on the wire, or why that is not known.
    pub wire: Result<Taken, String>,
    /// Requests that the load driver had answered, where it sends them.
    pub driven: Option<u64>,
    /// CPU time by process: its word, and what it used where that may be read.
    pub cpu: Vec<(&'static str, Option<Duration>)>,
}

/// The last seconds of a service.
#[derive(Debug)]
pub struct Screen {
    title: String,
    services: Vec<Protocol>,
    seconds: VecDeque<Second>,
    watched: Duration,
    /// Why responses cannot be counted on the wire, once that was seen.
    opaque: Option<&'static str>,
}

/// Sums over some seconds.
struct Sum {
    length: f64,
    requests: u64,
    counts: Counts,
    cpu: Vec<(&'static str, Option<f64>)>,
}

impl Screen {
    /// Nothing yet; the title names the service, which talks to these. `encrypted`: clients speak
    /// TLS with it.
    #[must_use]
    pub fn new(title: String, services: Vec<Protocol>, encrypted: bool) -> Self {
        let opaque = encrypted.then_some("TLS");
        Self { title, services, seconds: VecDeque::new(), watched: Duration::ZERO, opaque }
    }

    /// Takes one more second.
    pub fn add(&mut self, second: Second) {
        if let Ok(taken) = &second.wire {
            for (fault, words) in [("encrypted", "TLS"), ("http/2", "HTTP/2")] {
                if taken.integrity.faults.contains_key(&(Protocol::Http, fault)) {
                    self.opaque = Some(words);
                }
            }
        }
        self.watched += second.length;
        if self.seconds.len() == SECONDS {
            self.seconds.pop_front();
        }
        // Texts are shown of the last second only.
        if let Some(Second { wire: Ok(before), .. }) = self.seconds.back_mut() {
            (before.statements, before.routes) = (Vec::new(), Vec::new());
        }
        self.seconds.push_back(second);
    }

    /// The picture, at most so many columns wide.
    #[must_use]
    pub fn picture(&self, columns: usize) -> String {
        let Some(last) = self.seconds.back() else { return String::new() };
        let (second, ten) = (self.sum(1), self.sum(SECONDS));
        let mut text =
            format!("{} · {} s · q or Ctrl-C ends\n", self.title, self.watched.as_secs());
        let _never = writeln!(
            text,
            "{:LABEL$}{:>FIGURE$}{:>FIGURE$}",
            "",
            "last second",
            format!("last {} s", self.seconds.len())
        );
        row(
            &mut text,
            "Requests",
            [&second, &ten].map(|sum| sum.requests as f64 / sum.length),
            "/s",
        );
        if let Some(words) = self.opaque {
            let used =
                if last.driven.is_some() { "the driver's count is used" } else { "no count" };
            let _never =
                writeln!(text, "  responses are not countable on the wire ({words}): {used}");
        }
        match &last.wire {
            Err(reason) => {
                let _never = writeln!(text, "Postgres, Redis: not measured: {reason}");
            }
            Ok(taken) => {
                self.services(&mut text, taken, [&second, &ten]);
                routes(&mut text, taken, &second);
                statements(&mut text, taken, &second);
            }
        }
        cpu(&mut text, [&second, &ten]);
        let cut = |line: &str| -> String {
            let line = printable(line).into_owned();
            if line.chars().count() <= columns {
                return line;
            }
            line.chars().take(columns.saturating_sub(1)).chain(['…']).collect()
        };
        text.lines().map(cut).collect::<Vec<_>>().join("\n") + "\n"
    }

    /// The last second on one line.
    #[must_use]
    pub fn line(&self, clock: &str) -> String {
        let Some(last) = self.seconds.back() else { return String::new() };
        let sum = self.sum(1);
        let mut text = format!("{clock}  {} requests/s", figure(sum.requests as f64 / sum.length));
        match &last.wire {
            Err(reason) => {
                let _never = write!(text, " · trips not measured: {reason}");
            }
            Ok(taken) => {
                for (protocol, count, words) in [
                    (Protocol::Postgres, Count::Flights, "Postgres trips"),
                    (Protocol::Postgres, Count::Executions, "statements"),
                    (Protocol::Redis, Count::RedisFlights, "Redis trips"),
                ] {
                    if !self.services.contains(&protocol) {
                        continue;
                    }
                    let _never = match taken.integrity.against(protocol) {
                        Some(_) => write!(text, " · {words} not measured"),
                        None => write!(text, " · {words} {}{}", sum.figure(count), sum.unit()),
                    };
                }
            }
        }
        for (process, used) in &sum.cpu {
            if let Some(used) = used {
                let _never = write!(text, " · CPU {process} {:.0} %", used / sum.length * 100.0);
            }
        }
        printable(&text).into_owned()
    }

    fn sum(&self, seconds: usize) -> Sum {
        let mut sum = Sum { length: 0.0, requests: 0, counts: Counts::default(), cpu: Vec::new() };
        for second in self.seconds.iter().rev().take(seconds) {
            sum.length += second.length.as_secs_f64();
            let seen = second.wire.as_ref().map_or(0, |taken| {
                sum.counts.add_all(&taken.counts);
                taken.counts.get(Count::HttpResponses)
            });
            let counted =
                if self.opaque.is_none() && second.wire.is_ok() { Some(seen) } else { None };
            sum.requests += counted.or(second.driven).unwrap_or(0);
            for &(process, used) in &second.cpu {
                let used = used.map(|used| used.as_secs_f64());
                match sum.cpu.iter_mut().find(|(known, _)| *known == process) {
                    Some((_, all)) => *all = all.zip(used).map(|(all, used)| all + used),
                    None => sum.cpu.push((process, used)),
                }
            }
        }
        sum
    }

    fn services(&self, text: &mut String, taken: &Taken, sums: [&Sum; 2]) {
        for (protocol, title, rows) in [
            (Protocol::Postgres, "Postgres", &POSTGRES[..]),
            (Protocol::Redis, "Redis", &REDIS[..]),
        ] {
            if !self.services.contains(&protocol) {
                continue;
            }
            if let Some(reason) = taken.integrity.against(protocol) {
                let _never = writeln!(text, "{title}: not measured: {reason}");
                continue;
            }
            for &(label, count, reason, always) in rows {
                let values = sums.map(|sum| sum.value(count, reason));
                if always || values.iter().any(|&value| value > 0.0) {
                    let label = format!("{}{label}", if always { "" } else { "  " });
                    row(text, &label, values, sums[1].unit());
                }
            }
        }
    }
}

/// Label, what is counted, for which reason, and whether it is shown where there is none.
type Row = (&'static str, Count, Option<Reason>, bool);

const POSTGRES: [Row; 10] = [
    ("Postgres round trips", Count::Flights, None, true),
    ("user statements", Count::Flights, Some(Reason::User), false),
    ("transaction control", Count::Flights, Some(Reason::Transaction), false),
    ("prepares", Count::Flights, Some(Reason::Prepare), false),
    ("pool pings", Count::Flights, Some(Reason::PoolPing), false),
    ("pool resets", Count::Flights, Some(Reason::PoolReset), false),
    ("connections made", Count::Connects, None, false),
    ("statements executed", Count::Executions, None, false),
    ("rows", Count::Rows, None, false),
    ("errors", Count::PostgresErrors, None, false),
];

const REDIS: [Row; 3] = [
    ("Redis round trips", Count::RedisFlights, None, true),
    ("commands", Count::RedisCommands, None, false),
    ("errors", Count::RedisErrors, None, false),
];

impl Sum {
    /// By requests where they are known, by seconds otherwise.
    fn value(&self, count: Count, reason: Option<Reason>) -> f64 {
        let total = match reason {
            Some(reason) => self.counts.by_reason(count, reason),
            None => self.counts.get(count),
        };
        total as f64 / if self.requests > 0 { self.requests as f64 } else { self.length }
    }

    fn figure(&self, count: Count) -> String {
        figure(self.value(count, None))
    }

    fn unit(&self) -> &'static str {
        if self.requests > 0 { " a request" } else { "/s" }
    }
}

fn row(text: &mut String, label: &str, values: [f64; 2], unit: &str) {
    let [one, ten] = values.map(figure);
    let unit = unit.trim_start();
    let _never = writeln!(text, "{label:LABEL$}{one:>FIGURE$}{ten:>FIGURE$}  {unit}");
}

fn figure(value: f64) -> String {
    numbers::number(value, if value >= 100.0 { 0 } else { 2 })
}

/// Where several routes are asked for, each with what it costs, or why that is not known.
fn routes(text: &mut String, taken: &Taken, second: &Sum) {
    if taken.routes.is_empty() || taken.integrity.against(Protocol::Http).is_some() {
        return;
    }
    let _never =
        writeln!(text, "{:LABEL$}{:>FIGURE$}  Postgres trips a request", "Routes", "requests/s");
    let blind = taken.integrity.against(Protocol::Postgres).is_some();
    for RouteCost { route, responses, trips } in taken.routes.iter().take(ROUTES) {
        let rate = figure(*responses as f64 / second.length);
        let trips = match trips {
            _ if blind => "not measured".to_owned(),
            RouteTrips::Counted(value) => figure(*value),
            RouteTrips::Estimated(found) => {
                format!("{} ± {}", figure(found.value.max(0.0)), figure(found.standard_error))
            }
            RouteTrips::NotMeasured(reason) => format!("not measured: {reason}"),
        };
        let name: String = route.chars().take(LABEL - 3).collect();
        let _never = writeln!(text, "  {name:32}{rate:>FIGURE$}  {trips}");
    }
}

fn statements(text: &mut String, taken: &Taken, second: &Sum) {
    let user = taken.statements.iter().filter(|one| one.reason == Some(Reason::User));
    let mut shown = user.take(STATEMENTS).peekable();
    if shown.peek().is_none() || taken.integrity.against(Protocol::Postgres).is_some() {
        return;
    }
    text.push_str("Statements of the last second\n");
    for statement in shown {
        let by = if second.requests > 0 { second.requests as f64 } else { second.length };
        let count = figure(statement.executions as f64 / by);
        let sql: Vec<&str> = statement.sql.split_whitespace().collect();
        let _never = writeln!(text, "{count:>9}{} × {}", second.unit(), sql.join(" "));
    }
}

fn cpu(text: &mut String, sums: [&Sum; 2]) {
    for (at, (process, _)) in sums[1].cpu.iter().enumerate() {
        let used = sums.map(|sum| sum.cpu.get(at).and_then(|(_, used)| *used));
        let [Some(one), Some(ten)] = used else {
            let _never = writeln!(text, "CPU {process}: not measured: its processes are gone");
            continue;
        };
        let shares = [one / sums[0].length, ten / sums[1].length].map(|share| share * 100.0);
        row(text, &format!("CPU {process}"), shares, "% of a core");
        if sums.iter().all(|sum| sum.requests > 0) {
            let each = [one / sums[0].requests as f64, ten / sums[1].requests as f64];
            row(text, "", each.map(|seconds| seconds * 1e6), "µs a request");
        }
    }
}

#[cfg(test)]
#[path = "screen_tests.rs"]
mod tests;
