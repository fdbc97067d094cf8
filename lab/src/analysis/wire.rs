//! Postgres, Redis and HTTP from the wire: totals under load, single requests in the serial pass.

use assay_analyses::compare::ArmName;
use assay_analyses::cost::{Amount, Cost, Figure, Origin, Per};
use assay_analyses::costs::wire::{
    Integrity, Protocol, RouteCost, RouteTrips, StatementCost, WireFold, WirePorts,
};
use assay_analyses::findings::StatementUse;
use assay_analyses::metric::{Kind, Metric};
use assay_captures::capture;
use assay_captures::ids::Role;
use assay_captures::lap::Load;
use assay_captures::manifest::{Manifest, Target};
use assay_reports::report::{OneRequest, Spread, Which};

use super::cells::{Cell, Recorded};
use super::sheet::{Against, Sheet, lost};

const METRICS: [Metric; 5] = [
    Metric::PostgresFlights,
    Metric::PostgresReadyForQuery,
    Metric::PostgresExecutions,
    Metric::RedisCommands,
    Metric::HttpResponses,
];

/// Executions may differ from the server's own count by this share: statements that are under way
/// when it is asked are counted by one and not yet by the other.
const STATEMENTS_TOLERANCE: f64 = 0.001;

/// What one capture said, whichever way it was folded.
struct Outcome {
    costs: Vec<Cost>,
    integrity: Integrity,
    statements: Vec<StatementCost>,
    responses: u64,
    /// Where others sent the requests.
    routes: Vec<RouteCost>,
}

/// Reads the packets of a cell that has them.
pub(super) fn read(sheet: &mut Sheet, cell: &Cell<'_>) {
    let Some(recorded) = cell.recorded("wire") else { return };
    let origin = cell.origin(&recorded.folder);
    let Some(manifest) = sheet.manifest(&origin, &METRICS) else { return };
    if let Some(reason) = recorded.spoiled().or_else(|| uncounted(&recorded)) {
        return sheet.not_measured(&origin, &METRICS, &reason);
    }
    let is_serial = matches!(cell.first().load, Load::Serial { .. });
    let outcome = match is_serial {
        true => serial(sheet, &origin, &recorded, &manifest),
        false => loaded(sheet, &origin, &recorded, ports(&manifest.targets)),
    };
    let outcome = match outcome {
        Ok(outcome) => outcome,
        Err(reason) => return sheet.not_measured(&origin, &METRICS, &reason),
    };
    check(sheet, &origin, &recorded, &outcome);
    sheet
        .statements
        .extend(outcome.statements.iter().filter_map(|statement| used(&origin, statement)));
    sheet.costs.extend(outcome.costs);
    sheet.costs.extend(by_path(&origin, &outcome.integrity, &outcome.routes));
    if let Some(ports) = ports_behind(&manifest.targets)
        && let Ok(behind) = loaded(sheet, &origin, &recorded, ports)
    {
        let costs = behind.costs.into_iter().map(|cost| cost.with("leg", "server"));
        sheet.costs.extend(costs);
    }
}

/// Why nothing can be divided, where others sent the requests.
fn uncounted(recorded: &Recorded<'_>) -> Option<String> {
    let foreign = recorded.laps.iter().any(|lap| lap.load == Load::Foreign);
    (foreign && recorded.requests() == 0).then(|| {
        "no HTTP/1 responses of the service were seen, so there is nothing to divide by: nobody \
         sent anything, or it speaks HTTP/2, gRPC or TLS; assay observe --follow gives totals by \
         second then, and requests sent with --url, through whatever speaks so, are counted"
            .to_owned()
    })
}

fn loaded(
    sheet: &Sheet,
    origin: &Origin,
    recorded: &Recorded<'_>,
    ports: WirePorts,
) -> Result<Outcome, String> {
    let mut fold = WireFold::new(&recorded.windows(), ports);
    if recorded.laps.iter().any(|lap| lap.load == Load::Foreign) {
        fold = fold.by_route();
    }
    capture::packets_of(&sheet.folder(&recorded.folder), &mut fold)
        .map_err(|error| lost(&error))?;
    let outcome = fold.finish(origin);
    Ok(Outcome {
        costs: outcome.costs,
        integrity: outcome.integrity,
        statements: outcome.statements,
        responses: outcome.responses_on_wire,
        routes: outcome.routes,
    })
}

