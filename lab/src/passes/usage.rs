//! The usage probes of a pass: one for each arm, for as long as the pass takes.

use std::collections::BTreeMap;

use super::attached::{Attached, Attachment, Troubles};
use super::bench::Bench;
use super::failure::Failure;

/// By arm; `None` where it could not be started or has failed.
#[derive(Default)]
pub(super) struct UsageProbes {
    by_arm: BTreeMap<usize, Option<Attached>>,
    /// How often the probe of an arm was closed because its processes are others now.
    closed: BTreeMap<usize, u32>,
}

impl UsageProbes {
    /// The probe of an arm, started when it is first asked for.
    pub(super) fn of(
        &mut self,
        bench: &mut Bench<'_>,
        pass: &str,
        arm: usize,
        troubles: &mut Troubles,
    ) -> Result<Option<&mut Attached>, Failure> {
        if let std::collections::btree_map::Entry::Vacant(vacant) = self.by_arm.entry(arm) {
            let name = match self.closed.get(&arm) {
                None => "usage".to_owned(),
                Some(times) => format!("usage-{times}"),
            };
            let attachment = Attachment {
                probe: "usage",
                folder: bench.arm_folder(pass, arm, &name),
                targets: bench.targets(arm)?,
                options: Vec::new(),
                recording: true,
            };
            let started = Attached::start(bench.laboratory, attachment);
            let title = bench.arm_title(arm);
            vacant.insert(troubles.note(&title, started.map_err(Failure::Probe))?);
        }
        Ok(self.by_arm.get_mut(&arm).and_then(Option::as_mut))
    }

    /// Has the probe of an arm close its capture, since the arm is about to be started anew; the
    /// next one that is asked for writes another.
    pub(super) fn close(&mut self, bench: &Bench<'_>, arm: usize, troubles: &mut Troubles) {
        let Some(Some(attached)) = self.by_arm.remove(&arm) else { return };
        *self.closed.entry(arm).or_default() += 1;
        if let Err(error) = attached.session.stop() {
            troubles.add(&bench.arm_title(arm), &error);
        }
    }

    /// The probe of an arm, where it has one that works.
    pub(super) fn running(&mut self, arm: usize) -> Option<&mut Attached> {
        self.by_arm.get_mut(&arm).and_then(Option::as_mut)
    }

    /// Gives up the probe of an arm after it, or its subject, failed.
    pub(super) fn give_up(&mut self, arm: usize) {
        self.by_arm.insert(arm, None);
    }

    /// Has all of them close their captures.
    pub(super) fn stop(self, bench: &Bench<'_>, troubles: &mut Troubles) {
        for (arm, attached) in self.by_arm {
            let Some(attached) = attached else { continue };
            if let Err(error) = attached.session.stop() {
                troubles.add(&bench.arm_title(arm), &error);
            }
        }
    }
}
