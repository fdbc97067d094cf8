//! A made-up report for tests. Its figures were measured nowhere and are too round to be true.

use std::collections::BTreeMap;

use assay_analyses::aa::SelfTest;
use assay_analyses::claims;
use assay_analyses::compare::ArmName;
use assay_analyses::comparisons::{self, FairLaps, LapCpu};
use assay_analyses::cost::{Amount, Cost, Figure, Origin, Per};
use assay_analyses::costs::wire::{Distribution, RequestRecord, RequestTrip};
use assay_analyses::findings::Finding;
use assay_analyses::flame::Flame;
use assay_analyses::metric::{Kind, Metric};
use assay_analyses::observer;
use assay_analyses::trips;
use assay_analyses::trips::Reason;
use assay_captures::lap::{Lap, Latency, Load, ProbeState};
use assay_captures::manifest::Status;
use assay_captures::run_record::{
    Arm, Claim, Direction, Expectation, Pass, Route, RunRecord, Service,
};
use assay_captures::units::{Moment, Nanos, Span};
use assay_captures::version::FormatVersion;

use crate::report::{Check, OneRequest, Outcome, Paths, Profile, Report, Spread, Which};

const VARIANTS: [(&str, &str, &str, &str); 4] = [
    ("query-ping-on", "per query, ping on", "query", "on"),
    ("query-ping-off", "per query, ping off", "query", "off"),
    ("page-ping-on", "per page, ping on", "page", "on"),
    ("page-ping-off", "per page, ping off", "page", "off"),
];

/// Four variants, two routes.
pub(crate) fn report() -> Report {
    let arms = arms();
    let (laps, cpu) = fair_laps();
    let fair = FairLaps { laps: &laps, cpu: &cpu };
    let mut costs = assay_analyses::laps::costs(&laps);
    costs.extend(counted());
    costs.extend(timed(&cpu, &laps));
    let comparisons = comparisons::all(fair, &costs, &arms);
    let ping_prices = comparisons::ping_prices(fair, &costs, &arms);
    let claims = claims::judge(&[claim()], fair, &costs);
    Report {
        run: run(arms),
        comparisons,
        ping_prices,
        costs,
        findings: vec![finding()],
        claims,
        self_tests: vec![(Metric::Throughput, SelfTest { cells: 2, p_value: 0.25, noise: 0.012 })],
        checks: checks(),
        observer_effects: observer::effects(&probed_laps(), &BTreeMap::new()),
        pass_effects: observer::pooled(&probed_laps(), &probed_cpu()),
        laps,
        lap_cpu: cpu,
        requests: vec![request()],
        distributions: distributions(),
        profiles: profiles(),
        paths: Paths {
            run: "runs/2000-01-01T00-00-00-toy".into(),
            results: "runs/2000-01-01T00-00-00-toy/results.json".into(),
            tables: "runs/2000-01-01T00-00-00-toy/tables.md".into(),
            page: "runs/2000-01-01T00-00-00-toy/report.html".into(),
        },
    }
}

fn arms() -> Vec<Arm> {
    VARIANTS
        .into_iter()
        .map(|(variant, title, acquire, ping)| Arm {
            subject: "toy".into(),
            variant: variant.into(),
            title: title.into(),
            environment: [("ACQUIRE", acquire), ("PING", ping)]
                .into_iter()
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
                .collect(),
        })
        .collect()
}

fn run(arms: Vec<Arm>) -> RunRecord {
    let pairs = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
        pairs.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect()
    };
    let route = |name: &str, path: &str| Route {
        name: name.into(),
        method: "GET".into(),
        path: path.into(),
        query_budget: Some(3),
    };
    let pass = |name: &str, status, reason: Option<&str>| Pass {
        name: name.into(),
        status,
        reason: reason.map(str::to_owned),
    };
    RunRecord {
        version: FormatVersion::CURRENT,
        assay: "0.0.0".into(),
        status: Status::Incomplete,
        reason: Some("pass cpu failed".into()),
        experiment: "toy".into(),
        command: vec!["assay".into(), "run".into(), "toy.toml".into()],
        started: Moment(946_684_800_000_000_000),
        ended: Some(Moment(946_684_920_000_000_000)),
        arms,
        routes: vec![route("detail", "/toy/{name}"), route("cached", "/cached")],
        services: vec![Service {
            kind: "postgres".into(),
            version: "99.9".into(),
            port: 1,
            private: true,
            settings: BTreeMap::new(),
        }],
        connections: 10,
        pinning: pairs(&[("app", "0"), ("load", "1"), ("services", "0")]),
        machine: pairs(&[("cores", "2"), ("kernel", "0.0-toy")]),
        versions: pairs(&[("rustc", "0.0.0")]),
        copy: None,
        claims: Vec::new(),
        passes: vec![
            pass("fair", Status::Complete, None),
            pass("serial", Status::Complete, None),
            pass("cpu", Status::Failed, Some("perf is not installed; apt-get install linux-perf")),
        ],
        select_1: Some(Nanos(50_000)),
        calibration: None,
        notes: vec!["services and subject share core 0".into()],
    }
}

