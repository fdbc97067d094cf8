//! Getting acquainted with a service that already runs, before anything of it is measured: whom it
//! has connections to while it works, and what is spoken there.
//!
//! A pool may have opened nothing yet, and a client may connect anew for each request; so it is
//! looked at again and again while requests run, and the first bytes on the wire decide what a
//! port means.

use std::path::Path;
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
use crate::observe::{Attachment, Spoken, Vantage};
use crate::probe::{ProbeError, ProbeSession, ProbeTarget};

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
        match self.listen(&mut attachment)? {
            Ok(spoken) => attachment.believe(&spoken),
            Err(reason) => self.laboratory.run.record.notes.push(format!(
                "what is spoken on its connections was told by processes and ports, not by the \
                 bytes: {reason}"
            )),
        }
        attachment.settle();
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
            self.work(Cell { arm: 0, route }, load, Stop::After(share))?;
        }
        Ok(())
    }

    /// What is spoken to its servers and to itself; an error says why it cannot be told.
    fn listen(&mut self, attached: &mut Attachment) -> Result<Result<Spoken, String>, Failure> {
        let out = self.laboratory.scratch.join("acquaint");
        let session = match self.listener(attached, &out)? {
            Ok(session) => session,
            Err(error) => return Ok(Err(error.to_string())),
        };
        self.work_it(STRETCH * self.looks())?;
        if let Err(error) = session.stop() {
            return Ok(Err(error.to_string()));
        }
        let mut recognition = Recognition::new(&ports(attached));
        let read = capture::packets_of(&out, &mut recognition).and(capture::manifest(&out));
        match read {
            Ok(manifest) => attached.believe_sockets(&manifest.targets),
            Err(error) => return Ok(Err(error.to_string())),
        }
        let heard = recognition.finish().into_iter();
        Ok(Ok(heard.map(|(server, spoken)| (server.port, spoken)).collect()))
    }

    /// The wire probe, with as much before its eyes as it can be given: all interfaces and Unix
    /// sockets, or less, and why less.
    fn listener(
        &mut self,
        attached: &mut Attachment,
        out: &Path,
    ) -> Result<Result<ProbeSession, ProbeError>, Failure> {
        let mut targets = vec![self.subject_target(0)?];
        let poolers = attached.found.of(Role::Pooler).map(|pooler| ProbeTarget {
            role: Role::Pooler,
            pids: pooler.server.iter().map(|server| server.root).collect(),
            port: pooler.place.port(),
            path: None,
        });
        targets.extend(poolers);
        let known: Vec<u16> = targets.iter().map(|target| target.port.0).collect();
        let others = ports(attached).into_iter().filter(|port| !known.contains(port));
        // The role is not known yet; the probe records the port whatever it says.
        let target = |port: u16| ProbeTarget {
            role: Role::Load,
            pids: Vec::new(),
            port: Port(port),
            path: None,
        };
        targets.extend(others.map(target));
        let all = attached.found.services.iter();
        let all = attached.vantage.wanted(&attached.found, attached.foreign, all);
        let loopback = Vantage::loopback();
        let tries = [(&all, true), (&all, false), (&loopback, true), (&loopback, false)];
        let (mut blind, mut refused, mut last) = (None, None, None);
        for (interfaces, sockets) in tries {
            let vantage = &mut attached.vantage;
            vantage.interfaces.clone_from(interfaces);
            (vantage.blind, vantage.refused) = (blind.clone(), refused.clone());
            let mut options = vantage.options();
            if sockets {
                options.extend(["--sockets", "unix"].map(str::to_owned));
            }
            let program = self.laboratory.probes.program("wire");
            let cores = &self.laboratory.pinning.load;
            // What a probe that could not start has left is not looked at.
            let _none = std::fs::remove_dir_all(out);
            match ProbeSession::start("wire", &program, out, &targets, &options, true, cores) {
                Ok(session) => return Ok(Ok(session)),
                Err(error) if sockets => blind = Some(error.reason),
                Err(error) => {
                    (blind, refused) = (None, Some(error.reason.clone()));
                    last = Some(error);
                }
            }
        }
        // It cannot record at all: then nothing is said of one interface and not of another.
        attached.vantage.interfaces = all;
        (attached.vantage.blind, attached.vantage.refused) = (None, None);
        let at_start = true;
        let nothing = || ProbeError { probe: "wire".into(), reason: "not tried".into(), at_start };
        Ok(Err(last.unwrap_or_else(nothing)))
    }
}

/// The ports of everything that it talks to, and its own, ascending.
fn ports(attached: &Attachment) -> Vec<u16> {
    let servers = attached.found.services.iter().map(|service| service.place.port().0);
    let mut ports: Vec<u16> = servers.chain([attached.port.0]).collect();
    ports.sort_unstable();
    ports.dedup();
    ports
}
