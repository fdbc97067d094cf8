//! What traces come out as, and that no input breaks the reader.

use super::*;
use crate::hostile::{chunks, cuts, flips};
use crate::parsed::Parsed;
use crate::units::Nanos;

const TRACE: &str = "starting\n\
    gc 1 @0.012s 2%: 0.026+0.39+0.10 ms clock, 0.21+0.88/0.52/0+0.84 ms cpu, \
    4->4->0 MB, 5 MB goal, 8 P\n\
    api-1  | 2024/01/01 gc 2 @1.012s 3%: 0.018+0.45+0.05 ms \
    clock, 0.15+0.3/0.8/0.1+0.4 ms cpu, 4->5->1 MB, 4 MB \
    goal, 0 MB stacks, 0 MB globals, 8 P (forced)\n\
    scvg: 0 MB released\n";

fn read(bytes: &[u8]) -> Parsed<Collection> {
    let (mut decoder, mut parsed) = (Decoder::default(), Parsed::default());
    chunks(bytes, 7, |chunk| decoder.feed(chunk, &mut parsed));
    decoder.finish(&mut parsed);
    parsed
}

fn summary(text: &str) -> Summary {
    let (mut decoder, mut summary) = (Decoder::default(), Summary::default());
    decoder.feed(text.as_bytes(), &mut summary);
    decoder.finish(&mut summary);
    summary
}

#[test]
fn collections_are_found_among_other_output() {
    let parsed = read(TRACE.as_bytes());
    assert_eq!(parsed.problems, []);
    assert_eq!(parsed.records.len(), 2);
    assert_eq!(parsed.records[0].stopped(), Nanos(126_000));
    assert_eq!(parsed.records[0].cpu, Nanos(2_450_000));
    assert_eq!(parsed.records[1].heap_live, 1 << 20);
    assert!(parsed.records[1].forced);
}

#[test]
fn the_stopped_share_is_of_the_time_between_the_first_and_the_last_begin() {
    // gc 1 at 0.012 s stops for 126 µs, gc 2 begins 1 s later.
    let summary = summary(TRACE);
    assert_eq!(summary.per_second(), Some(1.0));
    assert_eq!(summary.stopped_share(), Some(0.000_126));
    assert_eq!(Summary::default().stopped_share(), None);
}

#[test]
fn missing_and_torn_collections_are_problems() {
    let line = |number: u32| {
        format!(
            "gc {number} @0.1s 2%: 0.1+0.2+0.3 ms clock, 1+1/1/1+1 ms cpu, \
             4->4->0 MB, 5 MB goal, 8 P\n"
        )
    };
    let text = format!("{}{}gc 6 @0.2s 2%: 0.1+", line(1), line(5));
    let problems: Vec<_> = summary(&text).problems.iter().map(ToString::to_string).collect();
    assert_eq!(
        problems,
        [
            "line 2: 3 collections before this one are missing",
            "line 3: the file ends in the middle of a collection"
        ]
    );
}

#[test]
fn no_cut_or_flipped_bit_breaks_anything() {
    cuts(TRACE.as_bytes(), |prefix| drop(read(prefix)));
    flips(TRACE.as_bytes(), 2_000, |broken| drop(read(broken)));
}

#[test]
fn what_go_itself_printed_is_read() {
    let summary = summary(include_str!("../../fixtures/gctrace/hold.txt"));
    assert_eq!((summary.collections, summary.forced, summary.problems.len()), (5, 1, 0));
    assert_eq!(summary.longest_pause, Nanos(25_000_000));
    assert_eq!(summary.largest_heap, 16 << 20);
    // From 3.032 s to 3.209 s: four collections later, and 59.176 ms of stops in the first four.
    assert!((summary.per_second().unwrap() - 4.0 / 0.177).abs() < 1e-9);
    assert_eq!(summary.stopped, Nanos(59_176_000));
}
