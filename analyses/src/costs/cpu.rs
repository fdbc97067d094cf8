//! CPU time by phase: what each request costs by accounting, told apart by shares of samples.

use std::collections::{BTreeMap, HashMap};

use assay_captures::ids::{Pid, Role};
use assay_captures::manifest::Target;
use assay_captures::parsed::{Problem, Sink};
use assay_captures::perf_script::Sample;
use assay_captures::units::{Moment, Nanos};

use crate::cost::{Amount, Cost, Figure, Origin, Per};
use crate::flame::{Flame, Tree};
use crate::metric::Metric;
use crate::phases::{KERNEL, OTHER, Rules, has_user_code, reaches_root};
use crate::window::Window;

/// Fewer samples than this say nothing about a phase's share.
pub const SAMPLES_MIN: u64 = 30;

/// Stacks of user code that reach the root of their thread, as a share. Where frame pointers are
/// kept about six in ten do (the C library has none); where they are not, none do.
const ROOTED_MIN: f64 = 0.25;

/// 0.975 quantile of the normal distribution.
const Z: f64 = 1.959_964;

/// Folds the samples of one capture over the laps that it covers.
#[derive(Debug)]
pub struct CpuFold<'a> {
    rules: &'a Rules,
    windows: Vec<Window>,
    roles: HashMap<Pid, Role>,
    shares: BTreeMap<Role, Shares>,
    outside: u64,
    problems: u64,
}

/// The samples of one role.
#[derive(Clone, Debug, Default)]
struct Shares {
    all: u64,
    period: u64,
    exclusive: BTreeMap<String, u64>,
    inclusive: BTreeMap<String, u64>,
    with_user_code: u64,
    rooted: u64,
    flame: Flame,
}

/// What came of a capture.
#[derive(Clone, Debug, Default)]
pub struct Profile {
    shares: BTreeMap<Role, Shares>,
    /// Samples outside of all laps.
    pub outside: u64,
    /// Lines that were not understood.
    pub problems: u64,
}

impl<'a> CpuFold<'a> {
    /// A fold over these laps. `targets` are the manifest's, with every process of each role.
    #[must_use]
    pub fn new(windows: &[Window], targets: &[Target], rules: &'a Rules) -> Self {
        let roles = targets
            .iter()
            .flat_map(|target| target.pids.iter().map(|&pid| (pid, target.role)))
            .collect();
        Self {
            rules,
            windows: windows.to_vec(),
            roles,
            shares: BTreeMap::new(),
            outside: 0,
            problems: 0,
        }
    }

    /// Counts a sample, if it falls into a lap and is of a process that was watched.
    pub fn take(&mut self, sample: &Sample<'_>) {
        let role = sample.pid.and_then(|pid| self.roles.get(&pid).copied());
        let (Some(role), Some(time)) = (role, sample.time) else { return };
        let moment = Moment(time.0);
        if !self.windows.iter().any(|window| window.span.contains(moment)) {
            self.outside += 1;
            return;
        }
        let shares = self.shares.entry(role).or_default();
        shares.all += 1;
        shares.period += sample.period.unwrap_or(0);
        let phase = self.rules.exclusive(&sample.frames);
        *shares.exclusive.entry(phase.to_owned()).or_default() += 1;
        for phase in self.rules.inclusive(&sample.frames) {
            *shares.inclusive.entry(phase.to_owned()).or_default() += 1;
        }
        shares.flame.add(sample.frames.iter().rev().map(|frame| frame.symbol));
        if has_user_code(&sample.frames) {
            shares.with_user_code += 1;
            shares.rooted += u64::from(reaches_root(&sample.frames));
        }
    }

    /// What the samples say.
    #[must_use]
    pub fn finish(self) -> Profile {
        Profile { shares: self.shares, outside: self.outside, problems: self.problems }
    }
}

impl Sink<Sample<'_>> for CpuFold<'_> {
    fn record(&mut self, sample: Sample<'_>) {
        self.take(&sample);
    }

    fn problem(&mut self, _: Problem) {
        self.problems += 1;
    }
}

/// Several folds over one capture, which is read once.
#[derive(Debug)]
pub struct CpuFolds<'a>(pub Vec<CpuFold<'a>>);

impl Sink<Sample<'_>> for CpuFolds<'_> {
    fn record(&mut self, sample: Sample<'_>) {
        self.0.iter_mut().for_each(|fold| fold.take(&sample));
    }

    fn problem(&mut self, _: Problem) {
        self.0.iter_mut().for_each(|fold| fold.problems += 1);
    }
}

impl Profile {
    /// CPU time that the samples of a role stand for: samples × period.
    #[must_use]
    pub fn sampled(&self, role: Role) -> Nanos {
        Nanos(self.shares.get(&role).map_or(0, |shares| shares.period))
    }