/// Trips of each route that others asked for, where the mixture tells them apart; nothing where
/// there is one route alone, whose trips are the totals.
fn by_path(origin: &Origin, integrity: &Integrity, routes: &[RouteCost]) -> Vec<Cost> {
    /// Standard errors on each side of an estimate: 95 % of a normal distribution.
    const WIDTH: f64 = 1.96;
    if routes.len() < 2 || integrity.against(Protocol::Postgres).is_some() {
        return Vec::new();
    }
    let cost = |route: &RouteCost| {
        let (amount, doubt) = match route.trips {
            RouteTrips::Counted(trips) => {
                (Amount::Measured(Figure::exact(trips, route.responses)), None)
            }
            RouteTrips::Estimated(found) => {
                let (value, half) = (found.value.max(0.0), WIDTH * found.standard_error);
                let (low, high) = ((value - half).max(0.0), value + half);
                let figure = Figure { value, low, high, samples: route.responses };
                (Amount::Measured(figure), Some("out of the mixture, by slices of 50 ms"))
            }
            RouteTrips::NotMeasured(reason) => (Amount::NotMeasured(reason.to_owned()), None),
        };
        let cost = origin.cost(Metric::PostgresFlights, Per::Request, amount);
        let cost = cost.of_kind(Kind::Noisy).with("path", &*route.route);
        doubt.into_iter().fold(cost, Cost::doubted)
    };
    routes.iter().map(cost).collect()
}

fn serial(
    sheet: &mut Sheet,
    origin: &Origin,
    recorded: &Recorded<'_>,
    manifest: &Manifest,
) -> Result<Outcome, String> {
    let folder = sheet.folder(&recorded.folder);
    // The request log lies beside the captures of its route.
    let route = folder.parent().unwrap_or(&folder);
    let slots = capture::requests(route).map_err(|error| lost(&error))?;
    if slots.is_empty() {
        return Err("the request log is empty".to_owned());
    }
    let mut fold = WireFold::serial(&slots, ports(&manifest.targets));
    capture::packets_of(&folder, &mut fold).map_err(|error| lost(&error))?;
    let outcome = fold.finish_serial(origin);
    let arm = || ArmName { subject: origin.subject.clone(), variant: origin.variant.clone() };
    let single = [(Which::Median, outcome.median), (Which::Slowest, outcome.slowest)];
    sheet.requests.extend(single.into_iter().filter_map(|(which, record)| {
        Some(OneRequest { arm: arm(), route: origin.route.clone(), which, record: record? })
    }));
    sheet.distributions.extend(outcome.distributions.into_iter().map(|distribution| Spread {
        arm: arm(),
        route: origin.route.clone(),
        distribution,
    }));
    Ok(Outcome {
        costs: outcome.costs,
        integrity: outcome.integrity,
        statements: outcome.statements,
        responses: outcome.responses_on_wire,
        routes: Vec::new(),
    })
}

pub(super) fn ports(targets: &[Target]) -> WirePorts {
    let of = |role: Role| -> Vec<u16> {
        let targets = targets.iter().filter(|target| target.role == role);
        targets.filter_map(|target| target.port).map(|port| port.0).collect()
    };
    // What a request of the service costs are its own trips: to the pooler, where there is one.
    let poolers = of(Role::Pooler);
    let postgres = if poolers.is_empty() { of(Role::Postgres) } else { poolers };
    WirePorts { http: of(Role::Subject), postgres, redis: of(Role::Redis) }
}