fn lap(variant: &str, route: &str, round: u32, order: u32, rate: u64) -> Lap {
    let start = Moment(946_684_800_000_000_000).after(Nanos(u64::from(order) * 2_000_000_000));
    Lap {
        pass: "fair".into(),
        subject: "toy".into(),
        variant: variant.into(),
        route: route.into(),
        round,
        order,
        probe: ProbeState::None,
        load: Load::Closed { connections: 10 },
        span: Span { start, end: start.after(Nanos(1_100_000_000)) },
        sent_until: start.after(Nanos::SECOND),
        answered_in_time: rate,
        requests: rate,
        good: rate,
        non_2xx: 0,
        mismatched: 0,
        errors: BTreeMap::new(),
        body_bytes: 1000 * rate,
        latency: Latency {
            min: Nanos(500_000),
            max: Nanos(20_000_000),
            mean: 1e10 / rate as f64,
            buckets: vec![(10_000_000_000 / rate, rate - 100), (20_000_000, 100)],
        },
        postgres_calls: None,
        spoiled: None,
        generator: None,
        timeline: Vec::new(),
        captures: BTreeMap::new(),
    }
}

/// Six rounds; each variant has its rate, and each round its drift.
fn fair_laps() -> (Vec<Lap>, LapCpu) {
    let mut laps = Vec::new();
    let mut cpu = LapCpu::new();
    for (route, rates) in [("detail", [2000, 2500, 2100, 2020]), ("cached", [9000; 4])] {
        for round in 0..6 {
            for ((variant, ..), (rate, arm)) in VARIANTS.into_iter().zip(rates.into_iter().zip(0..))
            {
                let order = u32::try_from(laps.len()).expect("few laps");
                let drift = [0, 40, -20, 10, 60, -30][round as usize];
                let own = [0, 7, -35, 30][((round + arm) % 4) as usize];
                let rate: i64 = rate + drift + if arm == 0 { 0 } else { own };
                laps.push(lap(variant, route, round, order, rate.try_into().expect("a rate")));
                let subject = 0.4 / rate as f64;
                let cached = route == "cached";
                let pings = [30e-6, 0.0, 12e-6, 0.0][arm as usize];
                let postgres = if cached { 0.0 } else { 100e-6 + pings + 0.1 / rate as f64 };
                let processes =
                    [("subject".to_owned(), subject), ("postgres".to_owned(), postgres)];
                cpu.insert(order, processes.into());
            }
        }
    }
    (laps, cpu)
}

fn probed_laps() -> Vec<Lap> {
    use ProbeState::{Off, On};
    [(Off, 2000), (On, 1940), (On, 1950), (Off, 2020), (Off, 1990), (On, 1930)]
        .into_iter()
        .zip(0..)
        .map(|((probe, rate), order)| {
            let lap = lap("query-ping-on", "detail", order / 2, order, rate);
            Lap { pass: "wire".into(), probe, ..lap }
        })
        .collect()
}

fn probed_cpu() -> BTreeMap<u32, f64> {
    [200e-6, 206e-6, 208e-6, 200e-6, 200e-6, 209e-6]
        .into_iter()
        .zip(0..)
        .map(|(s, o)| (o, s))
        .collect()
}

fn origin(variant: &str, route: &str, pass: &str) -> Origin {
    Origin {
        subject: "toy".into(),
        variant: variant.into(),
        route: route.into(),
        pass: pass.into(),
        capture: Some(format!("captures/{pass}/toy.{variant}/{route}/probe")),
    }
}

fn exact(value: f64) -> Amount {
    Amount::Measured(Figure::exact(value, 500))
}

fn noisy(value: f64, half: f64) -> Amount {
    Amount::Measured(Figure { value, low: value - half, high: value + half, samples: 6 })
}

