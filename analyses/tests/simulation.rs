//! The rules for telling real differences from chance, tried on machines whose truth is known.

#[path = "simulation/model.rs"]
#[expect(dead_code, reason = "the example that prints the whole table uses the rest")]
mod model;

use model::{Design, Machine, Order, balanced};

const SEED: u64 = 20_261_018;
const TRIALS: u64 = 2_000;

fn drifting(noise: f64) -> Machine {
    Machine { noise, walk: 0.005, slope: 0.0 }
}

fn design(noise: f64, arms: usize, rounds: u32, effect: f64) -> Design {
    Design { machine: drifting(noise), order: Order::Balanced, arms, rounds, effect }
}

#[test]
fn equals_are_called_different_in_at_most_six_percent_of_cells() {
    for noise in [0.01, 0.02, 0.05] {
        for arms in [2, 4, 12] {
            for rounds in [3, 6, 10] {
                let tally = design(noise, arms, rounds, 0.0).run(TRIALS, SEED);
                let alarms = tally.different();
                assert!(alarms <= 0.06, "{noise} noise, {arms} arms, {rounds} rounds: {alarms}");
                let family = tally.family();
                assert!(family <= 0.06, "{noise} noise, {arms} arms, {rounds} rounds: {family}");
            }
        }
    }
}

#[test]
fn the_reference_against_its_copy_is_rejected_as_a_family_about_once_in_a_thousand_runs() {
    for (noise, cells) in [(0.01, 1), (0.02, 6), (0.05, 24)] {
        let rejected = design(noise, 2, 6, 0.0).rejected(cells, TRIALS, SEED);
        assert!(rejected <= 0.003, "{noise} noise, {cells} cells: {rejected}");
        // A copy that is truly slower is found out.
        let slower = design(noise, 2, 6, -4.0 * noise).rejected(cells.max(6), TRIALS / 10, SEED);
        assert!(slower >= 0.9, "{noise} noise, {cells} cells: {slower}");
    }
}

#[test]
fn three_percent_are_seen_in_nine_of_ten_runs_of_two_arms_and_six_rounds() {
    let seen = design(0.01, 2, 6, 0.03f64.ln_1p()).run(TRIALS, SEED).seen();
    assert!(seen >= 0.9, "{seen}");
}

#[test]
fn a_steady_drift_fools_a_fixed_order_and_not_the_balanced_one() {
    let steady = Machine { noise: 0.01, walk: 0.0, slope: 0.005 };
    for arms in [2, 4, 12] {
        let alarms = |order| {
            Design { machine: steady, order, arms, rounds: 6, effect: 0.0 }
                .run(TRIALS, SEED)
                .different()
        };
        assert!(alarms(Order::Balanced) <= 0.06, "{arms} arms: {}", alarms(Order::Balanced));
        assert!(alarms(Order::Fixed) > 0.06, "{arms} arms: {}", alarms(Order::Fixed));
    }
}

#[test]
fn blocks_of_one_arm_after_the_other_raise_more_false_alarms_than_they_see_truths_miss() {
    let sequential = Design { order: Order::Sequential, ..design(0.01, 2, 6, 0.0) };
    let alarms = sequential.run(TRIALS, SEED).different();
    assert!(alarms > 0.2, "{alarms}");
}

#[test]
fn every_round_holds_each_arm_once_and_is_followed_by_its_reverse() {
    for arms in 2..=12 {
        for round in (0..8).step_by(2) {
            let mut order = balanced(arms, round);
            let mut reverse = balanced(arms, round + 1);
            reverse.reverse();
            assert_eq!(order, reverse);
            order.sort_unstable();
            assert_eq!(order, (0..arms).collect::<Vec<_>>());
        }
    }
}
