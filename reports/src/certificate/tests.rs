//! How a certificate reads, and that it fits and is read back.

use std::collections::BTreeMap;

use assay_analyses::calibration::{
    self, Place, ProbeCost, SampledShare, Truth, Verdict, WireRate, judge, share,
};
use assay_analyses::calibration::{Certificate, CostInterval};
use assay_analyses::cost::{Amount, Figure};
use unicode_width::UnicodeWidthStr;

use super::*;
use crate::json::{read_calibration, render_certificate};

fn read(certificate: &mut Certificate, route: &str, metric: &str, truth: f64, amount: Amount) {
    let place = Place {
        condition: "8 connections, 1 process".to_owned(),
        pass: "wire".to_owned(),
        instrument: "wire".to_owned(),
    };
    let reading = judge(place, truth, &amount, calibration::limit(metric));
    let truth = Truth { metric: metric.to_owned(), labels: BTreeMap::new(), amount: truth };
    certificate.add(route, &truth, vec![reading]);
}

fn calibrated() -> Calibrated {
    let exact = |value| Amount::Measured(Figure::exact(value, 10));
    let mut certificate = Certificate::default();
    read(&mut certificate, "postgres", "postgres.flights", 5.0, exact(5.0));
    read(&mut certificate, "postgres", "postgres.bytes_sent", 246.0, exact(240.0));
    read(&mut certificate, "burn", "cpu.time", 0.0015, exact(0.001_507_5));
    read(&mut certificate, "heap", "allocations.blocks", 37.0, Amount::NotMeasured("gone".into()));
    let recording = SampledShare { truth: 0.4, value: 0.41, low: 0.36, high: 0.45 };
    certificate.shares = vec![share("alder", &[recording; 20])];
    certificate.costs = vec![ProbeCost {
        probe: "wire".to_owned(),
        of: "rate",
        limit: 0.06,
        cost: Some(CostInterval { value: 0.021, low: -0.004, high: 0.046, pairs: 40 }),
        verdict: Verdict::Holds,
    }];
    certificate.wire = Some(WireRate {
        requests: 41_234.0,
        packets: 82_468.0,
        condition: "32 connections, 3 processes".to_owned(),
        dropped: Vec::new(),
    });
    let summary = certificate.summary();
    let about = Calibration {
        made: "2000-01-01 00:00 UTC".to_owned(),
        assay: "0.0.0".to_owned(),
        machine: BTreeMap::from([("cpu".to_owned(), "toy".to_owned())]),
        quick: true,
        hold: summary.hold,
        cannot_tell: summary.cannot_tell,
        not_measured: summary.not_measured,
        broken: summary.broken,
    };
    Calibrated {
        about,
        certificate,
        circumstances: vec!["load average of the machine: 0.10 before".to_owned()],
        folder: String::new(),
    }
}

#[test]
fn truth_reading_error_limit_and_verdict_stand_beside_each_other() {
    insta::assert_snapshot!(terminal(&calibrated(), 100), @r"
Calibration: every instrument against a service of known costs
  2000-01-01 00:00 UTC, assay 0.0.0, quick run
  cpu toy
  load average of the machine: 0.10 before

Figures, per request, as the worst of all readings has them
                          truth      read    error  limit  readings  verdict
postgres
  postgres.flights            5         5        0  exact         1  ✓ holds
  postgres.bytes_sent     246 B     240 B  −2.44 %  exact         1  ✗ outside
burn
  cpu.time             1.500 ms  1.507 ms  +0.50 %   ±3 %         1  ✓ holds
heap
  allocations.blocks         37       n/a      n/a  exact         1  ? n/a
  → postgres.bytes_sent of postgres: outside its limit: 8 connections, 1 process, pass wire (−2.44
    %)
  → allocations.blocks of heap: gone: 8 connections, 1 process, pass wire

Shares of CPU samples: recordings whose interval holds the true share
          truth  samples    inside     limit  verdict
  alder  40.0 %   41.0 %  20 of 20  17 of 20  ✓ holds

What a probe costs the service, in neighbouring laps with it off and on; outside its limit is what
lies above it with its whole interval
           cost       interval  least seen  pairs  limit  verdict
wire
  rate  +2.10 %  −0.4 to 4.6 %       2.5 %     40  6.0 %  ✓ holds
  → highest rate that the wire recorded without a drop: 41,234 requests and 82,468 packets a second
    (32 connections, 3 processes); nothing was dropped, also not at the fastest that could be sent

4 of 6 figures are within their limits; 1 outside: postgres.bytes_sent of postgres; 1 not measured:
allocations.blocks of heap.
");
}

#[test]
fn every_line_fits_the_terminal_that_it_is_for() {
    for line in terminal(&calibrated(), 100).lines() {
        assert!(line.width() <= 100, "{line}");
    }
}

#[test]
fn markdown_says_the_same() {
    let text = markdown(&calibrated());
    for part in [
        "| postgres.bytes\\_sent | 246 B | 240 B | −2.44 % | exact | 1 | ✗ outside |",
        "| alder | 40.0 % | 41.0 % | 20 of 20 | 17 of 20 | ✓ holds |",
        "41,234 requests and 82,468 packets a second",
        "4 of 6 figures are within their limits; 1 outside: postgres.bytes\\_sent of postgres",
    ] {
        assert!(text.contains(part), "{part} is not in:\n{text}");
    }
}

#[test]
fn a_stored_certificate_is_read_back_and_others_are_not() {
    let text = render_certificate(&calibrated());
    assert_eq!(read_calibration(&text), Some(calibrated().about));
    let newer = text.replace("\"schema\": 1", "\"schema\": 2");
    assert_eq!(read_calibration(&newer), None);
    assert_eq!(read_calibration("{}"), None);
}
