//! How the made-up report looks in each dress. Its figures were measured nowhere.

use crate::markdown;
use crate::sample;
use crate::terminal::{self, View};

/// The text from one mark to the next, its lines broken where they are too long for a source
/// file.
fn part(text: &str, from: &str, to: &str) -> String {
    let start = text.find(from).unwrap();
    let end = if to.is_empty() { text.len() } else { start + text[start..].find(to).unwrap() };
    let mut out = String::new();
    for line in text[start..end].lines() {
        let characters: Vec<char> = line.chars().collect();
        let parts: Vec<String> = characters.chunks(95).map(|part| part.iter().collect()).collect();
        out.push_str(&parts.join("⏎\n"));
        out.push('\n');
    }
    out
}

fn terminal(width: usize) -> String {
    terminal::render(&sample::report(), &[], View { width, colour: false })
}

#[test]
fn four_variants_stand_side_by_side_in_100_columns() {
    let rendered = terminal(100);
    insta::assert_snapshot!(part(&rendered, "toy · detail", "CPU time, per request"), @r"
    toy · detail   GET /toy/{name}
                                    per query,    per query, ping     per page, ping     per page, ⏎
    ping
                                       ping on                off                 on               ⏎
     off
    Speed                            6 rounds of 1.0 s, 10 connections, no probe
      throughput ¹              req/s    2,010    2,510 +24.7 % ▲    2,110  +4.9 % ▲    2,030  +1.3⏎
     % ?
        verdict                                     faster ±1.5 %      faster ±1.6 % cannot tell ±1⏎
    .3 %
        range of laps, req/s     1,970 – 2,060      2,435 – 2,567      2,065 – 2,170      1,990 – 2⏎
    ,110
      latency p50 ²             ms        4.99     3.99 −20.1 %       4.74  −4.9 %       4.93      ⏎
       ~
      latency p99 ²             ms       20.00    20.00         ~    20.00         ~    20.00      ⏎
       ~
    Postgres, per request            from its packets, 500 requests one at a time
      round trips               trips        9        6      −3          5      −4          4      ⏎
    −5
        user statements         trips        3        3         =        3         =        3      ⏎
       =
        pool pings              trips        6        3      −3          2      −4          1      ⏎
    −5
      of all, awaited           trips        6        3      −3          4      −2          3      ⏎
    −3
      the same under load       trips    9.002    6.002  −3.000      5.002  −4.000      4.002  −5.0⏎
    00
      ReadyForQuery answers     msgs         9        6      −3          5      −4          4      ⏎
    −5
      statements executed       stmts        3        3         =        3         =        3      ⏎
       =
      rows                      rows        14       14         =       14         =       14      ⏎
       =
      bytes from Postgres       B        3,000    3,000         =    3,000         =    3,000      ⏎
       =
    ");
}

#[test]
fn times_calls_and_memory_follow_in_the_same_columns() {
    let rendered = terminal(100);
    insta::assert_snapshot!(part(&rendered, "CPU time, per request", "toy · cached"), @r"
    CPU time, per request            by process clocks in these laps; parts by samples
      the service ¹             µs         200      159 −19.8 % ▲      190  −4.7 % ▲      197  −1.2⏎
     % ?
        verdict                                     faster ±0.9 %      faster ±1.4 % cannot tell ±1⏎
    .2 %
        tokio                   µs          90       90         ~       90         ~       90      ⏎
       ~
        sqlx ³                  µs          80      n/a                n/a                n/a
        other ³                 µs         120      n/a                n/a                n/a
      Postgres                  µs       179.9    139.9 −22.2 % ▲    159.4 −11.3 % ▲    149.3 −17.0⏎
     % ▲
        verdict                                     faster ±0.3 %      faster ±0.4 %      faster ±0⏎
    .4 %
        kernel: tcp             µs          60       60         ~       60         ~       60      ⏎
       ~
      → parts are shares of samples, at most ±6.0 µs; too few samples of tls
      → CPU of a pool ping (“per query, ping off” has 3 fewer): Postgres 13.28 µs (13.10 to 13.47),
        service 13.1 µs (12.4 to 13.9) ⁴
      → CPU of a pool ping (“per page, ping off” has 1 fewer): Postgres 10.3 µs (9.1 to 11.5), serv⏎
    ice
        −6.9 µs (−11.7 to −2.1) ⁴
    Context switches, per request    in the laps above; voluntary: it waited
      service, voluntary        times     0.50     0.50         ~     0.50         ~     0.50      ⏎
       ~
      service, involuntary      times     4.00     4.00         ~     4.00         ~     4.00      ⏎
       ~
    System calls, per request        under load
      all calls                 calls     19.0     13.0    −6.0       11.0    −8.0        9.0   −10⏎
    .0
        recvfrom                calls      9.5      6.5    −3.0        5.5    −4.0        4.5    −5⏎
    .0
        sendto                  calls        9        6      −3          5      −4          4      ⏎
    −5
    Allocations, per request         of the service, by counters in its heap
      heap blocks               count      309      306      −3        305      −4        304      ⏎
    −5
      heap bytes                KiB      49.00    46.00  −6.1 %      45.00  −8.2 %      44.00 −10.2⏎
     %
    Memory                           of the service under load
      resident when busiest     MiB       7.63     7.63         ~     7.63         ~     7.63      ⏎
       ~
    One request on an idle machine   from its packets; never add to the times under load
      before the first trip     µs         100      100         ~      100         ~      100      ⏎
       ~
      waiting for Postgres      µs         900      900         ~      900         ~      900      ⏎
       ~
    ¹ per page, ping off: faster by itself, but not after Holm's correction over 6 cells
    ² closed load: latency follows from throughput (connections ÷ rate)
    ³ not measured: perf is not installed
    ⁴ closed load: the two variants ran at different rates
    ");
}

#[test]
fn a_page_that_asks_nothing_is_short() {
    let rendered = terminal(100);
    insta::assert_snapshot!(part(&rendered, "toy · cached", "Findings"), @r"
    toy · cached   GET /cached
                                    per query,    per query, ping     per page, ping     per page, ⏎
    ping
                                       ping on                off                 on               ⏎
     off
    Speed                            6 rounds of 1.0 s, 10 connections, no probe
      throughput                req/s    9,010    9,010         ≈    9,010         ≈    9,010      ⏎
       ≈
        verdict                                 indistinguishable  indistinguishable  indistinguish⏎
    able
        range of laps, req/s     8,970 – 9,060      8,935 – 9,067      8,965 – 9,070      8,970 – 9⏎
    ,090
      latency p50 ¹             ms       1.110    1.110         ~    1.110         ~    1.110      ⏎
       ~
      latency p99 ¹             ms       20.00    20.00         ~    20.00         ~    20.00      ⏎
       ~
    Postgres, per request            from its packets, 500 requests one at a time
      round trips               trips        0        0         =        0         =        0      ⏎
       =
    Redis, per request               from its packets, 500 requests one at a time
      commands                  cmds         1        1         =        1         =        1      ⏎
       =
      round trips               trips        1        1         =        1         =        1      ⏎
       =
    CPU time, per request            by process clocks in these laps; parts by samples
      the service               µs       44.42    44.40         ≈    44.40         ≈    44.40      ⏎
       ≈
        verdict                                 indistinguishable  indistinguishable  indistinguish⏎
    able
      Postgres                  µs           0        0                  0                  0
    ¹ closed load: latency follows from throughput (connections ÷ rate)
    ");
}

#[test]
fn what_was_measured_stands_above() {
    let rendered = terminal(100);
    insta::assert_snapshot!(part(&rendered, "Assay", "toy · detail"), @r"
Assay
  4 variants of toy, 2 routes: what does one request cost?
  machine: cores 2 · kernel 0.0-toy
  on CPUs: app 0 · load 1 · services 0
  versions: rustc 0.0.0
  one SELECT 1 takes 50.0 µs (median of 2,000)
");
}

#[test]
fn findings_and_doubts_stand_below() {
    let rendered = terminal(100);
    insta::assert_snapshot!(part(&rendered, "Findings", "How to read"), @r"
    Findings
      detail (per query, ping on): 6 of 9 round trips only ask whether the connection still works
        why        the pool pings Postgres whenever a connection is taken
        shown by   the variant per query, ping off, which differs in PING alone, has 3 fewer
        not shown  who sends the 3 that remain

    Causes put to the test
      contradicted: the pool pings Postgres whenever a connection is taken (pool-ping)
        flipped in   “per query, ping off” against “per query, ping on”
        shown        detail: postgres.flights falls by at least 30 %: 9 → 6 (−33.3 %)
        shown        detail: throughput rises: 2,005 → 2,508 req/s (+24.7 %; +23.2 % to +26.1 % in ⏎
    6
                     rounds)
        contradicted detail: allocations.bytes stays within 3 %: 49.00 → 46.00 KiB (−6.1 %)

    Can the figures be trusted?
      ✗ wire: 0 packets dropped (4 captures)
        ✗ but      999 responses on the wire, 1,000 received by the load driver: one response is
                   missing: counts may be low by 0.1 % (detail, per page, ping off)
      ✓ A/A: the reference against its own copy on 2 routes: throughput p = 0.250, noise 1.2 % a la⏎
    p; no
      difference is found where there is none
      ? calibration: none of this machine with this version; `assay calibrate` makes one

    What each probe cost the service
      wire: rate −3.2 % ±0.7 %, CPU per request +3.8 % ±1.9 % (3 pairs; ± is the least seen)

    Not complete
      this run: pass cpu failed
      pass cpu: perf is not installed; apt-get install linux-perf

    Notes
      services and subject share core 0

    Files
      runs/2000-01-01T00-00-00-toy
      runs/2000-01-01T00-00-00-toy/report.html
      runs/2000-01-01T00-00-00-toy/results.json
      runs/2000-01-01T00-00-00-toy/tables.md
    ");
}

#[test]
fn the_legend_speaks_to_newcomers() {
    let rendered = terminal(100);
    insta::assert_snapshot!(part(&rendered, "How to read", ""), @r"
    How to read this
      columns       the first is the reference; beside each other stands its change against it
      ▲ ▼           faster, slower: a higher rate or less time; the 95 % interval excludes no chang⏎
    e
      ±             half of that 95 % interval
      ≈             indistinguishable: the interval lies within ±3 %
      ?             cannot tell: too few rounds, or too noisy
      =             the same count
      ~             the two intervals overlap; not measured in pairs, so not judged
      n/a           not measured, which is never 0; the numbered note says why
      p50, p99      half, and 99 in 100, of the answers came within this time
      round trip    the service asks the server something and is answered; also called a flight
      awaited       somebody waited for that answer before going on
      ReadyForQuery Postgres says that it is done; other tools count these as round trips
      pool ping     a round trip that only asks whether a pooled connection still works
      system call   a request of the process to the kernel, such as a read or a send
    ");
}

#[test]
fn in_80_columns_the_last_variant_follows_below() {
    let rendered = terminal(80);
    insta::assert_snapshot!(part(&rendered, "toy · cached", "Findings"), @r"
    toy · cached   GET /cached
                                    per query,    per query, ping     per page, ping
                                       ping on                off                 on
    Speed                            6 rounds of 1.0 s, 10 connections, no probe
      throughput                req/s    9,010    9,010         ≈    9,010         ≈
        verdict                                 indistinguishable  indistinguishable
        range of laps, req/s     8,970 – 9,060      8,935 – 9,067      8,965 – 9,070
      latency p50 ¹             ms       1.110    1.110         ~    1.110         ~
      latency p99 ¹             ms       20.00    20.00         ~    20.00         ~
    Postgres, per request            from its packets, 500 requests one at a time
      round trips               trips        0        0         =        0         =
    Redis, per request               from its packets, 500 requests one at a time
      commands                  cmds         1        1         =        1         =
      round trips               trips        1        1         =        1         =
    CPU time, per request            by process clocks in these laps; parts by samp…
      the service               µs       44.42    44.40         ≈    44.40         ≈
        verdict                                 indistinguishable  indistinguishable
      Postgres                  µs           0        0                  0

                                    per query,     per page, ping
                                       ping on                off
    Speed                            6 rounds of 1.0 s, 10 connections, no probe
      throughput                req/s    9,010    9,010         ≈
        verdict                                 indistinguishable
        range of laps, req/s     8,970 – 9,060      8,970 – 9,090
      latency p50 ¹             ms       1.110    1.110         ~
      latency p99 ¹             ms       20.00    20.00         ~
    Postgres, per request            from its packets, 500 requests one at a time
      round trips               trips        0        0         =
    Redis, per request               from its packets, 500 requests one at a time
      commands                  cmds         1        1         =
      round trips               trips        1        1         =
    CPU time, per request            by process clocks in these laps; parts by samp…
      the service               µs       44.42    44.40         ≈
        verdict                                 indistinguishable
      Postgres                  µs           0        0
    ¹ closed load: latency follows from throughput (connections ÷ rate)
    ");
}

#[test]
fn the_same_content_stands_in_markdown() {
    let rendered = markdown::render(&sample::report(), &[]);
    insta::assert_snapshot!(part(&rendered, "## detail", "## cached"), @r"
    ## detail: GET /toy/\{name\}

    | | unit | per query, ping on | per query, ping off | per page, ping on | per page, ping off |
    | :--- | :--- | ---: | ---: | ---: | ---: |
    | **Speed** (6 rounds of 1.0 s, 10 connections, no probe) | | | | | |
    | throughput (1) | req/s | 2,010 | 2,510 (+24.7 % ▲) | 2,110 (+4.9 % ▲) | 2,030 (+1.3 % ?) |
    | &emsp;verdict |  |  | faster ±1.5 % | faster ±1.6 % | cannot tell ±1.3 % |
    | &emsp;range of laps, req/s | req/s | 1,970 – 2,060 | 2,435 – 2,567 | 2,065 – 2,170 | 1,990 – ⏎
    2,110 |
    | latency p50 (2) | ms | 4.99 | 3.99 (−20.1 %) | 4.74 (−4.9 %) | 4.93 (\~) |
    | latency p99 (2) | ms | 20.00 | 20.00 (\~) | 20.00 (\~) | 20.00 (\~) |
    | **Postgres, per request** (from its packets, 500 requests one at a time) | | | | | |
    | round trips | trips | 9 | 6 (−3) | 5 (−4) | 4 (−5) |
    | &emsp;user statements | trips | 3 | 3 (=) | 3 (=) | 3 (=) |
    | &emsp;pool pings | trips | 6 | 3 (−3) | 2 (−4) | 1 (−5) |
    | of all, awaited | trips | 6 | 3 (−3) | 4 (−2) | 3 (−3) |
    | the same under load | trips | 9.002 | 6.002 (−3.000) | 5.002 (−4.000) | 4.002 (−5.000) |
    | ReadyForQuery answers | msgs | 9 | 6 (−3) | 5 (−4) | 4 (−5) |
    | statements executed | stmts | 3 | 3 (=) | 3 (=) | 3 (=) |
    | rows | rows | 14 | 14 (=) | 14 (=) | 14 (=) |
    | bytes from Postgres | B | 3,000 | 3,000 (=) | 3,000 (=) | 3,000 (=) |
    | **CPU time, per request** (by process clocks in these laps; parts by samples) | | | | | |
    | the service (1) | µs | 200 | 159 (−19.8 % ▲) | 190 (−4.7 % ▲) | 197 (−1.2 % ?) |
    | &emsp;verdict |  |  | faster ±0.9 % | faster ±1.4 % | cannot tell ±1.2 % |
    | &emsp;tokio | µs | 90 | 90 (\~) | 90 (\~) | 90 (\~) |
    | &emsp;sqlx (3) | µs | 80 | n/a | n/a | n/a |
    | &emsp;other (3) | µs | 120 | n/a | n/a | n/a |
    | Postgres | µs | 179.9 | 139.9 (−22.2 % ▲) | 159.4 (−11.3 % ▲) | 149.3 (−17.0 % ▲) |
    | &emsp;verdict |  |  | faster ±0.3 % | faster ±0.4 % | faster ±0.4 % |
    | &emsp;kernel: tcp | µs | 60 | 60 (\~) | 60 (\~) | 60 (\~) |
    | **Context switches, per request** (in the laps above; voluntary: it waited) | | | | | |
    | service, voluntary | times | 0.50 | 0.50 (\~) | 0.50 (\~) | 0.50 (\~) |
    | service, involuntary | times | 4.00 | 4.00 (\~) | 4.00 (\~) | 4.00 (\~) |
    | **System calls, per request** (under load) | | | | | |
    | all calls | calls | 19.0 | 13.0 (−6.0) | 11.0 (−8.0) | 9.0 (−10.0) |
    | &emsp;recvfrom | calls | 9.5 | 6.5 (−3.0) | 5.5 (−4.0) | 4.5 (−5.0) |
    | &emsp;sendto | calls | 9 | 6 (−3) | 5 (−4) | 4 (−5) |
    | **Allocations, per request** (of the service, by counters in its heap) | | | | | |
    | heap blocks | count | 309 | 306 (−3) | 305 (−4) | 304 (−5) |
    | heap bytes | KiB | 49.00 | 46.00 (−6.1 %) | 45.00 (−8.2 %) | 44.00 (−10.2 %) |
    | **Memory** (of the service under load) | | | | | |
    | resident when busiest | MiB | 7.63 | 7.63 (\~) | 7.63 (\~) | 7.63 (\~) |
    | **One request on an idle machine** (from its packets; never add to the times under load) | | ⏎
    | | | |
    | before the first trip | µs | 100 | 100 (\~) | 100 (\~) | 100 (\~) |
    | waiting for Postgres | µs | 900 | 900 (\~) | 900 (\~) | 900 (\~) |

    - → parts are shares of samples, at most ±6.0 µs; too few samples of tls
    - → CPU of a pool ping (“per query, ping off” has 3 fewer): Postgres 13.28 µs (13.10 to 13.47),⏎
     service 13.1 µs (12.4 to 13.9) (4)
    - → CPU of a pool ping (“per page, ping off” has 1 fewer): Postgres 10.3 µs (9.1 to 11.5), serv⏎
    ice −6.9 µs (−11.7 to −2.1) (4)
    - (1) per page, ping off: faster by itself, but not after Holm's correction over 6 cells
    - (2) closed load: latency follows from throughput (connections ÷ rate)
    - (3) not measured: perf is not installed
    - (4) closed load: the two variants ran at different rates
    ");
}
