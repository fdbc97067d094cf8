//! `requests.jsonl`: the requests of a serial lap, one line each, and the empty slots between.

use serde::{Deserialize, Serialize};

use crate::units::Moment;

/// One slot of a serial lap. Its window is `[start, next slot's start)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slot {
    /// Just before the request was written; for an empty slot, when it began.
    pub start: Moment,
    /// When the whole answer had been read; `None` for an empty slot or a request without answer.
    pub answered: Option<Moment>,
    /// Start of the next slot, or the end of the lap.
    pub end: Moment,
    /// Whether a request was sent: an empty slot shows what `nobody` causes.
    pub kind: SlotKind,
    /// Status of the answer.
    pub status: Option<u16>,
}

/// What a slot holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SlotKind {
    /// One request.
    Request,
    /// Nothing, for as long as a request's slot takes.
    Empty,
}
