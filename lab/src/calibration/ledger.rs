//! The subject's ledger: what CPU it truly used, millisecond by millisecond, by its own clocks.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;

use anyhow::{Context, Result, bail};
use assay_captures::units::Span;

/// Functions that burn CPU, in the order of the ledger.
pub(super) const FUNCTIONS: [&str; 4] = ["alder", "birch", "cedar", "durian"];

const NUMBERS: usize = 8;
const SLOT: usize = NUMBERS * size_of::<u64>();
const SLOT_NANOSECONDS: u64 = 1_000_000;

/// The slots in which anything happened.
#[derive(Debug)]
pub(super) struct Ledger {
    begin: u64,
    slots: Vec<(u64, [u64; NUMBERS])>,
}

/// What was used in a span.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Used {
    /// Requests that ended in it.
    pub(super) requests: u64,
    /// CPU seconds of the threads that served them.
    pub(super) cpu: f64,
    /// CPU seconds in each of [`FUNCTIONS`].
    pub(super) burnt: [f64; 4],
}

impl Ledger {
    /// Reads the file that the subject has kept.
    pub(super) fn read(path: &Path) -> Result<Self> {
        let mut file =
            File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
        let mut head = [0; SLOT];
        file.read_exact(&mut head).context("it is cut off")?;
        let begin = numbers(&head)[0];
        if begin == 0 {
            bail!("it was never begun");
        }
        let mut slots = Vec::new();
        let mut index = 0;
        // Whole slots; most of them are holes of the file.
        let mut buffer = vec![0; 1_024 * SLOT];
        loop {
            match file.read_exact(&mut buffer) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                    return Ok(Self { begin, slots });
                }
                Err(error) => return Err(error.into()),
            }
            for slot in buffer.chunks_exact(SLOT) {
                let slot = numbers(slot);
                if slot[0] > 0 {
                    slots.push((index, slot));
                }
                index += 1;
            }
        }
    }

    /// What was used in `span`, whose ends are quiet for longer than a slot.
    pub(super) fn over(&self, span: Span) -> Used {
        let slot = |moment: u64| moment.saturating_sub(self.begin) / SLOT_NANOSECONDS;
        let (first, last) = (slot(span.start.0), slot(span.end.0));
        let from = self.slots.partition_point(|&(index, _)| index < first);
        let mut used = Used::default();
        for (_, numbers) in self.slots[from..].iter().take_while(|&&(index, _)| index <= last) {
            used.requests += numbers[0];
            used.cpu += numbers[1] as f64 / 1e9;
            for (sum, &nanoseconds) in used.burnt.iter_mut().zip(&numbers[2..]) {
                *sum += nanoseconds as f64 / 1e9;
            }
        }
        used
    }
}

fn numbers(bytes: &[u8]) -> [u64; NUMBERS] {
    let mut numbers = [0; NUMBERS];
    for (number, bytes) in numbers.iter_mut().zip(bytes.chunks_exact(8)) {
        *number = bytes.try_into().map_or(0, u64::from_ne_bytes);
    }
    numbers
}

#[cfg(test)]
mod tests {
    use assay_captures::units::Moment;

    use super::*;

    #[test]
    fn what_ended_within_a_span_is_summed() {
        // slot      0     1     2     3
        // requests  2           1     4
        let slot = |requests: u64| [requests, requests * 1_000, requests * 500, 0, 0, 0, 0, 0];
        let ledger =
            Ledger { begin: 10_000_000, slots: vec![(0, slot(2)), (2, slot(1)), (3, slot(4))] };
        let over = |start, end| ledger.over(Span { start: Moment(start), end: Moment(end) });
        assert_eq!(over(10_500_000, 12_600_000).requests, 3);
        assert_eq!(over(11_000_000, 13_999_999).requests, 5);
        assert_eq!(over(1, 2).requests, 2, "before the beginning is the beginning");
        assert!((over(12_000_000, 14_000_000).cpu - 5e-6).abs() < 1e-12);
        assert!((over(12_000_000, 12_100_000).burnt[0] - 0.5e-6).abs() < 1e-12);
    }
}
