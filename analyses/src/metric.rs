//! What can be counted, in which unit, and what kind of number it is.

/// Something that a request costs, or that a run is judged by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Metric {
    /// Good answers per second.
    Throughput,
    /// Time to the answer; label `quantile`: `0.5`, `0.9`, `0.99`, `0.999`, `mean`, `max`.
    Latency,
    /// Statements that completed.
    PostgresExecutions,
    /// ReadyForQuery messages: server cycles.
    PostgresReadyForQuery,
    /// Busy periods of owed answers; label `reason`.
    PostgresFlights,
    /// Flights that somebody waits for.
    PostgresAwaitedFlights,
    /// Flights of connection set-up.
    PostgresSetUpFlights,
    /// DataRow messages.
    PostgresRows,
    /// Bytes of protocol from client to server.
    PostgresBytesSent,
    /// Bytes of protocol from server to client.
    PostgresBytesReceived,
    /// ErrorResponse messages.
    PostgresErrors,
    /// New connections.
    PostgresConnects,
    /// Connections, those that were open before the capture among them; label `encryption`:
    /// `accepted`, `refused`.
    PostgresConnections,
    /// Connections that only cancel what another one runs.
    PostgresCancels,
    /// NoticeResponse messages.
    PostgresNotices,
    /// NotificationResponse messages.
    PostgresNotifications,
    /// Parse messages.
    PostgresParses,
    /// Commands, those of connection set-up apart.
    RedisCommands,
    /// Busy periods of owed replies.
    RedisFlights,
    /// Commands with which client libraries open a connection.
    RedisSetUpCommands,
    /// Replies that are errors; label `of`: `set-up` for those to set-up commands.
    RedisErrors,
    /// Replies that are null.
    RedisNulls,
    /// Messages from the server that answer nothing (RESP3).
    RedisPushes,
    /// Bytes of protocol from client to server.
    RedisBytesSent,
    /// Bytes of protocol from server to client.
    RedisBytesReceived,
    /// HTTP requests seen on the wire.
    HttpRequests,
    /// HTTP responses seen on the wire; label `status`.
    HttpResponses,
    /// Interim responses (100, 103): the final one follows.
    HttpInterim,
    /// Bytes of bodies that were not captured.
    HttpMissingBytes,
    /// Bytes of HTTP from client to server.
    HttpBytesSent,
    /// Bytes of HTTP from server to client.
    HttpBytesReceived,
    /// Segments with bytes of HTTP from server to client: a short response that is written at once
    /// is one.
    HttpPieces,
    /// Time in which an answer was owed; label `on`: `postgres`, `redis`. Idle machine.
    Wait,
    /// From the request to the first trip. Idle machine.
    PhaseBefore,
    /// Between trips. Idle machine.
    PhaseBetween,
    /// From the last answer to the response. Idle machine.
    PhaseAfter,
    /// System calls; label `name`, total without.
    Syscalls,
    /// Failed system calls; labels `name`, `errno`.
    SyscallErrors,
    /// Time in system calls, waits included; label `name`.
    SyscallTime,
    /// Bytes that reading and writing calls returned; label `name`.
    SyscallBytes,
    /// System calls without an end; labels `name` and `why`: `never returns`, `detached`,
    /// `unfinished`.
    SyscallUnreturned,
    /// Context switches; labels `kind`: `voluntary`, `involuntary`, and `process`.
    ContextSwitches,
    /// CPU time; label `process`.
    CpuTime,
    /// CPU time by phase; labels `process`, `phase`, `view`.
    CpuPhase,
    /// Heap blocks allocated.
    AllocationsBlocks,
    /// Heap bytes allocated.
    AllocationsBytes,
    /// Instructions executed in user space; label `function` for the top ones.
    Instructions,
    /// Resident memory; label `rule`: `highest CPU of six`, `median`, `peak`.
    MemoryResident,
    /// Proportional memory.
    MemoryProportional,
    /// Requests that a load generator saw to their end.
    LoadRequests,
    /// Good answers that a load generator saw.
    LoadGood,
    /// Requests that failed; label `kind`, total without.
    LoadErrors,
    /// Latency as a load generator printed it; label `quantile`.
    LoadLatency,
    /// Total of a profile; labels `event`, `unit` (the event's own unit).
    ProfileValue,
    /// What a function of a profile has by itself; labels `function`, `event`, `unit`.
    ProfileSelf,
    /// What a function has with all it calls; labels `function`, `event`, `unit`.
    ProfileTotal,
    /// Garbage collections per second.
    GcCollectionsPerSecond,
    /// Share of wall time in which a garbage collector stopped the program.
    GcStopTheWorldShare,
    /// CPU time that a garbage collector used, as a share of one CPU's time.
    GcCpuShare,
    /// What a probe cost the service; labels `probe`, `of`: `throughput`, `cpu`.
    ObserverEffect,
}

