//! A made-up machine with known truth: laps with noise and drift, in the orders that a pass could
//! send them in, judged by the crate's own comparison.

use assay_analyses::aa;
use assay_analyses::compare::{Effect, Series, log_ratio};
use assay_analyses::holm;
use assay_analyses::metric::Better;
use assay_analyses::verdict::{MARGIN, Verdict};

/// What the machine does from lap to lap.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Machine {
    /// Standard deviation of a lap's log rate.
    pub(crate) noise: f64,
    /// Standard deviation of the step of the random walk that the log rate takes each lap.
    pub(crate) walk: f64,
    /// What the log rate gains each lap without chance.
    pub(crate) slope: f64,
}

/// In which order a pass sends the laps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// All laps of an arm, then all of the next.
    Sequential,
    /// Rounds, always in the same order.
    Fixed,
    /// Rounds in the order of a Williams square's rows, each row followed by its reverse.
    Balanced,
    /// Rounds in which a lap of the reference goes before each arm and after the last.
    Neighbours,
}

/// How a trial is laid out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Design {
    /// The machine.
    pub(crate) machine: Machine,
    /// The order.
    pub(crate) order: Order,
    /// Arms, the reference included.
    pub(crate) arms: usize,
    /// Rounds.
    pub(crate) rounds: u32,
    /// True log ratio of every arm to the reference.
    pub(crate) effect: f64,
}

/// Shares of cells (arm against reference) over many trials.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    /// Cells judged.
    pub(crate) cells: u64,
    /// Cells judged faster.
    pub(crate) faster: u64,
    /// Cells judged slower.
    pub(crate) slower: u64,
    /// Cells judged indistinguishable.
    pub(crate) indistinguishable: u64,
    /// Cells still judged faster after Holm's correction over the trial's cells.
    pub(crate) faster_corrected: u64,
    /// Trials.
    pub(crate) trials: u64,
    /// Trials with any cell judged faster or slower after Holm's correction.
    pub(crate) families: u64,
}

impl Tally {
    /// Share of cells judged faster or slower.
    pub(crate) fn different(&self) -> f64 {
        (self.faster + self.slower) as f64 / self.cells as f64
    }

    /// Share of cells judged faster.
    pub(crate) fn seen(&self) -> f64 {
        self.faster as f64 / self.cells as f64
    }

    /// Share of cells judged faster after Holm's correction.
    pub(crate) fn seen_corrected(&self) -> f64 {
        self.faster_corrected as f64 / self.cells as f64
    }

    /// Share of trials with a cell judged different after Holm's correction.
    pub(crate) fn family(&self) -> f64 {
        self.families as f64 / self.trials as f64
    }

    /// Share of cells judged indistinguishable.
    pub(crate) fn equal(&self) -> f64 {
        self.indistinguishable as f64 / self.cells as f64
    }
}

impl Design {
    /// Runs `trials` trials from `seed`.
    pub(crate) fn run(&self, trials: u64, seed: u64) -> Tally {
        let mut chance = Chance(seed);
        let mut tally = Tally { trials, ..Tally::default() };
        for _ in 0..trials {
            let laps = self.laps(&mut chance);
            self.judge(&laps, &mut tally);
        }
        tally
    }

    /// Share of trials in which the test of the reference against its copy, pooled over `cells`
    /// cells, rejects.
    pub(crate) fn rejected(&self, cells: usize, trials: u64, seed: u64) -> f64 {
        let mut chance = Chance(seed);
        let rejected = (0..trials).filter(|_| {
            let cells: Vec<Vec<Series>> = (0..cells).map(|_| self.laps(&mut chance)).collect();
            let pairs = cells.iter().map(|series| (&series[0], &series[1]));
            aa::pooled(pairs).is_some_and(|test| test.rejects())
        });
        rejected.count() as f64 / trials as f64
    }

