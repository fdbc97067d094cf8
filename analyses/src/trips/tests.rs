//! Conversations as text: `F:` is what the client sends in one write, `B:` what the server sends.
//! Messages are the protocol's letters; `Q(…)`, `P(name,sql)`, `B(statement)` and `C(tag)` have
//! content.

use assay_captures::postgres::Decoder;
use assay_captures::tcp::{Connection, Side};
use assay_captures::units::Moment;

use super::postgres::{Answered, Fact, Session};
use super::{Reason, Trip};
use crate::costs::wire::Statements;

/// Splits at blanks outside of brackets.
fn words(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let (mut depth, mut start) = (0, 0);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'(' => depth += 1,
            b')' => depth -= 1,
            b' ' if depth == 0 => {
                words.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    words.push(&text[start..]);
    words.into_iter().filter(|word| !word.is_empty()).collect()
}

fn message(side: Side, word: &str) -> Vec<u8> {
    let (name, content) = match word.split_once('(') {
        Some((name, rest)) => (name, rest.strip_suffix(')').unwrap()),
        None => (word, ""),
    };
    let text = |parts: &[&str]| -> Vec<u8> {
        parts.iter().flat_map(|part| part.bytes().chain([0])).collect()
    };
    let untyped = |code: u32, rest: &[u8]| -> Vec<u8> {
        let mut bytes = (8 + rest.len() as u32).to_be_bytes().to_vec();
        bytes.extend(code.to_be_bytes());
        bytes.extend(rest);
        bytes
    };
    let body = match (side, name) {
        (Side::Client, "startup") => return untyped(0x3_0000, b"user\0app\0\0"),
        (Side::Client, "tls") => return untyped(80_877_103, b""),
        (Side::Client, "gss") => return untyped(80_877_104, b""),
        (Side::Client, "cancel") => return untyped(80_877_102, &[0; 8]),
        (Side::Server, "no") => return b"N".to_vec(),
        (Side::Server, "yes") => return b"S".to_vec(),
        (Side::Client, "Q") => text(&[content]),
        (Side::Client, "P") => {
            let (name, sql) = content.split_once(',').unwrap_or(("", content));
            [text(&[name, sql]), vec![0, 0]].concat()
        }
        (Side::Client, "B") => [text(&["", content]), vec![0; 6]].concat(),
        (Side::Client, "D" | "C") => {
            let kind = if content.is_empty() { "S" } else { content };
            [kind.as_bytes().to_vec(), vec![0]].concat()
        }
        (Side::Client, "E") => [text(&[""]), vec![0; 4]].concat(),
        (Side::Client, "f" | "p") => text(&["x"]),
        (Side::Client, "F") => vec![0; 14],
        (_, "d") => b"x\n".to_vec(),
        (Side::Server, "Z") => b"I".to_vec(),
        (Side::Server, "C") => text(&[if content.is_empty() { "SELECT 1" } else { content }]),
        (Side::Server, "R") => content.parse::<u32>().unwrap().to_be_bytes().to_vec(),
        (Side::Server, "K") => vec![0; 8],
        (Side::Server, "S") => text(&["a", "b"]),
        (Side::Server, "E" | "N") => text(&["SERROR", "C42601", ""]),
        (Side::Server, "A") => [vec![0; 4], text(&["channel", ""])].concat(),
        (Side::Server, "D" | "T" | "t") => vec![0; 2],
        (Side::Server, "G" | "H" | "W") => vec![0; 3],
        (Side::Server, "V") => vec![0; 4],
        _ => Vec::new(),
    };
    let mut bytes = vec![name.as_bytes()[0]];
    bytes.extend((4 + body.len() as u32).to_be_bytes());
    bytes.extend(body);
    bytes
}

/// Facts of a conversation whose lines come a microsecond apart.
fn facts(conversation: &str, from_start: bool) -> Vec<Fact> {
    let mut decoder = Decoder::new(from_start);
    let mut session = Session::new(Connection(0));
    let mut statements = Statements::default();
    let mut facts = Vec::new();
    let lines = conversation.lines().map(str::trim).filter(|line| !line.is_empty());
    let mut moment = Moment(0);
    for line in lines {
        moment = Moment(moment.0 + 1000);
        let (side, rest) = match line.split_once(':').unwrap() {
            ("F", rest) => (Side::Client, rest),
            ("B", rest) => (Side::Server, rest),
            _ => panic!("{line}"),
        };
        let bytes: Vec<u8> = words(rest).iter().flat_map(|word| message(side, word)).collect();
        decoder.feed(side, moment, &bytes, &mut |message| {
            session.message(&message, &mut statements, &mut |fact| facts.push(fact));
        });
    }
    session.close(moment, &mut |fact| facts.push(fact));
    facts
}

fn flights(facts: &[Fact]) -> Vec<&Trip> {
    facts
        .iter()
        .filter_map(|fact| match fact {
            Fact::Flight(trip) => Some(trip),
            _ => None,
        })
        .collect()
}

/// `flights: user+2 prepare~ …` in order: a number where there are several cycles, `~` where
/// nobody waits; then the counts.
fn summary(facts: &[Fact]) -> String {
    let word = |reason: Option<Reason>| reason.map_or("set-up", Reason::word).replace(' ', "-");
    let trips: Vec<_> = flights(facts)
        .iter()
        .map(|trip| {
            let mut text = word(trip.reason);
            if trip.cycles != 1 {
                text += &format!("+{}", trip.cycles);
            }
            if trip.bursts != 1 {
                text += &format!("/{}", trip.bursts);
            }
            if !trip.awaited {
                text.push('~');
            }
            text
        })
        .collect();
    let count = |fits: fn(&Fact) -> bool| facts.iter().filter(|fact| fits(fact)).count();
    let mut text = format!(
        "{} | ready {} ran {}",
        trips.join(" "),
        count(|fact| matches!(fact, Fact::Cycle { .. })),
        count(|fact| matches!(fact, Fact::Execution { .. })),
    );
    for fact in facts {
        match fact {
            Fact::Failed { failed, skipped, .. } => {
                text += &format!(" failed {failed} skipped {skipped}");
            }
            Fact::Lost { .. } => text += " lost",
            Fact::Suspended { .. } => text += " suspended",
            Fact::Cycle { answered: Answered::Unknown, .. } => text += " unknown",
            _ => {}
        }
    }
    text
}

fn check(conversation: &str, expected: &str) {
    let found = summary(&facts(conversation, false));
    assert_eq!(found.trim(), expected, "{conversation}");
}

fn check_from_start(conversation: &str, expected: &str) {
    let found = summary(&facts(conversation, true));
    assert_eq!(found.trim(), expected, "{conversation}");
}

/// A pool's ping or sqlx's release.
const PING: &str = "F: S\n B: Z\n";
/// A cached statement, as sqlx sends it.
const CACHED: &str = "F: B(s1) E C(P) S\n B: 2 D D C 3 Z\n";

#[test]
fn a_page_of_three_queries_is_9_6_5_or_4_trips() {
    let per_query = |acquire: &str| format!("{acquire}{CACHED}{PING}").repeat(3);
    check(
        &per_query(PING),
        &format!("{} | ready 9 ran 3", ["pool-ping user pool-ping~"; 3].join(" ")),
    );
    check(&per_query(""), &format!("{} | ready 6 ran 3", ["user pool-ping~"; 3].join(" ")));
    let per_page = |acquire: &str| format!("{acquire}{CACHED}{CACHED}{CACHED}{PING}");
    check(&per_page(PING), "pool-ping user user user pool-ping~ | ready 5 ran 3");
    check(&per_page(""), "user user user pool-ping~ | ready 4 ran 3");
}

#[test]
fn a_flush_is_a_trip_of_its_own() {
    // asyncpg's first query.
    check(
        "F: P(s1,select a) D H
         B: 1 t T
         F: B(s1) E S
         B: 2 D C Z",
        "prepare+0 user | ready 1 ran 1",
    );
    // A Flush with nothing before it asks nothing.
    check("F: H\n F: Q(select a)\n B: T D C Z", "user | ready 1 ran 1");
}

#[test]
fn three_joined_queries_are_one_trip_with_three_cycles() {
    // tokio-postgres, join! of three prepared statements: one write or three.
    check(
        "F: B(s1) E S B(s1) E S B(s1) E S
         B: 2 D C Z 2 D C Z 2 D C Z",
        "user+3 | ready 3 ran 3",
    );
    check(
        "F: B(s1) E S
         F: B(s1) E S
         F: B(s1) E S
         B: 2 D C Z
         B: 2 D C Z 2 D C Z",
        "user+3 | ready 3 ran 3",
    );
    // A burst after the server has spoken is told.
    check(
        "F: B(s1) E S B(s1) E S
         B: 2 D C Z
         F: B(s1) E S
         B: 2 D C Z 2 D C Z",
        "user+3/2 | ready 3 ran 3",
    );
}

#[test]
fn text_queries_of_tokio_postgres_are_three_trips_two_of_them_awaited() {
    check(
        "F: P(s0,select a) D S
         B: 1 t T Z
         F: B(s0) E S
         B: 2 D C Z
         F: C S
         B: 3 Z",
        "prepare user prepare~ | ready 3 ran 1",
    );
}

#[test]
fn set_up_is_counted_apart() {
    check_from_start(
        "F: tls
         B: no
         F: startup
         B: R(10)
         F: p
         B: R(11)
         F: p
         B: R(12) R(0) S S K Z
         F: Q(SET TIME ZONE 'UTC')
         B: C(SET) Z
         F: Q(select a)
         B: T D C Z
         F: Q(set search_path to b)
         B: C(SET) Z
         F: X",
        "set-up+0 set-up+0 set-up+0 set-up set-up user user | ready 4 ran 3",
    );
    check_from_start(
        "F: gss\n B: no\n F: startup\n B: R(0) K Z\n F: S\n B: Z",
        "set-up+0 set-up pool-ping | ready 2 ran 0",
    );
    check_from_start("F: cancel", "| ready 0 ran 0");
    check_from_start("F: tls\n B: yes\n F: Q(not seen)", "set-up+0 | ready 0 ran 0");
    check_from_start("F: startup\n B: E", "set-up+0 | ready 0 ran 0");
}

#[test]
fn an_error_passes_over_everything_up_to_the_sync() {
    check(
        "F: P(select a) B D E B E S
         B: 1 2 n E Z
         F: Q(select b)
         B: T D C Z",
        "user user | ready 2 ran 1 failed 1 skipped 1",
    );
    // The error arrives before the client has sent its Sync.
    check(
        "F: P(select a) B E H
         B: E
         F: B E
         F: S
         B: Z",
        "user+0 user | ready 1 ran 0 failed 0 skipped 1 failed 0 skipped 1",
    );
    check("F: Q(selekt)\n B: E Z", "user | ready 1 ran 0 failed 1 skipped 0");
    // The second of three fails: the third is not run.
    check(
        "F: Q(select a; select b; select c)\n B: T D C E Z",
        "user | ready 1 ran 1 failed 1 skipped 0",
    );
}

#[test]
fn copy_in_is_two_trips_and_copy_out_one() {
    check(
        "F: Q(copy t from stdin)
         B: G
         F: d d d c
         B: C(COPY 3) Z",
        "user+0 user | ready 1 ran 1",
    );
    check("F: Q(copy t to stdout)\n B: H d d\n B: d c C(COPY 3) Z", "user | ready 1 ran 1");
    // Extended: the Sync that went with it counts for nothing.
    check(
        "F: P(copy t from stdin) B E S
         B: 1 2 G
         F: d c S
         B: C(COPY 1) Z",
        "user+0 user | ready 1 ran 1",
    );
    // The server refuses the data before the client has finished.
    check(
        "F: Q(copy t from stdin)
         B: G
         F: d
         B: E Z
         F: d c
         F: Q(select a)
         B: T D C Z",
        "user+0 user | ready 2 ran 1 failed 1 skipped 0",
    );
    check(
        "F: Q(copy t from stdin)\n B: G\n F: f\n B: E Z",
        "user+0 user | ready 1 ran 0 failed 1 skipped 0",
    );
}

#[test]
fn a_replication_stream_is_no_trip() {
    check(
        "F: Q(START_REPLICATION 0/0)
         B: W
         B: d d
         F: d
         B: d
         F: c
         B: c C(COPY 0) Z",
        "user+0 user | ready 1 ran 1",
    );
}

#[test]
fn what_nobody_asked_for_opens_and_closes_nothing() {
    check(
        "B: N S A
         F: Q(select a)
         B: N
         B: A T D S C N Z
         B: A",
        "user | ready 1 ran 1",
    );
}

#[test]
fn several_statements_in_one_query_are_several_executions() {
    check("F: Q(begin; select a; commit)\n B: C(BEGIN) T D C C(COMMIT) Z", "user | ready 1 ran 3");
    check("F: Q(begin)\n B: C(BEGIN) Z", "transaction | ready 1 ran 1");
    check("F: Q(-- ping)\n B: I Z", "pool-ping | ready 1 ran 1");
    check(
        "F: Q(SELECT pg_advisory_unlock_all();CLOSE ALL;UNLISTEN *;RESET ALL)
         B: T D C C(CLOSE CURSOR ALL) C(UNLISTEN) C(RESET) Z",
        "pool-reset | ready 1 ran 4",
    );
}

#[test]
fn a_portal_fetched_in_parts_is_one_execution() {
    check(
        "F: P(select a) B E S
         B: 1 2 D s Z
         F: E S
         B: D C Z",
        "user user | ready 2 ran 1 suspended",
    );
}

#[test]
fn a_simple_query_after_a_portal_that_was_left_is_an_execution_of_its_own() {
    check(
        "F: P(select a) B E S
         B: 1 2 D s Z
         F: Q(select b)
         B: T D C Z",
        "user user | ready 2 ran 2 suspended",
    );
}

#[test]
fn a_portal_whose_rest_nobody_wants_is_one_execution_too() {
    check(
        "F: P(select a) B E S
         B: 1 2 D s Z
         F: P(select b) B E S
         B: 1 2 D C Z",
        "user user | ready 2 ran 2 suspended",
    );
}

#[test]
fn a_sync_that_ends_a_batch_sent_with_flush_is_no_ping() {
    // psycopg's pipeline: rows are asked for before the pipeline is left.
    check(
        "F: P(select a) B D E P(select b) B D E H
         B: 1 2 T D C 1 2 T D C
         F: S
         B: Z
         F: S
         B: Z",
        "user+0 user pool-ping~ | ready 2 ran 2",
    );
}

#[test]
fn an_empty_statement_is_a_ping_also_where_it_is_prepared_on_its_way() {
    // pgjdbc's isValid().
    check("F: P() B D(P) E S\n B: 1 2 n I Z", "pool-ping | ready 1 ran 1");
    // Prepared and run in two trips: only the second asks anything.
    check(
        "F: P(s1,) D S\n B: 1 t n Z\n F: B(s1) E S\n B: 2 I Z",
        "prepare pool-ping | ready 2 ran 1",
    );
}

#[test]
fn settings_that_are_prepared_belong_to_connection_set_up() {
    // diesel-async, through tokio-postgres.
    check_from_start(
        "F: startup
         B: R(0) Z
         F: P(s1,set time zone 'UTC') D S
         B: 1 t n Z
         F: B(s1) E S
         B: 2 C(SET) Z
         F: C S
         B: 3 Z
         F: P(s2,select a) D S
         B: 1 t n Z
         F: P(s3,set time zone 'CET') D S
         B: 1 t n Z",
        "set-up set-up set-up set-up~ prepare prepare | ready 6 ran 1",
    );
}

#[test]
fn a_statement_that_was_prepared_before_the_capture_is_known_by_its_tag() {
    check("F: B(S_1) E S\n B: 2 C(BEGIN) Z", "transaction | ready 1 ran 1");
    check("F: B(S_2) E S\n B: 2 C(UPDATE 1) Z", "user | ready 1 ran 1");
}

#[test]
fn a_function_call_is_a_trip() {
    check("F: F\n B: V Z", "user | ready 1 ran 0");
}

#[test]
fn an_answer_without_its_question_and_a_question_without_answer_are_said() {
    check(
        "B: D C Z
         F: Q(select a)
         B: T D C Z
         F: Q(select b)",
        "user | ready 2 ran 1 unknown lost",
    );
}
