//! The test bench: every arm started once and stopped where it is, except the one under load.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use assay_captures::ids::Role;
use assay_captures::lap::{Lap, Load, ProbeState};
use assay_captures::request_log::Slot;
use assay_captures::run_dir;

use super::collector::{self, Trace};
use super::failure::{Failure, unwritten};
use super::log::LapLog;
use super::losses::Losses;
use crate::experiment::plan::{Cell, PlannedPass};
use crate::load::errors::LoadError;
use crate::load::{Cancel, Driver, Ending, LapFigures, LapOrder, Requests, Stillness, Stop};
use crate::probe::{ProbeError, ProbeSession, ProbeTarget};
use crate::run::Laboratory;
use crate::subject::RunningSubject;
use crate::ui::Progress;

/// Load after an arm was let go on again and before its next lap: caches and clocks settle.
const RESUME: Duration = Duration::from_millis(100);
/// Lines of a dead subject's output that are shown.
const LAST_LINES: usize = 8;

/// Everything that passes drive.
pub(super) struct Bench<'a> {
    /// The experiment and what runs beside the subjects.
    pub laboratory: &'a mut Laboratory,
    pub(super) driver: Driver,
    pub(super) cancel: Cancel,
    pub(super) arms: BTreeMap<usize, RunningSubject>,
    pub(super) requests: BTreeMap<usize, Arc<Requests>>,
    pub(super) warmed: BTreeSet<(usize, usize)>,
    pub(super) losses: Losses,
}

/// One lap to be driven and recorded.
pub(super) struct LapPlan {
    /// The arm and the route.
    pub cell: Cell,
    /// 0-based.
    pub round: u32,
    /// Whether the pass's probe records.
    pub probe: ProbeState,
    /// How requests are sent.
    pub load: Load,
    /// When sending ends.
    pub stop: Stop,
    /// Probe name → folder of the captures that cover it.
    pub captures: BTreeMap<String, String>,
    /// Whether the statements that Postgres counted are read before and after.
    pub statements: bool,
}

/// A lap that was driven.
pub(super) struct Driven {
    /// As it was recorded.
    pub lap: Lap,
    /// The slots of a serial lap.
    pub slots: Vec<Slot>,
    /// The probes that did not read their counters, by their place among those that should.
    pub failed: Vec<(usize, ProbeError)>,
}

/// What became of a load: its figures, and why they do not count.
type Outcome = (LapFigures, Option<Failure>);

impl<'a> Bench<'a> {
    /// Puts `running` in the place of an arm, and gives back what was there, without connections.
    pub(super) fn exchange_arm(
        &mut self,
        arm: usize,
        running: RunningSubject,
    ) -> Result<Option<RunningSubject>, Failure> {
        self.warmed.retain(|&(warm, _)| warm != arm);
        let before = self.arms.insert(arm, running);
        if let Some(before) = &before {
            self.driver.close(before.address)?;
        }
        Ok(before)
    }

    /// Ends an arm and starts it anew. Its connections are gone before the new one opens its own.
    pub(super) fn restart(&mut self, arm: usize) -> Result<(), Failure> {
        self.warmed.retain(|&(warm, _)| warm != arm);
        if let Some(before) = self.arms.remove(&arm) {
            self.driver.close(before.address)?;
            before.stop();
        }
        let mut running = self.laboratory.start_subject(arm, &[])?;
        running.freeze();
        self.arms.insert(arm, running);
        Ok(())
    }

    /// Lets the cell's arm go on, warms it up, does `work`, and stops it where it is again.
    pub(super) fn with_arm<T>(
        &mut self,
        cell: Cell,
        pass: &PlannedPass,
        work: impl FnOnce(&mut Self) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        self.check_cancel()?;
        if let Some(arm) = self.arms.get_mut(&cell.arm) {
            arm.thaw();
        }
        let done = match self.warm_up(cell, pass) {
            Ok(()) => work(self),
            Err(failure) => Err(failure),
        };
        if let Some(arm) = self.arms.get_mut(&cell.arm) {
            arm.freeze();
        }
        match done {
            Err(Failure::Lost(error)) => Err(self.recover(cell.arm, error)),
            done => done,
        }
    }