    /// One series an arm; with [`Order::Neighbours`] one more reference series for each arm.
    fn laps(&self, chance: &mut Chance) -> Vec<Series> {
        let mut level = 0.0;
        let mut series = vec![Series::default(); self.arms];
        for (round, arm) in self.sequence() {
            level += self.machine.slope + self.machine.walk * chance.normal();
            let effect = if arm == 0 { 0.0 } else { self.effect };
            let log_rate = level + effect + self.machine.noise * chance.normal();
            series[arm].push(round, 1000.0 * log_rate.exp());
        }
        series
    }

    fn sequence(&self) -> Vec<(u32, usize)> {
        let arms = self.arms;
        match self.order {
            Order::Sequential => {
                (0..arms).flat_map(|arm| (0..self.rounds).map(move |round| (round, arm))).collect()
            }
            Order::Fixed => {
                (0..self.rounds).flat_map(|round| (0..arms).map(move |arm| (round, arm))).collect()
            }
            Order::Balanced => (0..self.rounds)
                .flat_map(|round| balanced(arms, round).into_iter().map(move |arm| (round, arm)))
                .collect(),
            // Each (round, arm) pair is a block of its own: R A R.
            Order::Neighbours => (0..self.rounds * (arms as u32 - 1))
                .flat_map(|block| {
                    let arm = 1 + (block as usize) % (arms - 1);
                    [(block, 0), (block, arm)]
                })
                .chain([(self.rounds * (arms as u32 - 1), 0)])
                .collect(),
        }
    }

    fn judge(&self, laps: &[Series], tally: &mut Tally) {
        let mut p_values = Vec::new();
        let mut faster = Vec::new();
        for arm in &laps[1..] {
            let ratio = if self.order == Order::Neighbours {
                log_ratio(&between(&laps[0], arm), arm)
            } else {
                log_ratio(&laps[0], arm)
            };
            let Some(ratio) = ratio else { continue };
            tally.cells += 1;
            let verdict = Verdict::of(&ratio, Better::Larger, MARGIN);
            match verdict {
                Verdict::Faster => tally.faster += 1,
                Verdict::Slower => tally.slower += 1,
                Verdict::Indistinguishable => tally.indistinguishable += 1,
                _ => {}
            }
            p_values.push(Effect::of(&ratio).p_value);
            faster.push(verdict == Verdict::Faster);
        }
        let survives: Vec<bool> =
            holm::adjust(&p_values).into_iter().map(|p| p < holm::LEVEL).collect();
        tally.families += u64::from(survives.contains(&true));
        let both = survives.iter().zip(&faster).filter(|(survives, faster)| **survives && **faster);
        tally.faster_corrected += both.count() as u64;
    }
}

/// The geometric mean of the reference's lap before and after each of the arm's.
fn between(reference: &Series, arm: &Series) -> Series {
    let reference: Vec<f64> = reference.values().collect();
    arm.rounds()
        .map(|block| {
            let before = reference[block as usize];
            let after = reference[block as usize + 1];
            (block, (before * after).sqrt())
        })
        .collect()
}

/// The order of one round: row `round / 2` of a Williams square, reversed in odd rounds.
pub(crate) fn balanced(arms: usize, round: u32) -> Vec<usize> {
    let row = (round / 2) as usize;
    // 0, 1, n−1, 2, n−2, …: each row is followed by every arm once, whatever the shift.
    let mut order: Vec<usize> = (0..arms)
        .map(|place| if place % 2 == 1 { place.div_ceil(2) } else { (arms - place / 2) % arms })
        .map(|arm| (arm + row) % arms)
        .collect();
    if round % 2 == 1 {
        order.reverse();
    }
    order
}

/// SplitMix64 (Steele, Lea & Flood 2014): the same numbers on every machine.
struct Chance(u64);

impl Chance {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^= bits >> 31;
        ((bits >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    /// Box–Muller; the second number of each pair is not worth keeping.
    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * self.uniform().ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }
}
