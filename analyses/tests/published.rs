//! Published tables, recomputed from their printed numbers: two benchmark pages of October 2026,
//! one of a message broker's crate (messages per second, best lap and median lap), one of eight
//! web applications.

use assay_analyses::bounds::{database_bound, fits_little, little};
use assay_analyses::compare::{ArmName, Series};
use assay_analyses::ping_price;
use assay_analyses::spread::{Spread, overhead};

/// Reference's best and median lap, arm's best and median lap, and the overhead as printed (%);
/// `None` where the table says indistinguishable.
type Row = (f64, f64, f64, f64, Option<f64>);

#[rustfmt::skip]
const BROKER: [Row; 73] = [
    (6149.0, 6103.0, 6018.0, 5996.0, Some(2.1)),
    (6149.0, 6103.0, 6136.0, 5986.0, None),
    (5150.0, 4984.0, 5007.0, 4937.0, None),
    (5150.0, 4984.0, 5103.0, 5092.0, None),
    (29198.0, 29006.0, 28724.0, 28676.0, None),
    (29198.0, 29006.0, 29043.0, 28629.0, None),
    (3125.0, 3098.0, 3202.0, 3177.0, Some(-2.5)),
    (3125.0, 3098.0, 3219.0, 3193.0, Some(-3.0)),
    (4611.0, 4572.0, 4565.0, 4295.0, None),
    (4611.0, 4572.0, 4558.0, 4462.0, None),
    (6089.0, 5910.0, 5980.0, 5784.0, None),
    (6089.0, 5910.0, 6025.0, 5773.0, None),
    (5805.0, 5771.0, 5759.0, 5742.0, None),
    (5805.0, 5771.0, 5769.0, 5662.0, None),
    (26723.0, 26721.0, 27640.0, 26771.0, None),
    (26723.0, 26721.0, 27814.0, 27485.0, None),
    (29182.0, 27701.0, 27295.0, 26896.0, None),
    (29182.0, 27701.0, 27947.0, 26567.0, None),
    (53058.0, 52720.0, 53160.0, 52178.0, None),
    (66275.0, 66203.0, 15961.0, 15395.0, Some(75.9)),
    (66275.0, 66203.0, 15761.0, 15425.0, Some(76.2)),
    (15761.0, 15425.0, 15961.0, 15395.0, None),
    (64200.0, 61442.0, 8682.0, 8635.0, Some(86.5)),
    (64200.0, 61442.0, 8821.0, 8600.0, Some(86.3)),
    (8821.0, 8600.0, 8682.0, 8635.0, None),
    (54357.0, 53776.0, 8044.0, 8025.0, Some(85.2)),
    (54357.0, 53776.0, 8191.0, 8143.0, Some(84.9)),
    (8191.0, 8143.0, 8044.0, 8025.0, None),
    (6606.0, 6534.0, 6519.0, 6489.0, None),
    (6606.0, 6534.0, 6498.0, 6345.0, None),
    (21422.0, 20667.0, 17465.0, 16553.0, Some(18.5)),
    (21422.0, 20667.0, 20365.0, 20352.0, None),
    (35388.0, 35358.0, 28664.0, 28526.0, Some(19.0)),
    (35388.0, 35358.0, 35013.0, 34770.0, None),
    (31095.0, 30671.0, 29910.0, 29658.0, None),
    (31095.0, 30671.0, 30127.0, 30047.0, None),
    (100358.0, 94995.0, 94292.0, 93376.0, None),
    (100358.0, 94995.0, 96291.0, 93160.0, None),
    (154114.0, 153177.0, 120889.0, 119422.0, Some(21.6)),
    (154114.0, 153177.0, 154622.0, 151889.0, None),
    (7626.0, 7409.0, 6376.0, 6329.0, Some(16.4)),
    (7626.0, 7409.0, 6791.0, 6498.0, None),
    (17830.0, 16166.0, 13281.0, 13131.0, Some(25.5)),
    (17830.0, 16166.0, 16316.0, 15688.0, None),
    (21885.0, 21792.0, 17994.0, 17839.0, Some(17.8)),
    (21885.0, 21792.0, 19070.0, 15962.0, None),
    (36152.0, 35674.0, 35228.0, 35088.0, None),
    (36152.0, 35674.0, 35752.0, 34773.0, None),
    (107344.0, 107082.0, 99924.0, 95386.0, None),
    (107344.0, 107082.0, 102923.0, 86929.0, None),
    (158847.0, 132613.0, 143767.0, 120226.0, None),
    (158847.0, 132613.0, 147257.0, 139066.0, None),
    (14073.0, 13850.0, 13611.0, 13599.0, Some(3.3)),
    (14073.0, 13850.0, 13609.0, 13565.0, Some(3.3)),
    (14453.0, 14266.0, 5218.0, 4723.0, Some(63.9)),
    (14453.0, 14266.0, 13846.0, 13728.0, Some(4.2)),
    (14244.0, 14181.0, 4916.0, 4754.0, Some(65.5)),
    (14244.0, 14181.0, 13814.0, 13733.0, Some(3.0)),
    (33167.0, 33147.0, 33092.0, 31648.0, None),
    (33167.0, 33147.0, 31521.0, 31281.0, Some(5.0)),
    (34067.0, 33800.0, 34839.0, 33646.0, None),
    (34067.0, 33800.0, 35105.0, 33255.0, None),
    (35446.0, 34634.0, 35544.0, 35537.0, None),
    (35446.0, 34634.0, 34829.0, 33519.0, None),
    (54941.0, 52927.0, 7826.0, 7663.0, Some(85.8)),
    (54941.0, 52927.0, 8128.0, 8097.0, Some(85.2)),
    (8128.0, 8097.0, 7826.0, 7663.0, Some(3.7)),
    (51743.0, 51332.0, 24866.0, 24810.0, Some(51.9)),
    (51743.0, 51332.0, 25440.0, 25275.0, Some(50.8)),
    (25440.0, 25275.0, 24866.0, 24810.0, None),
    (50650.0, 45681.0, 30560.0, 29582.0, Some(39.7)),
    (50650.0, 45681.0, 31813.0, 31242.0, Some(37.2)),
    (31813.0, 31242.0, 30560.0, 29582.0, Some(3.9)),
];

