//! From the report to the shape of `results.json`.

use std::collections::BTreeMap;

use assay_analyses::aa::SelfTest;
use assay_analyses::compare::{self, Comparison};
use assay_analyses::cost::{Amount, Cost, Figure, Labels, Per};
use assay_analyses::findings::Finding;
use assay_analyses::laps::QUANTILES;
use assay_analyses::metric::{Kind, Metric};
use assay_analyses::observer::{ObserverEffect, PassEffect};
use assay_analyses::ping_price::PingPrice;
use assay_analyses::verdict::Verdict;
use assay_captures::lap::{Lap, Load, ProbeState, Slice};
use assay_captures::manifest::Status;
use assay_captures::run_record;
use assay_captures::units::{Moment, Nanos};

use super::{SCHEMA, claims, model};
use crate::report::{Check, Outcome, Report};

pub(super) fn results(report: &Report) -> model::Results {
    model::Results {
        schema: SCHEMA,
        experiment: experiment(report),
        machine: report.run.machine.clone(),
        versions: report.run.versions.clone(),
        costs: report.costs.iter().map(cost).collect(),
        laps: report.laps.iter().map(|own| lap(report, own)).collect(),
        comparisons: report.comparisons.iter().map(comparison).collect(),
        ping_prices: report.ping_prices.iter().map(ping_price).collect(),
        findings: report.findings.iter().map(finding).collect(),
        ablations: report.claims.iter().map(claims::ablation).collect(),
        self_tests: report.self_tests.iter().map(self_test).collect(),
        integrity: report.checks.iter().map(check).collect(),
        observer_effects: report.observer_effects.iter().map(observer_effect).collect(),
        pass_effects: report.pass_effects.iter().map(pass_effect).collect(),
        calibration: report.run.calibration.as_ref().map(calibration),
    }
}

pub(super) fn calibration(of: &run_record::Calibration) -> model::Calibration {
    model::Calibration {
        made: of.made.clone(),
        assay: of.assay.clone(),
        machine: of.machine.clone(),
        quick: of.quick,
        hold: of.hold,
        cannot_tell: of.cannot_tell.clone(),
        not_measured: of.not_measured.clone(),
        broken: of.broken.clone(),
    }
}

fn experiment(report: &Report) -> model::Experiment {
    let run = &report.run;
    let arm = |arm: &assay_captures::run_record::Arm| model::Arm {
        subject: arm.subject.clone(),
        variant: arm.variant.clone(),
        title: arm.title.clone(),
        environment: arm.environment.clone(),
    };
    let route = |route: &assay_captures::run_record::Route| model::Route {
        name: route.name.clone(),
        method: route.method.clone(),
        path: route.path.clone(),
        query_budget: route.query_budget,
    };
    let service = |service: &assay_captures::run_record::Service| model::Service {
        kind: service.kind.clone(),
        version: service.version.clone(),
        private: service.private,
        settings: service.settings.clone(),
    };
    let pass = |pass: &assay_captures::run_record::Pass| model::Pass {
        name: pass.name.clone(),
        status: status(pass.status).to_owned(),
        reason: pass.reason.clone(),
    };
    model::Experiment {
        name: run.experiment.clone(),
        status: status(run.status).to_owned(),
        reason: run.reason.clone(),
        assay: run.assay.clone(),
        command: run.command.clone(),
        started: epoch_seconds(run.started),
        ended: run.ended.map(epoch_seconds),
        connections: run.connections,
        select_1: run.select_1.map(Nanos::seconds),
        pinning: run.pinning.clone(),
        arms: run.arms.iter().map(arm).collect(),
        routes: run.routes.iter().map(route).collect(),
        services: run.services.iter().map(service).collect(),
        passes: run.passes.iter().map(pass).collect(),
        notes: run.notes.clone(),
    }
}

fn status(status: Status) -> &'static str {
    match status {
        Status::Recording => "recording",
        Status::Complete => "complete",
        Status::Incomplete => "incomplete",
        Status::Failed => "failed",
    }
}

fn epoch_seconds(moment: Moment) -> f64 {
    Nanos(moment.0).seconds()
}

fn labels(labels: &Labels) -> BTreeMap<String, String> {
    labels.iter().map(|(&key, value)| (key.to_owned(), value.clone())).collect()
}

