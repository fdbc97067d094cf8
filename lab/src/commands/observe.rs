//! `assay observe`: what a request of a service costs that somebody else has started.

use anyhow::Result;

use super::blame;
use super::observe_command::observe_command;
use super::observe_follow::observe_follow;
use super::run::{Prepared, conclude, record, start};
use crate::cli::{Format, ObserveArgs};
use crate::exit::Exit;
use crate::guardian::{self, Worker};
use crate::observe::{self, Attachment, Options, in_words};
use crate::run::{GivenServices, Laboratory};
use crate::ui::Ui;

/// Attaches to a service, measures it, and leaves it as it was.
pub fn observe(ui: &Ui, args: &ObserveArgs) -> Result<Exit> {
    if !args.command.is_empty() {
        return observe_command(ui, args);
    }
    let options = Options::read(args)?;
    if args.follow {
        return observe_follow(ui, &options);
    }
    let attachment = observe::look_for(&options)?;
    ui.say(&in_words(&attachment.found));
    guardian::guarded(ui, |worker| {
        let measured = measure(ui, args, &options, attachment, worker);
        measured.unwrap_or_else(|error| blame(ui, &error))
    })
}

fn measure(
    ui: &Ui,
    args: &ObserveArgs,
    options: &Options,
    attachment: Attachment,
    worker: Worker,
) -> Result<Exit> {
    let (experiment, plan, pinning) = observe::materials(options, &attachment)?;
    let record = record(&experiment, &plan, &pinning, &GivenServices::default());
    let prepared = Prepared { experiment, plan, pinning, record };
    let materials = start(ui, prepared, args.out.as_deref(), worker)?;
    let format = if args.json { Format::Json } else { Format::Table };
    conclude(ui, Laboratory::attach(materials, attachment), format)
}
