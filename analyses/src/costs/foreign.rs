//! Costs of files that other tools wrote: profiles, load reports, GC traces. Where the number of
//! requests is known, profiles are divided by it; otherwise their totals are per capture.

use assay_captures::callgrind::{self, Inclusive};
use assay_captures::load_tools::{Report, Stated};
use assay_captures::{dhat, gctrace, pprof};

use crate::cost::{Amount, Cost, Figure, Origin, Per};
use crate::metric::{Kind, Metric};

/// What profiles are divided by, and how much of them is shown.
#[derive(Clone, Debug)]
pub struct View {
    /// Where the figures belong.
    pub origin: Origin,
    /// How many requests the file covers, if somebody knows.
    pub requests: Option<u64>,
    /// How many functions.
    pub top: usize,
}

impl View {
    pub(super) fn figure(&self, value: f64) -> Figure {
        let divisor = self.requests.map_or(1.0, |requests| requests.max(1) as f64);
        Figure::exact(value / divisor, self.requests.unwrap_or(1))
    }

    /// What figures are divided by.
    #[must_use]
    pub fn per(&self) -> Per {
        if self.requests.is_some() { Per::Request } else { Per::Capture }
    }

    pub(super) fn cost(&self, metric: Metric, amount: Amount) -> Cost {
        self.origin.cost(metric, self.per(), amount)
    }

    pub(super) fn count(&self, metric: Metric, value: f64) -> Cost {
        self.cost(metric, Amount::Measured(self.figure(value)))
    }

    fn plain(&self, metric: Metric, amount: Amount) -> Cost {
        self.origin.cost(metric, Per::Nothing, amount)
    }
}

/// Totals per event and the costliest functions.
#[must_use]
pub fn callgrind(profile: &callgrind::Profile, view: &View) -> Vec<Cost> {
    let refused: Vec<String> = profile.refused.iter().take(5).map(ToString::to_string).collect();
    let refused = (!refused.is_empty())
        .then(|| format!("costs that cannot be true or read at {}", refused.join(", ")));
    let mut costs = Vec::new();
    for (event, name) in profile.events().iter().enumerate() {
        let total = profile.total(event);
        let figure = view.figure(total.spent as f64);
        let amount = match &refused {
            Some(why) => Amount::NotMeasured(why.clone()),
            None if profile.is_cut() => {
                Amount::LowerBound(figure, "the file is cut: its last totals are missing".into())
            }
            None => Amount::Measured(figure),
        };
        let mut cost =
            view.cost(Metric::ProfileValue, amount).with("event", name).with("unit", "1");
        if total.spent != total.lines && refused.is_none() {
            let lines = total.lines;
            cost = cost.doubted(format!("the lines of the file add up to {lines}"));
        }
        costs.push(cost);
    }
    for derived in &profile.derived {
        let amount = match (&refused, profile.derived_total(derived)) {
            (None, Some(total)) => Amount::Measured(view.figure(total as f64)),
            (Some(why), _) => Amount::NotMeasured(why.clone()),
            (None, None) => Amount::NotMeasured("made of events that were not counted".into()),
        };
        costs.push(view.cost(Metric::ProfileValue, amount).with("event", &derived.name));
    }
    if refused.is_none() {
        costs.extend(functions(profile, view));
    }
    costs
}

fn functions(profile: &callgrind::Profile, view: &View) -> Vec<Cost> {
    let Some(event) = profile.events().first() else {
        return Vec::new();
    };
    let mut functions = profile.functions();
    functions.sort_by_key(|of| std::cmp::Reverse(of.own[0]));
    let row =
        |cost: Cost, name: &str| cost.with("function", name).with("event", event).with("unit", "1");
    let own = functions.iter().filter(|of| of.own[0] > 0).take(view.top);
    let mut costs: Vec<Cost> = own
        .map(|of| row(view.count(Metric::ProfileSelf, of.own[0] as f64), &of.function.name))
        .collect();
    functions.sort_by_key(|of| std::cmp::Reverse(of.inclusive[0].least()));
    for of in functions.iter().filter(|of| of.inclusive[0].least() > 0).take(view.top) {
        let amount = match of.inclusive[0] {
            Inclusive::Exact(cost) => Amount::Measured(view.figure(cost as f64)),
            Inclusive::Between { least, most } => Amount::LowerBound(
                view.figure(least as f64),
                format!("part of a cycle of calls; at most {most}"),
            ),
        };
        costs.push(row(view.cost(Metric::ProfileTotal, amount), &of.function.name));
    }
    costs
}

