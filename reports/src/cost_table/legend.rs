//! What a newcomer needs to read the table.

/// Sign or word, and what it means.
pub const LEGEND: [(&str, &str); 15] = [
    ("columns", "the first is the reference; beside each other stands its change against it"),
    ("▲ ▼", "faster, slower: a higher rate or less time; the 95 % interval excludes no change"),
    ("±", "half of that 95 % interval"),
    ("≈", "indistinguishable: the interval lies within ±3 %"),
    ("?", "cannot tell: too few rounds, or too noisy"),
    ("=", "the same count"),
    ("~", "the two intervals overlap; not measured in pairs, so not judged"),
    ("n/a", "not measured, which is never 0; the numbered note says why"),
    ("≥", "at least; the note says what is missing"),
    ("p50, p99", "half, and 99 in 100, of the answers came within this time"),
    ("round trip", "the service asks the server something and is answered; also called a flight"),
    ("awaited", "somebody waited for that answer before going on"),
    ("ReadyForQuery", "Postgres says that it is done; other tools count these as round trips"),
    ("pool ping", "a round trip that only asks whether a pooled connection still works"),
    ("system call", "a request of the process to the kernel, such as a read or a send"),
];