    /// Load that is not recorded: as long as the plan says for a cell that has had none, so that
    /// statements are prepared on every connection, and short for one that was only stopped.
    fn warm_up(&mut self, cell: Cell, pass: &PlannedPass) -> Result<(), Failure> {
        let first = self.warmed.insert((cell.arm, cell.route));
        let length = if first { pass.warm_up.max(RESUME) } else { RESUME };
        let load = Load::Closed { connections: pass.connections };
        self.work(cell, load, Stop::After(length)).map(drop)
    }

    /// Load of which nothing is kept but its figures; one that does not count is an error.
    pub(super) fn work(
        &mut self,
        cell: Cell,
        load: Load,
        stop: Stop,
    ) -> Result<LapFigures, Failure> {
        match self.drive(cell, load, stop)? {
            (figures, None) => Ok(figures),
            (_, Some(failure)) => Err(failure),
        }
    }

    /// Drives one lap, with `probes` reading their counters right before and after, and appends
    /// it to `log`; one that does not count as well, with the reason. A probe that has failed
    /// takes nothing from the lap itself.
    pub(super) fn lap(
        &mut self,
        mut plan: LapPlan,
        probes: &mut [&mut ProbeSession],
        log: &mut LapLog,
    ) -> Result<Driven, Failure> {
        self.check_cancel()?;
        let address = self.arm(plan.cell.arm)?.address;
        let connections = match plan.load {
            Load::Closed { connections } | Load::FixedRate { connections, .. } => connections,
            Load::Serial { .. } => 1,
            Load::Foreign => 0,
        };
        let connected = self.driver.connect(address, connections);
        self.explain_load(plan.cell, connected)?;
        let before = self.statements(&plan)?;
        let trace = self.begin_trace(&plan)?;
        let mut failed = Vec::new();
        mark(probes, &mut failed);
        let driven = self.drive(plan.cell, plan.load, plan.stop);
        // Also after a failure: the counters up to it are evidence.
        mark(probes, &mut failed);
        let (figures, failure) = driven?;
        let after = if failure.is_none() { self.statements(&plan)? } else { None };
        if let Some(trace) = trace {
            let folder = self.cell_folder(log.pass(), plan.cell, "gctrace");
            let path = self.laboratory.run.path().join(&folder);
            trace.end(&path, log.next_order()).map_err(|error| unwritten(&path, &error))?;
            plan.captures.insert("gctrace".to_owned(), folder);
        }
        let calls = before.zip(after).map(|(before, after)| after.saturating_sub(before));
        let spoiled = failure.as_ref().map(Failure::line).or_else(|| clock_was_set(&figures));
        if let (None, Some(reason)) = (&failure, &spoiled) {
            self.losses.note(format!("{reason} ({})", self.cell_title(plan.cell)));
        }
        let (lap, slots) = self.record(plan, figures, calls, spoiled, log);
        log.append(&lap)?;
        failure.map_or(Ok(Driven { lap, slots, failed }), Err)
    }

    /// The collector's lines of a lap without a probe, where the arm prints them.
    fn begin_trace(&mut self, plan: &LapPlan) -> Result<Option<Trace>, Failure> {
        let experiment = &self.laboratory.experiment;
        let traced = collector::is_traced(experiment, &experiment.arms[plan.cell.arm]);
        if !traced || plan.probe != ProbeState::None {
            return Ok(None);
        }
        Ok(Trace::begin(self.arm(plan.cell.arm)?))
    }

