//! What a command said to Postgres and Redis: from its capture to figures, findings and a table.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use assay_analyses::cost::{Amount, Cost, Origin, Per};
use assay_analyses::costs::wire::{Protocol, StatementCost, WireFold, WireOutcome, WirePorts};
use assay_analyses::metric::Metric;
use assay_analyses::trips::Reason;
use assay_analyses::window::Window;
use assay_captures::capture;
use assay_captures::ids::Role;
use assay_captures::manifest::Manifest;
use assay_captures::units::{Moment, Span};
use assay_reports::json::{Inspected, Source};
use assay_reports::numbers;

use super::held::Ended;
use crate::ui::printable;

/// So many trips in a row for one statement on one connection look like a loop.
const IN_A_ROW: u64 = 5;
/// Statements shown.
const STATEMENTS: usize = 10;
/// Columns of a table.
const WIDTH: usize = 100;
/// Where nothing was said to a server, its usual port stands for it: the count is 0 then.
const USUAL: [(Role, u16); 2] = [(Role::Postgres, 5432), (Role::Redis, 6379)];

/// What a command said.
#[derive(Clone, Debug)]
pub struct Said {
    /// What is counted, in all.
    pub outcome: WireOutcome,
    /// What limits the figures, one sentence each.
    pub notes: Vec<String>,
}

/// Reads the capture of a command.
pub fn read(folder: &Path, name: &str) -> Result<Said> {
    let manifest = capture::manifest(folder).context("the recorder left no manifest")?;
    let always = Span { start: Moment(0), end: Moment(u64::MAX) };
    let origin = Origin {
        subject: name.to_owned(),
        variant: "command".to_owned(),
        route: "whole".to_owned(),
        pass: "command".to_owned(),
        capture: Some("captures/command/wire".to_owned()),
    };
    let mut fold = WireFold::new(&[Window { span: always, requests: 1 }], ports(&manifest));
    capture::packets_of(folder, &mut fold).context("cannot read what was recorded")?;
    let mut outcome = fold.finish(&origin);
    outcome.costs.retain(|cost| cost.metric.name().split('.').next() != Some("http"));
    for cost in &mut outcome.costs {
        if cost.per == Per::Request {
            cost.per = Per::Capture;
        }
    }
    let mut notes = outcome.integrity.notes();
    if manifest.integrity.get("io_uring").is_some_and(|&used| used > 0) {
        let unseen = "io_uring is in use: what passes through it is not seen";
        notes.push(unseen.to_owned());
        for cost in &mut outcome.costs {
            if let Amount::Measured(figure) = cost.amount {
                cost.amount = Amount::LowerBound(figure, unseen.to_owned());
            }
        }
    }
    Ok(Said { outcome, notes })
}

fn ports(manifest: &Manifest) -> WirePorts {
    let of = |role: Role| -> Vec<u16> {
        let found = manifest.targets.iter().filter(|target| target.role == role);
        let ports: Vec<u16> = found.filter_map(|target| target.port.map(|port| port.0)).collect();
        let usual = USUAL.iter().filter(|(known, _)| *known == role && ports.is_empty());
        usual.map(|(_, port)| *port).chain(ports.iter().copied()).collect()
    };
    WirePorts { http: Vec::new(), postgres: of(Role::Postgres), redis: of(Role::Redis) }
}

impl Said {
    /// Statements that were sent again and again, one trip each.
    pub fn loops(&self) -> impl Iterator<Item = &StatementCost> {
        let looks = |statement: &&StatementCost| {
            statement.told_apart
                && statement.reason == Some(Reason::User)
                && !statement.looks_like_a_check
                && statement.longest_run >= IN_A_ROW
        };
        self.outcome.statements.iter().filter(looks)
    }

    /// Findings, one sentence each.
    #[must_use]
    pub fn findings(&self) -> Vec<String> {
        let sentence = |statement: &StatementCost| {
            format!(
                "{} trips in a row on one connection for one statement ({} times in all): perhaps \
                 a query inside a loop (N+1): {}",
                statement.longest_run,
                numbers::count(statement.executions as f64),
                one_line(&statement.sql, 400)
            )
        };
        self.loops().map(sentence).collect()
    }

    /// The figures as `assay inspect --json` has them.
    #[must_use]
    pub fn records(&self, command: &str) -> Inspected {
        Inspected {
            source: vec![Source {
                file: command.to_owned(),
                holds: "a command, by its sockets".to_owned(),
                about: Vec::new(),
            }],
            costs: self.outcome.costs.clone(),
            integrity: self.notes.clone(),
            findings: self.findings(),
            problems: self.outcome.integrity.problems.clone(),
        }
    }

    /// The table, which fits 100 columns.
    #[must_use]
    pub fn table(&self, command: &str, ended: Ended, took: Duration) -> String {
        let how = match ended.signal {
            Some(signal) => format!("ended by signal {signal}"),
            None => format!("exit code {}", ended.code),
        };
        let seconds = took.as_secs_f64();
        let mut text =
            format!("\nassay · {} · {how} · {seconds:.2} s\n", one_line(command, WIDTH - 40));
        self.postgres(&mut text);
        self.redis(&mut text);
        self.statements(&mut text);
        let lists = [("Findings", self.findings()), ("Can it be trusted?", self.notes.clone())];
        for (title, lines) in lists.into_iter().filter(|(_, lines)| !lines.is_empty()) {
            let _never = writeln!(text, "{title}");
            for line in lines {
                for (index, part) in assay_reports::plain::wrap(&line, WIDTH - 4).iter().enumerate()
                {
                    let lead = if index == 0 { "  → " } else { "    " };
                    let _never = writeln!(text, "{lead}{part}");
                }
            }
        }
        text
    }

