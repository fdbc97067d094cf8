//! The certificate for machines. What is read back of it later is its summary alone.

use std::collections::BTreeMap;

use assay_analyses::calibration::{Limit, ProbeCost, Row, Share, Verdict};
use assay_captures::run_record::Calibration;
use serde::{Deserialize, Serialize};

use super::{convert, field, records};
use crate::certificate::Calibrated;

/// Version of the shape.
const SCHEMA: u32 = 1;

/// The certificate: one line for each record, the same bytes for the same certificate.
#[must_use]
pub fn render_certificate(calibrated: &Calibrated) -> String {
    let certificate = &calibrated.certificate;
    let figures: Vec<Figure> = certificate.rows.iter().flat_map(figures).collect();
    let shares: Vec<SampledShare> = certificate.shares.iter().map(share).collect();
    let costs: Vec<Cost> = certificate.costs.iter().map(cost).collect();
    let wire = certificate.wire.as_ref().map(|wire| Wire {
        requests_per_second: wire.requests,
        packets_per_second: wire.packets,
        condition: wire.condition.clone(),
        dropped: wire.dropped.clone(),
    });
    let fields = [
        field("schema", &SCHEMA),
        field("calibration", &convert::calibration(&calibrated.about)),
        records("circumstances", &calibrated.circumstances),
        records("figures", &figures),
        records("shares", &shares),
        records("probe_costs", &costs),
        field("wire", &wire),
    ];
    format!("{{\n{}\n}}\n", fields.join(",\n"))
}

/// What a stored certificate came to; `None` where the text is none of this version.
#[must_use]
pub fn read_calibration(text: &str) -> Option<Calibration> {
    #[derive(Deserialize)]
    struct Stored {
        schema: u32,
        calibration: Calibration,
    }
    let stored: Stored = serde_json::from_str(text).ok()?;
    (stored.schema == SCHEMA).then_some(stored.calibration)
}

#[derive(Serialize)]
struct Figure {
    route: String,
    metric: String,
    labels: BTreeMap<String, String>,
    condition: String,
    pass: String,
    instrument: String,
    truth: f64,
    amount: Option<f64>,
    error: Option<f64>,
    /// How far the error may lie from 0; none where it must only not lie below.
    limit: Option<f64>,
    verdict: &'static str,
    reason: Option<String>,
}

fn figures(row: &Row) -> Vec<Figure> {
    let figure = |reading: &assay_analyses::calibration::Reading| Figure {
        route: row.route.clone(),
        metric: row.metric.clone(),
        labels: row.labels.clone(),
        condition: reading.place.condition.clone(),
        pass: reading.place.pass.clone(),
        instrument: reading.place.instrument.clone(),
        truth: reading.truth,
        amount: reading.amount,
        error: reading.error,
        limit: match row.limit {
            Limit::Exact => Some(0.0),
            Limit::Within(share) => Some(share),
            Limit::AtLeast => None,
        },
        verdict: word(&reading.verdict),
        reason: reason(&reading.verdict),
    };
    row.readings.iter().map(figure).collect()
}

#[derive(Serialize)]
struct SampledShare {
    function: String,
    truth: f64,
    amount: f64,
    inside: u32,
    runs: u32,
    verdict: &'static str,
    reason: Option<String>,
}

fn share(share: &Share) -> SampledShare {
    SampledShare {
        function: share.function.clone(),
        truth: share.truth,
        amount: share.reading,
        inside: share.inside,
        runs: share.runs,
        verdict: word(&share.verdict),
        reason: reason(&share.verdict),
    }
}

#[derive(Serialize)]
struct Cost {
    probe: String,
    of: &'static str,
    cost: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
    least_seen: Option<f64>,
    pairs: Option<u32>,
    limit: f64,
    verdict: &'static str,
    reason: Option<String>,
}

fn cost(cost: &ProbeCost) -> Cost {
    Cost {
        probe: cost.probe.clone(),
        of: cost.of,
        cost: cost.cost.map(|cost| cost.value),
        low: cost.cost.map(|cost| cost.low),
        high: cost.cost.map(|cost| cost.high),
        least_seen: cost.cost.map(|cost| cost.least_seen()),
        pairs: cost.cost.map(|cost| cost.pairs),
        limit: cost.limit,
        verdict: word(&cost.verdict),
        reason: reason(&cost.verdict),
    }
}

#[derive(Serialize)]
struct Wire {
    requests_per_second: f64,
    packets_per_second: f64,
    condition: String,
    /// Requests a second, and packets that were dropped.
    dropped: Vec<(f64, u64)>,
}

fn word(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Holds => "holds",
        Verdict::CannotTell(_) => "cannot tell",
        Verdict::NotMeasured(_) => "not measured",
        Verdict::Broken => "outside",
    }
}

fn reason(verdict: &Verdict) -> Option<String> {
    match verdict {
        Verdict::Holds | Verdict::Broken => None,
        Verdict::CannotTell(reason) | Verdict::NotMeasured(reason) => Some(reason.clone()),
    }
}
