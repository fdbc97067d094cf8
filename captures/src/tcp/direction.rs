//! One direction of a connection: puts segments in order.

use crate::units::Moment;

/// Payload kept while an earlier byte is missing; beyond it the hole is given up.
const PENDING_BYTES: usize = 4 << 20;
/// The same for the number of segments.
const PENDING_SEGMENTS: usize = 1024;
/// Packets of the conversation after which a hole that was acknowledged is given up. An
/// acknowledgement can be captured before the segment that it answers, but only by a little.
const PATIENCE: u64 = 6;

/// A segment that came too early, or the place of one that was cut.
#[derive(Debug)]
struct Early {
    sequence: u32,
    bytes: Vec<u8>,
    missing: u32,
}

/// What came out of a direction.
pub(super) enum Out<'a> {
    Bytes(&'a [u8]),
    Gap(u64),
}

#[derive(Debug, Default)]
pub(super) struct Direction {
    /// Sequence number of the next byte; `None` until the first segment.
    next: Option<u32>,
    /// Sorted by distance from `next`.
    early: Vec<Early>,
    early_bytes: usize,
    /// Packet number of the conversation when the hole was first acknowledged beyond.
    hole_since: Option<u64>,
    /// Sequence number behind the last byte, when the end was announced.
    end: Option<u32>,
    /// Highest sequence number that the receiver has acknowledged.
    acknowledged: Option<u32>,
    /// Whether the next segment may lie ahead without a gap: the recorder was off.
    resumed: bool,
}

/// A segment as a direction sees it.
pub(super) struct Segment<'a> {
    pub(super) sequence: u32,
    pub(super) bytes: &'a [u8],
    pub(super) missing: u32,
    pub(super) moment: Moment,
}

/// What a segment was.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Arrival {
    InOrder,
    Early,
    Copy,
}

impl Direction {
    pub(super) fn begin(&mut self, sequence: u32) {
        self.next = Some(sequence);
    }

    /// The recorder was off: what lies before the next segment is no gap.
    pub(super) fn resume(&mut self) {
        self.resumed = true;
        self.early.clear();
        self.early_bytes = 0;
        self.hole_since = None;
        self.acknowledged = None;
    }

    pub(super) fn next(&self) -> Option<u32> {
        self.next
    }

    /// Payload that waits behind a hole.
    #[inline]
    pub(super) fn kept(&self) -> usize {
        self.early_bytes
    }

    pub(super) fn announce_end(&mut self, sequence: u32) {
        self.end = Some(sequence);
    }

    /// Whether all bytes up to the announced end have come.
    pub(super) fn is_finished(&self) -> bool {
        self.end.is_some() && self.end == self.next
    }

    pub(super) fn has_end(&self) -> bool {
        self.end.is_some()
    }

