//! What is expected of each operation: the rows of `expected.tsv`.

use std::fmt;

/// What an operation does on the wire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Books {
    /// Round trips, connection set-up included.
    pub(crate) trips: u64,
    /// ReadyForQuery messages.
    pub(crate) ready: u64,
    /// Statements that completed.
    pub(crate) executions: u64,
    /// The trips by reason.
    pub(crate) why: String,
}

impl Books {
    /// As the table of the proxy has it: one number where trips and ReadyForQuery agree.
    pub(crate) fn known(&self) -> String {
        let Self { trips, ready, .. } = self;
        if trips == ready { trips.to_string() } else { format!("{trips}/{ready}") }
    }
}

impl fmt::Display for Books {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { trips, ready, executions, why } = self;
        write!(out, "{trips} trips, {ready} Ready, {executions} executions: {why}")
    }
}

/// One operation of one client.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    /// Who performs it.
    pub(crate) client: String,
    /// Its name in the talk with the client.
    pub(crate) operation: String,
    /// What a parsing proxy counted before Assay did, as trips, or trips/ReadyForQuery where they
    /// differ; `-` where nobody had looked.
    pub(crate) known: String,
    /// What the wire must show.
    pub(crate) books: Books,
    /// Why that is another number than the proxy's.
    pub(crate) explanation: String,
}

/// All rows, in the order in which they are performed.
pub(crate) fn rows() -> Vec<Row> {
    let text = include_str!("expected.tsv");
    let lines = text.lines().enumerate().skip(1).filter(|(_, line)| !line.trim().is_empty());
    lines.map(|(index, line)| row(index + 1, line)).collect()
}

fn row(line_number: usize, line: &str) -> Row {
    let mut cells = line.split('\t');
    let mut cell = |name: &str| -> String {
        let found = cells.next().map(str::to_owned);
        found.unwrap_or_else(|| panic!("expected.tsv:{line_number} has no {name}"))
    };
    let client = cell("client");
    let operation = cell("operation");
    let known = cell("proxy");
    let number = |text: String| -> u64 {
        text.parse().unwrap_or_else(|_| panic!("expected.tsv:{line_number}: {text:?} is no count"))
    };
    let trips = number(cell("trips"));
    let ready = number(cell("ready"));
    let executions = number(cell("executions"));
    let why = cell("why");
    let explanation = cells.next().unwrap_or_default().to_owned();
    Row { client, operation, known, books: Books { trips, ready, executions, why }, explanation }
}
