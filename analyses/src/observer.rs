//! What a probe costs the service while it records: laps with the probe off and on by turns, each
//! compared with its neighbour, never laps minutes apart.

use std::collections::BTreeMap;

use assay_captures::lap::{Lap, ProbeState};

use crate::compare::{ArmName, Effect};
use crate::cost::{Amount, Cost};
use crate::interval::Interval;
use crate::laps;
use crate::metric::Metric;

/// Times from a pass whose probe costs more than this enter no table of times.
pub const LIMIT: f64 = 0.10;

/// The cost of one probe, from laps of one pass in which it was switched on and off by turns.
#[derive(Clone, Debug, PartialEq)]
pub struct ObserverEffect {
    /// Name of the pass.
    pub pass: String,
    /// The arm.
    pub arm: ArmName,
    /// Name of the route.
    pub route: String,
    /// What changed: [`Metric::Throughput`] or [`Metric::CpuTime`] of the subject.
    pub of: Metric,
    /// Relative change from off to on, over neighbouring pairs of laps.
    pub effect: Effect,
}

/// The cost of the probes of one pass, over all pairs of laps of all arms and routes.
#[derive(Clone, Debug, PartialEq)]
pub struct PassEffect {
    /// Name of the pass.
    pub pass: String,
    /// What changed: [`Metric::Throughput`] or [`Metric::CpuTime`] of the subject.
    pub of: Metric,
    /// Relative change from off to on. Half of its width is the smallest cost that could have
    /// been seen.
    pub effect: Effect,
}

impl PassEffect {
    /// What it costs, relative: the rate's loss or the CPU's gain; negative when nothing was
    /// lost.
    #[must_use]
    pub fn cost(&self) -> f64 {
        if self.of == Metric::Throughput { -self.effect.change } else { self.effect.change }
    }

    /// Whether the whole interval lies above the limit: the pass's times are not to be believed.
    #[must_use]
    pub fn spoils_times(&self) -> bool {
        let least = if self.of == Metric::Throughput { -self.effect.high } else { self.effect.low };
        least > LIMIT
    }
}

/// Takes the times out of passes whose probe costs too much: they are those of another program.
/// Shares of CPU samples stay, and say so.
pub fn withhold_times(costs: &mut [Cost], effects: &[PassEffect]) {
    for effect in effects.iter().filter(|effect| effect.spoils_times()) {
        let percent = effect.cost() * 100.0;
        let what = if effect.of == Metric::Throughput { "rate" } else { "CPU per request" };
        let told = format!("the probe of this pass costs the service {percent:.0} % of its {what}");
        for cost in costs.iter_mut().filter(|cost| cost.origin.pass == effect.pass) {
            if cost.metric == Metric::CpuPhase {
                let doubt = format!("{told}; shares of samples are given all the same");
                if !cost.doubts.contains(&doubt) {
                    cost.doubts.push(doubt);
                }
            } else if matches!(cost.metric.unit(), "s" | "1/s") {
                cost.amount = Amount::NotMeasured(format!("{told}: its times are left out"));
            }
        }
    }
}

/// The effects of all arms and routes of one pass. `cpu` has the subject's CPU seconds per
/// request by [`Lap::order`]; laps without an entry count for the rate alone. Nothing comes of
/// fewer than two pairs.
#[must_use]
pub fn effects(pass_laps: &[Lap], cpu: &BTreeMap<u32, f64>) -> Vec<ObserverEffect> {
    let mut effects = Vec::new();
    for ((pass, arm, route), laps) in cells(pass_laps) {
        for (of, ratios) in ratios(&laps, cpu) {
            if let Some(interval) = Interval::of(&ratios) {
                let effect = Effect::of(&interval);
                let (pass, arm, route) = (pass.clone(), arm.clone(), route.clone());
                effects.push(ObserverEffect { pass, arm, route, of, effect });
            }
        }
    }
    effects
}

/// The effects of a pass as a whole: the mean of the log ratios of all pairs of all cells. A cell
/// has few pairs, and its own interval would say nothing. Nothing comes of fewer than two pairs.
#[must_use]
pub fn pooled(pass_laps: &[Lap], cpu: &BTreeMap<u32, f64>) -> Vec<PassEffect> {
    let mut pooled: BTreeMap<String, [(Metric, Vec<f64>); 2]> = BTreeMap::new();
    for ((pass, ..), laps) in cells(pass_laps) {
        let [rate, cpu_time] = ratios(&laps, cpu);
        let [all_rates, all_times] = pooled
            .entry(pass)
            .or_insert([(Metric::Throughput, Vec::new()), (Metric::CpuTime, Vec::new())]);
        all_rates.1.extend(rate.1);
        all_times.1.extend(cpu_time.1);
    }
    let mut effects = Vec::new();
    for (pass, both) in pooled {
        for (of, ratios) in both {
            if let Some(interval) = Interval::of(&ratios) {
                effects.push(PassEffect { pass: pass.clone(), of, effect: Effect::of(&interval) });
            }
        }
    }
    effects
}

/// Laps with a probe by pass, arm and route, in their order.
fn cells(pass_laps: &[Lap]) -> BTreeMap<(String, ArmName, String), Vec<&Lap>> {
    let mut groups: BTreeMap<(String, ArmName, String), Vec<&Lap>> = BTreeMap::new();
    for lap in pass_laps.iter().filter(|lap| lap.probe != ProbeState::None) {
        let key = (lap.pass.clone(), laps::arm(lap), lap.route.clone());
        groups.entry(key).or_default().push(lap);
    }
    for laps in groups.values_mut() {
        laps.sort_by_key(|lap| lap.order);
    }
    groups
}

