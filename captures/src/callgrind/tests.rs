//! What profiles come out as, and that no input breaks the reader.

use super::*;
use crate::hostile::{chunks, cuts, flips};

const PLAIN: &[u8] = include_bytes!("../../fixtures/callgrind/plain.out");
const JUMPS: &[u8] = include_bytes!("../../fixtures/callgrind/instr-jumps.out");
const PARTS: &[u8] = include_bytes!("../../fixtures/callgrind/three-parts.out");
const UNCOMPRESSED: &[u8] = include_bytes!("../../fixtures/callgrind/uncompressed.out");

fn read_in(bytes: &[u8], size: usize) -> Profile {
    let (mut decoder, mut profile) = (Decoder::default(), Profile::default());
    chunks(bytes, size, |chunk| decoder.feed(chunk, &mut profile));
    decoder.finish(&mut profile);
    profile
}

fn read(bytes: &[u8]) -> Profile {
    read_in(bytes, 4096)
}

/// Totals of the first event, then `name own inclusive` a line, then problems.
fn check(text: &str, expected: &str) {
    let profile = read(text.as_bytes());
    let mut got = format!("total {}\n", profile.total(0).spent);
    for costs in profile.functions() {
        let inclusive = match costs.inclusive.first() {
            Some(Inclusive::Exact(cost)) => cost.to_string(),
            Some(Inclusive::Between { least, most }) => format!("{least}..{most}"),
            None => "-".to_owned(),
        };
        let own = costs.own.first().copied().unwrap_or(0);
        got += &format!("{} {own} {inclusive}\n", costs.function.name);
    }
    for problem in &profile.problems {
        got += &format!("{problem}\n");
    }
    assert_eq!(got.trim(), expected.trim());
}

fn function(profile: &Profile, name: &str) -> FunctionCosts {
    profile.functions().into_iter().find(|costs| costs.function.name == name).unwrap()
}

#[test]
fn each_space_of_names_counts_by_itself_and_a_call_can_define_first() {
    check(
        "events: Ir\nob=(1) p\nfl=(1) a.c\nfn=(1) main\n1 10\ncfi=(2) b.c\ncfn=(2) work\n\
         calls=2 5\n1 30\n\nfl=(2)\nfn=(2)\n5 30\n",
        "total 40\nmain 10 40\nwork 30 30",
    );
}

#[test]
fn one_name_in_two_files_is_two_functions() {
    check("events: Ir\nfl=a.c\nfn=f\n1 1\nfl=b.c\nfn=f\n1 2\n", "total 3\nf 1 1\nf 2 2");
}

#[test]
fn a_name_in_parentheses_is_a_name() {
    check("events: Ir\nfn=(below main)\n1 1\n", "total 1\n(below main) 1 1");
}

#[test]
fn recursion_is_counted_by_its_outermost_frame() {
    check(
        "events: Ir\nfn=main\n1 10\ncfn=f\ncalls=1 5\n1 90\n\nfn=f\n5 90\n\
         cfn=f\ncalls=4 5\n6 300\n",
        "total 100\nmain 10 100\nf 90 90",
    );
}

#[test]
fn a_cycle_with_one_way_in_is_known_there_and_bounded_elsewhere() {
    // main → f ⇄ g → h
    check(
        "events: Ir\nfn=main\n1 10\ncfn=f\ncalls=1 1\n1 90\n\
         fn=f\n1 20\ncfn=g\ncalls=3 1\n1 130\n\
         fn=g\n1 30\ncfn=f\ncalls=2 1\n1 100\ncfn=h\ncalls=2 1\n1 40\n\
         fn=h\n1 40\n",
        "total 100\nmain 10 100\nf 20 90\ng 30 70..90\nh 40 40",
    );
}

#[test]
fn negative_and_huge_costs_are_refused_by_their_lines() {
    let text = "events: Ir\nfn=a\n0 100\nfn=b\n0 -90\ncfn=a\ncalls=-5 0\n0 1\n\
                0 99999999999999999999\n0 9223372036854775808\n0 0xzz\n";
    let lines: Vec<_> = read(text.as_bytes()).refused.iter().map(ToString::to_string).collect();
    assert_eq!(lines, ["line 5", "line 7", "line 9", "line 10", "line 11"]);
}

#[test]
fn positions_are_relative_to_the_last_one_of_their_column() {
    struct Lines(Vec<(u64, Vec<u64>)>);
    impl crate::parsed::Sink<Record<'_>> for Lines {
        fn record(&mut self, record: Record<'_>) {
            if let Record::Cost { line, costs, .. } = record {
                self.0.push((line, costs.to_vec()));
            }
        }
        fn problem(&mut self, problem: crate::parsed::Problem) {
            panic!("{problem}");
        }
    }
    let mut lines = Lines(Vec::new());
    let mut decoder = Decoder::default();
    let text = "positions: instr line\nevents: Ir Dr\nfn=f\n0x10 10 5 1\n+4 +1 6 2\n+3 * 7\n\
                * -2 1 1\njump=1 0x1000 10\n0x20 30\njcnd=3/4 +6 +1\n* *\n+1 +1 2\n";
    decoder.feed(text.as_bytes(), &mut lines);
    decoder.finish(&mut lines);
    let seen = [(10, vec![5, 1]), (11, vec![6, 2]), (11, vec![7]), (9, vec![1, 1]), (31, vec![2])];
    assert_eq!(lines.0, seen);
}