pub(super) fn cost(cost: &Cost) -> model::Cost {
    use model::CostStatus::{LowerBound, Measured, NotMeasured};
    let (status, figure, reason) = match &cost.amount {
        // JSON has no word for infinity; null without a reason would be a riddle.
        Amount::Measured(figure) | Amount::LowerBound(figure, _) if !is_finite(figure) => {
            (NotMeasured, None, Some("not a finite number".to_owned()))
        }
        Amount::Measured(figure) => (Measured, Some(*figure), None),
        Amount::LowerBound(figure, reason) => (LowerBound, Some(*figure), Some(reason.clone())),
        Amount::NotMeasured(reason) => (NotMeasured, None, Some(reason.clone())),
    };
    model::Cost {
        subject: cost.origin.subject.clone(),
        variant: cost.origin.variant.clone(),
        route: cost.origin.route.clone(),
        pass: cost.origin.pass.clone(),
        metric: cost.metric.name().to_owned(),
        labels: labels(&cost.labels),
        unit: cost.metric.unit().to_owned(),
        per: match cost.per {
            Per::Request => Some("request".to_owned()),
            Per::Capture => Some("capture".to_owned()),
            Per::Nothing => None,
        },
        status,
        amount: figure.map(|figure| figure.value),
        low: figure.map(|figure| figure.low),
        high: figure.map(|figure| figure.high),
        samples: figure.map(|figure| figure.samples),
        kind: match cost.kind {
            Kind::Exact => model::CostKind::Exact,
            Kind::Noisy => model::CostKind::Noisy,
            Kind::Sampled => model::CostKind::Sampled,
        },
        capture: cost.origin.capture.clone(),
        reason,
        doubts: cost.doubts.clone(),
    }
}

fn is_finite(figure: &Figure) -> bool {
    figure.value.is_finite() && figure.low.is_finite() && figure.high.is_finite()
}

fn lap(report: &Report, lap: &Lap) -> model::Lap {
    let (load, connections, target_rate) = match lap.load {
        Load::Closed { connections } => ("closed", connections, None),
        Load::FixedRate { connections, rate } => ("fixed-rate", connections, Some(rate)),
        Load::Serial { .. } => ("serial", 1, None),
        Load::Foreign => ("foreign", 0, None),
    };
    let cpu =
        matches!(&*lap.pass, "fair" | "foreign").then(|| report.lap_cpu.get(&lap.order)).flatten();
    model::Lap {
        pass: lap.pass.clone(),
        subject: lap.subject.clone(),
        variant: lap.variant.clone(),
        route: lap.route.clone(),
        round: lap.round,
        order: lap.order,
        probe: match lap.probe {
            ProbeState::None => "none",
            ProbeState::On => "on",
            ProbeState::Off => "off",
        }
        .to_owned(),
        load: load.to_owned(),
        connections,
        target_rate,
        start: epoch_seconds(lap.span.start),
        end: epoch_seconds(lap.span.end),
        seconds: lap.sent_until.since(lap.span.start).unwrap_or_default().seconds(),
        rate: lap.rate(),
        requests: lap.requests,
        good: lap.good,
        non_2xx: lap.non_2xx,
        mismatched: lap.mismatched,
        errors: lap.errors.clone(),
        body_bytes: lap.body_bytes,
        latency: latency(lap),
        cpu: cpu.cloned().unwrap_or_default(),
        timeline: lap.timeline.iter().map(slice).collect(),
        postgres_calls: lap.postgres_calls,
        spoiled: lap.spoiled.clone(),
        generator_cpu: lap.generator.map(|generator| generator.cpu.seconds()),
        generator_run_queue_wait: lap
            .generator
            .and_then(|generator| generator.run_queue_wait)
            .map(Nanos::seconds),
        captures: lap.captures.clone(),
    }
}

fn slice(slice: &Slice) -> model::Slice {
    let seconds = |nanos: Nanos| (slice.answers > 0).then(|| nanos.seconds());
    model::Slice {
        answers: slice.answers,
        p50: seconds(slice.p50),
        p99: seconds(slice.p99),
        max: seconds(slice.max),
        machine_busy: slice.machine_busy,
    }
}

fn latency(lap: &Lap) -> BTreeMap<String, f64> {
    let latency = &lap.latency;
    let quantiles = QUANTILES.iter().filter_map(|&(label, quantile)| {
        Some((label.to_owned(), latency.quantile(quantile)?.seconds()))
    });
    let mut seconds: BTreeMap<String, f64> = quantiles.collect();
    if !seconds.is_empty() {
        seconds.insert("min".to_owned(), latency.min.seconds());
        seconds.insert("mean".to_owned(), latency.mean / 1e9);
        seconds.insert("max".to_owned(), latency.max.seconds());
    }
    seconds
}