/// The log ratios of the pairs of one cell, by what changed.
fn ratios(laps: &[&Lap], cpu: &BTreeMap<u32, f64>) -> [(Metric, Vec<f64>); 2] {
    let rate = |lap: &Lap| Some(lap.rate());
    let cpu_time = |lap: &Lap| cpu.get(&lap.order).copied();
    [(Metric::Throughput, neighbours(laps, rate)), (Metric::CpuTime, neighbours(laps, cpu_time))]
}

/// `ln(on / off)` of each two laps that follow each other, one with the probe on and one off;
/// every lap is used at most once.
fn neighbours(laps: &[&Lap], value: impl Fn(&Lap) -> Option<f64>) -> Vec<f64> {
    let mut ratios = Vec::new();
    let mut rest = laps;
    while let [first, second, ..] = rest {
        if first.probe == second.probe {
            rest = &rest[1..];
            continue;
        }
        let (on, off) =
            if first.probe == ProbeState::On { (first, second) } else { (second, first) };
        if let (Some(on), Some(off)) = (value(on), value(off)) {
            ratios.push((on / off).ln());
        }
        rest = &rest[2..];
    }
    ratios
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::laps::tests::lap;

    fn laps(rates: &[(ProbeState, u64)]) -> Vec<Lap> {
        rates
            .iter()
            .zip(0..)
            .map(|(&(probe, rate), order)| Lap { probe, ..lap("on", 0, order, rate) })
            .collect()
    }

    #[test]
    fn each_pair_of_neighbours_gives_one_ratio() {
        use ProbeState::{Off, On};
        // off on | on off | off on: 10 %, 20 % and 15 % slower; the fourth `off` has no partner.
        let laps = laps(&[
            (Off, 1000),
            (On, 900),
            (On, 800),
            (Off, 1000),
            (Off, 1000),
            (On, 850),
            (Off, 5000),
        ]);
        let effects = pooled(&laps, &BTreeMap::new());
        let [effect] = &effects[..] else { panic!("{effects:?}") };
        assert_eq!((effect.of, effect.effect.rounds), (Metric::Throughput, 3));
        let expected = 1.0 - (0.9f64 * 0.8 * 0.85).cbrt();
        assert!((effect.cost() - expected).abs() < 1e-9);
        assert!(!effect.spoils_times(), "the interval is far too wide to say so");
    }

    #[test]
    fn cpu_per_request_is_compared_where_it_is_known() {
        use ProbeState::{Off, On};
        let laps = laps(&[(Off, 1000), (On, 800), (On, 799), (Off, 1000)]);
        let cpu = [(0, 100e-6), (1, 125e-6), (2, 126e-6), (3, 100e-6)].into_iter().collect();
        let effects = pooled(&laps, &cpu);
        assert_eq!(effects.len(), 2);
        assert!((effects[1].cost() - 0.255).abs() < 1e-3);
        assert!(effects.iter().all(PassEffect::spoils_times));
    }

    #[test]
    fn times_of_a_pass_whose_probe_costs_too_much_are_left_out_and_shares_are_not() {
        use crate::cost::{Figure, Origin, Per};
        use ProbeState::{Off, On};
        let laps = laps(&[(Off, 1000), (On, 800), (On, 799), (Off, 1000)]);
        let effects = pooled(&laps, &BTreeMap::new());
        let cost = |pass: &str, metric: Metric| {
            let pass = if pass.is_empty() { laps[0].pass.clone() } else { pass.to_owned() };
            let origin = Origin {
                subject: "shop".into(),
                variant: "on".into(),
                route: "detail".into(),
                pass,
                capture: None,
            };
            origin.cost(metric, Per::Request, Amount::Measured(Figure::exact(1.0, 1)))
        };
        let mut costs = [
            cost("", Metric::Wait),
            cost("", Metric::PostgresFlights),
            cost("", Metric::CpuPhase),
            cost("serial", Metric::Wait),
        ];
        withhold_times(&mut costs, &effects);
        let told = "the probe of this pass costs the service 20 % of its rate";
        let reason = format!("{told}: its times are left out");
        assert_eq!(costs[0].amount, Amount::NotMeasured(reason));
        assert!(costs[1..].iter().all(|cost| cost.amount.figure().is_some()));
        let doubt = format!("{told}; shares of samples are given all the same");
        assert_eq!(costs[2].doubts, [doubt]);
        assert!(costs[3].doubts.is_empty());
    }

    #[test]
    fn pairs_are_made_within_a_cell_and_pooled_over_all_cells() {
        use ProbeState::{Off, On};
        let mut laps = laps(&[(Off, 1000), (On, 900), (Off, 100), (On, 80)]);
        laps[2].route = "another".into();
        laps[3].route = "another".into();
        assert!(effects(&laps, &BTreeMap::new()).is_empty(), "one pair a cell");
        let pooled = pooled(&laps, &BTreeMap::new());
        assert_eq!(pooled[0].effect.rounds, 2);
        assert!((pooled[0].cost() - (1.0 - (0.9f64 * 0.8).sqrt())).abs() < 1e-9);
    }

    #[test]
    fn one_pair_says_nothing() {
        assert!(
            effects(&laps(&[(ProbeState::Off, 9), (ProbeState::On, 9)]), &BTreeMap::new())
                .is_empty()
        );
    }
}
