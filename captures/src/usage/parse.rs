//! Lines → samples.

use crate::parsed::{Place, Problem, Sink};

use super::model::Sample;

/// Longest line that is kept: four groups take under 2 KB.
const LINE_MAX: usize = 64 * 1024;

/// Reads `usage.jsonl` as it streams by.
#[derive(Debug, Default)]
pub struct Decoder {
    pending: Vec<u8>,
    line: u64,
    too_long: bool,
}

impl Decoder {
    /// Takes the next bytes of the file.
    pub fn feed(&mut self, bytes: &[u8], sink: &mut impl Sink<Sample>) {
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
    pub fn finish(&mut self, sink: &mut impl Sink<Sample>) {
        if !self.pending.is_empty() || self.too_long {
            self.pending.clear();
            self.too_long = false;
            self.line += 1;
            sink.problem(Problem::new(Place::Line(self.line), "the last line has no end"));
        }
    }

    fn end_line(&mut self, sink: &mut impl Sink<Sample>) {
        self.line += 1;
        let place = Place::Line(self.line);
        if std::mem::take(&mut self.too_long) {
            sink.problem(Problem::new(place, "too long for a usage sample"));
        } else if !self.pending.is_empty() {
            match serde_json::from_slice(&self.pending) {
                Ok(sample) => sink.record(sample),
                Err(error) => {
                    // serde_json counts lines from 1 within this one; its column helps.
                    let text = format!("not a usage sample (column {})", error.column());
                    sink.problem(Problem::new(place, text));
                }
            }
        }
        self.pending.clear();
    }
}