pub(super) fn arm_name(name: &compare::ArmName) -> model::ArmName {
    model::ArmName { subject: name.subject.clone(), variant: name.variant.clone() }
}

fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}

fn comparison(comparison: &Comparison) -> model::Comparison {
    let cell = &comparison.cell;
    let effect = comparison.effect;
    model::Comparison {
        route: cell.route.clone(),
        pass: cell.pass.clone(),
        metric: cell.metric.name().to_owned(),
        labels: labels(&cell.labels),
        unit: cell.metric.unit().to_owned(),
        reference: arm_name(&comparison.reference),
        arm: arm_name(&comparison.arm),
        reference_amount: comparison.reference_amount,
        arm_amount: comparison.arm_amount,
        difference: comparison.difference(),
        change: comparison.change().and_then(finite),
        low: effect.and_then(|effect| finite(effect.low)),
        high: effect.and_then(|effect| finite(effect.high)),
        rounds: effect.map(|effect| effect.rounds),
        p_value: effect.and_then(|effect| finite(effect.p_value)),
        verdict: comparison.verdict.word().to_owned(),
        rounds_needed: match comparison.verdict {
            Verdict::CannotTell { rounds_needed, .. } => rounds_needed,
            _ => None,
        },
        spread: comparison.spread.map(|spread| model::Spread {
            reference_best: spread.reference_best,
            arm_best: spread.arm_best,
            spread: spread.spread,
            indistinguishable: spread.is_indistinguishable(),
            overhead: finite(spread.overhead()),
        }),
        doubts: comparison.doubts.clone(),
    }
}

fn ping_price(price: &PingPrice) -> model::PingPrice {
    model::PingPrice {
        route: price.route.clone(),
        with: arm_name(&price.with),
        without: arm_name(&price.without),
        process: price.process.clone(),
        trips_saved: price.trips_saved,
        amount: price.per_trip.value,
        low: price.per_trip.low,
        high: price.per_trip.high,
        rounds: price.per_trip.samples,
        doubts: price.doubts.clone(),
    }
}

fn finding(finding: &Finding) -> model::Finding {
    model::Finding {
        rule: finding.rule.to_owned(),
        route: finding.route.clone(),
        arms: finding.arms.iter().map(arm_name).collect(),
        what: finding.what.clone(),
        why: finding.why.clone(),
        shown: finding.shown.clone(),
        not_shown: finding.not_shown.clone(),
        hypothesis: finding.hypothesis,
    }
}

fn self_test((metric, test): &(Metric, SelfTest)) -> model::SelfTest {
    model::SelfTest {
        metric: metric.name().to_owned(),
        routes: test.cells,
        p_value: test.p_value,
        noise: test.noise,
        rejected: test.rejects(),
    }
}

fn check(check: &Check) -> model::Check {
    let checked = !matches!(check.outcome, Outcome::NotChecked(_));
    let (outcome, reason) = match &check.outcome {
        Outcome::Holds => ("holds", None),
        Outcome::Broken(meaning) => ("broken", Some(meaning.clone())),
        Outcome::NotChecked(reason) => ("not checked", Some(reason.clone())),
    };
    model::Check {
        pass: check.pass.clone(),
        arm: check.arm.as_ref().map(arm_name),
        route: check.route.clone(),
        capture: check.capture.clone(),
        counted: check.counted.clone(),
        found: checked.then_some(check.found),
        expected: checked.then_some(check.expected),
        against: check.against.clone(),
        outcome: outcome.to_owned(),
        reason,
    }
}

fn observer_effect(effect: &ObserverEffect) -> model::ObserverEffect {
    model::ObserverEffect {
        pass: effect.pass.clone(),
        arm: arm_name(&effect.arm),
        route: effect.route.clone(),
        of: effect.of.name().to_owned(),
        change: effect.effect.change,
        low: effect.effect.low,
        high: effect.effect.high,
        pairs: effect.effect.rounds,
    }
}

fn pass_effect(effect: &PassEffect) -> model::PassEffect {
    model::PassEffect {
        pass: effect.pass.clone(),
        of: effect.of.name().to_owned(),
        change: effect.effect.change,
        low: effect.effect.low,
        high: effect.effect.high,
        pairs: effect.effect.rounds,
        spoils_times: effect.spoils_times(),
    }
}
