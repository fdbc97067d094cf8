//! What a run of a service that already runs is made of.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, anyhow};
use assay_captures::ids::Pid;

use super::attach::{Attachment, in_words};
use super::options::{Options, safe_name};
use crate::experiment::plan::{Cell, Choice, Plan, PlannedPass};
use crate::experiment::{
    Arm, Cores, Experiment, LoadSettings, PassKind, PassSettings, Passes, PinningSettings, Quick,
    Ready, Route, Subject, Variant,
};
use crate::pinning::{CoreSet, Pinning, usable_cores};

/// Where nothing more is said of the only variant.
const VARIANT: &str = "running";
/// A request without an answer for so long is an error.
const TIMEOUT: Duration = Duration::from_secs(10);
/// How long the service must be still before the next serial request.
const GAP: Duration = Duration::from_millis(3);
/// Load before the first lap of a route.
const WARM_UP: Duration = Duration::from_millis(500);
/// Requests of the serial pass, beside passes under load.
const SERIAL_REQUESTS: u32 = 60;
/// A stretch of what others send.
const WINDOW: Duration = Duration::from_secs(1);

/// What a run of it is made of: an experiment with one arm, its plan, and who runs where.
pub fn materials(
    options: &Options,
    attachment: &Attachment,
) -> Result<(Experiment, Plan, Pinning)> {
    let experiment = experiment(options, attachment);
    let plan = match attachment.foreign {
        true => Plan { passes: vec![foreign(options)] },
        false => Plan::make(&experiment, &Choice::default())?,
    };
    let pinning = pinning(attachment)?;
    Ok((experiment, plan, pinning))
}

/// Windows of a second for as long as was asked for.
fn foreign(options: &Options) -> PlannedPass {
    let windows = options.duration.as_secs_f64() / WINDOW.as_secs_f64();
    PlannedPass {
        kind: PassKind::Foreign,
        cells: vec![Cell { arm: 0, route: 0 }],
        rounds: (windows.round() as u32).max(1),
        lap: WINDOW.min(options.duration),
        iterations: None,
        restart: false,
        requests: 0,
        warm_up: Duration::ZERO,
        connections: 0,
        rate: None,
        gap: GAP,
    }
}

fn experiment(options: &Options, attachment: &Attachment) -> Experiment {
    let name = safe_name(&attachment.found.name);
    let subject = Subject {
        name: name.clone(),
        dir: PathBuf::new(),
        build: Vec::new(),
        command: Vec::new(),
        env: BTreeMap::new(),
        ready: Ready { path: "/".to_owned(), timeout: TIMEOUT },
    };
    let variant = Variant {
        name: VARIANT.to_owned(),
        title: attachment.found.name.clone(),
        env: BTreeMap::new(),
        args: Vec::new(),
    };
    let everything = Route {
        name: "everything".to_owned(),
        method: "ANY".to_owned(),
        path: "what others send".to_owned(),
        parameters: BTreeMap::new(),
        headers: BTreeMap::new(),
        body: String::new(),
        answers_vary: false,
        query_budget: None,
    };
    let everything = attachment.foreign.then_some(everything);
    let routes = options.targets.iter().map(|target| Route {
        name: target.name.clone(),
        method: target.method.clone(),
        path: target.path.clone(),
        parameters: BTreeMap::new(),
        headers: target.headers.iter().cloned().collect(),
        body: target.body.clone(),
        answers_vary: false,
        query_budget: None,
    });
    Experiment {
        file: PathBuf::new(),
        text: described(options, attachment),
        title: name.clone(),
        name,
        unit: "request".to_owned(),
        postgres: None,
        redis: None,
        subjects: vec![subject],
        arms: vec![Arm { subject: 0, variant }],
        copy: None,
        routes: routes.chain(everything).collect(),
        claims: Vec::new(),
        load: LoadSettings {
            connections: options.connections,
            warm_up: WARM_UP,
            timeout: TIMEOUT,
            gap: GAP,
        },
        pinning: PinningSettings::default(),
        passes: passes(options),
        quick: Quick::default(),
        phases: Vec::new(),
    }
}

/// The load of a route is divided among the passes: 4 parts for fair laps, 2 for each probe, half
/// of them without it.
fn passes(options: &Options) -> Passes {
    let lengths = |kind: PassKind| match kind {
        PassKind::Fair => (4, 4),
        _ => (2, 4),
    };
    let loaded = options.passes.iter().filter(|kind| **kind != PassKind::Serial);
    let laps: u32 = loaded.map(|&kind| lengths(kind).1).sum();
    let lap = options.duration / laps.max(1);
    let settings = options.passes.iter().map(|&kind| {
        let requests = options.serial.unwrap_or(SERIAL_REQUESTS);
        let serial = kind == PassKind::Serial;
        let settings = PassSettings {
            iterations: None,
            rounds: Some(if serial { 1 } else { lengths(kind).0 }),
            lap: (!serial).then_some(lap),
            requests: serial.then_some(requests),
        };
        (kind, settings)
    });
    Passes { run: options.passes.clone(), settings: settings.collect() }
}

/// The service keeps its cores; the driver and the probes take theirs.
fn pinning(attachment: &Attachment) -> Result<Pinning> {
    let usable = usable_cores()?;
    let automatic = Pinning::choose(
        &PinningSettings { app: Cores::Auto, services: Cores::Auto, load: Cores::Auto },
        &usable,
    )
    .map_err(|reason| anyhow!(reason))?;
    let of = |pids: &mut dyn Iterator<Item = Pid>| {
        let cores: BTreeSet<usize> = pids.flat_map(cores_of).collect();
        CoreSet::new(cores.into_iter().collect())
    };
    let app = of(&mut attachment.found.roots.iter().copied());
    let services = attachment.services();
    let services = of(&mut services.iter().filter_map(|service| service.pid));
    let app = app.unwrap_or(automatic.app);
    Ok(Pinning { services: services.unwrap_or_else(|| app.clone()), app, load: automatic.load })
}

/// The cores that a process may use; none where that may not be seen.
fn cores_of(pid: Pid) -> Vec<usize> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", pid.0)).unwrap_or_default();
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let ranges = list.unwrap_or_default().trim().split(',').filter_map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        Some(first.parse::<usize>().ok()?..=last.parse::<usize>().ok()?)
    });
    ranges.flatten().collect()
}

/// What was observed, kept where other runs keep their experiment.
fn described(options: &Options, attachment: &Attachment) -> String {
    let mut text = format!("# a service that was already running: {:?}\n", options.wanted);
    let _never = writeln!(text, "# {}", in_words(&attachment.found));
    for target in &options.targets {
        // The values of headers can be credentials.
        let (method, host, path) = (&target.method, &target.host, &target.path);
        let _never = writeln!(text, "# {}: {method} http://{host}{path}", target.name);
    }
    text
}
