//! What is counted, for one window or for all.

use crate::trips::Reason;

/// One thing that is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is the metric of the same name, or says what it is")]
pub enum Count {
    Executions,
    ReadyForQuery,
    /// ReadyForQuery messages of connection set-up.
    ReadyForSetUp,
    /// ReadyForQuery messages whose question was not captured.
    ReadyUnknown,
    Flights,
    AwaitedFlights,
    SetUpFlights,
    /// Flights with more than one exchange.
    PipelinedFlights,
    /// Client bursts within flights: what a count by turns of the conversation would give.
    Bursts,
    Rows,
    PostgresSent,
    PostgresReceived,
    PostgresErrors,
    Connects,
    Parses,
    /// Statements that failed.
    Failed,
    /// Statements that were passed over after a failure.
    Skipped,
    /// Portals with more rows than were asked for.
    Suspended,
    /// Flights whose end was not captured.
    PostgresLost,
    RedisCommands,
    RedisSetUp,
    RedisFlights,
    RedisErrors,
    RedisSent,
    RedisReceived,
    /// Flights whose end was not captured.
    RedisLost,
    HttpRequests,
    HttpResponses,
    HttpSent,
    HttpReceived,
    HttpPieces,
}

const PLAIN: usize = Count::HttpPieces as usize + 1;
const REASONS: usize = Reason::ALL.len();

/// All counts of one owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    plain: [u64; PLAIN],
    /// Executions, ReadyForQuery, flights, awaited flights by reason.
    by_reason: [[u64; REASONS]; 4],
}

impl Default for Counts {
    fn default() -> Self {
        Self { plain: [0; PLAIN], by_reason: [[0; REASONS]; 4] }
    }
}

impl Counts {
    /// How many.
    #[must_use]
    pub fn get(&self, count: Count) -> u64 {
        self.plain[count as usize]
    }

    /// How many for one reason; 0 for what is not told apart by reason.
    #[must_use]
    pub fn by_reason(&self, count: Count, reason: Reason) -> u64 {
        row(count).map_or(0, |row| self.by_reason[row][reason as usize])
    }

    pub(super) fn add(&mut self, count: Count, more: u64) {
        self.plain[count as usize] += more;
    }

    /// Adds one, with its reason if it has one.
    pub(super) fn add_for(&mut self, count: Count, reason: Option<Reason>) {
        self.add(count, 1);
        if let (Some(row), Some(reason)) = (row(count), reason) {
            self.by_reason[row][reason as usize] += 1;
        }
    }

    /// Adds all of `other`.
    pub fn add_all(&mut self, other: &Self) {
        for (sum, more) in self.plain.iter_mut().zip(&other.plain) {
            *sum += more;
        }
        for (sums, more) in self.by_reason.iter_mut().zip(&other.by_reason) {
            for (sum, more) in sums.iter_mut().zip(more) {
                *sum += more;
            }
        }
    }
}

fn row(count: Count) -> Option<usize> {
    match count {
        Count::Executions => Some(0),
        Count::ReadyForQuery => Some(1),
        Count::Flights => Some(2),
        Count::AwaitedFlights => Some(3),
        _ => None,
    }
}
