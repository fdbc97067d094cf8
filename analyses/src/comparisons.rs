//! Everything that a table compares: each arm with the reference, on every route.

use std::collections::{BTreeMap, BTreeSet};

use assay_captures::lap::{Lap, ProbeState};
use assay_captures::run_record::Arm;

use crate::ablation::{self, Ablation};
use crate::bounds;
use crate::compare::{self, ArmName, Cell, Comparison, Series};
use crate::cost::{Amount, Cost, Figure, Labels};
use crate::laps;
use crate::metric::{Kind, Metric};
use crate::ping_price::{self, PingPrice};

/// CPU seconds per request of each lap, by [`Lap::order`] and process.
pub type LapCpu = BTreeMap<u32, BTreeMap<String, f64>>;

/// The laps of a pass without probe, with the CPU time that each request of each lap took.
#[derive(Clone, Copy, Debug)]
pub struct FairLaps<'a> {
    /// The laps of the fair pass.
    pub laps: &'a [Lap],
    /// CPU seconds per request, by lap and process.
    pub cpu: &'a LapCpu,
}

/// Compares every arm with the first. Rates, CPU times and fixed-rate latencies are paired by
/// rounds and corrected for the number of cells (Holm); exact counts are compared exactly; the
/// rest is put side by side.
#[must_use]
pub fn all(fair: FairLaps<'_>, costs: &[Cost], arms: &[Arm]) -> Vec<Comparison> {
    let names: Vec<ArmName> = arms.iter().map(ablation::name).collect();
    let Some((reference, others)) = names.split_first() else { return Vec::new() };
    let series = fair.series();
    let mut comparisons = Vec::new();
    for (cell, by_arm) in &series {
        let Some(base) = by_arm.get(reference) else { continue };
        // A process that did nothing at all has no ratio.
        if by_arm.values().flat_map(Series::values).all(|value| value == 0.0) {
            continue;
        }
        let laps = others.iter().filter_map(|arm| Some((arm, by_arm.get(arm)?)));
        comparisons.extend(
            laps.filter_map(|judged| compare::compare(cell.clone(), (reference, base), judged)),
        );
    }
    compare::correct(&mut comparisons);
    let counted = counts(costs);
    let unpaired = counted.iter().filter(|((cell, _), _)| !series.contains_key(cell));
    for ((cell, _), by_arm) in unpaired {
        let Some(base) = by_arm.get(reference) else { continue };
        for arm in others {
            if let Some(other) = by_arm.get(arm) {
                comparisons.extend(compare_costs(cell, (reference, base), (arm, other)));
            }
        }
    }
    comparisons
}

/// The price of a round trip on every route, from each two arms that differ in one variable and
/// whose trips differ by pool pings alone, all of them awaited: were pings on release among them,
/// then connections would be taken less often too, which has a price of its own. Trips come from
/// the serial pass, or from the wire under load where there is none.
#[must_use]
pub fn ping_prices(fair: FairLaps<'_>, costs: &[Cost], arms: &[Arm]) -> Vec<PingPrice> {
    let series = fair.series();
    let closed = fair.laps.iter().any(|lap| !laps::is_fixed_rate(lap));
    let mut prices = Vec::new();
    for (cell, by_arm) in series.iter().filter(|(cell, _)| cell.metric == Metric::CpuTime) {
        let Some(process) = cell.labels.get("process") else { continue };
        if !matches!(process.as_str(), "subject" | "postgres") {
            continue;
        }
        for Ablation { one, other, .. } in ablation::ablations(arms) {
            let Some((one_trips, other_trips)) = pinged(costs, &cell.route, &one, &other) else {
                continue;
            };
            let (Some(one_cpu), Some(other_cpu)) = (by_arm.get(&one), by_arm.get(&other)) else {
                continue;
            };
            let price = ping_price::of(
                &cell.route,
                process,
                (&one, one_cpu, one_trips),
                (&other, other_cpu, other_trips),
            );
            prices.extend(price.map(|mut price| {
                if closed {
                    price
                        .doubts
                        .push("closed load: the two variants ran at different rates".into());
                }
                price
            }));
        }
    }
    prices
}

/// Says where a rate was bound by the database, so that a difference is a lower bound:
/// `round_trip` is the seconds of one `SELECT 1`, `connections` the load's. The trips are the
/// reference's awaited flights; its best lap is the rate.
pub fn mark_database_bound(
    comparisons: &mut [Comparison],
    costs: &[Cost],
    round_trip: f64,
    connections: u32,
) {
    for comparison in comparisons.iter_mut() {
        let Some(spread) = comparison.spread else { continue };
        let (route, arm) = (comparison.cell.route.as_str(), &comparison.reference);
        let awaited = ["serial", "wire"].into_iter().find_map(|pass| {
            let flights = flights(costs, Metric::PostgresAwaitedFlights, pass, route, arm);
            flights.get("").copied()
        });
        let connections = f64::from(connections);
        let bound = awaited.is_some_and(|trips| {
            bounds::database_bound(trips, round_trip, connections, spread.reference_best)
        });
        if bound {
            comparison.doubts.push(
                "bound by the database: half of a request is round trips, so the difference is \
                 a lower bound"
                    .to_owned(),
            );
        }
    }
}