    /// Takes a segment with payload and delivers what is in order now.
    pub(super) fn take(
        &mut self,
        segment: &Segment<'_>,
        deliver: &mut impl FnMut(Moment, Out<'_>),
    ) -> Arrival {
        let mut next = *self.next.get_or_insert(segment.sequence);
        if std::mem::take(&mut self.resumed) && distance(next, segment.sequence) > 0 {
            next = segment.sequence;
            self.next = Some(next);
        }
        let ahead = distance(next, segment.sequence);
        let length = segment.bytes.len() as i64 + i64::from(segment.missing);
        if ahead + length <= 0 {
            return Arrival::Copy;
        }
        if ahead > 0 {
            return self.keep(segment, ahead);
        }
        self.pass(segment.sequence, segment.bytes, segment.missing, segment.moment, deliver);
        self.drain(segment.moment, deliver);
        Arrival::InOrder
    }

    /// Keeps an early segment, unless it is already there whole.
    fn keep(&mut self, segment: &Segment<'_>, ahead: i64) -> Arrival {
        let Some(next) = self.next else { return Arrival::Copy };
        let place = self.early.partition_point(|kept| distance(next, kept.sequence) < ahead);
        if let Some(kept) = self.early.get(place)
            && kept.sequence == segment.sequence
            && kept.bytes.len() >= segment.bytes.len()
        {
            return Arrival::Copy;
        }
        self.early_bytes += segment.bytes.len();
        let early = Early {
            sequence: segment.sequence,
            bytes: segment.bytes.to_vec(),
            missing: segment.missing,
        };
        self.early.insert(place, early);
        Arrival::Early
    }

    /// Delivers the new part of a segment that starts at or before the next byte.
    fn pass(
        &mut self,
        sequence: u32,
        bytes: &[u8],
        missing: u32,
        moment: Moment,
        deliver: &mut impl FnMut(Moment, Out<'_>),
    ) {
        let Some(next) = self.next else { return };
        let old = distance(sequence, next).max(0) as usize;
        let fresh = bytes.get(old..).unwrap_or(&[]);
        if !fresh.is_empty() {
            deliver(moment, Out::Bytes(fresh));
        }
        let old_missing = old.saturating_sub(bytes.len()) as u64;
        let lost = u64::from(missing).saturating_sub(old_missing);
        if lost > 0 {
            deliver(moment, Out::Gap(lost));
        }
        self.next = Some(next.wrapping_add(fresh.len() as u32).wrapping_add(lost as u32));
        self.hole_since = None;
    }

    fn drain(&mut self, moment: Moment, deliver: &mut impl FnMut(Moment, Out<'_>)) {
        while let (Some(next), Some(first)) = (self.next, self.early.first()) {
            if distance(next, first.sequence) > 0 {
                return;
            }
            let early = self.early.remove(0);
            self.early_bytes -= early.bytes.len();
            let length = early.bytes.len() as i64 + i64::from(early.missing);
            if distance(next, early.sequence) + length > 0 {
                self.pass(early.sequence, &early.bytes, early.missing, moment, deliver);
            }
        }
    }

    /// Takes the receiver's word on what it has, and gives up holes that will not be filled.
    pub(super) fn acknowledge(
        &mut self,
        acknowledgement: u32,
        packet: u64,
        moment: Moment,
        deliver: &mut impl FnMut(Moment, Out<'_>),
    ) {
        if self.resumed {
            // Until its first segment comes, it is not known where this side stands.
            return;
        }
        if self.acknowledged.is_none_or(|known| distance(known, acknowledgement) > 0) {
            self.acknowledged = Some(acknowledgement);
        }
        let full = self.early_bytes > PENDING_BYTES || self.early.len() > PENDING_SEGMENTS;
        if full {
            self.give_up_first(moment, deliver);
            return;
        }
        let Some(hole) = self.acknowledged_hole() else { return };
        let since = *self.hole_since.get_or_insert(packet);
        if packet.saturating_sub(since) >= PATIENCE {
            self.give_up(hole, moment, deliver);
        }
    }

    /// Length of the hole at the next byte, if the receiver has acknowledged bytes beyond it.
    fn acknowledged_hole(&self) -> Option<u64> {
        let (next, acknowledged) = (self.next?, self.acknowledged?);
        let beyond = distance(next, acknowledged);
        if beyond <= 0 || beyond > 1 << 30 {
            return None;
        }
        if let Some(first) = self.early.first() {
            let hole = distance(next, first.sequence);
            return (hole <= beyond).then_some(hole as u64);
        }
        // The end of a direction takes one number of its own.
        let hole = match self.end {
            Some(end) => distance(next, end).min(beyond),
            None => beyond,
        };
        (hole > 0).then_some(hole as u64)
    }

    fn give_up_first(&mut self, moment: Moment, deliver: &mut impl FnMut(Moment, Out<'_>)) {
        if let (Some(next), Some(first)) = (self.next, self.early.first()) {
            let hole = distance(next, first.sequence).max(0) as u64;
            self.give_up(hole, moment, deliver);
        }
    }

    fn give_up(&mut self, hole: u64, moment: Moment, deliver: &mut impl FnMut(Moment, Out<'_>)) {
        let Some(next) = self.next else { return };
        deliver(moment, Out::Gap(hole));
        self.next = Some(next.wrapping_add(hole as u32));
        self.hole_since = None;
        self.drain(moment, deliver);
    }

    /// Delivers whatever is left, with its holes.
    pub(super) fn flush(&mut self, moment: Moment, deliver: &mut impl FnMut(Moment, Out<'_>)) {
        while !self.early.is_empty() {
            self.give_up_first(moment, deliver);
        }
        // Without an announced end, one number beyond may be that end, uncaptured.
        if let Some(hole) = self.acknowledged_hole()
            && (hole > 1 || self.end.is_some())
        {
            self.give_up(hole, moment, deliver);
        }
    }
}

/// How far `to` lies after `from`, with wrap-around.
pub(super) fn distance(from: u32, to: u32) -> i64 {
    i64::from(to.wrapping_sub(from).cast_signed())
}