/// What kind of number a metric is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Two runs that differ have differed.
    Exact,
    /// A measurement with noise.
    Noisy,
    /// A share of samples.
    Sampled,
}

/// Which way is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// Costs.
    Smaller,
    /// Rates.
    Larger,
}

impl Metric {
    /// All of them, in the order above.
    pub const ALL: [Self; 60] = [
        Self::Throughput,
        Self::Latency,
        Self::PostgresExecutions,
        Self::PostgresReadyForQuery,
        Self::PostgresFlights,
        Self::PostgresAwaitedFlights,
        Self::PostgresSetUpFlights,
        Self::PostgresRows,
        Self::PostgresBytesSent,
        Self::PostgresBytesReceived,
        Self::PostgresErrors,
        Self::PostgresConnects,
        Self::PostgresConnections,
        Self::PostgresCancels,
        Self::PostgresNotices,
        Self::PostgresNotifications,
        Self::PostgresParses,
        Self::RedisCommands,
        Self::RedisFlights,
        Self::RedisSetUpCommands,
        Self::RedisErrors,
        Self::RedisNulls,
        Self::RedisPushes,
        Self::RedisBytesSent,
        Self::RedisBytesReceived,
        Self::HttpRequests,
        Self::HttpResponses,
        Self::HttpInterim,
        Self::HttpMissingBytes,
        Self::HttpBytesSent,
        Self::HttpBytesReceived,
        Self::HttpPieces,
        Self::Wait,
        Self::PhaseBefore,
        Self::PhaseBetween,
        Self::PhaseAfter,
        Self::Syscalls,
        Self::SyscallErrors,
        Self::SyscallTime,
        Self::SyscallBytes,
        Self::SyscallUnreturned,
        Self::ContextSwitches,
        Self::CpuTime,
        Self::CpuPhase,
        Self::AllocationsBlocks,
        Self::AllocationsBytes,
        Self::Instructions,
        Self::MemoryResident,
        Self::MemoryProportional,
        Self::LoadRequests,
        Self::LoadGood,
        Self::LoadErrors,
        Self::LoadLatency,
        Self::ProfileValue,
        Self::ProfileSelf,
        Self::ProfileTotal,
        Self::GcCollectionsPerSecond,
        Self::GcStopTheWorldShare,
        Self::GcCpuShare,
        Self::ObserverEffect,
    ];

