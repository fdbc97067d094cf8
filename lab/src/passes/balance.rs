//! Orders of arms that cancel drift: a machine that gets slower during a round must not make the
//! arm that always comes last look slower.

/// The order of `arms` arms in `round`: each arm once.
///
/// Two arms: AB, BA, AB, … More: the rows of a Williams square, each followed by its reverse, so
/// that any two neighbouring rounds cancel linear drift, and a full cycle (`arms` rounds, twice
/// as many for an odd number) has each arm in each place, and each arm before each other one,
/// equally often.
#[must_use]
pub fn order(arms: usize, round: u32) -> Vec<usize> {
    if arms == 0 {
        return Vec::new();
    }
    let pair = (round / 2) as usize;
    // 0, 1, n-1, 2, n-2, …: neighbours differ by 1, -2, 3, -4, …: each difference once.
    let place = |index: usize| if index % 2 == 1 { index.div_ceil(2) } else { arms - index / 2 };
    let mut row: Vec<usize> = (0..arms).map(|index| (place(index) + pair) % arms).collect();
    if round % 2 == 1 {
        row.reverse();
    }
    row
}

/// Whether the probe records, lap by lap: off, on, on, off, off, on, … so that each lap with it
/// has a neighbour without it, and drift falls on both alike.
pub fn off_on(rounds: u32) -> impl Iterator<Item = (u32, bool)> {
    (0..rounds).flat_map(|round| {
        let first = round % 2 == 1;
        [(round, first), (round, !first)]
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn cycle(arms: usize) -> u32 {
        (if arms.is_multiple_of(2) { arms } else { 2 * arms }) as u32
    }

    #[test]
    fn each_arm_is_equally_often_in_each_place() {
        for arms in 1..=12 {
            let mut places: BTreeMap<(usize, usize), u32> = BTreeMap::new();
            for round in 0..cycle(arms) {
                for (place, arm) in order(arms, round).into_iter().enumerate() {
                    *places.entry((place, arm)).or_default() += 1;
                }
            }
            assert_eq!(places.len(), arms * arms, "{arms} arms");
            let times = cycle(arms) / arms as u32;
            assert!(places.values().all(|&count| count == times), "{arms} arms: {places:?}");
        }
    }

    #[test]
    fn each_arm_comes_equally_often_right_after_each_other_one() {
        for arms in 2..=12 {
            let mut pairs: BTreeMap<(usize, usize), u32> = BTreeMap::new();
            for round in 0..cycle(arms) {
                for pair in order(arms, round).windows(2) {
                    *pairs.entry((pair[0], pair[1])).or_default() += 1;
                }
            }
            assert_eq!(pairs.len(), arms * (arms - 1), "{arms} arms");
            let times = cycle(arms) / arms as u32;
            assert!(pairs.values().all(|&count| count == times), "{arms} arms: {pairs:?}");
        }
    }

    #[test]
    fn two_neighbouring_rounds_cancel_linear_drift() {
        for arms in 1..=12 {
            for pair in 0..6 {
                let forth = order(arms, 2 * pair);
                let mut back = order(arms, 2 * pair + 1);
                back.reverse();
                assert_eq!(forth, back);
            }
        }
    }

    #[test]
    fn two_arms_take_turns() {
        let orders: Vec<_> = (0..4).map(|round| order(2, round)).collect();
        assert_eq!(orders[0], [0, 1]);
        assert_eq!(orders[1], [1, 0]);
        assert_eq!(orders.iter().filter(|order| order[0] == 0).count(), 2);
        assert!(order(0, 3).is_empty());
    }

    #[test]
    fn a_probe_is_off_on_on_off() {
        let states: Vec<bool> = off_on(4).map(|(_, on)| on).collect();
        assert_eq!(states, [false, true, true, false, false, true, true, false]);
    }
}
