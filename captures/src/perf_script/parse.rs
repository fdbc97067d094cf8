//! Bytes → samples. A block is kept until its empty line; never more than that.

use crate::parsed::{Place, Problem, Sink};

use super::header::{frame, header};
use super::model::Sample;

/// Longest block that is kept: a stack of a thousand long names.
const BLOCK_MAX: usize = 4 * 1024 * 1024;

/// Reads the text of `perf script` as it streams by.
#[derive(Debug, Default)]
pub struct Decoder {
    block: Vec<u8>,
    /// Lines before the block, and in it.
    before: u64,
    lines: u64,
    /// Length of the line that is not yet complete.
    open: usize,
    too_long: bool,
}

impl Decoder {
    /// Takes the next bytes of the file.
    pub fn feed<S>(&mut self, bytes: &[u8], sink: &mut S)
    where
        S: for<'a> Sink<Sample<'a>>,
    {
        for piece in bytes.split_inclusive(|&byte| byte == b'\n') {
            if self.block.len() + piece.len() > BLOCK_MAX {
                self.too_long = true;
                self.block.clear();
            }
            if !self.too_long {
                self.block.extend_from_slice(piece);
            }
            if piece.ends_with(b"\n") {
                self.lines += 1;
                let blank = self.open == 0 && piece.trim_ascii().is_empty();
                self.open = 0;
                if blank {
                    self.end_block(sink);
                }
            } else {
                self.open += piece.len();
            }
        }
    }

    /// The file has ended.
    pub fn finish<S>(&mut self, sink: &mut S)
    where
        S: for<'a> Sink<Sample<'a>>,
    {
        if self.open > 0 {
            // The last line is cut; the sample before it may be short of frames, so it goes too.
            let place = Place::Line(self.before + self.lines + 1);
            sink.problem(Problem::new(place, "the last line has no end"));
            self.block.clear();
            self.open = 0;
        }
        self.end_block(sink);
    }

    fn end_block<S>(&mut self, sink: &mut S)
    where
        S: for<'a> Sink<Sample<'a>>,
    {
        let block = std::mem::take(&mut self.block);
        if std::mem::take(&mut self.too_long) {
            let place = Place::Line(self.before + 1);
            sink.problem(Problem::new(place, "too long for a sample"));
        } else {
            self.sample(&block, sink);
        }
        self.before += std::mem::take(&mut self.lines);
        // The buffer is kept for the next block.
        self.block = block;
        self.block.clear();
    }

    fn sample<S>(&self, block: &[u8], sink: &mut S)
    where
        S: for<'a> Sink<Sample<'a>>,
    {
        let text = String::from_utf8_lossy(block);
        let mut sample: Option<Sample<'_>> = None;
        for (line, number) in text.lines().zip(self.before + 1..) {
            let place = Place::Line(number);
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            // A thread's name may be padded on the left; an address never follows a name.
            let is_frame = line.starts_with(['\t', ' ']) && sample.is_some();
            if is_frame {
                match (frame(line), sample.as_mut()) {
                    (Some(frame), Some(sample)) => sample.frames.push(frame),
                    _ => sink.problem(Problem::new(place, "not a frame of a stack")),
                }
                continue;
            }
            if let Some(sample) = sample.take() {
                sink.record(sample);
            }
            match header(line) {
                Some((mut begun, rest)) => {
                    begun.frames.extend(frame(rest));
                    sample = Some(begun);
                }
                None => sink.problem(Problem::new(place, "not the first line of a sample")),
            }
        }
        if let Some(sample) = sample {
            sink.record(sample);
        }
    }
}