    /// Its name in results and on command lines.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.row().0
    }

    /// Its unit, as UCUM spells it: `s`, `By`, `1`, `1/s`.
    #[must_use]
    pub fn unit(self) -> &'static str {
        self.row().1
    }

    /// What kind of number it is.
    #[must_use]
    pub fn kind(self) -> Kind {
        self.row().2
    }

    /// Which way is better.
    #[must_use]
    pub fn better(self) -> Better {
        match self {
            Self::Throughput | Self::LoadRequests | Self::LoadGood => Better::Larger,
            _ => Better::Smaller,
        }
    }

    /// The passes that its figure is taken from, the best first: the one that tables show and
    /// budgets judge.
    #[must_use]
    pub fn passes(self) -> &'static [&'static str] {
        match self {
            Self::Throughput | Self::Latency => &["fair"],
            Self::ContextSwitches
            | Self::CpuTime
            | Self::MemoryResident
            | Self::MemoryProportional => &["fair", "usage"],
            Self::GcCollectionsPerSecond | Self::GcStopTheWorldShare | Self::GcCpuShare => {
                &["fair"]
            }
            Self::CpuPhase => &["cpu"],
            Self::Syscalls | Self::SyscallErrors => &["syscalls", "serial"],
            Self::AllocationsBlocks | Self::AllocationsBytes => &["allocations"],
            _ => &["serial", "wire"],
        }
    }

    /// The metric with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|metric| metric.name() == name)
    }

    fn row(self) -> (&'static str, &'static str, Kind) {
        use Kind::{Exact, Noisy, Sampled};
        match self {
            Self::Throughput => ("throughput", "1/s", Noisy),
            Self::Latency => ("latency", "s", Noisy),
            Self::PostgresExecutions => ("postgres.executions", "1", Exact),
            Self::PostgresReadyForQuery => ("postgres.ready_for_query", "1", Exact),
            Self::PostgresFlights => ("postgres.flights", "1", Exact),
            Self::PostgresAwaitedFlights => ("postgres.awaited_flights", "1", Exact),
            Self::PostgresSetUpFlights => ("postgres.set_up_flights", "1", Exact),
            Self::PostgresRows => ("postgres.rows", "1", Exact),
            Self::PostgresBytesSent => ("postgres.bytes_sent", "By", Exact),
            Self::PostgresBytesReceived => ("postgres.bytes_received", "By", Exact),
            Self::PostgresErrors => ("postgres.errors", "1", Exact),
            Self::PostgresConnects => ("postgres.connects", "1", Exact),
            Self::PostgresConnections => ("postgres.connections", "1", Exact),
            Self::PostgresCancels => ("postgres.cancels", "1", Exact),
            Self::PostgresNotices => ("postgres.notices", "1", Exact),
            Self::PostgresNotifications => ("postgres.notifications", "1", Exact),
            Self::PostgresParses => ("postgres.parses", "1", Exact),
            Self::RedisCommands => ("redis.commands", "1", Exact),
            Self::RedisFlights => ("redis.flights", "1", Exact),
            Self::RedisSetUpCommands => ("redis.set_up_commands", "1", Exact),
            Self::RedisErrors => ("redis.errors", "1", Exact),
            Self::RedisNulls => ("redis.nulls", "1", Exact),
            Self::RedisPushes => ("redis.pushes", "1", Exact),
            Self::RedisBytesSent => ("redis.bytes_sent", "By", Exact),
            Self::RedisBytesReceived => ("redis.bytes_received", "By", Exact),
            Self::HttpRequests => ("http.requests", "1", Exact),
            Self::HttpInterim => ("http.interim", "1", Exact),
            Self::HttpMissingBytes => ("http.missing_bytes", "By", Exact),
            Self::HttpResponses => ("http.responses", "1", Exact),
            Self::HttpBytesSent => ("http.bytes_sent", "By", Exact),
            Self::HttpBytesReceived => ("http.bytes_received", "By", Exact),
            Self::HttpPieces => ("http.pieces", "1", Noisy),
            Self::Wait => ("wait", "s", Noisy),
            Self::PhaseBefore => ("phase.before", "s", Noisy),
            Self::PhaseBetween => ("phase.between", "s", Noisy),
            Self::PhaseAfter => ("phase.after", "s", Noisy),
            Self::Syscalls => ("syscalls", "1", Noisy),
            Self::SyscallErrors => ("syscalls.errors", "1", Noisy),
            Self::SyscallTime => ("syscalls.time", "s", Noisy),
            Self::SyscallBytes => ("syscalls.bytes", "By", Noisy),
            Self::SyscallUnreturned => ("syscalls.unreturned", "1", Noisy),
            Self::ContextSwitches => ("context_switches", "1", Noisy),
            Self::CpuTime => ("cpu.time", "s", Noisy),
            Self::CpuPhase => ("cpu.phase", "s", Sampled),
            Self::AllocationsBlocks => ("allocations.blocks", "1", Exact),
            Self::AllocationsBytes => ("allocations.bytes", "By", Exact),
            Self::Instructions => ("instructions", "1", Exact),
            Self::MemoryResident => ("memory.resident", "By", Noisy),
            Self::MemoryProportional => ("memory.proportional", "By", Noisy),
            Self::LoadRequests => ("load.requests", "1", Noisy),
            Self::LoadGood => ("load.good", "1", Noisy),
            Self::LoadErrors => ("load.errors", "1", Noisy),
            Self::LoadLatency => ("load.latency", "s", Noisy),
            Self::ProfileValue => ("profile.value", "1", Exact),
            Self::ProfileSelf => ("profile.self", "1", Exact),
            Self::ProfileTotal => ("profile.total", "1", Exact),
            Self::GcCollectionsPerSecond => ("gc.collections_per_second", "1/s", Noisy),
            Self::GcStopTheWorldShare => ("gc.stop_the_world_share", "1", Noisy),
            Self::GcCpuShare => ("gc.cpu_share", "1", Noisy),
            Self::ObserverEffect => ("observer_effect", "1", Noisy),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_is_found_by_its_name_and_no_two_share_one() {
        for metric in Metric::ALL {
            assert_eq!(Metric::from_name(metric.name()), Some(metric));
        }
        // The last one counts the ones before it: a new metric that is not in the list is seen.
        assert_eq!(Metric::ObserverEffect as usize + 1, Metric::ALL.len());
    }
}
