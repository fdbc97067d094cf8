//! Formats of ours that have one JSON record a line.

use std::marker::PhantomData;

use serde::de::DeserializeOwned;

use crate::parsed::{Place, Problem, Sink};

/// Longest line that is kept: a sample with all its counts takes under 64 KB.
const LINE_MAX: usize = 256 * 1024;

/// Reads records of type `R` as a file streams by.
#[derive(Debug)]
pub struct Decoder<R> {
    pending: Vec<u8>,
    line: u64,
    too_long: bool,
    records: PhantomData<R>,
}

impl<R> Default for Decoder<R> {
    fn default() -> Self {
        Self { pending: Vec::new(), line: 0, too_long: false, records: PhantomData }
    }
}

impl<R: DeserializeOwned> Decoder<R> {
    /// Takes the next bytes of the file.
    pub fn feed(&mut self, bytes: &[u8], sink: &mut impl Sink<R>) {
        for piece in bytes.split_inclusive(|&byte| byte == b'\n') {
            let (text, ended) = match piece.split_last() {
                Some((b'\n', text)) => (text, true),
                _ => (piece, false),
            };
            if self.pending.len() + text.len() > LINE_MAX {
                self.too_long = true;
                self.pending.clear();
            }
            if !self.too_long {
                self.pending.extend_from_slice(text);
            }
            if ended {
                self.end_line(sink);
            }
        }
    }

    /// The file has ended.
    pub fn finish(&mut self, sink: &mut impl Sink<R>) {
        if !self.pending.is_empty() || self.too_long {
            self.pending.clear();
            self.too_long = false;
            self.line += 1;
            sink.problem(Problem::new(Place::Line(self.line), "the last line has no end"));
        }
    }

    fn end_line(&mut self, sink: &mut impl Sink<R>) {
        self.line += 1;
        let place = Place::Line(self.line);
        if std::mem::take(&mut self.too_long) {
            sink.problem(Problem::new(place, "too long for a record"));
        } else if !self.pending.is_empty() {
            match serde_json::from_slice(&self.pending) {
                Ok(record) => sink.record(record),
                Err(error) => {
                    // serde_json counts lines from 1 within this one; its column helps.
                    let text = format!("not a valid record (column {})", error.column());
                    sink.problem(Problem::new(place, text));
                }
            }
        }
        self.pending.clear();
    }
}