#[test]
fn the_printed_overheads_come_out_to_the_printed_decimal() {
    for (reference, _, arm, _, printed) in BROKER {
        if let Some(printed) = printed {
            let computed = (overhead(reference, arm) * 1000.0).round() / 10.0;
            assert!((computed - printed).abs() < 1e-9, "{reference} {arm}: {computed}, {printed}");
        }
    }
}

// The worst lap is not printed, but it is at most the median: the rule with the median in its
// place can only find too few rows indistinguishable, never too many.
#[test]
fn no_row_with_a_printed_overhead_is_indistinguishable_by_the_spread_rule() {
    for (reference, reference_median, arm, arm_median, printed) in BROKER {
        let spread = Spread::of(&[reference, reference_median], &[arm, arm_median]).unwrap();
        assert!(printed.is_none() || !spread.is_indistinguishable(), "{reference} {arm}");
    }
}

#[test]
fn the_spread_rule_compares_the_best_laps_with_the_wider_spread() {
    let within = Spread::of(&[100.0, 95.0], &[96.0, 95.0]).unwrap();
    assert!(within.is_indistinguishable());
    assert!((within.overhead() - 0.04).abs() < 1e-12);
    // Exactly as far apart as the spread is not less than it.
    assert!(!Spread::of(&[100.0, 95.0], &[95.0, 94.0]).unwrap().is_indistinguishable());
    assert!(Spread::of(&[], &[1.0]).is_none());
}

#[test]
fn the_marked_rows_are_those_bound_by_the_database() {
    const ROUND_TRIP: f64 = 17.4e-6;
    // The page's own model of trips a message, best rate of the raw loop, and its mark.
    let rows = [
        (5.0, 6149.0, true),
        (7.0, 5150.0, true),
        (1.0625, 29_198.0, true),
        (4.0, 3125.0, false),
        (6.0, 4611.0, false),
        (5.0, 6089.0, true),
        (5.0, 5805.0, true),
        (2.0, 26_723.0, true),
        (2.0, 29_182.0, true),
    ];
    for (trips, rate, marked) in rows {
        assert_eq!(database_bound(trips, ROUND_TRIP, 1.0, rate), marked, "{trips} {rate}");
    }
    // With the release ping, which the model leaves out, the advisory row would be bound too.
    assert!(database_bound(7.0, ROUND_TRIP, 1.0, 4611.0));
}

#[test]
fn three_saved_trips_cost_what_the_page_divides_them_to() {
    let arm = |variant: &str| ArmName { subject: "axum-sqlx".into(), variant: variant.into() };
    // Printed as single runs, so there is no spread: two equal rounds stand for each.
    let series = |micros: f64| -> Series { (0..2).map(|round| (round, micros * 1e-6)).collect() };
    for (with, without, printed) in [(166.6, 134.3, 10.8), (237.9, 208.5, 9.8)] {
        let price = ping_price::of(
            "detail",
            "postgres",
            (&arm("ping on"), &series(with), 9.0),
            (&arm("ping off"), &series(without), 6.0),
        )
        .unwrap();
        assert_eq!(price.trips_saved, 3.0);
        let micros = (price.per_trip.value * 1e7).round() / 10.0;
        assert_eq!(micros, printed);
    }
}

// "The mean latency equals 50 / rate for each application": under closed load of 50 connections.
#[test]
fn mean_latency_is_connections_over_rate() {
    for rate in [16_580.0, 14_963.0, 22_607.0, 2018.0] {
        assert!((little(50.0, rate, 50.0 / rate) - 1.0).abs() < 1e-12);
    }
    // Applications that answer in order of arrival: the printed median lies at the mean.
    for (rate, p50_ms) in [(14_963.0, 3.35), (14_578.0, 3.41), (14_696.0, 3.40), (9282.0, 5.28)] {
        assert!(fits_little(50.0, rate, p50_ms / 1e3), "{rate}");
    }
    // One that does not: its median lies far below.
    assert!(!fits_little(50.0, 16_580.0, 2.37e-3));
}
