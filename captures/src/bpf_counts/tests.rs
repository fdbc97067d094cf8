//! Tests of the counter format.

use crate::parsed::Parsed;

use super::*;

fn sample() -> Sample {
    Sample {
        moment: Moment(7),
        took: Nanos(2),
        at: At::Mark,
        roles: vec![RoleCounts {
            role: Role::Subject,
            calls: BTreeMap::from([("recvfrom".into(), 15), ("sendto".into(), 9)]),
            failures: BTreeMap::from([("recvfrom".into(), Failures { again: 6, other: 0 })]),
        }],
    }
}

#[test]
fn what_is_printed_is_read_back() {
    let text = serde_json::to_string(&sample()).unwrap() + "\n";
    assert!(text.contains("\"failures\":{\"recvfrom\":{\"EAGAIN\":6,\"other\":0}}"), "{text}");
    let mut parsed = Parsed::default();
    let mut decoder = Decoder::default();
    decoder.feed(text.as_bytes(), &mut parsed);
    decoder.finish(&mut parsed);
    assert_eq!(parsed.records, [sample()]);
    assert_eq!(parsed.problems, []);
    assert_eq!(parsed.records[0].role(Role::Subject).unwrap().calls["sendto"], 9);
    assert_eq!(parsed.records[0].role(Role::Redis), None);
}
