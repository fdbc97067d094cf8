//! Collects formats that are one document (JSON, protobuf): they mean nothing before their end.

use crate::parsed::{Place, Problem};

/// The largest document that is read; far above any real one, so a bomb of zeros in gzip stops.
pub const LARGEST: usize = 1 << 30;

/// The bytes so far.
#[derive(Debug, Default)]
pub struct Document {
    bytes: Vec<u8>,
    too_large: bool,
}

impl Document {
    /// Takes the next bytes.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.too_large |= self.bytes.len() + bytes.len() > LARGEST;
        if !self.too_large {
            self.bytes.extend_from_slice(bytes);
        }
    }

    /// The whole document.
    pub fn whole(&self) -> Result<&[u8], Problem> {
        if self.too_large {
            let message = "larger than 1 GiB: split it, or aggregate it before";
            return Err(Problem::new(Place::Byte(LARGEST as u64), message));
        }
        Ok(&self.bytes)
    }
}

/// Says where and why JSON cannot be read.
pub(crate) fn json_problem(error: &serde_json::Error, bytes: &[u8]) -> Problem {
    let place = Place::Line(error.line() as u64);
    // A number or word that is cut in the middle is reported as wrong, not as the end.
    let lines = bytes.iter().filter(|&&byte| byte == b'\n').count() + 1;
    let last = bytes.len() - bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
    if error.is_eof() || (error.line() >= lines && error.column() >= last) {
        return Problem::new(place, "the file ends in the middle: it was cut");
    }
    let text = error.to_string();
    let cause = text.split(" at line ").next().unwrap_or_default();
    Problem::new(place, format!("not what this format has: {cause}"))
}
