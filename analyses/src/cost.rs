//! A cost: one figure per unit, with its doubts and the capture that it came from.

use std::collections::BTreeMap;

use crate::metric::{Kind, Metric};

/// Labels of a cost, such as `reason` → `pool ping`.
pub type Labels = BTreeMap<&'static str, String>;

/// Where a cost belongs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Origin {
    /// Name of the subject.
    pub subject: String,
    /// Name of its variant.
    pub variant: String,
    /// Name of the route.
    pub route: String,
    /// Name of the pass.
    pub pass: String,
    /// Folder of the capture, relative to the run directory; `None` for the load driver's own.
    pub capture: Option<String>,
}

/// One figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Cost {
    /// Where it belongs.
    pub origin: Origin,
    /// What was counted.
    pub metric: Metric,
    /// Which part of it; empty for the total.
    pub labels: Labels,
    /// What it is divided by.
    pub per: Per,
    /// How much.
    pub amount: Amount,
    /// What kind of number it is; under load a metric can be noisier than its own kind.
    pub kind: Kind,
    /// What limits its meaning, one sentence each.
    pub doubts: Vec<String>,
}

/// What an amount is divided by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Per {
    /// One request.
    Request,
    /// The whole capture: no number of requests is known.
    Capture,
    /// Nothing: rates, times, sizes.
    Nothing,
}

/// How much, or why it is not known. A figure that couldn't be measured is never 0.
#[derive(Clone, Debug, PartialEq)]
pub enum Amount {
    /// Measured.
    Measured(Figure),
    /// At least this much; the reason says what is missing.
    LowerBound(Figure, String),
    /// Not measured, and why.
    NotMeasured(String),
}

/// A value with its 95 % interval, in the metric's unit. For exact counts of single requests the
/// interval is the smallest and the largest request's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figure {
    /// The value.
    pub value: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// How many samples it rests on: requests, laps, or profile samples.
    pub samples: u64,
}

impl Figure {
    /// A count without spread.
    #[must_use]
    pub fn exact(value: f64, samples: u64) -> Self {
        Self { value, low: value, high: value, samples }
    }
}

impl Amount {
    /// The figure, if there is one.
    #[must_use]
    pub fn figure(&self) -> Option<Figure> {
        match self {
            Self::Measured(figure) | Self::LowerBound(figure, _) => Some(*figure),
            Self::NotMeasured(_) => None,
        }
    }
}

impl Origin {
    /// A cost of this origin, of the metric's own kind and without labels or doubts.
    #[must_use]
    pub fn cost(&self, metric: Metric, per: Per, amount: Amount) -> Cost {
        Cost {
            origin: self.clone(),
            metric,
            labels: Labels::new(),
            per,
            amount,
            kind: metric.kind(),
            doubts: Vec::new(),
        }
    }
}

impl Cost {
    /// The same cost with one more label.
    #[must_use]
    pub fn with(mut self, label: &'static str, value: impl Into<String>) -> Self {
        self.labels.insert(label, value.into());
        self
    }

    /// The same cost as another kind of number.
    #[must_use]
    pub fn of_kind(mut self, kind: Kind) -> Self {
        self.kind = kind;
        self
    }

    /// The same cost with one more doubt.
    #[must_use]
    pub fn doubted(mut self, doubt: impl Into<String>) -> Self {
        self.doubts.push(doubt.into());
        self
    }
}
