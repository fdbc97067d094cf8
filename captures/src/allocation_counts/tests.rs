//! Tests of the allocation format.

use crate::parsed::Parsed;

use super::*;

const SAMPLE: Sample = Sample { moment: Moment(7), at: At::Mark, blocks: 3, bytes: 4096, frees: 1 };

fn parse(text: &[u8]) -> Parsed<Sample> {
    let mut parsed = Parsed::default();
    let mut decoder = Decoder::default();
    decoder.feed(text, &mut parsed);
    decoder.finish(&mut parsed);
    parsed
}

#[test]
fn what_is_printed_is_read_back() {
    let text = serde_json::to_string(&SAMPLE).unwrap() + "\n";
    assert_eq!(text, "{\"moment\":7,\"at\":\"mark\",\"blocks\":3,\"bytes\":4096,\"frees\":1}\n");
    assert_eq!(parse(text.as_bytes()).records, [SAMPLE]);
}

#[test]
fn a_torn_last_line_costs_itself_only() {
    let line = serde_json::to_string(&SAMPLE).unwrap() + "\n";
    for cut in 1..line.len() - 1 {
        let parsed = parse([line.as_bytes(), &line.as_bytes()[..cut]].concat().as_slice());
        assert_eq!(parsed.records, [SAMPLE]);
        assert_eq!(parsed.problems[0].to_string(), "line 2: the last line has no end");
    }
}