    fn record(
        &self,
        plan: LapPlan,
        figures: LapFigures,
        postgres_calls: Option<u64>,
        spoiled: Option<String>,
        log: &LapLog,
    ) -> (Lap, Vec<Slot>) {
        let arm = &self.laboratory.experiment.arms[plan.cell.arm];
        let lap = Lap {
            pass: log.pass().to_owned(),
            subject: self.laboratory.experiment.subjects[arm.subject].name.clone(),
            variant: arm.variant.name.clone(),
            route: self.laboratory.routes[plan.cell.route].name.clone(),
            round: plan.round,
            order: log.next_order(),
            probe: plan.probe,
            load: plan.load,
            span: figures.span,
            sent_until: figures.sent_until,
            answered_in_time: figures.answered_in_time,
            requests: figures.requests,
            good: figures.good,
            non_2xx: figures.non_2xx,
            mismatched: figures.mismatched,
            errors: figures.errors,
            body_bytes: figures.body_bytes,
            latency: figures.latency,
            timeline: figures.timeline,
            postgres_calls,
            spoiled,
            generator: figures.generator,
            captures: plan.captures,
        };
        (lap, figures.slots)
    }

    fn drive(&mut self, cell: Cell, load: Load, stop: Stop) -> Result<Outcome, Failure> {
        let subject = self.arm(cell.arm)?;
        let (address, roots) = (subject.address, subject.roots.clone());
        let services = self.laboratory.services.running().filter_map(|service| service.pid);
        let roots = roots.into_iter().chain(services);
        let roots = roots.map(|pid| nix::unistd::Pid::from_raw(pid.0.cast_signed())).collect();
        let order = LapOrder {
            address,
            requests: self.requests.get(&cell.route).cloned().unwrap_or_default(),
            load,
            stop,
            timeout: self.laboratory.experiment.load.timeout,
            service: Stillness::of(roots),
        };
        let driven = self.driver.lap(order);
        let figures = self.explain_load(cell, driven)?;
        let failure = match &figures.ending {
            Ending::Cancelled => return Err(Failure::Cancelled),
            Ending::Gone(reason) => Some(self.explain_silence(cell, reason)),
            Ending::Whole if figures.good == 0 => {
                Some(self.explain_silence(cell, &nothing_good(&figures)))
            }
            // Also where all was answered: who died meanwhile took no part, or left it to others.
            Ending::Whole => self.check_services(cell).and_then(|()| self.check_arm(cell)).err(),
        };
        Ok((figures, failure))
    }

