//! Packets of several sources, put in the order of their moments.

use std::collections::BTreeMap;

use assay_captures::units::Moment;

/// Beyond so many bytes the oldest go out, come what may.
const BYTES_MAX: usize = 64 << 20;

/// A packet that waits for its turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// The interface that it belongs to.
    pub interface: u32,
    /// Its frame.
    pub frame: Vec<u8>,
    /// Its length with what was not copied.
    pub original: u32,
}

/// Holds packets back for a while. One that comes even later goes out at once, with the moment of
/// the last: a file whose moments go backwards would be read wrong.
#[derive(Debug, Default)]
pub struct Sorter {
    /// By moment and order of arrival.
    waiting: BTreeMap<(Moment, u64), Waiting>,
    bytes: usize,
    arrived: u64,
    last: Moment,
    late: u64,
}

impl Sorter {
    /// Takes a packet.
    pub fn push(&mut self, moment: Moment, packet: Waiting) {
        self.late += u64::from(moment < self.last);
        self.arrived += 1;
        self.bytes += packet.frame.len();
        self.waiting.insert((moment.max(self.last), self.arrived), packet);
    }

    /// The next packet of a moment before `before`, or of any where too much is waiting.
    pub fn pop(&mut self, before: Moment) -> Option<(Moment, Waiting)> {
        let first = self.waiting.first_entry()?;
        if first.key().0 >= before && self.bytes <= BYTES_MAX {
            return None;
        }
        let ((moment, _), packet) = first.remove_entry();
        self.bytes -= packet.frame.len();
        self.last = moment;
        Some((moment, packet))
    }

    /// Packets that came too late for their place.
    #[must_use]
    pub fn late(&self) -> u64 {
        self.late
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(byte: u8) -> Waiting {
        Waiting { interface: 0, frame: vec![byte], original: 1 }
    }

    #[test]
    fn packets_go_out_by_moment_and_by_arrival_where_that_is_the_same() {
        let mut sorter = Sorter::default();
        for (moment, byte) in [(30, 1), (10, 2), (30, 3), (20, 4)] {
            sorter.push(Moment(moment), packet(byte));
        }
        let mut out = |before: u64| {
            let mut bytes = Vec::new();
            while let Some((moment, packet)) = sorter.pop(Moment(before)) {
                bytes.push((moment.0, packet.frame[0]));
            }
            bytes
        };
        assert_eq!(out(20), [(10, 2)]);
        assert_eq!(out(31), [(20, 4), (30, 1), (30, 3)]);
        assert_eq!(sorter.late(), 0);
        sorter.push(Moment(5), packet(5));
        assert_eq!(sorter.pop(Moment(u64::MAX)).unwrap().0, Moment(30));
        assert_eq!(sorter.late(), 1);
    }
}
