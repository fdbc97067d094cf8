//! What profiles come out as, and that no input breaks the reader.

use std::io::Write;

use super::*;
use crate::hostile::{chunks, cuts, flips};
use crate::parsed::Parsed;
use crate::units::Nanos;

fn read(bytes: &[u8]) -> Parsed<Profile> {
    let (mut decoder, mut parsed) = (Decoder::default(), Parsed::default());
    chunks(bytes, 100, |chunk| decoder.feed(chunk, &mut parsed));
    decoder.finish(&mut parsed);
    parsed
}

/// A message field that holds bytes; every length here is under 128.
fn bytes(field: u8, value: &[u8]) -> Vec<u8> {
    let mut out = vec![field << 3 | 2, u8::try_from(value.len()).unwrap()];
    out.extend_from_slice(value);
    out
}

fn number(field: u8, value: u8) -> Vec<u8> {
    vec![field << 3, value]
}

fn message(field: u8, fields: &[Vec<u8>]) -> Vec<u8> {
    bytes(field, &fields.concat())
}

/// main → outer (with inner inlined at its innermost line), twice recursive; no mappings.
fn profile() -> Vec<u8> {
    let strings = ["", "samples", "count", "cpu", "nanoseconds", "main", "outer", "inner", "pid"];
    let mut file = vec![
        message(1, &[number(1, 1), number(2, 2)]),
        message(1, &[number(1, 3), number(2, 4)]),
        // Not packed, then packed.
        message(2, &[number(1, 2), number(1, 2), number(1, 1), number(2, 3), number(2, 30)]),
        message(
            2,
            &[bytes(1, &[1]), bytes(2, &[1, 10]), message(3, &[number(1, 8), number(3, 7)])],
        ),
        message(4, &[number(1, 1), number(3, 16), message(4, &[number(1, 1)])]),
        message(
            4,
            &[number(1, 2), message(4, &[number(1, 3)]), message(4, &[number(1, 2), number(2, 9)])],
        ),
        message(5, &[number(1, 1), number(2, 5)]),
        message(5, &[number(1, 2), number(2, 6)]),
        message(5, &[number(1, 3), number(3, 7)]),
    ];
    file.extend(strings.iter().map(|text| bytes(6, text.as_bytes())));
    file.push(number(10, 100));
    file.push(message(11, &[number(1, 3), number(2, 4)]));
    file.push(number(12, 10));
    file.push(number(14, 3));
    file.concat()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(bytes).unwrap();
    gzip.finish().unwrap()
}

#[test]
fn a_profile_without_mappings_has_its_functions() {
    let parsed = read(&profile());
    assert_eq!(parsed.problems, []);
    let profile = &parsed.records[0];
    assert_eq!(profile.totals, [4, 40]);
    assert_eq!((profile.mappings, profile.locations, profile.samples), (0, 2, 2));
    assert!(profile.symbolized);
    assert_eq!(profile.default_type, Some(1));
    assert_eq!(profile.duration, Some(Nanos(100)));
    assert_eq!(profile.label_keys, ["pid"]);
    let rows: Vec<_> =
        profile.functions.iter().map(|of| (of.name.as_str(), of.own[1], of.inclusive[1])).collect();
    assert_eq!(rows, [("main", 10, 40), ("inner", 30, 30), ("outer", 0, 30)]);
}

#[test]
fn a_count_becomes_a_time_only_by_the_period() {
    let profile = &read(&profile()).records[0];
    assert_eq!(profile.time_of(0), Some(Nanos(40)));
    assert_eq!(profile.time_of(1), None);
}

#[test]
fn gzip_makes_no_difference() {
    assert_eq!(read(&gzip(&profile())), read(&profile()));
}

#[test]
fn an_address_without_a_name_is_named_by_its_address() {
    let file = [
        message(1, &[number(1, 1), number(2, 1)]),
        message(2, &[number(1, 1), number(2, 1)]),
        message(3, &[number(1, 1), number(5, 2)]),
        message(4, &[number(1, 1), number(2, 1), number(3, 16)]),
        bytes(6, b""),
        bytes(6, b"x"),
        bytes(6, b"/lib/libc.so"),
    ];
    let profile = &read(&file.concat()).records[0];
    assert_eq!(profile.functions[0].name, "0x10 [libc.so]");
    assert!(!profile.symbolized);
}

#[test]
fn older_forms_are_refused_by_name() {
    let words = |words: &[u64]| words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let forms: [(Vec<u8>, &str); 5] = [
        (words(&[0, 3, 0, 10_000, 0, 1, 1, 5]), "gperftools"),
        (b"heap profile: 1: 2 [3: 4] @ heapz\n".to_vec(), "heap profile in text"),
        (b"--- contentionz 1 ---\n".to_vec(), "contention"),
        (b"goroutine profile: total 3\n".to_vec(), "count profile"),
        (b"--- threadz 1 ---\n".to_vec(), "thread"),
    ];
    for (bytes, words) in forms {
        let parsed = read(&bytes);
        assert_eq!(parsed.records, []);
        let problem = parsed.problems[0].to_string();
        assert!(problem.contains(words) && problem.contains("go tool pprof -proto"), "{problem}");
    }
}

#[test]
fn too_many_sample_types_are_refused_before_anything_is_allocated_for_them() {
    let mut file = profile();
    for _ in 0..1_000 {
        file.extend(message(1, &[number(1, 1)]));
    }
    assert_eq!(read(&file).records, []);
}

#[test]
fn no_cut_or_flipped_bit_breaks_anything() {
    for file in [profile(), gzip(&profile())] {
        cuts(&file, |prefix| drop(read(prefix)));
        flips(&file, 3_000, |broken| drop(read(broken)));
    }
}

#[test]
fn a_cut_gzip_is_said_to_be_cut() {
    let file = gzip(&profile());
    let parsed = read(&file[..file.len() - 12]);
    assert_eq!(parsed.records, []);
    assert!(parsed.problems[0].message.contains("cut"), "{:?}", parsed.problems);
}

#[test]
fn profiles_of_go_have_the_sums_that_its_own_tool_prints() {
    let cpu = read(include_bytes!("../../fixtures/pprof/cpu.pprof"));
    assert_eq!(cpu.problems, []);
    let cpu = &cpu.records[0];
    assert_eq!(cpu.totals, [52, 520_000_000]);
    assert_eq!(cpu.time_of(0), Some(Nanos(520_000_000)));
    let of = |name: &str| cpu.functions.iter().find(|of| of.name == name).unwrap();
    assert_eq!(of("main.burn").inclusive, [52, 520_000_000]);
    assert_eq!(of("main.main").own, [0, 0]);
    let heap = read(include_bytes!("../../fixtures/pprof/heap.pprof"));
    assert_eq!(heap.problems, []);
    assert_eq!(heap.records[0].totals, [507, 18_509_423, 502, 16_699_728]);
    // Bytes of heap are no time, whatever the period.
    assert!((0..4).all(|index| heap.records[0].time_of(index).is_none()));
}

#[test]
fn the_text_of_a_heap_from_before_protobuf_is_refused_in_words() {
    let text = include_bytes!("../../fixtures/pprof/heap.txt");
    assert_eq!(old_form(text), Some("a heap profile in text"));
    let parsed = read(text);
    assert!(parsed.records.is_empty() && parsed.problems.len() == 1, "{:?}", parsed.problems);
}