/// Exact counts: of round trips 3 are statements, the rest pool pings.
fn counted() -> Vec<Cost> {
    let mut costs = Vec::new();
    let trips = [(9.0, 6.0), (6.0, 3.0), (5.0, 4.0), (4.0, 3.0)];
    for ((variant, ..), (trips, awaited)) in VARIANTS.into_iter().zip(trips) {
        let serial = origin(variant, "detail", "serial");
        let count = |metric, value| serial.cost(metric, Per::Request, exact(value));
        let flights = |value| count(Metric::PostgresFlights, value);
        costs.extend([
            flights(trips),
            flights(3.0).with("reason", "user"),
            flights(trips - 3.0).with("reason", "pool ping"),
            flights(0.0).with("reason", "transaction"),
            count(Metric::PostgresReadyForQuery, trips),
            count(Metric::PostgresAwaitedFlights, awaited),
            count(Metric::PostgresExecutions, 3.0),
            count(Metric::PostgresRows, 14.0),
            count(Metric::PostgresBytesReceived, 3000.0),
            count(Metric::RedisCommands, 0.0),
        ]);
        let wire = origin(variant, "detail", "wire");
        costs.push(wire.cost(Metric::PostgresFlights, Per::Request, exact(trips + 0.002)));
        let cached = origin(variant, "cached", "serial");
        costs.push(cached.cost(Metric::PostgresFlights, Per::Request, exact(0.0)));
        costs.push(cached.cost(Metric::PostgresRows, Per::Request, exact(0.0)));
        costs.push(cached.cost(Metric::RedisCommands, Per::Request, exact(1.0)));
        costs.push(cached.cost(Metric::RedisFlights, Per::Request, exact(1.0)));
        let allocations = origin(variant, "detail", "allocations");
        let blocks =
            allocations.cost(Metric::AllocationsBlocks, Per::Request, exact(300.0 + trips));
        let bytes = exact(40_960.0 + 1024.0 * trips);
        costs.push(blocks);
        costs.push(allocations.cost(Metric::AllocationsBytes, Per::Request, bytes));
        let calls = origin(variant, "detail", "syscalls");
        let call = |value, half| calls.cost(Metric::Syscalls, Per::Request, noisy(value, half));
        costs.push(call(2.0 * trips + 1.0, 0.5));
        costs.push(call(trips, 0.0).with("name", "sendto"));
        costs.push(call(trips + 0.5, 0.5).with("name", "recvfrom"));
    }
    costs
}

fn timed(cpu: &LapCpu, laps: &[Lap]) -> Vec<Cost> {
    let mut costs = Vec::new();
    for (variant, ..) in VARIANTS {
        for route in ["detail", "cached"] {
            for process in ["subject", "postgres"] {
                let values: Vec<f64> = laps
                    .iter()
                    .filter(|lap| lap.variant == variant && lap.route == route)
                    .map(|lap| cpu[&lap.order][process])
                    .collect();
                let amount =
                    Amount::Measured(assay_analyses::laps::median_figure(&values).expect("laps"));
                let fair = origin(variant, route, "fair");
                costs.push(
                    fair.cost(Metric::CpuTime, Per::Request, amount).with("process", process),
                );
            }
        }
        let fair = origin(variant, "detail", "fair");
        for (kind, times) in [("voluntary", 0.5), ("involuntary", 4.0)] {
            let cost = fair.cost(Metric::ContextSwitches, Per::Request, noisy(times, 0.2));
            costs.push(cost.with("kind", kind).with("process", "subject"));
        }
        let memory = fair.cost(Metric::MemoryResident, Per::Nothing, noisy(8e6, 1e5));
        costs.push(memory.with("process", "subject").with("rule", "highest CPU of six"));
        let idle = origin(variant, "detail", "serial");
        let time = |metric, micros: f64| {
            idle.cost(metric, Per::Request, noisy(micros * 1e-6, 10e-6)).doubted("idle machine")
        };
        costs.push(time(Metric::PhaseBefore, 100.0));
        costs.push(time(Metric::Wait, 900.0).with("on", "postgres"));
        let phase = |name: &str, amount| {
            let cost =
                origin(variant, "detail", "cpu").cost(Metric::CpuPhase, Per::Request, amount);
            cost.with("process", "subject")
                .with("phase", name)
                .with("view", "exclusive")
                .of_kind(Kind::Sampled)
        };
        costs.push(phase("tokio", noisy(90e-6, 5e-6)));
        costs.push(phase(
            "tls",
            Amount::NotMeasured("too few samples (3); counted in other".into()),
        ));
        let postgres = phase("kernel: tcp", noisy(60e-6, 4e-6));
        costs.push(postgres.with("process", "postgres"));
        if variant == "query-ping-on" {
            costs.push(phase("sqlx", noisy(80e-6, 4e-6)));
            costs.push(phase("other", noisy(120e-6, 6e-6)));
        } else {
            let reason = "perf is not installed";
            costs.push(phase("sqlx", Amount::NotMeasured(reason.into())));
            costs.push(phase("other", Amount::NotMeasured(reason.into())));
        }
    }
    costs
}

