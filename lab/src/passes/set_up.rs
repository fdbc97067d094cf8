//! Setting up the bench: every arm is started and stopped where it is, and answers are compared
//! before any load.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::bench::Bench;
use super::failure::Failure;
use super::losses::Losses;
use crate::load::gate::{Gate, GatedRoute};
use crate::load::{Driver, Requests};
use crate::run::Laboratory;

impl<'a> Bench<'a> {
    /// Starts the driver and every arm of the plan, and compares their answers. All arms are
    /// stopped where they are when it returns.
    pub(super) fn set_up(laboratory: &'a mut Laboratory) -> Result<Self, Failure> {
        let cancel = laboratory.cancel.clone();
        let cores = laboratory.pinning.load.cores();
        let driver = Driver::start_inside(laboratory.sends_from(), cores, cancel.clone())?;
        let mut bench = Self {
            laboratory,
            driver,
            cancel,
            arms: BTreeMap::new(),
            requests: BTreeMap::new(),
            warmed: BTreeSet::new(),
            losses: Losses::default(),
        };
        bench.start_arms()?;
        bench.compare_answers()?;
        bench.acquaint()?;
        Ok(bench)
    }

    fn start_arms(&mut self) -> Result<(), Failure> {
        let arms = self.laboratory.plan.arms();
        let progress = self.laboratory.ui.steps("start", arms.len() as u64);
        for arm in arms {
            self.check_cancel()?;
            progress.now(&self.arm_title(arm));
            let mut running = self.laboratory.start_subject(arm, &[])?;
            running.freeze();
            self.arms.insert(arm, running);
            progress.step();
        }
        progress.done(&format!("{} subjects are ready", self.arms.len()));
        Ok(())
    }

    fn compare_answers(&mut self) -> Result<(), Failure> {
        if self.laboratory.attached.as_ref().is_some_and(|attached| attached.foreign) {
            // Nothing is sent.
            return Ok(());
        }
        let routes = self.laboratory.plan.routes();
        let mut gated = Vec::new();
        for &route in &routes {
            let planned = &self.laboratory.routes[route];
            let mut requests = Requests::default();
            for target in &planned.targets {
                let headers = target.headers.iter().map(|(name, value)| (&**name, &**value));
                requests
                    .add(&planned.method, &target.path, headers, Some(&target.body))
                    .map_err(|error| anyhow::anyhow!("route {}: {error}", planned.name))?;
            }
            let requests = Arc::new(requests);
            let (name, answers_vary) = (planned.name.clone(), planned.answers_vary);
            gated.push(GatedRoute { name, requests, answers_vary });
        }
        if self.laboratory.attached.is_some() {
            return self.ask_once(&routes, gated);
        }
        let pages = |vary: bool| -> usize {
            let routes = gated.iter().filter(|route| route.answers_vary == vary);
            routes.map(|route| route.requests.len()).sum()
        };
        let (same, vary) = (pages(false), pages(true));
        let progress = self.laboratory.ui.steps("compare answers", self.arms.len() as u64);
        let mut gate = Gate::new(gated, self.laboratory.experiment.load.timeout);
        let arms: Vec<(usize, String)> =
            self.arms.keys().map(|&arm| (arm, self.arm_title(arm))).collect();
        for (arm, title) in arms {
            self.check_cancel()?;
            progress.now(&title);
            let Some(running) = self.arms.get_mut(&arm) else { continue };
            running.thaw();
            let admitted = gate.admit(&self.driver, &running.title, running.address);
            running.freeze();
            // A page that cannot be fetched from a program that has ended is its end, not a page.
            if admitted.is_err() {
                running.check()?;
                self.laboratory.check_services()?;
            }
            admitted?;
            progress.step();
        }
        progress.done(&compared(same, vary));
        for route in routes {
            let name = &self.laboratory.routes[route].name;
            let requests = gate.expecting(name).unwrap_or_default();
            self.requests.insert(route, Arc::new(requests));
        }
        Ok(())
    }

    /// A page of a running service may be different each time: that it answers is enough.
    fn ask_once(&mut self, routes: &[usize], gated: Vec<GatedRoute>) -> Result<(), Failure> {
        let requests: Vec<_> = gated.iter().map(|route| Arc::clone(&route.requests)).collect();
        let gate = Gate::new(gated, self.laboratory.experiment.load.timeout);
        for running in self.arms.values() {
            gate.ask(&self.driver, &running.title, running.address)?;
        }
        self.requests.extend(routes.iter().copied().zip(requests));
        Ok(())
    }
}

/// What the gate saw.
fn compared(same: usize, vary: usize) -> String {
    let equal = format!("{same} pages are byte-equal from all subjects");
    let asked = format!("{vary} requests are answered well; their answers may differ");
    match (same, vary) {
        (_, 0) => equal,
        (0, _) => asked,
        _ => format!("{equal}; {asked}"),
    }
}
