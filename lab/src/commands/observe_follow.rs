//! `assay observe --follow`: a service second by second, like `top`.

use std::ops::ControlFlow;

use anyhow::Result;
use assay_analyses::costs::wire::{Protocol, Spoken};
use assay_captures::ids::Role;
use nix::time::{ClockId, clock_gettime};

use super::blame;
use super::run::record;
use crate::exit::Exit;
use crate::guardian::{self, Worker};
use crate::keys::Keys;
use crate::observe::{self, Attachment, Options, Screen, Second, in_words};
use crate::passes::{Ended, Onlooker, follow};
use crate::run::{GivenServices, Laboratory, Materials};
use crate::run_directory::RunDirectory;
use crate::ui::Ui;

/// Follows a service until somebody has seen enough.
pub(super) fn observe_follow(ui: &Ui, options: &Options) -> Result<Exit> {
    let attachment = observe::look_for(options)?;
    ui.say(&in_words(&attachment.found));
    // Made here, so that the terminal is given back by the process that the shell waits for.
    let keys = Keys::remember(ui);
    guardian::guarded(ui, |worker| {
        let seen = watch(ui, options, attachment, worker, &keys);
        seen.map_or_else(|error| blame(ui, &error), |()| Exit::Done)
    })
}

fn watch(
    ui: &Ui,
    options: &Options,
    attachment: Attachment,
    worker: Worker,
    keys: &Keys,
) -> Result<()> {
    let (experiment, plan, pinning) = observe::materials(options, &attachment)?;
    let record = record(&experiment, &plan, &pinning, &GivenServices::default());
    // Goes with the temporary directory.
    let path = worker.scratch.path().join("run");
    let run = RunDirectory::create(&path, &experiment.text, record)?;
    let scratch = worker.scratch.path().to_path_buf();
    let (ui, cancel) = (ui.clone(), worker.cancel.clone());
    let materials = Materials { experiment, plan, pinning, run, scratch, ui: ui.clone(), cancel };
    let mut laboratory =
        Laboratory::attach(materials, attachment).map_err(|unprepared| unprepared.error)?;
    let mut view = View { ui, keys, screen: None, lines: 0 };
    match follow(&mut laboratory, &mut view) {
        Ok(()) => Ok(()),
        Err(Ended::Cancelled) => Ok(()),
        Err(Ended::Failed(error)) => Err(error),
    }
}

/// The terminal, or a pipe.
struct View<'a> {
    ui: Ui,
    keys: &'a Keys,
    screen: Option<Screen>,
    /// Lines of the picture that is there.
    lines: usize,
}

impl Onlooker for View<'_> {
    fn begins(&mut self, laboratory: &Laboratory) {
        for note in &laboratory.run.record.notes {
            // What a run would not give, this view does not give either.
            if !note.starts_with("a service that was already running") {
                self.ui.say(note);
            }
        }
        if self.ui.draws() {
            self.keys.one_by_one();
        }
        if let Some(attached) = &laboratory.attached {
            let number = attached.found.processes.len();
            let several = if number == 1 { "" } else { "es" };
            let title = format!(
                "{}, {number} process{several}, port {}",
                attached.found.name, attached.port.0
            );
            let encrypted = attached.front == Some(Spoken::Encrypted);
            let services = attached.services().into_iter().map(|service| match service.role {
                Role::Redis => Protocol::Redis,
                _ => Protocol::Postgres,
            });
            self.screen = Some(Screen::new(title, services.collect(), encrypted));
        }
    }

    fn sees(&mut self, second: Second) {
        let Some(screen) = &mut self.screen else { return };
        screen.add(second);
        if self.ui.draws() {
            self.lines = self.ui.draw(&screen.picture(self.ui.columns()), self.lines);
        } else {
            self.ui.result(&screen.line(&clock()));
        }
    }

    fn goes_on(&mut self) -> ControlFlow<()> {
        if self.keys.quit() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// Hours, minutes and seconds, UTC.
fn clock() -> String {
    let seconds = clock_gettime(ClockId::CLOCK_REALTIME).map_or(0, |now| now.tv_sec());
    let (hours, minutes) = (seconds / 3600 % 24, seconds / 60 % 60);
    format!("{hours:02}:{minutes:02}:{:02}", seconds % 60)
}
