//! Whether a capture is whole: what may be missing from the counts, and which ones.

use std::collections::{BTreeMap, BTreeSet};

use assay_captures::tcp::Figures;

use crate::attribute::Owner;

/// What a connection speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Protocol {
    /// HTTP/1.
    Http,
    /// Postgres.
    Postgres,
    /// Redis.
    Redis,
}

impl Protocol {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Http, Self::Postgres, Self::Redis];

    /// The first word of its metrics' names.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Postgres => "postgres",
            Self::Redis => "redis",
        }
    }
}

/// The integrity record of a fold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Integrity {
    /// Packets that the recorder lost, by its own count.
    pub drops: u64,
    /// What reassembly saw, over the whole capture.
    pub streams: Figures,
    /// Faults inside windows, by protocol: `encrypted`, `gap`, `out of step`, `http/2`,
    /// `unfinished`, `joined`.
    pub faults: BTreeMap<(Protocol, &'static str), u64>,
    /// Problems of the file, one line each, at most twenty.
    pub problems: Vec<String>,
    /// Responses seen on the wire inside windows.
    pub responses: u64,
    /// Requests that the windows say were sent.
    pub requests: u64,
    /// Whether frames were captured twice: each segment came again, with nothing new.
    pub frames_twice: bool,
    /// Of a file that came from elsewhere: connections by protocol. There a part that could be
    /// read is a lower bound; of a run it is nothing.
    pub foreign: Option<BTreeMap<Protocol, u64>>,
}

/// Faults that can change a count. A connection that was open before the capture cannot: windows
/// begin when everything is quiet.
const FATAL: [(&str, &str); 4] = [
    ("encrypted", "connections are encrypted"),
    ("gap", "segments are missing from the capture"),
    ("out of step", "bytes that are not understood"),
    ("http/2", "connections speak HTTP/2"),
];

/// How encrypted connections to Postgres could be seen.
const CLEAR: &str = "sslmode=disable on loopback, or the clear leg of a pooler, would show them";

impl Integrity {
    /// Why a protocol's counts cannot be trusted; `None` if they can.
    #[must_use]
    pub fn against(&self, protocol: Protocol) -> Option<String> {
        let mut reasons = Vec::new();
        if self.drops > 0 {
            reasons.push(format!("the recorder dropped {} packets", self.drops));
        }
        for (fault, words) in FATAL {
            if let Some(count) = self.faults.get(&(protocol, fault)) {
                reasons.push(format!("{count} × {words}"));
                if (protocol, fault) == (Protocol::Postgres, "encrypted") {
                    reasons.push(CLEAR.to_owned());
                }
            }
        }
        for problem in &self.problems {
            if problem.contains("fragment") || problem.contains("unreadable") {
                reasons.push(problem.clone());
            }
        }
        (!reasons.is_empty()).then(|| reasons.join("; "))
    }

    /// Whether a file from elsewhere has connections of a protocol that could be read.
    #[must_use]
    pub fn keeps_a_part(&self, protocol: Protocol) -> bool {
        let of = |fault| self.faults.get(&(protocol, fault)).copied().unwrap_or(0);
        self.foreign
            .as_ref()
            .and_then(|all| all.get(&protocol))
            .is_some_and(|&connections| connections > of("encrypted") + of("http/2"))
    }

    /// Why a protocol's counts are lower bounds; `None` if they are not.
    #[must_use]
    pub fn partial(&self, protocol: Protocol) -> Option<String> {
        let unfinished = self.faults.get(&(protocol, "unfinished"))?;
        Some(format!("{unfinished} trips have no end in the capture"))
    }

    /// What a reader should know, one sentence each.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        for protocol in Protocol::ALL {
            if let Some(reason) = self.against(protocol) {
                notes.push(format!("{}: {reason}", protocol.word()));
            }
            if let Some(joined) = self.faults.get(&(protocol, "joined")) {
                notes.push(format!(
                    "{}: {joined} connections were open before the capture began",
                    protocol.word()
                ));
            }
        }
        if let Some(upgraded) = self.faults.get(&(Protocol::Http, "upgraded")) {
            notes.push(format!(
                "http: {upgraded} connections went over to another protocol (WebSocket, HTTP/2, a \
                 tunnel), which is not read"
            ));
        }
        if self.frames_twice {
            notes.push("each frame was captured twice; copies are not counted".to_owned());
        }
        notes.extend(self.problems.iter().cloned());
        notes
    }
}

/// Collects faults; the same one of the same connection counts once a window.
#[derive(Debug, Default)]
pub(super) struct Faults {
    seen: BTreeSet<(Protocol, &'static str, u64, Owner)>,
}

impl Faults {
    /// Notes a fault of a connection if it fell into a window.
    pub(super) fn note(
        &mut self,
        protocol: Protocol,
        fault: &'static str,
        connection: u64,
        owner: Owner,
    ) {
        // Bounded: thousands of broken connections say no more than the first thousands.
        if owner != Owner::Nobody && self.seen.len() < 100_000 {
            self.seen.insert((protocol, fault, connection, owner));
        }
    }

    pub(super) fn by_kind(&self) -> BTreeMap<(Protocol, &'static str), u64> {
        let mut counts = BTreeMap::new();
        for &(protocol, fault, ..) in &self.seen {
            *counts.entry((protocol, fault)).or_insert(0) += 1;
        }
        counts
    }
}
