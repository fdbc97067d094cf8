//! The session of a probe: from its command line to the last line on standard output.
//!
//! The only mouth of the probes: nothing else prints.

use std::io::{self, Write};
use std::os::fd::BorrowedFd;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use assay_captures::manifest::Status;
use assay_captures::units::Span;
use nix::sys::stat::{Mode, umask};
use serde_json::{Value, json};

use crate::capture_folder::CaptureFolder;
use crate::cli::{Description, SessionArgs};
use crate::clock;
use crate::events::{Event, Events};

/// A probe: its command line, and how its recording begins.
pub trait Probe: clap::Parser {
    /// What `--describe` prints.
    const DESCRIPTION: Description;
    /// What records.
    type Recorder: Recorder;

    /// The options that all probes share.
    fn session(&self) -> &SessionArgs;

    /// Begins: when it returns, everything from here on is recorded, or with `recording` false
    /// could be. A counting probe has written its first sample.
    fn start(&self, folder: &mut CaptureFolder, recording: bool) -> Result<Self::Recorder>;
}

/// What a probe does on each command. Whatever it returns as an error ends the session, after
/// `stop` has saved what can be saved.
pub trait Recorder {
    /// Records from here on. Called only while it is off.
    fn on(&mut self) -> Result<()>;

    /// Records no more and costs the service nothing; everything until here has been taken from
    /// the kernel. Called only while it is on.
    fn off(&mut self) -> Result<()>;

    /// Reads and writes cumulative counters, now. A probe without counters has nothing to do.
    fn mark(&mut self) -> Result<()>;

    /// Writes everything out, closes the file, and tells the manifest of integrity and notes.
    /// Called once and last, also after an error.
    fn stop(&mut self, folder: &mut CaptureFolder) -> Result<()>;

    /// A descriptor to wait on; asked again after each event, so it may come and go.
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// The descriptor is readable (or closed at the other end).
    fn readable(&mut self) -> Result<Progress> {
        Ok(Progress::Going)
    }

    /// How often `tick` is called; asked once.
    fn interval(&self) -> Option<Duration> {
        None
    }

    /// The interval has passed. Ticks that were missed are not made up for.
    fn tick(&mut self) -> Result<Progress> {
        Ok(Progress::Going)
    }
}

/// Whether a recorder wants to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// There is more to come.
    Going,
    /// It has what it was asked for; the session ends with status `complete`.
    Finished,
}

/// Runs a probe from its command line to its exit code.
#[must_use]
pub fn run<P: Probe>() -> ExitCode {
    let probe = P::parse();
    if probe.session().describe {
        say(&json!(P::DESCRIPTION));
        return ExitCode::SUCCESS;
    }
    match session(&probe) {
        Ok(()) => {
            say(&json!({"done": true, "status": "complete"}));
            ExitCode::SUCCESS
        }
        Err(error) => {
            let reason = one_line(&error);
            say(&json!({"done": true, "status": "failed", "reason": reason}));
            tell(&format!("assay-probe-{}: {reason}", P::DESCRIPTION.question));
            ExitCode::FAILURE
        }
    }
}

/// One JSON object on standard output. A reader that has gone is noticed as the parent's death.
fn say(line: &Value) {
    let _ = writeln!(io::stdout().lock(), "{line}");
}

/// One line for people, on standard error.
fn tell(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}

/// An error and its causes, without line breaks.
fn one_line(error: &anyhow::Error) -> String {
    format!("{error:#}").split_whitespace().collect::<Vec<_>>().join(" ")
}

fn session<P: Probe>(probe: &P) -> Result<()> {
    // Outside tools inherit it, so their files are private too.
    umask(Mode::from_bits_truncate(0o077));
    let args = probe.session();
    let out = args.out.as_deref().context("no folder to write to: give --out DIR")?;
    let events = Events::new()?;
    let mut folder = CaptureFolder::begin(out, &P::DESCRIPTION, args)?;
    let recorded = record(probe, &mut folder, events);
    let one_clock = ensure_one_clock(&mut folder);
    let recorded = recorded.and(one_clock);
    folder.manifest.window =
        Some(Span { start: folder.manifest.clock.realtime, end: clock::now() });
    folder.manifest.status = match &recorded {
        Ok(()) => Status::Complete,
        Err(error) => {
            folder.manifest.reason = Some(one_line(error));
            Status::Failed
        }
    };
    // The first failure is the one to tell.
    recorded.and(folder.write_manifest())
}

/// Moments in a capture are of CLOCK_REALTIME: after a step those before and behind it cannot be
/// told apart, so nothing can be counted in a span of time.
fn ensure_one_clock(folder: &mut CaptureFolder) -> Result<()> {
    let step = clock::step(folder.manifest.clock, clock::anchor());
    if step.unsigned_abs() <= clock::STEP_MAX {
        return Ok(());
    }
    let integrity = &mut folder.manifest.integrity;
    integrity.insert("clock_step_nanoseconds".into(), step.unsigned_abs());
    bail!(
        "the machine's clock was set {} by {:.3} s while recording: times in the capture do not \
         fit together; record again",
        if step > 0 { "forward" } else { "back" },
        step.unsigned_abs() as f64 / 1e9
    )
}

fn record<P: Probe>(probe: &P, folder: &mut CaptureFolder, events: Events) -> Result<()> {
    let args = probe.session();
    folder.manifest.clock = clock::anchor();
    let mut recorder = probe.start(folder, !args.off)?;
    // What is known since the start, such as the backend, survives a kill.
    let conducted = folder.write_manifest().and_then(|()| {
        reply("ready");
        conduct(&mut recorder, events, args)
    });
    conducted.and(recorder.stop(folder))
}

/// Answers commands until something ends the session.
fn conduct(recorder: &mut impl Recorder, mut events: Events, args: &SessionArgs) -> Result<()> {
    let end = args.duration.map(|seconds| Instant::now() + Duration::from_secs_f64(seconds));
    let interval = recorder.interval();
    let mut tick = interval.map(|interval| Instant::now() + interval);
    let mut recording = !args.off;
    loop {
        let deadline = [end, tick].into_iter().flatten().min();
        for event in events.wait(recorder.descriptor(), deadline)? {
            let finished = match event {
                Event::Command(word) => obey(recorder, &word, &mut recording)?,
                Event::Recorder => recorder.readable()? == Progress::Finished,
                Event::End => true,
                Event::Timeout => false,
            };
            if finished {
                return Ok(());
            }
        }
        let now = Instant::now();
        if end.is_some_and(|end| now >= end) {
            return Ok(());
        }
        if tick.is_some_and(|tick| now >= tick) {
            if recorder.tick()? == Progress::Finished {
                return Ok(());
            }
            tick = interval.map(|interval| Instant::now() + interval);
        }
    }
}

/// Carries out one command; true for `stop`.
fn obey(recorder: &mut impl Recorder, word: &str, recording: &mut bool) -> Result<bool> {
    match word {
        "on" => {
            if !*recording {
                recorder.on()?;
                *recording = true;
            }
            reply("on");
        }
        "off" => {
            if *recording {
                recorder.off()?;
                *recording = false;
            }
            reply("off");
        }
        "mark" => {
            recorder.mark()?;
            reply("mark");
        }
        "stop" => return Ok(true),
        _ => {
            let text = format!("unknown command `{word}`: use on, off, mark or stop");
            say(&json!({"error": text}));
        }
    }
    Ok(false)
}

fn reply(word: &str) {
    say(&json!({word: true, "moment": clock::now()}));
}
