//! What a DHAT profile holds.

/// So many bytes in so many blocks. In the ad-hoc mode: units in events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// Bytes, or units.
    pub bytes: u64,
    /// Blocks, or events.
    pub blocks: u64,
}

impl Amount {
    /// Both added; saturating.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            bytes: self.bytes.saturating_add(other.bytes),
            blocks: self.blocks.saturating_add(other.blocks),
        }
    }
}

/// What was recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Heap blocks, by valgrind (`heap`) or by the dhat crate (`rust-heap`).
    Heap,
    /// Bytes copied by `memcpy` and its kin.
    Copy,
    /// Events that the program itself announced.
    AdHoc,
    /// Something that later versions have.
    Other(String),
}

/// One place in the program that allocates, with the stack that led there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Point {
    /// Allocated over the whole run.
    pub total: Amount,
    /// The most that this point held at a time of its own; never to be summed over points.
    pub own_maximum: Option<Amount>,
    /// Held when the whole heap was at its largest.
    pub at_peak: Option<Amount>,
    /// Held at the end.
    pub at_end: Option<Amount>,
    /// Sum of the lifetimes of its blocks, in the file's unit of time.
    pub lifetimes: Option<u64>,
    /// Bytes read from its blocks.
    pub read: Option<u64>,
    /// Bytes written to its blocks.
    pub written: Option<u64>,
    /// Its stack, innermost frame first, as indexes of [`Profile::frames`].
    pub stack: Vec<u32>,
}

/// Sums over all points.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Allocated over the whole run.
    pub total: Amount,
    /// Held when the heap was at its largest; `None` without lifetimes.
    pub at_peak: Option<Amount>,
    /// Held at the end; `None` without lifetimes.
    pub at_end: Option<Amount>,
    /// Bytes read; `None` without accesses.
    pub read: Option<u64>,
    /// Bytes written; `None` without accesses.
    pub written: Option<u64>,
}

/// A whole profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// What was recorded.
    pub mode: Mode,
    /// The command that ran.
    pub command: String,
    /// Its process.
    pub pid: u64,
    /// Unit of the times below: `instrs`, `µs`.
    pub time_unit: String,
    /// What `Amount::bytes` counts: `byte`, or the unit of an ad-hoc profile.
    pub bytes_unit: String,
    /// What `Amount::blocks` counts: `blocks`, or `events`.
    pub blocks_unit: String,
    /// When the program ended.
    pub end: u64,
    /// When the heap was at its largest; `None` without lifetimes.
    pub peak: Option<u64>,
    /// Where allocations happened.
    pub points: Vec<Point>,
    /// All frames of all stacks, such as `0x109162: main (a.c:9)`.
    pub frames: Vec<String>,
}

impl Profile {
    /// The sums over all points. The peak is what was held at one moment, so it is the sum of
    /// what each point held then, not of each point's own maximum.
    #[must_use]
    pub fn totals(&self) -> Totals {
        let sum = |of: fn(&Point) -> Option<Amount>| {
            self.points.iter().try_fold(Amount::default(), |sum, point| Some(sum.and(of(point)?)))
        };
        let count = |of: fn(&Point) -> Option<u64>| {
            self.points.iter().try_fold(0_u64, |sum, point| Some(sum.saturating_add(of(point)?)))
        };
        let lifetimes = self.peak.is_some();
        let accesses = self.points.iter().all(|point| point.read.is_some());
        Totals {
            total: sum(|point| Some(point.total)).unwrap_or_default(),
            at_peak: sum(|point| point.at_peak).filter(|_| lifetimes),
            at_end: sum(|point| point.at_end).filter(|_| lifetimes),
            read: count(|point| point.read).filter(|_| accesses && !self.points.is_empty()),
            written: count(|point| point.written).filter(|_| accesses && !self.points.is_empty()),
        }
    }

    /// The frames of a point, innermost first, without their addresses.
    pub fn stack<'a>(&'a self, point: &'a Point) -> impl Iterator<Item = &'a str> {
        let frame = |&index: &u32| self.frames.get(index as usize).map(|frame| name(frame));
        point.stack.iter().filter_map(frame)
    }
}

/// `0x109162: main (a.c:9)` without the address.
fn name(frame: &str) -> &str {
    match frame.split_once(": ") {
        Some((address, rest)) if address.starts_with("0x") => rest,
        _ => frame,
    }
}
