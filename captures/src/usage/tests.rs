//! Tests of the usage format.

use crate::ids::Role;
use crate::parsed::Parsed;
use crate::units::{Moment, Nanos};

use super::*;

fn sample(moment: u64) -> Sample {
    let group = Group {
        role: Role::Subject,
        cpu: Nanos(698_917_058),
        voluntary: 1204,
        involuntary: 388,
        run_queue_wait: Nanos(20_119_833),
        processes: 1,
        threads: 2,
        exits: 0,
        resident: 7_970_816,
        peak: 8_044_544,
        proportional: None,
    };
    let postgres = Group { role: Role::Postgres, proportional: Some(1 << 20), ..group };
    Sample {
        moment: Moment(moment),
        took: Nanos(412_000),
        at: At::Mark,
        groups: vec![group, postgres],
        machine: Machine { softirq: Nanos(120), steal: Nanos(0), load_average: 0.41 },
    }
}

fn print(samples: &[Sample]) -> String {
    samples.iter().map(|sample| serde_json::to_string(sample).unwrap() + "\n").collect()
}

fn parse(text: &[u8], piece: usize) -> Parsed<Sample> {
    let mut parsed = Parsed::default();
    let mut decoder = Decoder::default();
    for piece in text.chunks(piece) {
        decoder.feed(piece, &mut parsed);
    }
    decoder.finish(&mut parsed);
    parsed
}

#[test]
fn what_is_printed_is_read_back_however_it_is_cut() {
    let samples = [sample(1), sample(2), sample(3)];
    let text = print(&samples);
    for piece in [1, 7, 1000, text.len()] {
        let parsed = parse(text.as_bytes(), piece);
        assert_eq!(parsed.records, samples);
        assert_eq!(parsed.problems, []);
    }
}

#[test]
fn a_torn_or_foreign_line_is_a_problem_and_the_others_stand() {
    let text = print(&[sample(1)]) + "{\"moment\":1}\n\n" + &print(&[sample(2)]) + "{\"mom";
    let parsed = parse(text.as_bytes(), 64);
    assert_eq!(parsed.records, [sample(1), sample(2)]);
    let problems: Vec<String> = parsed.problems.iter().map(ToString::to_string).collect();
    assert_eq!(
        problems,
        ["line 2: not a valid record (column 12)", "line 5: the last line has no end"]
    );
}

#[test]
fn a_line_without_end_does_not_grow_the_memory() {
    let mut parsed = Parsed::default();
    let mut decoder = Decoder::default();
    for _ in 0..1000 {
        decoder.feed(&[b'x'; 1000], &mut parsed);
    }
    decoder.feed(b"\n", &mut parsed);
    decoder.feed(print(&[sample(1)]).as_bytes(), &mut parsed);
    decoder.finish(&mut parsed);
    assert_eq!(parsed.records, [sample(1)]);
    assert_eq!(parsed.problems[0].to_string(), "line 1: too long for a record");
}

#[test]
fn no_cut_and_no_flipped_bit_panics() {
    let text = print(&[sample(1), sample(2)]).into_bytes();
    for cut in 0..text.len() {
        parse(&text[..cut], 50);
        let mut flipped = text.clone();
        flipped[cut] ^= 1 << (cut % 8);
        parse(&flipped, 50);
    }
}