#[test]
fn a_second_part_adds_to_the_first_and_may_name_its_events_in_another_order() {
    let profile = read(
        b"part: 1\nevents: Ir Dr\nsummary: 10 3\nfn=(1) f\n1 9 3\ntotals: 9 3\n\n\
          part: 2\nevents: Dr Ir\nfn=(1)\n1 4 20\ntotals: 4 20\n",
    );
    assert_eq!(profile.parts().count(), 2);
    assert_eq!(profile.total(0), Total { spent: 30, lines: 29 });
    assert_eq!(profile.total(1), Total { spent: 7, lines: 7 });
    assert_eq!(function(&profile, "f").own, [29, 7]);
}

#[test]
fn appended_files_count_their_names_from_the_beginning() {
    check(
        "version: 1\nevents: Ir\nfn=(1) a\n1 1\nversion: 1\nevents: Ir\nfn=(1) b\n1 2\n",
        "total 3\na 1 1\nb 2 2",
    );
}

#[test]
fn a_summary_of_zero_after_collection_was_switched_off_is_not_the_total() {
    check("events: Ir\nsummary: 0\nfn=f\n1 7\ntotals: 7\n", "total 7\nf 7 7");
}

#[test]
fn derived_events_are_sums_of_multiples() {
    let profile =
        read(b"event: CEst = Ir + 10 Bm + 100*LLm : Cycles\nevents: Ir Bm LLm\nfn=f\n1 5 2 1\n");
    assert_eq!(profile.derived_total(&profile.derived[0]), Some(125));
}

#[test]
fn calls_entered_before_the_counters_were_reset_are_no_own_cost() {
    check("events: Ir\nfn=main\ncfn=f\ncalls=0 5\n1 7\nfn=f\n5 7\n", "total 7\nmain 0 7\nf 7 7");
}

#[test]
fn undefined_names_missing_positions_and_too_many_costs_are_problems() {
    check(
        "events: Ir\nfn=(9)\n1 2 3\n+\ngarbage\n",
        "total 0\n(9) 0 0\nline 2: function (9) is used but was never named\n\
         line 3: more costs than events\nline 4: not a position\n\
         line 5: not a line of a callgrind profile",
    );
}

#[test]
fn the_four_ways_of_writing_one_run_agree() {
    let plain = read(PLAIN);
    assert_eq!(plain.problems, []);
    assert_eq!(plain.total(0), Total { spent: 15_988, lines: 15_988 });
    assert_eq!(plain.headers["creator"], "callgrind-3.19.0");
    for other in [JUMPS, PARTS, UNCOMPRESSED] {
        let other = read(other);
        assert_eq!(other.problems, []);
        assert_eq!(other.total(0).spent, 15_988);
        for name in ["main", "fib", "fib'2", "leaf", "fill", "even'2", "odd"] {
            assert_eq!(function(&other, name).own[0], function(&plain, name).own[0], "{name}");
        }
    }
    assert_eq!(read(PARTS).parts().count(), 3);
}

#[test]
fn inclusive_costs_of_a_real_run_are_what_their_callers_paid() {
    let plain = read(PLAIN);
    assert_eq!(function(&plain, "main").inclusive[0], Inclusive::Exact(15_988));
    assert_eq!(function(&plain, "fib").inclusive[0], Inclusive::Exact(7_435));
    assert_eq!(function(&plain, "fill").inclusive[0], Inclusive::Exact(6_219 + 1_719));
    assert_eq!(function(&plain, "leaf").inclusive[0], Inclusive::Exact(110));
    for costs in plain.functions() {
        assert!(costs.own[0] <= costs.inclusive[0].least(), "{}", costs.function.name);
        assert!(costs.inclusive[0].least() <= 15_988);
    }
    let own: u64 = plain.functions().iter().map(|costs| costs.own[0]).sum();
    assert_eq!(own, 15_988);
}

#[test]
fn chunks_do_not_matter() {
    for fixture in [PLAIN, JUMPS, PARTS, UNCOMPRESSED] {
        assert_eq!(read_in(fixture, 1).functions(), read_in(fixture, 1 << 20).functions());
    }
}

#[test]
fn a_file_cut_anywhere_is_read_and_said_to_be_cut() {
    cuts(PLAIN, |prefix| {
        let profile = read(prefix);
        let complete = prefix.windows(7).any(|window| window == b"totals:");
        let begun = prefix.windows(8).any(|window| window == b"summary:");
        assert!(complete || !begun || profile.is_cut() || profile.parts().count() == 0);
        drop(profile.functions());
    });
}

#[test]
fn flipped_bits_break_nothing() {
    for fixture in [PLAIN, JUMPS, PARTS] {
        flips(fixture, 300, |broken| drop(read(broken).functions()));
    }
}