fn finding() -> Finding {
    let arm = |variant: &str| ArmName { subject: "toy".into(), variant: variant.into() };
    Finding {
        rule: "pool-ping",
        route: "detail".into(),
        arms: vec![arm("query-ping-on")],
        what: "6 of 9 round trips only ask whether the connection still works".into(),
        why: "the pool pings Postgres whenever a connection is taken".into(),
        shown: "the variant per query, ping off, which differs in PING alone, has 3 fewer".into(),
        not_shown: Some("who sends the 3 that remain".into()),
        hypothesis: false,
    }
}

fn claim() -> Claim {
    let expect = |metric: &str, change, by| Expectation {
        route: "detail".into(),
        metric: metric.into(),
        labels: BTreeMap::new(),
        change,
        by,
    };
    Claim {
        name: "pool-ping".into(),
        cause: "the pool pings Postgres whenever a connection is taken".into(),
        subject: "toy".into(),
        base: "query-ping-on".into(),
        flipped: "query-ping-off".into(),
        expectations: vec![
            expect("postgres.flights", Direction::Falls, Some(0.3)),
            expect("throughput", Direction::Rises, None),
            expect("allocations.bytes", Direction::Stays, None),
        ],
    }
}

fn checks() -> Vec<Check> {
    let mut checks = Vec::new();
    for (variant, ..) in VARIANTS {
        let arm = Some(ArmName { subject: "toy".into(), variant: variant.into() });
        let check = |counted: &str, found: f64, expected: f64, against: &str, outcome| Check {
            pass: "wire".into(),
            arm: arm.clone(),
            route: Some("detail".into()),
            capture: Some(format!("captures/wire/toy.{variant}/detail/wire")),
            counted: counted.into(),
            found,
            expected,
            against: against.into(),
            outcome,
        };
        let late = variant == "page-ping-off";
        checks.push(check("packets dropped", 0.0, 0.0, "", Outcome::Holds));
        let outcome = if late {
            Outcome::Broken("one response is missing: counts may be low by 0.1 %".into())
        } else {
            Outcome::Holds
        };
        let found = if late { 999.0 } else { 1000.0 };
        let against = "received by the load driver";
        checks.push(check("responses on the wire", found, 1000.0, against, outcome));
    }
    checks
}

fn request() -> OneRequest {
    let trip = |start: u64, reason, text: &str| RequestTrip {
        service: trips::Service::Postgres,
        start: Nanos(start),
        end: Nanos(start + 100_000),
        reason: Some(reason),
        set_up: false,
        awaited: start < 1_000_000,
        after_response: start > 1_000_000,
        text: text.into(),
    };
    OneRequest {
        arm: ArmName { subject: "toy".into(), variant: "query-ping-on".into() },
        route: "detail".into(),
        which: Which::Median,
        record: RequestRecord {
            slot: 7,
            length: Nanos(1_000_000),
            trips: vec![
                trip(200_000, Reason::PoolPing, ""),
                trip(400_000, Reason::User, "SELECT * FROM toys WHERE name = $1"),
                trip(1_100_000, Reason::PoolPing, ""),
            ],
        },
    }
}

fn distributions() -> Vec<Spread> {
    let of = |(variant, trips): (&str, u64)| Spread {
        arm: ArmName { subject: "toy".into(), variant: variant.into() },
        route: "detail".into(),
        distribution: Distribution {
            metric: Metric::PostgresFlights,
            steady: [(trips, 496)].into(),
            preparing: [(trips + 1, 4)].into(),
        },
    };
    [("query-ping-on", 9), ("query-ping-off", 6)].map(of).into()
}

fn profiles() -> Vec<Profile> {
    let of = |(variant, pings): (&str, u64)| {
        let mut flame = Flame::default();
        for (stack, samples) in [
            ("start_thread;toy::handle;sqlx::query", 40),
            ("start_thread;toy::handle;sqlx::ping", pings),
            ("start_thread;toy::handle;toy::render", 30),
        ] {
            (0..samples).for_each(|_| flame.add(stack.split(';')));
        }
        Profile {
            arm: ArmName { subject: "toy".into(), variant: variant.into() },
            route: "detail".into(),
            process: "subject".into(),
            tree: flame.tree(0.01),
            per_request: 200e-6,
        }
    };
    [("query-ping-on", 30), ("query-ping-off", 10)].map(of).into()
}