    fn postgres(&self, text: &mut String) {
        let Some(figures) = self.block(text, Protocol::Postgres, "Postgres") else { return };
        if figures.of(Metric::PostgresConnects) == Some(0.0)
            && figures.of(Metric::PostgresBytesSent) == Some(0.0)
        {
            text.push_str("  no connection\n");
            return;
        }
        figures.row(text, "  round trips", Metric::PostgresFlights);
        for (label, reason) in [
            ("    user statements", Reason::User),
            ("    transaction control", Reason::Transaction),
            ("    prepares", Reason::Prepare),
            ("    pool pings", Reason::PoolPing),
            ("    pool resets", Reason::PoolReset),
        ] {
            figures.row_for(text, label, Metric::PostgresFlights, reason);
        }
        figures.row(text, "  connections made", Metric::PostgresConnects);
        figures.row(text, "    trips for that", Metric::PostgresSetUpFlights);
        figures.row(text, "  statements executed", Metric::PostgresExecutions);
        figures.row(text, "  errors", Metric::PostgresErrors);
        figures.row(text, "  rows", Metric::PostgresRows);
        figures.row(text, "  bytes sent", Metric::PostgresBytesSent);
        figures.row(text, "  bytes received", Metric::PostgresBytesReceived);
    }

    fn redis(&self, text: &mut String) {
        let Some(figures) = self.block(text, Protocol::Redis, "Redis") else { return };
        if figures.of(Metric::RedisBytesSent) == Some(0.0) {
            text.push_str("  no connection\n");
            return;
        }
        figures.row(text, "  round trips", Metric::RedisFlights);
        figures.row(text, "  commands", Metric::RedisCommands);
        figures.row(text, "  bytes sent", Metric::RedisBytesSent);
        figures.row(text, "  bytes received", Metric::RedisBytesReceived);
    }

    /// The head of a block; nothing more where its figures cannot be given.
    fn block(&self, text: &mut String, protocol: Protocol, title: &str) -> Option<Figures<'_>> {
        if let Some(reason) = self.outcome.integrity.against(protocol) {
            let _never = writeln!(text, "{title:<14}not measured: {reason}");
            if reason.contains("encrypted") {
                text.push_str(
                    "  TLS hides what is said; sslmode=disable on loopback or a Unix socket shows \
                     it\n",
                );
            }
            return None;
        }
        let _never = writeln!(text, "{title}");
        Some(Figures(&self.outcome.costs))
    }

    fn statements(&self, text: &mut String) {
        let user = |statement: &&StatementCost| statement.reason == Some(Reason::User);
        let mut shown = self.outcome.statements.iter().filter(user).take(STATEMENTS).peekable();
        if shown.peek().is_none() || self.outcome.integrity.against(Protocol::Postgres).is_some() {
            return;
        }
        text.push_str("Statements, the most frequent first\n");
        for statement in shown {
            let count = numbers::count(statement.executions as f64);
            let sql = one_line(&statement.sql, WIDTH - 15);
            let _never = writeln!(text, "  {count:>9} × {sql}");
        }
    }
}

/// Costs, to be found by metric.
struct Figures<'a>(&'a [Cost]);

impl Figures<'_> {
    fn find(&self, metric: Metric, reason: Option<Reason>) -> Option<&Cost> {
        self.0.iter().find(|cost| {
            let label = cost.labels.get("reason").map(String::as_str);
            cost.metric == metric && label == reason.map(Reason::word)
        })
    }

    fn of(&self, metric: Metric) -> Option<f64> {
        match self.find(metric, None)?.amount {
            Amount::Measured(figure) => Some(figure.value),
            _ => None,
        }
    }

    fn row(&self, text: &mut String, label: &str, metric: Metric) {
        if let Some(cost) = self.find(metric, None) {
            line(text, label, &cost.amount);
        }
    }

    /// A part is shown where there is some of it.
    fn row_for(&self, text: &mut String, label: &str, metric: Metric, reason: Reason) {
        if let Some(cost) = self.find(metric, Some(reason))
            && !matches!(cost.amount, Amount::Measured(figure) if figure.value == 0.0)
        {
            line(text, label, &cost.amount);
        }
    }
}

fn line(text: &mut String, label: &str, amount: &Amount) {
    let (figure, more) = match amount {
        Amount::Measured(figure) => (numbers::count(figure.value), ""),
        Amount::LowerBound(figure, _) => (numbers::count(figure.value), "  at least"),
        Amount::NotMeasured(_) => ("not measured".to_owned(), ""),
    };
    let _never = writeln!(text, "{label:<26}{figure:>14}{more}");
}

/// Foreign text on one line, cut where it gets too long.
fn one_line(text: &str, most: usize) -> String {
    let mut line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((cut, _)) = line.char_indices().nth(most) {
        line.truncate(cut);
        line.push('…');
    }
    printable(&line).into_owned()
}
