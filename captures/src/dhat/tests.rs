//! What profiles come out as, and that no input breaks the reader.

use super::*;
use crate::hostile::{chunks, cuts, flips};
use crate::parsed::Parsed;

const HEAP: &[u8] = include_bytes!("../../fixtures/dhat/heap.json");
const COPY: &[u8] = include_bytes!("../../fixtures/dhat/copy.json");

fn read(bytes: &[u8]) -> Parsed<Profile> {
    let (mut decoder, mut parsed) = (Decoder::default(), Parsed::default());
    chunks(bytes, 1000, |chunk| decoder.feed(chunk, &mut parsed));
    decoder.finish(&mut parsed);
    parsed
}

fn amount(bytes: u64, blocks: u64) -> Amount {
    Amount { bytes, blocks }
}

#[test]
fn totals_are_what_valgrind_printed() {
    let parsed = read(HEAP);
    assert_eq!(parsed.problems, []);
    let totals = parsed.records[0].totals();
    assert_eq!(totals.total, amount(6_144, 18));
    assert_eq!(totals.at_peak, Some(amount(5_040, 6)));
    assert_eq!(totals.at_end, Some(amount(24, 1)));
    assert_eq!((totals.read, totals.written), (Some(376), Some(136)));
}

#[test]
fn a_copy_profile_has_no_peak() {
    let parsed = read(COPY);
    assert_eq!(parsed.records[0].mode, Mode::Copy);
    assert_eq!(parsed.records[0].totals().at_peak, None);
}

#[test]
fn the_peak_is_what_was_held_at_one_moment() {
    let file = br#"{"dhatFileVersion":2,"mode":"heap","bklt":true,"bkacc":false,"te":9,"tg":4,
        "ftbl":["[root]","0x1: f (a.rs:1)"],"pps":[
        {"tb":10,"tbk":1,"tl":1,"mb":10,"mbk":1,"gb":10,"gbk":1,"eb":0,"ebk":0,"fs":[1]},
        {"tb":8,"tbk":2,"tl":1,"mb":8,"mbk":2,"gb":1,"gbk":1,"eb":1,"ebk":1,"fs":[1]}]}"#;
    let profile = &read(file).records[0];
    assert_eq!(profile.totals().at_peak, Some(amount(11, 2)));
    assert_eq!(profile.stack(&profile.points[0]).collect::<Vec<_>>(), ["f (a.rs:1)"]);
}

#[test]
fn what_was_not_recorded_is_unknown_even_where_fields_stand() {
    let file = br#"{"dhatFileVersion":2,"mode":"rust-heap","bklt":false,"bkacc":false,"tg":4,
        "ftbl":["[root]"],"pps":[{"tb":10,"tbk":1,"gb":0,"gbk":0,"eb":0,"ebk":0,"fs":[]}]}"#;
    let totals = read(file).records[0].totals();
    assert_eq!(totals.total, amount(10, 1));
    assert_eq!((totals.at_peak, totals.at_end, totals.read), (None, None, None));
}

#[test]
fn another_version_is_refused_and_a_broken_stack_is_named() {
    let text = |bytes: &[u8]| read(bytes).problems[0].to_string();
    assert!(text(br#"{"dhatFileVersion":3}"#).starts_with("line 1: version 3 of DHAT's format"));
    let broken = br#"{"dhatFileVersion":2,"ftbl":[],"pps":[{"tb":1,"tbk":1,"fs":[4]}]}"#;
    assert_eq!(text(broken), "line 1: 1 frames of stacks are not in the table, such as 4");
    assert_eq!(read(broken).records[0].totals().total, amount(1, 1));
    let negative = br#"{"dhatFileVersion":2,"ftbl":[],"pps":[{"tb":-1,"tbk":1,"fs":[]}]}"#;
    assert!(text(negative).contains("invalid value"));
}

#[test]
fn a_file_cut_anywhere_is_said_to_be_cut() {
    let whole = HEAP.trim_ascii_end();
    cuts(whole, |prefix| {
        let parsed = read(prefix);
        if prefix.len() < whole.len() {
            assert_eq!(parsed.records.len(), 0);
            assert!(parsed.problems[0].message.contains("cut"), "{}", parsed.problems[0]);
        }
    });
}

#[test]
fn flipped_bits_break_nothing() {
    flips(HEAP, 2_000, |broken| {
        for profile in read(broken).records {
            let _ = profile.totals();
        }
    });
}
