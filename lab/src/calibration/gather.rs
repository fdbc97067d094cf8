//! One stage's report, held against the truth.

use std::path::Path;

use anyhow::Result;
use assay_analyses::calibration::{self, Certificate, Place, Truth, WireRate, measures, readings};
use assay_analyses::cost::{Amount, Cost};
use assay_analyses::metric::Metric;
use assay_captures::capture;
use assay_captures::ids::Role;
use assay_captures::lap::{Lap, ProbeState};
use assay_reports::report::Report;

use super::ledger::Ledger;
use super::sampled;
use super::stages::{Purpose, Stage};
use super::truth::Truths;
use crate::experiment::{Experiment, PassKind};

/// The route that burns CPU.
pub(super) const BURN: &str = "burn";
/// The route that does nothing, as fast as can be.
const NOTHING: &str = "nothing";

/// What one stage left.
pub(super) struct Gathering<'a> {
    pub(super) run: &'a Path,
    pub(super) stage: &'a Stage,
    pub(super) report: &'a Report,
    pub(super) truths: &'a Truths,
    pub(super) ledger: &'a Ledger,
}

impl Gathering<'_> {
    /// Adds what this stage is for.
    pub(super) fn into(self, experiment: &Experiment, certificate: &mut Certificate) -> Result<()> {
        match self.stage.purpose {
            Purpose::Figures => self.figures(experiment, certificate),
            Purpose::Shares => {
                let laps = self.laps("cpu", BURN).filter(|lap| lap.probe == ProbeState::On);
                certificate.shares = sampled::shares(self.run, laps, self.ledger)?;
            }
            Purpose::Costs => {
                let effects = &self.report.pass_effects;
                certificate.costs =
                    calibration::probe_costs(effects, |pass| self.reason(pass).map(str::to_owned));
            }
        }
        Ok(())
    }

    fn figures(&self, experiment: &Experiment, certificate: &mut Certificate) {
        for pass in &self.stage.plan.passes {
            let names: &[&str] = match pass.kind {
                PassKind::Serial => &["serial", "serial-strace"],
                kind => &[kind.word()],
            };
            let routes = pass.cells.iter().map(|cell| experiment.routes[cell.route].name.as_str());
            for route in routes {
                for name in names {
                    self.figures_of(name, route, certificate);
                }
                if pass.kind == PassKind::Fair && route == BURN {
                    self.cpu(certificate);
                }
            }
            if pass.kind == PassKind::Wire {
                self.wire(certificate);
            }
        }
    }

    fn figures_of(&self, pass: &str, route: &str, certificate: &mut Certificate) {
        let costs: Vec<&Cost> = self
            .report
            .costs
            .iter()
            .filter(|cost| cost.origin.pass == pass && cost.origin.route == route)
            .collect();
        let condition =
            if pass.starts_with("serial") { "one at a time" } else { self.stage.condition };
        for truth in self.truths.get(route).into_iter().flatten() {
            if !measures(pass, &truth.metric) || !is_worth_a_line(route, truth) {
                continue;
            }
            let read = readings(truth, &costs, condition, pass, self.reason(pass));
            certificate.add(route, truth, read);
        }
    }

    /// CPU time in fair laps, against the subject's own clocks in the same laps.
    fn cpu(&self, certificate: &mut Certificate) {
        let (mut requests, mut answered, mut cpu) = (0, 0, 0.0);
        for lap in self.laps("fair", BURN) {
            let used = self.ledger.over(lap.span);
            requests += used.requests;
            answered += lap.requests;
            cpu += used.cpu;
        }
        let labels = [("process".to_owned(), Role::Subject.word().to_owned())];
        let metric = Metric::CpuTime.name().to_owned();
        let mut truth = Truth { metric, labels: labels.into(), amount: 0.0 };
        if requests == 0 || requests != answered {
            let reason = format!("the subject noted {requests} requests of {answered}");
            let place = Place {
                condition: self.stage.condition.to_owned(),
                pass: "fair".to_owned(),
                instrument: "usage".to_owned(),
            };
            let limit = calibration::limit(&truth.metric);
            let reading = calibration::judge(place, 0.0, &Amount::NotMeasured(reason), limit);
            return certificate.add(BURN, &truth, vec![reading]);
        }
        truth.amount = cpu / requests as f64;
        let of_route = |cost: &&Cost| cost.origin.pass == "fair" && cost.origin.route == BURN;
        let costs: Vec<&Cost> = self.report.costs.iter().filter(of_route).collect();
        let read = readings(&truth, &costs, self.stage.condition, "fair", self.reason("fair"));
        certificate.add(BURN, &truth, read);
    }

    /// The rate of the fastest route while it was recorded, and what was dropped.
    fn wire(&self, certificate: &mut Certificate) {
        let laps: Vec<&Lap> =
            self.laps("wire", NOTHING).filter(|lap| lap.probe == ProbeState::On).collect();
        let Some(folder) = laps.first().and_then(|lap| lap.captures.get("wire")) else { return };
        let Ok(manifest) = capture::manifest(&self.run.join(folder)) else { return };
        let counted = |name: &str| manifest.integrity.get(name).copied();
        let (Some(packets), Some(drops)) = (counted("packets"), counted("drops")) else { return };
        let requests: u64 = laps.iter().map(|lap| lap.requests).sum();
        let rate = laps.iter().map(|lap| lap.rate()).fold(0.0, f64::max);
        let found = WireRate {
            requests: rate,
            packets: rate * packets as f64 / requests.max(1) as f64,
            condition: self.stage.condition.to_owned(),
            dropped: Vec::new(),
        };
        let mut dropped = certificate.wire.take();
        let known = dropped.as_mut().map(|wire| std::mem::take(&mut wire.dropped));
        let mut all = known.unwrap_or_default();
        if drops > 0 {
            all.push((rate, drops));
            all.sort_by(|one, other| one.0.total_cmp(&other.0));
        }
        let better = |wire: &WireRate| drops > 0 || wire.requests >= rate;
        let best = match dropped {
            Some(wire) if better(&wire) => wire,
            _ if drops > 0 => WireRate { requests: 0.0, packets: 0.0, ..found },
            _ => found,
        };
        certificate.wire = Some(WireRate { dropped: all, ..best });
    }

    fn laps<'a>(&'a self, pass: &'a str, route: &'a str) -> impl Iterator<Item = &'a Lap> {
        self.report.laps.iter().filter(move |lap| lap.pass == pass && lap.route == route)
    }

    /// Why a pass has no figure, if it says so.
    fn reason(&self, pass: &str) -> Option<&str> {
        let found = self.report.run.passes.iter().find(|known| known.name == pass)?;
        found.reason.as_deref()
    }
}

/// Nothing is a truth too, but once is enough.
fn is_worth_a_line(route: &str, truth: &Truth) -> bool {
    let counted = [Metric::PostgresFlights, Metric::RedisCommands];
    truth.amount != 0.0
        || (route == NOTHING
            && truth.labels.is_empty()
            && counted.iter().any(|metric| metric.name() == truth.metric))
}