/// The servers behind a pooler; none where there is no pooler.
fn ports_behind(targets: &[Target]) -> Option<WirePorts> {
    targets.iter().find(|target| target.role == Role::Pooler)?;
    let behind = targets.iter().filter(|target| target.role == Role::Postgres);
    let postgres: Vec<u16> = behind.filter_map(|target| target.port).map(|port| port.0).collect();
    (!postgres.is_empty()).then(|| WirePorts { postgres, ..WirePorts::default() })
}

fn check(sheet: &mut Sheet, origin: &Origin, recorded: &Recorded<'_>, outcome: &Outcome) {
    let drops = Against::none("counts from the wire are not given");
    sheet.check(origin, "packets dropped", outcome.integrity.drops as f64, drops);
    faults(sheet, origin, &outcome.integrity);
    let foreign = recorded.laps.iter().any(|lap| lap.load == Load::Foreign);
    let sent = recorded.requests();
    if foreign {
        // There is no other count.
    } else if outcome.responses == 0 && sent > 0 {
        let why = "no HTTP/1 responses there (HTTP/2, gRPC, TLS, or another port): the driver's \
                   own count is used";
        sheet.unchecked(origin, "responses on the wire", why);
    } else {
        responses_of(sheet, origin, recorded, outcome);
    }
    statements(sheet, origin, recorded, outcome);
}

fn responses_of(sheet: &mut Sheet, origin: &Origin, recorded: &Recorded<'_>, outcome: &Outcome) {
    let responses = Against {
        expected: recorded.requests() as f64,
        tolerance: 0.0,
        source: "answers that the load driver received",
        otherwise: "the wire and the load driver disagree: counts per request are doubtful",
    };
    sheet.check(origin, "responses on the wire", outcome.responses as f64, responses);
}

/// Faults of connections inside windows, named by kind.
fn faults(sheet: &mut Sheet, origin: &Origin, integrity: &Integrity) {
    // A connection that was open before is understood from its first message boundary on, and
    // windows begin when everything is quiet.
    let counting = || integrity.faults.iter().filter(|((_, kind), _)| *kind != "joined");
    let kinds: Vec<String> = counting()
        .map(|((protocol, kind), count)| format!("{count} × {kind} ({})", protocol.word()))
        .collect();
    let meaning =
        format!("{}: counts of that protocol are not given, or are lower bounds", kinds.join(", "));
    let found: u64 = counting().map(|(_, count)| count).sum();
    sheet.check(
        origin,
        "gaps and other faults in connections",
        found as f64,
        Against::none(&meaning),
    );
}

/// Executions on the wire against the server's own count.
fn statements(sheet: &mut Sheet, origin: &Origin, recorded: &Recorded<'_>, outcome: &Outcome) {
    const COUNTED: &str = "statements executed";
    let executions = outcome.statements.iter().map(|statement| statement.executions).sum::<u64>();
    if outcome.integrity.against(Protocol::Postgres).is_some() {
        return sheet.unchecked(origin, COUNTED, "the wire's own count is not whole");
    }
    let calls: Option<u64> = recorded.laps.iter().map(|lap| lap.postgres_calls).sum();
    let Some(calls) = calls else {
        return sheet.unchecked(origin, COUNTED, "pg_stat_statements was not asked");
    };
    let against = Against {
        expected: calls as f64,
        tolerance: (calls as f64 * STATEMENTS_TOLERANCE).floor(),
        source: "calls that pg_stat_statements counted",
        otherwise: "the wire and the server disagree about statements",
    };
    sheet.check(origin, COUNTED, executions as f64, against);
}

fn used(origin: &Origin, statement: &StatementCost) -> Option<StatementUse> {
    let per_request = statement.per_request?;
    let executions = statement.executions.max(1) as f64;
    Some(StatementUse {
        arm: ArmName { subject: origin.subject.clone(), variant: origin.variant.clone() },
        route: origin.route.clone(),
        pass: origin.pass.clone(),
        sql: statement.sql.clone(),
        told_apart: statement.told_apart,
        reason: statement.reason?.word().to_owned(),
        looks_like_a_check: statement.looks_like_a_check,
        per_request,
        prepared_per_request: per_request * statement.prepared as f64 / executions,
    })
}