    fn explain_load<T>(&mut self, cell: Cell, outcome: Result<T, LoadError>) -> Result<T, Failure> {
        match outcome {
            Ok(value) => Ok(value),
            Err(error @ LoadError::Connect { .. }) => {
                Err(self.explain_silence(cell, &error.to_string()))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Why an arm answers no more: it or a service has died, or it is alive and refuses.
    fn explain_silence(&mut self, cell: Cell, how: &str) -> Failure {
        if let Err(failure) = self.check_services(cell) {
            return failure;
        }
        if let Err(failure) = self.check_arm(cell) {
            return failure;
        }
        let title = self.cell_title(cell);
        let arm = match self.arm(cell.arm) {
            Ok(arm) => arm,
            Err(failure) => return failure,
        };
        let mut text = format!("{title}: the subject runs but no longer answers: {how}");
        for line in arm.tail(LAST_LINES) {
            let _never = write!(text, "\n  {line}");
        }
        Failure::Lost(anyhow::anyhow!(text))
    }

    /// An error where the cell's subject has ended.
    fn check_arm(&mut self, cell: Cell) -> Result<(), Failure> {
        let checked = self.arm(cell.arm)?.check();
        checked.map_err(|died| Failure::Lost(anyhow::anyhow!("{died}")))
    }

    /// An error where a service that we started has died.
    fn check_services(&mut self, cell: Cell) -> Result<(), Failure> {
        let checked = self.laboratory.check_services();
        checked.map_err(|error| error.context(self.cell_title(cell)).into())
    }

    fn statements(&mut self, plan: &LapPlan) -> Result<Option<u64>, Failure> {
        if !plan.statements {
            return Ok(None);
        }
        Ok(self.laboratory.statement_calls()?)
    }

    /// An error once somebody wants to stop.
    pub(super) fn check_cancel(&self) -> Result<(), Failure> {
        if self.cancel.is_cancelled() { Err(Failure::Cancelled) } else { Ok(()) }
    }

    /// The subject and the services, as probes are told of them.
    pub(super) fn targets(&mut self, arm: usize) -> Result<Vec<ProbeTarget>, Failure> {
        let subject = self.subject_target(arm)?;
        let services = self.laboratory.services.running().map(|service| ProbeTarget {
            role: service.role,
            pids: service.pid.into_iter().collect(),
            port: service.port,
            path: service.path.clone(),
        });
        Ok(std::iter::once(subject).chain(services).collect())
    }

    /// The subject alone.
    pub(super) fn subject_target(&mut self, arm: usize) -> Result<ProbeTarget, Failure> {
        let running = self.arm(arm)?;
        let (role, pids) = (Role::Subject, running.roots.clone());
        Ok(ProbeTarget { role, pids, port: running.port, path: None })
    }

    /// Whether the arm's first process has not ended.
    pub(super) fn is_alive(&mut self, arm: usize) -> bool {
        self.arms.get_mut(&arm).is_some_and(RunningSubject::is_alive)
    }

    fn arm(&mut self, arm: usize) -> Result<&mut RunningSubject, Failure> {
        self.arms
            .get_mut(&arm)
            .ok_or_else(|| Failure::Run(anyhow::anyhow!("arm {arm} of the plan was not started")))
    }

    /// `subject.variant`, as run directories name it.
    #[must_use]
    pub(super) fn arm_title(&self, arm: usize) -> String {
        let (subject, variant) = self.arm_names(arm);
        format!("{subject}.{variant}")
    }

    /// Subject and variant.
    #[must_use]
    pub(super) fn arm_names(&self, arm: usize) -> (&str, &str) {
        let experiment = &self.laboratory.experiment;
        let found = &experiment.arms[arm];
        (&experiment.subjects[found.subject].name, &found.variant.name)
    }

    /// `subject.variant, route`.
    #[must_use]
    pub(super) fn cell_title(&self, cell: Cell) -> String {
        format!("{}, {}", self.arm_title(cell.arm), self.route_name(cell))
    }

    /// Name of the cell's route.
    #[must_use]
    pub(super) fn route_name(&self, cell: Cell) -> &str {
        &self.laboratory.routes[cell.route].name
    }

    /// Folder of a capture that covers all routes of an arm in a pass, relative to the run.
    #[must_use]
    pub(super) fn arm_folder(&self, pass: &str, arm: usize, probe: &str) -> String {
        let (subject, variant) = self.arm_names(arm);
        run_dir::arm_capture(pass, subject, variant, probe)
    }

    /// Folder of a capture of one cell in a pass, relative to the run.
    #[must_use]
    pub(super) fn cell_folder(&self, pass: &str, cell: Cell, probe: &str) -> String {
        let (subject, variant) = self.arm_names(cell.arm);
        run_dir::capture(pass, subject, variant, self.route_name(cell), probe)
    }

    /// Says what is being done right now.
    pub(super) fn now(&self, progress: &Progress, cell: Cell) {
        progress.now(&self.cell_title(cell));
    }
}

/// Has each probe read its counters that has not failed already.
fn mark(probes: &mut [&mut ProbeSession], failed: &mut Vec<(usize, ProbeError)>) {
    for (place, probe) in probes.iter_mut().enumerate() {
        if !failed.iter().any(|(known, _)| *known == place)
            && let Err(error) = probe.mark()
        {
            failed.push((place, error));
        }
    }
}

/// Why a lap does not count over which somebody has set the clock: packets and samples are found
/// by their time.
fn clock_was_set(figures: &LapFigures) -> Option<String> {
    /// More than a preemption between two readings makes of it.
    const STEP_MAX: u64 = 1_000_000;
    let step = figures.clock_step;
    (step.unsigned_abs() > STEP_MAX).then(|| {
        let way = if step > 0 { "forward" } else { "back" };
        let seconds = step.unsigned_abs() as f64 / 1e9;
        format!("the machine's clock was set {way} by {seconds:.3} s during the lap")
    })
}

fn nothing_good(figures: &LapFigures) -> String {
    let mut text = format!(
        "none of {} requests was answered well ({} other statuses, {} other bodies",
        figures.requests, figures.non_2xx, figures.mismatched
    );
    for (kind, number) in &figures.errors {
        let _never = write!(text, ", {number} {kind}");
    }
    text + ")"
}