impl FairLaps<'_> {
    /// What can be paired by rounds: cell → arm → laps.
    pub(crate) fn series(self) -> BTreeMap<Cell, BTreeMap<ArmName, Series>> {
        let mut series: BTreeMap<Cell, BTreeMap<ArmName, Series>> = BTreeMap::new();
        for lap in self.laps.iter().filter(|lap| lap.probe != ProbeState::On) {
            let mut push = |metric, label: Option<(&'static str, &str)>, value| {
                let labels: Labels =
                    label.iter().map(|&(key, value)| (key, value.to_owned())).collect();
                let (route, pass) = (lap.route.clone(), lap.pass.clone());
                let cell = Cell { route, metric, labels, pass };
                let arms = series.entry(cell).or_default();
                arms.entry(laps::arm(lap)).or_default().push(lap.round, value);
            };
            push(Metric::Throughput, None, laps::good_rate(lap));
            for (process, &cpu) in self.cpu.get(&lap.order).into_iter().flatten() {
                push(Metric::CpuTime, Some(("process", process)), cpu);
            }
            // In closed load latency restates throughput: comparing it would count twice.
            for (label, quantile) in
                laps::QUANTILES.into_iter().filter(|_| laps::is_fixed_rate(lap))
            {
                if let Some(latency) = lap.latency.quantile(quantile) {
                    push(Metric::Latency, Some(("quantile", label)), latency.seconds());
                }
            }
        }
        series
    }
}

/// The figures of one arm in one cell, one for each capture.
type Counts = Vec<(Figure, Kind)>;

/// Costs with figures by cell, instrument and arm. The last part of a capture's folder names the
/// instrument: strace's count is never held against that of BPF.
fn counts(costs: &[Cost]) -> BTreeMap<(Cell, String), BTreeMap<ArmName, Counts>> {
    let mut counts: BTreeMap<(Cell, String), BTreeMap<ArmName, Counts>> = BTreeMap::new();
    for cost in costs {
        // A bound has no difference: the true amount lies anywhere above it.
        let Amount::Measured(figure) = cost.amount else { continue };
        let cell = Cell {
            route: cost.origin.route.clone(),
            metric: cost.metric,
            labels: cost.labels.clone(),
            pass: cost.origin.pass.clone(),
        };
        let capture = cost.origin.capture.as_deref().unwrap_or_default();
        let instrument = capture.rsplit('/').next().unwrap_or_default().to_owned();
        let arm =
            ArmName { subject: cost.origin.subject.clone(), variant: cost.origin.variant.clone() };
        let arms = counts.entry((cell, instrument)).or_default();
        arms.entry(arm).or_default().push((figure, cost.kind));
    }
    counts
}

fn compare_costs(
    cell: &Cell,
    (reference, base): (&ArmName, &Counts),
    (arm, other): (&ArmName, &Counts),
) -> Option<Comparison> {
    let exact = base.iter().chain(other).all(|(_, kind)| *kind == Kind::Exact);
    if exact {
        let values = |figures: &[(Figure, Kind)]| -> Vec<f64> {
            figures.iter().map(|(figure, _)| figure.value).collect()
        };
        return compare::compare_exact(
            cell.clone(),
            (reference, &values(base)),
            (arm, &values(other)),
        );
    }
    let (base, other) = (base.first()?.0, other.first()?.0);
    Some(compare::side_by_side(cell.clone(), (reference, base), (arm, other)))
}

/// Flights per request of two arms, when they differ by pool pings alone.
fn pinged(
    costs: &[Cost],
    route: &str,
    one_arm: &ArmName,
    other_arm: &ArmName,
) -> Option<(f64, f64)> {
    for pass in ["serial", "wire"] {
        let one = flights(costs, Metric::PostgresFlights, pass, route, one_arm);
        let other = flights(costs, Metric::PostgresFlights, pass, route, other_arm);
        let (Some(&one_all), Some(&other_all)) = (one.get(""), other.get("")) else { continue };
        let reasons: BTreeSet<&str> = one.keys().chain(other.keys()).copied().collect();
        let same = |reason: &str| {
            let (one, other) = (one.get(reason), other.get(reason));
            (one.unwrap_or(&0.0) - other.unwrap_or(&0.0)).abs() < 0.05
        };
        // Statements prepared on a connection's first use are nobody's choice here.
        let kept = |reason: &&str| !matches!(*reason, "" | "pool ping" | "prepare");
        let awaited = |arm| flights(costs, Metric::PostgresAwaitedFlights, pass, route, arm);
        let (one_awaited, other_awaited) = (awaited(one_arm), awaited(other_arm));
        if let (Some(one), Some(other)) = (one_awaited.get(""), other_awaited.get(""))
            && ((one - other) - (one_all - other_all)).abs() >= 0.05
        {
            return None;
        }
        let only_pings = reasons.into_iter().filter(kept).all(same) && !same("pool ping");
        return only_pings.then_some((one_all, other_all));
    }
    None
}