/// Blocks and bytes, the peak, and the points that allocate most.
#[must_use]
pub fn dhat(profile: &dhat::Profile, view: &View) -> Vec<Cost> {
    let totals = profile.totals();
    let mut costs = Vec::new();
    if profile.mode == dhat::Mode::Heap {
        costs.push(view.count(Metric::AllocationsBlocks, totals.total.blocks as f64));
        costs.push(view.count(Metric::AllocationsBytes, totals.total.bytes as f64));
    }
    let unit = match profile.bytes_unit.as_str() {
        "byte" => "By",
        other => other,
    };
    let moment = |amount: Option<f64>, event: &str, unit: &str| {
        let amount = amount.map(|value| Amount::Measured(Figure::exact(value, 1)));
        let unknown = || Amount::NotMeasured("no lifetimes were recorded".to_owned());
        let amount = amount.unwrap_or_else(unknown);
        let cost = view.origin.cost(Metric::ProfileValue, Per::Capture, amount);
        cost.with("event", event).with("unit", unit)
    };
    let (bytes, blocks) = (profile.bytes_unit.as_str(), profile.blocks_unit.as_str());
    let peak = totals.at_peak;
    let end = totals.at_end;
    costs.push(moment(Some(totals.total.bytes as f64), &format!("total {bytes}s"), unit));
    costs.push(moment(Some(totals.total.blocks as f64), &format!("total {blocks}"), "1"));
    costs.push(moment(peak.map(|at| at.bytes as f64), &format!("peak {bytes}s"), unit));
    costs.push(moment(peak.map(|at| at.blocks as f64), &format!("peak {blocks}"), "1"));
    costs.push(moment(end.map(|at| at.bytes as f64), &format!("{bytes}s at end"), unit));
    costs.push(moment(end.map(|at| at.blocks as f64), &format!("{blocks} at end"), "1"));
    let mut points: Vec<_> = profile.points.iter().collect();
    points.sort_by_key(|point| std::cmp::Reverse(point.total.blocks));
    for point in points.into_iter().take(view.top) {
        let stack: Vec<&str> = profile.stack(point).take(8).collect();
        costs.push(
            view.count(Metric::ProfileSelf, point.total.blocks as f64)
                .with("function", stack.join(" ← "))
                .with("event", blocks)
                .with("unit", "1"),
        );
    }
    costs
}

/// Totals per sample type, and the functions with the most of the type that viewers show.
#[must_use]
pub fn pprof(profile: &pprof::Profile, view: &View) -> Vec<Cost> {
    let mut costs = Vec::new();
    for (index, kind) in profile.sample_types.iter().enumerate() {
        let total = profile.totals[index];
        let mut cost = view
            .count(Metric::ProfileValue, total as f64)
            .with("event", &kind.kind)
            .with("unit", &kind.unit)
            .of_kind(Kind::Sampled);
        if let Some(time) = profile.time_of(index) {
            let seconds = time.seconds();
            cost = cost.doubted(format!("samples, not a time; by the period {seconds:.6} s"));
        }
        costs.push(cost);
    }
    let Some(last) = profile.sample_types.len().checked_sub(1) else {
        return costs;
    };
    let shown = profile.default_type.unwrap_or(last);
    let kind = &profile.sample_types[shown];
    for metric in [Metric::ProfileSelf, Metric::ProfileTotal] {
        let value = |of: &pprof::FunctionValue| match metric {
            Metric::ProfileSelf => of.own[shown],
            _ => of.inclusive[shown],
        };
        let mut functions: Vec<_> = profile.functions.iter().filter(|of| value(of) != 0).collect();
        functions.sort_by_key(|of| std::cmp::Reverse(value(of)));
        costs.extend(functions.into_iter().take(view.top).map(|of| {
            view.count(metric, value(of) as f64)
                .with("function", &of.name)
                .with("event", &kind.kind)
                .with("unit", &kind.unit)
                .of_kind(Kind::Sampled)
        }));
    }
    costs
}

/// What a load generator says, or why it is not believed.
#[must_use]
pub fn load(report: &Report, view: &View) -> Vec<Cost> {
    let one = |value: f64, samples: u64| Amount::Measured(Figure::exact(value, samples));
    let requests = report.requests.value().copied().unwrap_or(0);
    let count = |metric, stated: &Stated<u64>| {
        let amount = match stated {
            Stated::Value(value) => one(*value as f64, requests),
            Stated::Refused(why) => Amount::NotMeasured(why.clone()),
            Stated::Absent => Amount::NotMeasured("the tool does not say".to_owned()),
        };
        view.origin.cost(metric, Per::Capture, amount)
    };
    let mut costs =
        vec![count(Metric::LoadRequests, &report.requests), count(Metric::LoadGood, &report.good)];
    let errors = report.error_count(true).saturating_add(report.error_count(false));
    costs.push(count(Metric::LoadErrors, &Stated::Value(errors)));
    for error in &report.errors {
        let cost = count(Metric::LoadErrors, &Stated::Value(error.count));
        costs.push(cost.with("kind", &error.kind));
    }
    costs.push(view.plain(
        Metric::Throughput,
        match &report.good_rate {
            Stated::Value(rate) => one(*rate, requests),
            Stated::Refused(why) => Amount::NotMeasured(why.clone()),
            Stated::Absent => Amount::NotMeasured("the tool does not say".to_owned()),
        },
    ));
    match &report.latency {
        Stated::Value(points) => {
            for point in points {
                let amount = one(point.time.seconds(), requests);
                let mut cost =
                    view.plain(Metric::LoadLatency, amount).with("quantile", &point.quantile);
                for note in report.notes.iter().filter(|note| note.starts_with("latency")) {
                    cost = cost.doubted(note);
                }
                costs.push(cost);
            }
        }
        Stated::Refused(why) => {
            costs.push(view.plain(Metric::LoadLatency, Amount::NotMeasured(why.clone())));
        }
        Stated::Absent => {}
    }
    costs
}

/// Collections per second and the stop-the-world share.
#[must_use]
pub fn gctrace(summary: &gctrace::Summary, view: &View) -> Vec<Cost> {
    let amount = |value: Option<f64>| match value {
        Some(value) => Amount::Measured(Figure::exact(value, summary.collections)),
        None => Amount::NotMeasured("fewer than two collections".to_owned()),
    };
    vec![
        view.plain(Metric::GcCollectionsPerSecond, amount(summary.per_second())),
        view.plain(Metric::GcStopTheWorldShare, amount(summary.stopped_share())),
    ]
}
