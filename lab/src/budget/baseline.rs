//! Baseline files: what an earlier run measured, small and in one order, to be kept in git.
//!
//! ```text
//! {
//!   "schema": 1,
//!   "experiment": "blog",
//!   "machine": {"cpu":"…","cores":"2"},
//!   "costs": [
//!     {"route":"detail","subject":"blog","variant":"page","pass":"serial",…,"amount":4.0,…},
//! ```

use std::collections::BTreeMap;

use assay_analyses::budget::{Baseline, BaselineFigure};
use assay_analyses::cost::Figure;
use assay_analyses::metric::{Kind, Metric};
use assay_captures::run_record::RunRecord;
use serde::{Deserialize, Serialize};

/// Version of the shape.
const SCHEMA: u32 = 1;

/// A baseline with where it is from.
#[derive(Clone, Debug, PartialEq)]
pub struct KeptBaseline {
    /// Name of the experiment.
    pub experiment: String,
    /// The machine that it was measured on.
    pub machine: Machine,
    /// The figures.
    pub baseline: Baseline,
}

/// What of a machine times depend on: `cpu`, `cores`.
pub type Machine = BTreeMap<String, String>;

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    schema: u32,
    experiment: String,
    machine: Machine,
    costs: Vec<Record>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Record {
    route: String,
    subject: String,
    variant: String,
    pass: String,
    metric: String,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    labels: BTreeMap<String, String>,
    unit: String,
    kind: KindWord,
    amount: f64,
    low: f64,
    high: f64,
    samples: u64,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum KindWord {
    Exact,
    Noisy,
    Sampled,
}

impl KeptBaseline {
    /// A baseline of this run.
    #[must_use]
    pub fn of(run: &RunRecord, baseline: Baseline) -> Self {
        let experiment = run.experiment.clone();
        Self { experiment, machine: machine(run), baseline }
    }

    /// Whether it was measured on the machine of this run, as far as that can be seen.
    #[must_use]
    pub fn is_of_machine(&self, run: &RunRecord) -> bool {
        self.machine == machine(run)
    }

    /// Its text: one line a figure, the same for the same figures.
    #[must_use]
    pub fn render(&self) -> String {
        let json = |value: serde_json::Result<String>| value.unwrap_or_default();
        let costs: Vec<String> = (self.baseline.figures.iter())
            .map(|figure| format!("    {}", json(serde_json::to_string(&record(figure)))))
            .collect();
        let experiment = json(serde_json::to_string(&self.experiment));
        let machine = json(serde_json::to_string(&self.machine));
        format!(
            "{{\n  \"schema\": {SCHEMA},\n  \"experiment\": {experiment},\n  \
             \"machine\": {machine},\n  \"costs\": [\n{}\n  ]\n}}\n",
            costs.join(",\n")
        )
    }

    /// Reads it back.
    pub fn parse(text: &str) -> Result<Self, String> {
        let file: File = serde_json::from_str(text).map_err(|error| error.to_string())?;
        if file.schema != SCHEMA {
            return Err(format!(
                "its schema is {}, and this assay reads {SCHEMA}; save it again",
                file.schema
            ));
        }
        let figures: Result<Vec<BaselineFigure>, String> =
            file.costs.into_iter().map(figure).collect();
        let baseline = Baseline { figures: figures? };
        Ok(Self { experiment: file.experiment, machine: file.machine, baseline })
    }
}

fn machine(run: &RunRecord) -> Machine {
    let fact = |name: &str| Some((name.to_owned(), run.machine.get(name)?.clone()));
    ["cpu", "cores"].into_iter().filter_map(fact).collect()
}

/// Nine digits: more would only make differences of files hard to read.
fn rounded(value: f64) -> f64 {
    format!("{value:.8e}").parse().unwrap_or(value)
}

fn record(figure: &BaselineFigure) -> Record {
    Record {
        route: figure.route.clone(),
        subject: figure.subject.clone(),
        variant: figure.variant.clone(),
        pass: figure.pass.clone(),
        metric: figure.metric.name().to_owned(),
        labels: figure.labels.clone(),
        unit: figure.metric.unit().to_owned(),
        kind: match figure.kind {
            Kind::Exact => KindWord::Exact,
            Kind::Noisy => KindWord::Noisy,
            Kind::Sampled => KindWord::Sampled,
        },
        amount: rounded(figure.figure.value),
        low: rounded(figure.figure.low),
        high: rounded(figure.figure.high),
        samples: figure.figure.samples,
    }
}

fn figure(record: Record) -> Result<BaselineFigure, String> {
    let metric = Metric::from_name(&record.metric)
        .filter(|metric| metric.unit() == record.unit)
        .ok_or_else(|| {
            format!("it has {} in {:?}, which this assay does not know", record.metric, record.unit)
        })?;
    Ok(BaselineFigure {
        route: record.route,
        subject: record.subject,
        variant: record.variant,
        pass: record.pass,
        metric,
        labels: record.labels,
        kind: match record.kind {
            KindWord::Exact => Kind::Exact,
            KindWord::Noisy => Kind::Noisy,
            KindWord::Sampled => Kind::Sampled,
        },
        figure: Figure {
            value: record.amount,
            low: record.low,
            high: record.high,
            samples: record.samples,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept() -> KeptBaseline {
        let figure = BaselineFigure {
            route: "detail".into(),
            subject: "blog".into(),
            variant: "page".into(),
            pass: "fair".into(),
            metric: Metric::CpuTime,
            labels: [("process".to_owned(), "subject".to_owned())].into(),
            kind: Kind::Noisy,
            figure: Figure { value: 0.000_271, low: 0.000_25, high: 0.000_3, samples: 4 },
        };
        KeptBaseline {
            experiment: "blog".into(),
            machine: [("cores".to_owned(), "2".to_owned())].into(),
            baseline: Baseline { figures: vec![figure] },
        }
    }

    #[test]
    fn a_baseline_is_read_back_as_it_was_written() {
        let text = kept().render();
        assert_eq!(KeptBaseline::parse(&text), Ok(kept()));
        let expected = r#"{
  "schema": 1,
  "experiment": "blog",
  "machine": {"cores":"2"},
  "costs": [
    {"route":"detail","subject":"blog","variant":"page","pass":"fair","metric":"cpu.time","labels":{"process":"subject"},"unit":"s","kind":"noisy","amount":0.000271,"low":0.00025,"high":0.0003,"samples":4}
  ]
}
"#;
        assert_eq!(text, expected);
    }

    #[test]
    fn another_version_and_another_metric_are_refused() {
        let text = kept().render();
        assert_eq!(
            KeptBaseline::parse(&text.replace("\"schema\": 1", "\"schema\": 2")),
            Err("its schema is 2, and this assay reads 1; save it again".into())
        );
        assert_eq!(
            KeptBaseline::parse(&text.replace("cpu.time", "cpu.tide")),
            Err("it has cpu.tide in \"s\", which this assay does not know".into())
        );
    }

    #[test]
    fn digits_beyond_the_ninth_are_left_out() {
        assert_eq!(rounded(9.008_333_333_333_334), 9.008_333_33);
        assert_eq!(rounded(0.0), 0.0);
    }
}
