//! Which lines each part of the table has, and where they come from.

use std::collections::{BTreeMap, BTreeSet};

use assay_analyses::metric::Metric;
use assay_captures::lap::{Lap, Load};

use super::cpu;
use super::finder::{Finder, Wanted};
use super::notes::Notes;
use super::{Entry, Group, Line};
use crate::numbers::{self, Scale};

const FAIR: &[&str] = &["fair", "foreign"];
const UNDER_LOAD: &[&str] = &["wire"];
const ONE_AT_A_TIME: &[&str] = &["serial", "wire", "foreign"];
const SYSCALLS: &[&str] = &["syscalls", "serial", "foreign"];
const USAGE: &[&str] = &["fair", "usage", "foreign"];
const ALLOCATIONS: &[&str] = &["allocations"];

/// The reasons of a round trip, and what they are called in the table.
pub(crate) const REASONS: [(&str, &str); 5] = [
    ("user", "user statements"),
    ("transaction", "transaction control"),
    ("prepare", "statement prepares"),
    ("pool ping", "pool pings"),
    ("pool reset", "pool resets"),
];

/// System calls that get a line of their own.
const TOP_CALLS: usize = 5;

/// All parts that have lines, in the order of reading.
pub(super) fn all(finder: &Finder<'_>, notes: &mut Notes) -> Vec<Group> {
    let build: [fn(&Finder<'_>, &mut Notes) -> Group; 10] = [
        speed,
        postgres,
        redis,
        cpu::group,
        switches,
        syscalls,
        allocations,
        collector,
        memory,
        waiting,
    ];
    let mut groups: Vec<Group> = build.map(|build| build(finder, notes)).into();
    // A page that asks Postgres says nothing by not asking Redis; one that asks neither does.
    let idle = |group: &Group| group.lines.iter().all(all_zero);
    if !idle(&groups[1]) && idle(&groups[2]) {
        groups[2].lines.clear();
    }
    groups.retain(|group| !group.lines.is_empty());
    groups
}

fn speed(finder: &Finder<'_>, notes: &mut Notes) -> Group {
    let throughput = Wanted::new("throughput", Metric::Throughput, "req/s", FAIR);
    let mut lines = Vec::new();
    if let Some(line) = finder.line(&throughput, notes) {
        let good = throughput.clone().with("answers", "good").inside();
        lines.push(line);
        lines.extend(finder.verdicts(&throughput, notes));
        lines.extend(laps_line(finder, &throughput));
        let good = Wanted { name: "good answers alone".into(), ..good };
        lines.extend(finder.line(&good, notes));
    }
    for (name, quantile) in [("latency p50", "0.5"), ("latency p99", "0.99")] {
        let latency = Wanted::new(name, Metric::Latency, "", FAIR).with("quantile", quantile);
        lines.extend(finder.line(&latency, notes));
    }
    Group { title: "Speed", how: fair_laps(finder), lines, remarks: Vec::new() }
}

/// The slowest and the fastest lap of each arm in one line.
fn laps_line(finder: &Finder<'_>, throughput: &Wanted<'_>) -> Option<Line> {
    let worst = finder.find(&throughput.clone().with("lap", "worst"));
    let best = finder.find(&throughput.clone().with("lap", "best"));
    let mut any = false;
    let entries = worst
        .iter()
        .zip(&best)
        .map(|(worst, best)| {
            let figures =
                (worst.and_then(|c| c.amount.figure()), best.and_then(|c| c.amount.figure()));
            let (Some(worst), Some(best)) = figures else { return Entry::default() };
            any = true;
            let scale = Scale::of("1/s", "", &[(best.value, best.value / 1000.0)]);
            let value = format!("{} – {}", scale.show(worst.value), scale.show(best.value));
            Entry { value, words: true, ..Entry::default() }
        })
        .collect();
    any.then(|| Line {
        name: "range of laps, req/s".into(),
        indent: 2,
        unit: "req/s",
        entries,
        notes: Vec::new(),
    })
}

fn fair_laps(finder: &Finder<'_>) -> String {
    let of_route = |lap: &&Lap| {
        FAIR.contains(&&*lap.pass) && lap.route == finder.route && lap.spoiled.is_none()
    };
    let laps: Vec<&Lap> = finder.report.laps.iter().filter(of_route).collect();
    let rounds: BTreeSet<u32> = laps.iter().map(|lap| lap.round).collect();
    let Some(first) = laps.first() else { return String::new() };
    let seconds = first.sent_until.since(first.span.start).unwrap_or_default().seconds();
    if first.load == Load::Foreign {
        let seconds = numbers::number(seconds, 1);
        return format!("{} windows of {seconds} s of what others send", rounds.len());
    }
    format!(
        "{} rounds of {} s, {} connections, no probe",
        rounds.len(),
        numbers::number(seconds, 1),
        finder.report.run.connections
    )
}

fn samples(finder: &Finder<'_>, wanted: &Wanted<'_>) -> Option<(String, u64)> {
    let cost = finder.find(wanted).into_iter().flatten().next()?;
    Some((cost.origin.pass.clone(), cost.amount.figure()?.samples))
}

fn from_packets(finder: &Finder<'_>, wanted: &Wanted<'_>) -> String {
    match samples(finder, wanted) {
        Some((pass, samples)) if pass == "serial" => {
            format!("from its packets, {} requests one at a time", numbers::count(samples as f64))
        }
        Some(_) => "from its packets, under load".to_owned(),
        None => "from its packets".to_owned(),
    }
}

fn postgres(finder: &Finder<'_>, notes: &mut Notes) -> Group {
    use Metric::{
        PostgresAwaitedFlights, PostgresBytesReceived, PostgresBytesSent, PostgresErrors,
        PostgresExecutions, PostgresFlights, PostgresReadyForQuery, PostgresRows,
    };
    let total = Wanted::new("round trips", PostgresFlights, "trips", ONE_AT_A_TIME);
    let part = |name: &str| Wanted { name: name.into(), ..total.clone() }.part();
    let mut wanted = vec![total.clone()];
    wanted.extend(REASONS.map(|(reason, name)| part(name).with("reason", reason)));
    let mut lines: Vec<Line> = wanted.iter().filter_map(|w| finder.line(w, notes)).collect();
    let awaited = Wanted::new("of all, awaited", PostgresAwaitedFlights, "trips", ONE_AT_A_TIME);
    let idle = lines.first().is_some_and(all_zero);
    lines.extend(finder.line(&awaited, notes).filter(|_| !idle));
    let serial = samples(finder, &total).is_some_and(|(pass, _)| pass == "serial");
    if serial && !idle {
        let loaded = Wanted::new("the same under load", PostgresFlights, "trips", UNDER_LOAD);
        lines.extend(finder.line(&loaded, notes));
    }
    // What others asked for, where the mixture tells its routes apart.
    let mut paths: Vec<&str> = Vec::new();
    for cost in finder.costs(PostgresFlights) {
        if let Some(path) = cost.labels.get("path")
            && !paths.contains(&path.as_str())
        {
            paths.push(path);
        }
    }
    for path in paths.into_iter().take(PATHS) {
        let wanted = Wanted { name: path.to_owned(), passes: &["foreign"], ..total.clone() };
        lines.extend(finder.line(&wanted.part().with("path", path), notes));
    }
    // Where a pooler stands between, the rows above are the service's own trips.
    for (name, metric, count) in [
        ("pooler to Postgres", PostgresFlights, "trips"),
        ("its statements", PostgresExecutions, "stmts"),
    ] {
        let behind = Wanted::new(name, metric, count, ONE_AT_A_TIME).with("leg", "server");
        lines.extend(finder.line(&behind, notes));
    }
    for (name, metric, count) in [
        ("ReadyForQuery answers", PostgresReadyForQuery, "msgs"),
        ("statements executed", PostgresExecutions, "stmts"),
        ("rows", PostgresRows, "rows"),
        ("bytes to Postgres", PostgresBytesSent, "B"),
        ("bytes from Postgres", PostgresBytesReceived, "B"),
    ] {
        let line = finder.line(&Wanted::new(name, metric, count, ONE_AT_A_TIME), notes);
        lines.extend(line.filter(|line| !(idle && all_zero(line))));
    }
    let errors = Wanted::new("errors", PostgresErrors, "errors", ONE_AT_A_TIME);
    lines.extend(finder.line(&errors, notes).filter(|line| !all_zero(line)));
    let how = from_packets(finder, &total);
    Group { title: "Postgres, per request", how, lines, remarks: Vec::new() }
}

/// Routes of others' requests that get a line.
const PATHS: usize = 8;

fn all_zero(line: &Line) -> bool {
    line.entries.iter().all(|entry| entry.value == "0")
}

fn redis(finder: &Finder<'_>, notes: &mut Notes) -> Group {
    let commands = Wanted::new("commands", Metric::RedisCommands, "cmds", ONE_AT_A_TIME);
    let flights = Wanted::new("round trips", Metric::RedisFlights, "trips", ONE_AT_A_TIME);
    let mut lines: Vec<Line> = finder.line(&commands, notes).into_iter().collect();
    if !lines.iter().all(all_zero) {
        lines.extend(finder.line(&flights, notes));
    }
    let how = from_packets(finder, &commands);
    Group { title: "Redis, per request", how, lines, remarks: Vec::new() }
}

fn waiting(finder: &Finder<'_>, notes: &mut Notes) -> Group {
    let serial: &[&str] = &["serial"];
    let wanted = [
        Wanted::new("before the first trip", Metric::PhaseBefore, "", serial),
        Wanted::new("waiting for Postgres", Metric::Wait, "", serial).with("on", "postgres"),
        Wanted::new("waiting for Redis", Metric::Wait, "", serial).with("on", "redis"),
        Wanted::new("between trips", Metric::PhaseBetween, "", serial),
        Wanted::new("after the last one", Metric::PhaseAfter, "", serial),
    ];
    let wanted = wanted.map(|wanted| Wanted { said: "idle machine", ..wanted });
    let lines = wanted.iter().filter_map(|wanted| finder.line(wanted, notes));
    let lines = lines.filter(|line| !all_zero(line)).collect();
    let how = "from its packets; never add to the times under load".to_owned();
    Group { title: "One request on an idle machine", how, lines, remarks: Vec::new() }
}

fn switches(finder: &Finder<'_>, notes: &mut Notes) -> Group {
    let mut lines = Vec::new();
    for (process, name) in [("subject", "service"), ("postgres", "Postgres")] {
        for kind in ["voluntary", "involuntary"] {
            let wanted =
                Wanted::new(format!("{name}, {kind}"), Metric::ContextSwitches, "times", USAGE);
            let wanted = wanted.with("kind", kind).with("process", process);
            lines.extend(finder.line(&wanted, notes));
        }
    }
    let how = "in the laps above; voluntary: it waited".to_owned();
    Group { title: "Context switches, per request", how, lines, remarks: Vec::new() }
}

fn syscalls(finder: &Finder<'_>, notes: &mut Notes) -> Group {
    let total = Wanted::new("all calls", Metric::Syscalls, "calls", SYSCALLS);
    let pass = finder.find(&total).into_iter().flatten().next().map(|c| c.origin.pass.as_str());
    let mut lines: Vec<Line> = finder.line(&total, notes).into_iter().collect();
    let passes: &[&str] = match pass {
        Some("syscalls") => &["syscalls"],
        Some("foreign") => &["foreign"],
        _ => &["serial"],
    };
    for name in top_calls(finder, passes[0]) {
        let wanted = Wanted { name: name.clone(), passes, ..total.clone() }.part();
        lines.extend(finder.line(&wanted.with("name", &name), notes));
        let failed = Wanted::new("in vain (EAGAIN)", Metric::SyscallErrors, "calls", passes);
        let failed = Wanted { total: Some(Metric::Syscalls), ..failed.part().inside() };
        let failed = failed.with("name", &name).with("errno", "EAGAIN");
        lines.extend(finder.line(&failed, notes));
    }
    let how = match pass {
        Some("syscalls" | "foreign") => "under load",
        _ => "one request at a time",
    };
    Group { title: "System calls, per request", how: how.into(), lines, remarks: Vec::new() }
}

fn top_calls(finder: &Finder<'_>, pass: &str) -> Vec<String> {
    let mut largest: BTreeMap<&str, f64> = BTreeMap::new();
    for cost in finder.costs(Metric::Syscalls).filter(|cost| cost.origin.pass == pass) {
        if let (Some(name), Some(figure)) = (cost.labels.get("name"), cost.amount.figure()) {
            let known = largest.entry(name).or_default();
            *known = known.max(figure.value);
        }
    }
    let mut calls: Vec<(&str, f64)> = largest.into_iter().collect();
    calls.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(b.0)));
    let seen = |&(_, value): &(&str, f64)| value >= 0.1;
    calls.into_iter().filter(seen).take(TOP_CALLS).map(|(name, _)| name.to_owned()).collect()
}

