//! `assay`: what does one request of a running service cost, and why?

use std::process::ExitCode;

use assay::cli::{Cli, Command, one_line};
use assay::commands::{self, blame};
use assay::exit::Exit;
use assay::ui::Ui;
use clap::Parser;

fn main() -> ExitCode {
    let ui = Ui::new();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) if error.use_stderr() && !error.render().to_string().starts_with("error") => {
            // No command at all: the help is the answer.
            ui.say(&error.render().to_string());
            return Exit::WrongUsage.into();
        }
        Err(error) if error.use_stderr() => {
            ui.fail(&one_line(&error));
            return Exit::WrongUsage.into();
        }
        Err(help_or_version) => {
            ui.result(&help_or_version.render().to_string());
            return Exit::Done.into();
        }
    };
    let done = match &cli.command {
        Command::Demo(args) => commands::demo(&ui, args),
        Command::Run(args) => commands::run(&ui, args),
        Command::Observe(args) => commands::observe(&ui, args),
        Command::Calibrate(args) => commands::calibrate(&ui, args),
        Command::Analyze(args) => commands::analyze(&ui, args),
        Command::Report(args) => commands::report(&ui, args),
        Command::Export(args) => commands::export(&ui, args),
        Command::Check(args) => commands::check(&ui, args),
        Command::Doctor(args) => commands::doctor(&ui, args),
        Command::Inspect(args) => commands::inspect(&ui, args),
        Command::Runs(args) => commands::runs(&ui, args),
    };
    done.unwrap_or_else(|error| blame(&ui, &error)).into()
}
