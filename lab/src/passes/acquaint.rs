//! Getting acquainted with a service that already runs, before anything of it is measured: whom it
//! has connections to while it works, and what is spoken there.
//!
//! A pool may have opened nothing yet, and a client may connect anew for each request; so it is
//! looked at again and again while requests run, and the first bytes on the wire decide what a
//! port means.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use assay_analyses::costs::wire::Recognition;
use assay_captures::capture;
use assay_captures::ids::{Port, Role};
use assay_captures::lap::Load;

use super::bench::Bench;
use super::failure::Failure;
use crate::experiment::plan::Cell;
use crate::load::Stop;
use crate::observe::{FoundService, Spoken};
use crate::probe::{ProbeSession, ProbeTarget};

/// Load, or watching, for one look.
const STRETCH: Duration = Duration::from_millis(150);
/// Looks for connections.
const LOOKS: u32 = 3;
/// Looks where others send: they may send little.
const FOREIGN_LOOKS: u32 = 8;

impl Bench<'_> {
    /// Completes what the service was found to talk to, and tells the run record.
    pub(super) fn acquaint(&mut self) -> Result<(), Failure> {
        let Some(mut attachment) = self.laboratory.attached.clone() else { return Ok(()) };
        let progress = self.laboratory.ui.work("look at connections");
        let worked = AtomicBool::new(false);
        // While requests run: some clients connect for each of them.
        std::thread::scope(|scope| {
            let watching = scope.spawn(|| attachment.look_until(&worked));
            let done = self.work_it(STRETCH * self.looks());
            worked.store(true, Ordering::Relaxed);
            let _panicked = watching.join();
            done
        })?;
        match self.listen(&attachment.found.services)? {
            Ok(spoken) => attachment.believe(&spoken),
            Err(reason) => self.laboratory.run.record.notes.push(format!(
                "what is spoken on its connections was told by processes and ports, not by the \
                 bytes: {reason}"
            )),
        }
        progress.done(&crate::observe::in_words(&attachment.found));
        let services = attachment.services();
        let records = services.iter().map(crate::services::RunningService::record);
        self.laboratory.run.record.services = records.collect();
        self.laboratory.run.record.notes.extend(attachment.notes());
        let lost = crate::observe::lost(&self.laboratory.probes);
        self.laboratory.run.record.notes.extend(lost);
        self.laboratory.services.found = services;
        self.laboratory.attached = Some(attachment);
        self.laboratory.run.save()?;
        Ok(())
    }

    fn looks(&self) -> u32 {
        if self.requests.is_empty() { FOREIGN_LOOKS } else { LOOKS }
    }

    /// Has the service work for a while: by our requests, or by those of others.
    fn work_it(&mut self, length: Duration) -> Result<(), Failure> {
        self.check_cancel()?;
        let routes: Vec<usize> = self.requests.keys().copied().collect();
        if routes.is_empty() {
            std::thread::sleep(length);
        }
        let connections = self.laboratory.experiment.load.connections;
        for &route in &routes {
            let share = length / u32::try_from(routes.len()).unwrap_or(1);
            let load = Load::Closed { connections };
            self.drive(Cell { arm: 0, route }, load, Stop::After(share))?;
        }
        Ok(())
    }

    /// What is spoken to each of these servers; an error says why it cannot be told.
    fn listen(&mut self, services: &[FoundService]) -> Result<Result<Spoken, String>, Failure> {
        let mut ports: Vec<u16> = services.iter().map(|service| service.address.port()).collect();
        ports.sort_unstable();
        ports.dedup();
        if ports.is_empty() {
            return Ok(Ok(Spoken::new()));
        }
        // The role is not known yet; the probe records the port whatever it says.
        let target =
            |&port: &u16| ProbeTarget { role: Role::Load, pids: Vec::new(), port: Port(port) };
        let targets: Vec<ProbeTarget> = ports.iter().map(target).collect();
        let out = self.laboratory.scratch.join("acquaint");
        let program = self.laboratory.probes.program("wire");
        let cores = &self.laboratory.pinning.load;
        let started = ProbeSession::start("wire", &program, &out, &targets, &[], true, cores);
        let session = match started {
            Ok(session) => session,
            Err(error) => return Ok(Err(error.to_string())),
        };
        self.work_it(STRETCH * self.looks())?;
        if let Err(error) = session.stop() {
            return Ok(Err(error.to_string()));
        }
        let mut recognition = Recognition::new(&ports);
        if let Err(error) = capture::packets_of(&out, &mut recognition) {
            return Ok(Err(error.to_string()));
        }
        let heard = recognition.finish().into_iter();
        Ok(Ok(heard.map(|(server, spoken)| (server.port, spoken)).collect()))
    }
}
