//! The table that `-c` prints, with whatever columns were asked for.

use nom::Parser;
use nom::combinator::all_consuming;

use super::grammar::{NAME_MAX, seconds};
use super::model::Row;
use crate::units::Nanos;

/// The columns of a table, as its header names them.
#[derive(Debug)]
pub(super) struct Table {
    columns: Vec<Column>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Column {
    Time,
    Calls,
    Errors,
    Name,
    Other,
}

/// What a line of a table is.
pub(super) enum TableLine<'a> {
    Row(Row<'a>),
    /// A line of dashes, or an empty one.
    Rule,
    /// No part of a table.
    Foreign,
}

impl Table {
    /// The table that this line is the header of.
    pub(super) fn of_header(line: &[u8]) -> Option<Self> {
        let line = line.trim_ascii();
        let begins = line.starts_with(b"% time") || line.starts_with(b"syscall ");
        if !begins && !line.ends_with(b"syscall") {
            return None;
        }
        let words: Vec<&str> = std::str::from_utf8(line).ok()?.split_ascii_whitespace().collect();
        let columns: Vec<Column> = words
            .iter()
            // "% time" is one column of two words.
            .filter(|word| **word != "%")
            .map(|word| match *word {
                "seconds" => Column::Time,
                "calls" => Column::Calls,
                "errors" => Column::Errors,
                "syscall" => Column::Name,
                _ => Column::Other,
            })
            .collect();
        let is_table = columns.contains(&Column::Name) && columns.contains(&Column::Calls);
        is_table.then_some(Self { columns })
    }

    /// Reads a line under the header.
    pub(super) fn read<'a>(&self, line: &'a [u8]) -> TableLine<'a> {
        if line.iter().all(|byte| b"- ".contains(byte)) {
            return TableLine::Rule;
        }
        self.row(line).map_or(TableLine::Foreign, TableLine::Row)
    }

    fn row<'a>(&self, line: &'a [u8]) -> Option<Row<'a>> {
        let mut row = Row { name: "", calls: 0, errors: 0, time: None };
        let text = std::str::from_utf8(line).ok()?;
        let cells = text.split_ascii_whitespace().count();
        // A call that never failed has an empty cell.
        let faultless = cells + 1 == self.columns.len();
        if cells != self.columns.len() && !faultless {
            return None;
        }
        let columns =
            self.columns.iter().filter(|&&column| !(faultless && column == Column::Errors));
        for (column, cell) in columns.zip(text.split_ascii_whitespace()) {
            match column {
                Column::Time => row.time = Some(length(cell)?),
                Column::Calls => row.calls = cell.parse().ok()?,
                Column::Errors => row.errors = cell.parse().ok()?,
                Column::Name if cell.len() > NAME_MAX => return None,
                Column::Name => row.name = cell,
                Column::Other => {}
            }
        }
        Some(row)
    }
}

fn length(cell: &str) -> Option<Nanos> {
    Some(all_consuming(seconds).parse(cell.as_bytes()).ok()?.1)
}
