//! Totals for services that follow a project's speed over time.

use assay_analyses::cost::{Amount, Cost};
use assay_analyses::metric::Better;
use serde_json::{Map, Value, json};

/// Bencher's metric format: benchmark → measure → value with its interval.
/// <https://bencher.dev/docs/reference/bencher-metric-format/>
#[must_use]
pub fn bencher(costs: &[&Cost]) -> String {
    let mut file = Map::new();
    for (cost, figure) in measured(costs) {
        let of = file.entry(benchmark(cost)).or_insert_with(|| json!({}));
        of[measure(cost)] = json!({
            "value": figure.value, "lower_value": figure.low, "upper_value": figure.high,
        });
    }
    format!("{}\n", Value::Object(file))
}

/// What github-action-benchmark reads as `customSmallerIsBetter`: so only metrics of which less is
/// better. <https://github.com/benchmark-action/github-action-benchmark>
#[must_use]
pub fn github_action_benchmark(costs: &[&Cost]) -> String {
    let less = measured(costs).filter(|(cost, _)| cost.metric.better() == Better::Smaller);
    let list: Vec<Value> = less
        .map(|(cost, figure)| {
            json!({
                "name": format!("{}: {}", benchmark(cost), measure(cost)),
                "unit": cost.metric.unit(),
                "value": figure.value,
                "range": format!("{} to {}", figure.low, figure.high),
            })
        })
        .collect();
    format!("{}\n", Value::Array(list))
}

/// Whole figures: a lower bound would look like a gain.
fn measured<'a>(
    costs: &'a [&Cost],
) -> impl Iterator<Item = (&'a Cost, assay_analyses::cost::Figure)> {
    costs.iter().filter_map(|cost| match &cost.amount {
        Amount::Measured(figure) => Some((*cost, *figure)),
        Amount::LowerBound(..) | Amount::NotMeasured(_) => None,
    })
}

fn benchmark(cost: &Cost) -> String {
    let origin = &cost.origin;
    format!("{}.{}/{}", origin.subject, origin.variant, origin.route)
}

/// The metric, the pass where it could be another's, and its labels.
fn measure(cost: &Cost) -> String {
    let mut name = cost.metric.name().to_owned();
    for (label, value) in &cost.labels {
        name.push_str(&format!(" {label}={value}"));
    }
    name
}
