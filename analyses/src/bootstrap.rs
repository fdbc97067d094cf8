//! Intervals of ratios, by drawing whole laps again and again: what happens within a lap is not
//! independent, laps nearly are.

use crate::interval::t_quantile;

/// Draws: enough that the ends of the interval do not depend on the seed at two digits.
const DRAWS: usize = 2000;
/// The same input gives the same interval, on any machine.
const SEED: u64 = 0x5eed_0fa5_5a7e;

/// The sum of the first values over the sum of the second, with its 95 % interval; each pair is
/// one block. `None` with fewer than two blocks or when nothing is divided by.
///
/// Value ± t(0.975, n − 1) · s, s the bootstrap's standard error times √(n/(n−1)), the bootstrap's
/// own being too small by that (Hesterberg, "What teachers should know about the bootstrap",
/// 2015). The percentile interval lies within the extremes of the blocks: with four laps it held
/// the truth in 89 of 100 trials, this one in 95. The lower end is not below zero, as neither is
/// any count.
#[must_use]
pub fn ratio(blocks: &[(f64, f64)]) -> Option<(f64, f64, f64)> {
    let count = blocks.len();
    let value = quotient(blocks.iter().copied())?;
    if count < 2 {
        return None;
    }
    let mut random = SplitMix(SEED);
    let drawn: Vec<f64> = (0..DRAWS)
        .filter_map(|_| quotient((0..count).map(|_| blocks[random.below(count)])))
        .collect();
    let n = count as f64;
    let mean = drawn.iter().sum::<f64>() / drawn.len() as f64;
    let variance =
        drawn.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (drawn.len() as f64 - 1.0);
    let half = t_quantile(count - 1) * (variance * n / (n - 1.0)).sqrt();
    Some((value, (value - half).max(0.0), value + half))
}

fn quotient(blocks: impl Iterator<Item = (f64, f64)>) -> Option<f64> {
    let (above, below) = blocks.fold((0.0, 0.0), |sum, block| (sum.0 + block.0, sum.1 + block.1));
    (below > 0.0).then(|| above / below)
}

/// Steele, Lea & Flood, "Fast splittable pseudorandom number generators" (2014).
struct SplitMix(u64);

impl SplitMix {
    /// A number below `limit`; the bias is limit / 2^64.
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        ((u128::from(mixed) * limit as u128) >> 64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_blocks_have_no_spread_and_one_has_no_interval() {
        assert_eq!(ratio(&[(6.0, 2.0); 5]), Some((3.0, 3.0, 3.0)));
        assert_eq!(ratio(&[(6.0, 2.0)]), None);
        assert_eq!(ratio(&[(6.0, 0.0), (1.0, 0.0)]), None);
    }

    #[test]
    fn the_same_laps_give_the_same_interval() {
        let blocks = [(10.0, 3.0), (12.0, 4.0), (9.0, 3.0), (11.0, 3.0)];
        assert_eq!(ratio(&blocks), ratio(&blocks));
    }

    /// Six laps with independent noise: the interval holds the truth about as often as it says.
    #[test]
    fn the_interval_covers_the_truth_in_about_95_of_100_trials() {
        let mut random = SplitMix(7);
        // The sum of twelve uniform numbers is nearly normal.
        let mut noise = || (0..12).map(|_| random.below(1000) as f64 / 1000.0).sum::<f64>() - 5.994;
        for laps in [4, 6, 10] {
            let trials = 400;
            let covered = (0..trials)
                .filter(|_| {
                    let blocks: Vec<(f64, f64)> =
                        (0..laps).map(|_| (100.0 + 3.0 * noise(), 1.0)).collect();
                    ratio(&blocks).is_some_and(|(_, low, high)| (low..=high).contains(&100.0))
                })
                .count();
            let share = covered as f64 / f64::from(trials);
            assert!((0.91..=0.99).contains(&share), "{laps} laps: {share}");
        }
    }
}
