//! `assay inspect`: what files hold that other people recorded, per request where it can be told.
//!
//! Files are recognised by content, read once (packet captures twice: the first time says how
//! many responses there are), and answered with the same costs that a run of our own has.

mod fold;
mod input;
mod moments;
mod ours;
mod profiles;
mod stacks;
mod text;
mod traces;
mod wire;

use std::borrow::Cow;
use std::path::PathBuf;

use anyhow::Result;
use assay_analyses::cost::{Amount, Origin};
use assay_analyses::costs::foreign::View;
use assay_analyses::costs::wire::WirePorts;
use assay_captures::demangle::readable;
use assay_captures::parsed::Problem;
use assay_captures::recognise::Kind;
use assay_captures::units::Span;
use assay_reports::json::{Inspected, Source};

use crate::commands::WrongUsage;

pub use fold::{Folded, fold};
pub use text::render;

/// What is asked for.
#[derive(Clone, Debug)]
pub struct Question {
    /// The files; `-` is standard input. Packet captures among them are one capture, and so are
    /// the files of `strace -ff`. A folder stands for what its manifest names.
    pub files: Vec<PathBuf>,
    /// Ports whose protocol is known.
    pub ports: WirePorts,
    /// How many requests the files cover, if somebody knows.
    pub requests: Option<u64>,
    /// Only what lies in this span, for files that have a timeline.
    pub span: Option<Span>,
    /// How many functions, statements, and so on.
    pub top: usize,
}

/// Opens, recognises and reads the files.
pub fn inspect(question: &Question) -> Result<Inspected> {
    let mut found = Inspected::default();
    let (mut packets, mut threads) = (Vec::new(), Vec::new());
    for path in &ours::expand(&question.files)? {
        let file = input::open(path)?;
        let name = path.display().to_string();
        let holds = file.kind.name().to_owned();
        found.source.push(Source { file: name.clone(), holds, about: Vec::new() });
        if let Some(flaw) = &file.flaw {
            found.problems.push(format!("{name}: {flaw}"));
        }
        if question.span.is_some() && !has_timeline(file.kind) {
            let kind = file.kind.name();
            let what = format!(
                "{name}: {kind}: has no timeline, so --since and --until cannot cut it; leave \
                 them out"
            );
            return Err(WrongUsage(what).into());
        }
        match file.kind {
            Kind::Pcap | Kind::PcapNg => packets.push((name, file)),
            Kind::Strace if traces::thread(&name).is_some() => threads.push((name, file)),
            Kind::Strace | Kind::StraceTable => {
                traces::inspect(&[(name, file)], question, &mut found)?;
            }
            _ => one(&name, &file, question, &mut found)?,
        }
    }
    if !packets.is_empty() {
        wire::inspect(&mut packets, question, &mut found)?;
    }
    if !threads.is_empty() {
        // Threads are numbered in the order of their start: parents before their children.
        threads.sort_by_key(|(name, _)| traces::thread(name).map(|tid| tid.0));
        traces::inspect(&threads, question, &mut found)?;
    }
    for cost in &mut found.costs {
        if let Some(function) = cost.labels.get_mut("function")
            && let Cow::Owned(name) = readable(function)
        {
            *function = name;
        }
    }
    Ok(found)
}

/// Whether something was asked that could not be measured at all.
#[must_use]
pub fn is_measured(found: &Inspected) -> bool {
    found.costs.iter().any(|cost| !matches!(cost.amount, Amount::NotMeasured(_)))
}

fn one(name: &str, file: &input::Input, question: &Question, found: &mut Inspected) -> Result<()> {
    let view = View { origin: origin(name), requests: question.requests, top: question.top };
    let span = question.span;
    match file.kind {
        Kind::Callgrind => profiles::callgrind(name, file, &view, found)?,
        Kind::Dhat => profiles::dhat(name, file, &view, found)?,
        Kind::Pprof | Kind::PprofOld(_) => profiles::pprof(name, file, &view, found)?,
        Kind::LoadTool(_) => profiles::load(name, file, &view, found)?,
        Kind::GcTrace => profiles::gctrace(name, file, &view, span, found)?,
        Kind::PerfScript => stacks::perf_script(name, file, &view, span, found)?,
        Kind::Folded => stacks::folded(name, file, &view, found)?,
        Kind::Usage => ours::usage(name, file, &view, span, found)?,
        Kind::SyscallCounts => ours::syscalls(name, file, &view, span, found)?,
        Kind::AllocationCounts => ours::allocations(name, file, &view, span, found)?,
        Kind::RequestLog => ours::requests(name, file, &view, span, found)?,
        Kind::Laps => ours::laps(name, file, &view, span, found)?,
        Kind::Manifest => ours::record(name, file, found)?,
        Kind::Empty => found.problems.push(format!("{name}: the file is empty")),
        Kind::PerfData => found.problems.push(format!(
            "{name}: only perf reads perf.data; turn it into text: \
             perf script --no-inline -i {name}"
        )),
        kind => {
            let what = kind.name();
            found.problems.push(format!(
                "{name}: {what}: assay inspect does not read it; assay inspect --help lists what \
                 it reads"
            ));
        }
    }
    Ok(())
}

/// Whether a part of it can be told by the clock.
fn has_timeline(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Pcap
            | Kind::PcapNg
            | Kind::Strace
            | Kind::PerfScript
            | Kind::GcTrace
            | Kind::Usage
            | Kind::SyscallCounts
            | Kind::AllocationCounts
            | Kind::RequestLog
            | Kind::Laps
            // Those that a folder stands for, or that are refused for a better reason.
            | Kind::Manifest
            | Kind::Empty
            | Kind::Unknown
    )
}

/// Costs of a file belong to no subject and route.
fn origin(name: &str) -> Origin {
    Origin {
        subject: String::new(),
        variant: String::new(),
        route: String::new(),
        pass: "inspect".to_owned(),
        capture: Some(name.to_owned()),
    }
}

/// How many problems of one file are shown.
const PROBLEMS_SHOWN: usize = 20;

fn problems(name: &str, problems: &[Problem], found: &mut Inspected) {
    let shown = problems.iter().take(PROBLEMS_SHOWN);
    found.problems.extend(shown.map(|problem| format!("{name}: {problem}")));
    if problems.len() > PROBLEMS_SHOWN {
        let more = problems.len() - PROBLEMS_SHOWN;
        found.problems.push(format!("{name}: {more} problems more"));
    }
}
