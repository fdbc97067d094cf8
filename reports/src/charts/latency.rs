//! The latency distribution of fair laps.

use assay_captures::lap::Latency;

use super::{Chart, CurveLine, Curves, Drawing, Numbers};
use crate::cost_table::Finder;
use crate::numbers::Scale;

/// The quantiles that are drawn: each further step is a tenth of the answers that are left.
const QUANTILES: [(f64, &str); 6] =
    [(0.5, "50 %"), (0.75, "75 %"), (0.9, "90 %"), (0.99, "99 %"), (0.999, "99.9 %"), (1.0, "max")];

/// Latency by the share of answers that came within it, all laps together.
pub(super) fn percentiles(finder: &Finder<'_>) -> Option<Chart> {
    let mut lines = Vec::new();
    let mut rows: Vec<(String, Vec<Option<f64>>)> = Vec::new();
    let mut fewest = u64::MAX;
    for arm in &finder.arms {
        let of_arm = finder.fair_laps(arm).map(|lap| &lap.latency);
        let Some(latency) = Latency::together(of_arm) else { continue };
        fewest = fewest.min(latency.count());
        let at = |share: f64| latency.quantile(share).map(|time| time.seconds() * 1e3);
        let points = (0..=120).filter_map(|step| {
            let place = f64::from(step) / 120.0;
            Some((place, at(share(place))?))
        });
        lines.push(CurveLine { name: arm.title.clone(), points: points.collect() });
        rows.push((arm.title.clone(), QUANTILES.iter().map(|(q, _)| at(*q)).collect()));
    }
    if lines.is_empty() {
        return None;
    }
    let mut head = vec!["variant".to_owned()];
    head.extend(QUANTILES.iter().map(|(_, name)| format!("{name}, ms")));
    let amounts: Vec<(f64, f64)> =
        rows.iter().flat_map(|(_, values)| values).flatten().map(|v| (v * 1e-3, 0.0)).collect();
    let scale = Scale { unit: "ms", factor: 1.0, ..Scale::of("s", "", &amounts) };
    let cell = |value: &Option<f64>| value.map_or("–".to_owned(), |v| scale.show(v));
    let rows = rows
        .iter()
        .map(|(name, values)| {
            std::iter::once(name.clone()).chain(values.iter().map(cell)).collect()
        })
        .collect();
    let x_ticks = QUANTILES.iter().map(|(q, name)| (place(*q), (*name).to_owned())).collect();
    Some(Chart {
        title: "Latency by share of answers, ms".into(),
        says: format!(
            "So many answers came within this time, in all fair laps together (at least {fewest} \
             answers a line). Under a closed load latency restates throughput."
        ),
        drawing: Drawing::Curves(Curves {
            x_title: "share of answers".into(),
            x_ticks,
            y_title: "ms".into(),
            y_logarithmic: true,
            lines,
        }),
        numbers: Numbers { head, rows },
    })
}

/// Four decades of what is left: 0 at none, 1 at all but a ten-thousandth.
fn share(place: f64) -> f64 {
    if place >= 1.0 { 1.0 } else { 1.0 - 10f64.powf(-4.0 * place) }
}

fn place(share: f64) -> f64 {
    if share >= 1.0 { 1.0 } else { -(1.0 - share).log10() / 4.0 }
}