/// Reason → flights per request; the total under the empty reason.
fn flights<'a>(
    costs: &'a [Cost],
    metric: Metric,
    pass: &str,
    route: &str,
    arm: &ArmName,
) -> BTreeMap<&'a str, f64> {
    costs
        .iter()
        .filter(|cost| cost.metric == metric)
        .filter(|Cost { origin, .. }| {
            origin.pass == pass
                && origin.route == route
                && origin.subject == arm.subject
                && origin.variant == arm.variant
        })
        .filter_map(|cost| {
            let reason = cost.labels.get("reason").map_or("", String::as_str);
            Some((reason, cost.amount.figure()?.value))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::{Origin, Per};
    use crate::laps::tests::lap;
    use crate::verdict::Verdict;

    fn arms() -> Vec<Arm> {
        ["on", "off"]
            .into_iter()
            .map(|variant| Arm {
                subject: "shop".into(),
                variant: variant.into(),
                title: variant.into(),
                environment: [("PING".to_owned(), variant.to_owned())].into(),
            })
            .collect()
    }

    fn flight(variant: &str, reason: Option<&str>, value: f64) -> Cost {
        let origin = Origin {
            subject: "shop".into(),
            variant: variant.into(),
            route: "detail".into(),
            pass: "serial".into(),
            capture: Some("captures/serial/shop.on/detail/wire".into()),
        };
        let amount = Amount::Measured(Figure::exact(value, 500));
        let cost = origin.cost(Metric::PostgresFlights, Per::Request, amount);
        match reason {
            Some(reason) => cost.with("reason", reason),
            None => cost,
        }
    }

    fn costs() -> Vec<Cost> {
        vec![
            flight("on", None, 9.0),
            flight("on", Some("user"), 3.0),
            flight("on", Some("pool ping"), 6.0),
            flight("off", None, 6.0),
            flight("off", Some("user"), 3.0),
            flight("off", Some("pool ping"), 3.0),
        ]
    }

    fn fair() -> (Vec<Lap>, LapCpu) {
        let laps: Vec<Lap> = (0..4)
            .flat_map(|round| {
                [lap("on", round, 2 * round, 1000), lap("off", round, 2 * round + 1, 1250)]
            })
            .collect();
        let cpu = |order: u32| if order.is_multiple_of(2) { 166e-6 } else { 133e-6 };
        let cpu =
            (0..8).map(|order| (order, [("postgres".to_owned(), cpu(order))].into())).collect();
        (laps, cpu)
    }

    #[test]
    fn rates_and_cpu_are_judged_by_rounds_and_counts_exactly() {
        let (laps, cpu) = fair();
        let all = all(FairLaps { laps: &laps, cpu: &cpu }, &costs(), &arms());
        let told: Vec<(Metric, String, Verdict)> = all
            .iter()
            .map(|c| {
                let label = c.cell.labels.values().next().cloned().unwrap_or_default();
                (c.cell.metric, label, c.verdict)
            })
            .collect();
        assert_eq!(
            told,
            [
                (Metric::Throughput, String::new(), Verdict::Faster),
                (Metric::CpuTime, "postgres".into(), Verdict::Faster),
                (Metric::PostgresFlights, String::new(), Verdict::Fewer),
                (Metric::PostgresFlights, "pool ping".into(), Verdict::Fewer),
                (Metric::PostgresFlights, "user".into(), Verdict::Same),
            ]
        );
    }

    #[test]
    fn a_rate_that_is_half_round_trips_is_marked() {
        let (laps, cpu) = fair();
        let mut costs = costs();
        let mut awaited = flight("on", None, 6.0);
        awaited.metric = Metric::PostgresAwaitedFlights;
        costs.push(awaited);
        let mut all = all(FairLaps { laps: &laps, cpu: &cpu }, &costs, &arms());
        // 6 trips of 5 ms against half of 50 connections ÷ 1,000 a second: 30 ms of 25.
        mark_database_bound(&mut all, &costs, 0.005, 50);
        assert!(all[0].doubts[0].starts_with("bound by the database"));
        assert!(all[1].doubts.is_empty(), "CPU time has no such bound");
    }

    #[test]
    fn a_ping_has_a_price_where_only_pings_differ() {
        let (laps, cpu) = fair();
        let fair = FairLaps { laps: &laps, cpu: &cpu };
        let prices = ping_prices(fair, &costs(), &arms());
        let [price] = &prices[..] else { panic!("{prices:?}") };
        assert!((price.per_trip.value - 11e-6).abs() < 1e-9);
        assert_eq!(price.doubts, ["closed load: the two variants ran at different rates"]);
        let mut more_statements = costs();
        more_statements[1] = flight("on", Some("user"), 4.0);
        assert!(ping_prices(fair, &more_statements, &arms()).is_empty());
    }
}