fn allocations(finder: &Finder<'_>, notes: &mut Notes) -> Group {
    let wanted = [
        Wanted::new("heap blocks", Metric::AllocationsBlocks, "count", ALLOCATIONS),
        Wanted::new("heap bytes", Metric::AllocationsBytes, "B", ALLOCATIONS),
    ];
    let lines = wanted.iter().filter_map(|wanted| finder.line(wanted, notes)).collect();
    let how = "of the service, by counters in its heap".to_owned();
    Group { title: "Allocations, per request", how, lines, remarks: Vec::new() }
}

fn collector(finder: &Finder<'_>, notes: &mut Notes) -> Group {
    let wanted = [
        ("collections", Metric::GcCollectionsPerSecond, "/s"),
        ("stop-the-world, of time", Metric::GcStopTheWorldShare, "%"),
        ("its CPU time, of one CPU", Metric::GcCpuShare, "%"),
    ]
    .map(|(name, metric, unit)| Wanted::new(name, metric, unit, FAIR));
    let lines = wanted.iter().filter_map(|wanted| finder.line(wanted, notes)).collect();
    let how = "printed by the runtime in the laps above".to_owned();
    Group { title: "Garbage collector", how, lines, remarks: Vec::new() }
}

fn memory(finder: &Finder<'_>, notes: &mut Notes) -> Group {
    let wanted = [
        ("highest CPU of six", "resident when busiest"),
        ("median", "resident, median"),
        ("peak", "resident, peak"),
    ]
    .map(|(rule, name)| {
        let resident = Wanted::new(name, Metric::MemoryResident, "", USAGE);
        resident.with("process", "subject").with("rule", rule)
    });
    let lines = wanted.iter().filter_map(|wanted| finder.line(wanted, notes)).collect();
    let how = "of the service under load".to_owned();
    Group { title: "Memory", how, lines, remarks: Vec::new() }
}
