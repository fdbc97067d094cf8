//! What a newcomer needs to read the table.

/// Sign or word, and what it means.
pub const LEGEND: [(&str, &str); 12] = [
    ("columns", "the first is the reference; beside each other stands its change against it"),
    ("▲ ▼", "better, worse: the 95 % interval of paired laps excludes no change"),
    ("≈", "indistinguishable: the interval lies within ±3 %"),
    ("?", "cannot tell: too few rounds, or too noisy"),
    ("=", "the same count"),
    ("~", "the two intervals overlap; not measured in pairs, so not judged"),
    ("n/a", "not measured, which is never 0; the numbered note says why"),
    ("≥", "at least; the note says what is missing"),
    ("p50, p99", "half, and 99 in 100, of the answers came within this time"),
    ("round trip", "the service asks the server something and is answered; also called a flight"),
    ("pool ping", "a round trip that only asks whether a pooled connection still works"),
    ("system call", "a request of the process to the kernel, such as a read or a send"),
];