    /// Samples of a role.
    #[must_use]
    pub fn samples(&self, role: Role) -> u64 {
        self.shares.get(&role).map_or(0, |shares| shares.all)
    }

    /// The calls of a role with at least this share of its samples.
    #[must_use]
    pub fn tree(&self, role: Role, least: f64) -> Option<Tree> {
        self.shares.get(&role).map(|shares| shares.flame.tree(least))
    }

    /// Seconds per request by process, phase and view: the CPU time of fair laps (`per_request`)
    /// × the phase's share of samples. The interval joins both uncertainties.
    ///
    /// Exclusive phases sum to the total: one with fewer than thirty samples is not shown by
    /// itself and counts in `other`. Where stacks are broken, phases of user code are refused.
    #[must_use]
    pub fn costs(&self, origin: &Origin, per_request: &BTreeMap<Role, Figure>) -> Vec<Cost> {
        let mut costs = Vec::new();
        for (&role, shares) in &self.shares {
            // The driver's own time is no cost of the service.
            let Some(total) = per_request.get(&role).filter(|_| role != Role::Load) else {
                continue;
            };
            costs.extend(shares.costs(origin, role, total));
        }
        costs
    }
}

impl Shares {
    fn costs(&self, origin: &Origin, role: Role, total: &Figure) -> Vec<Cost> {
        let phase = |name: &str, view: &str, amount| {
            origin
                .cost(Metric::CpuPhase, Per::Request, amount)
                .with("process", role.word())
                .with("phase", name)
                .with("view", view)
        };
        let broken = self.broken();
        let mut costs = Vec::new();
        let mut other = 0;
        for (name, &samples) in &self.exclusive {
            let refused = broken.as_ref().filter(|_| !name.starts_with(KERNEL));
            if name == OTHER || refused.is_some() || samples < SAMPLES_MIN {
                other += samples;
                let reason = match refused {
                    Some(reason) => reason.clone(),
                    None => format!("too few samples ({samples}); counted in other"),
                };
                if name != OTHER {
                    costs.push(phase(name, "exclusive", Amount::NotMeasured(reason)));
                }
                continue;
            }
            let amount = Amount::Measured(self.figure(samples, total));
            costs.push(phase(name, "exclusive", amount));
        }
        let amount = Amount::Measured(self.figure(other, total));
        let rest = phase(OTHER, "exclusive", amount);
        costs.push(match &broken {
            Some(reason) => rest.doubted(format!("all user code: {reason}")),
            None => rest,
        });
        if broken.is_none() {
            let shown = self.inclusive.iter().filter(|(_, samples)| **samples >= SAMPLES_MIN);
            costs.extend(shown.map(|(name, &samples)| {
                let amount = Amount::Measured(self.figure(samples, total));
                phase(name, "inclusive", amount).doubted("inclusive phases overlap")
            }));
        }
        costs
    }

    /// Why phases of user code cannot be told; `None` when stacks are whole.
    fn broken(&self) -> Option<String> {
        if self.with_user_code < SAMPLES_MIN {
            return None;
        }
        let rooted = self.rooted as f64 / self.with_user_code as f64;
        (rooted < ROOTED_MIN).then(|| {
            format!(
                "stacks are broken ({:.0} % reach the root of their thread): build with frame \
                 pointers (Rust: -C force-frame-pointers=yes; C: -fno-omit-frame-pointer)",
                rooted * 100.0
            )
        })
    }

    fn figure(&self, samples: u64, total: &Figure) -> Figure {
        let (share, low, high) = wilson(samples, self.all);
        let value = total.value * share;
        // Independent relative errors add in squares; the share's interval is not symmetric.
        let relative = |end: f64| if total.value == 0.0 { 0.0 } else { end / total.value - 1.0 };
        let join = |share_end: f64, total_end: f64| {
            let by_share = (share_end - share) * total.value;
            let by_total = relative(total_end) * value;
            by_share.hypot(by_total)
        };
        Figure {
            value,
            low: (value - join(low, total.low)).max(0.0),
            high: value + join(high, total.high),
            samples,
        }
    }
}

/// A share with its 95 % interval (Wilson 1927): holds also near 0 and 1.
fn wilson(samples: u64, all: u64) -> (f64, f64, f64) {
    if all == 0 {
        return (0.0, 0.0, 0.0);
    }
    let (n, share) = (all as f64, samples as f64 / all as f64);
    let centre = (share + Z * Z / (2.0 * n)) / (1.0 + Z * Z / n);
    let half = Z / (1.0 + Z * Z / n) * (share * (1.0 - share) / n + Z * Z / (4.0 * n * n)).sqrt();
    (share, centre - half, centre + half)
}

#[cfg(test)]
mod tests;
