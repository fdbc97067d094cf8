//! Pictures and lines of seconds that are made from real frames or from none.

use assay_analyses::costs::wire::{Integrity, StatementCost};
use assay_analyses::regression::Coefficient;

use super::*;

/// A second with these faults, in which nothing passed on the wire.
fn quiet(faults: &[(Protocol, &'static str)]) -> Second {
    let integrity = Integrity {
        faults: faults.iter().map(|&fault| (fault, 1)).collect(),
        ..Integrity::default()
    };
    let taken =
        Taken { counts: Counts::default(), statements: Vec::new(), integrity, routes: Vec::new() };
    Second {
        length: Duration::from_secs(1),
        wire: Ok(taken),
        driven: Some(50),
        cpu: vec![("subject", Some(Duration::from_millis(250))), ("postgres", None)],
    }
}

fn screen(seconds: impl IntoIterator<Item = Second>) -> Screen {
    let mut screen = Screen::new("web, 1 process, port 80".into(), vec![Protocol::Postgres], false);
    seconds.into_iter().for_each(|second| screen.add(second));
    screen
}

#[test]
fn where_responses_cannot_be_counted_the_drivers_count_is_used_and_it_is_said() {
    let screen = screen([quiet(&[(Protocol::Http, "http/2")]), quiet(&[])]);
    let expected = "\
web, 1 process, port 80 · 2 s · q or Ctrl-C ends
                                     last second      last 2 s
Requests                                   50.00         50.00  /s
  responses are not countable on the wire (HTTP/2): the driver's count is used
Postgres round trips                        0.00          0.00  a request
CPU subject                                25.00         25.00  % of a core
                                           5,000         5,000  µs a request
CPU postgres: not measured: its processes are gone
";
    assert_eq!(screen.picture(100), expected);
    let line = "12:00:00  50.00 requests/s · Postgres trips 0.00 a request · statements 0.00 a \
                request · CPU subject 25 %";
    assert_eq!(screen.line("12:00:00"), line);
}

#[test]
fn encrypted_connections_to_postgres_are_never_0() {
    let screen = screen([quiet(&[(Protocol::Postgres, "encrypted")])]);
    let picture = screen.picture(100);
    assert!(picture.contains("Postgres: not measured: 1 × connections are encrypted"), "{picture}");
    assert!(!picture.contains("round trips"), "{picture}");
    assert!(screen.line("").contains("Postgres trips not measured"), "{}", screen.line(""));
}

#[test]
fn routes_and_statements_fit_the_columns() {
    let mut second = quiet(&[]);
    let Ok(taken) = &mut second.wire else { panic!("it was heard") };
    let route = |name: &str, responses, trips| RouteCost { route: name.into(), responses, trips };
    taken.routes = vec![
        route("GET /a", 40, RouteTrips::Counted(6.0)),
        route(
            "GET /b",
            10,
            RouteTrips::Estimated(Coefficient { value: 1.0, standard_error: 0.05 }),
        ),
        route("GET /c", 1, RouteTrips::NotMeasured("too few slices yet to tell routes apart")),
    ];
    taken.statements = vec![StatementCost {
        sql: format!("SELECT {}\u{1b}[2J", "x".repeat(200)),
        told_apart: true,
        reason: Some(Reason::User),
        looks_like_a_check: false,
        executions: 100,
        prepared: 0,
        rows: 0,
        bytes: 0,
        longest_run: 1,
        per_request: None,
    }];
    let picture = screen([second]).picture(100);
    assert!(
        picture.contains("  GET /a                                   40.00  6.00\n"),
        "{picture}"
    );
    assert!(picture.contains("10.00  1.00 ± 0.05\n"), "{picture}");
    assert!(picture.contains("1.00  not measured: too few slices"), "{picture}");
    assert!(picture.lines().all(|line| line.chars().count() <= 100), "{picture}");
    assert!(!picture.contains('\u{1b}'), "{picture}");
}

#[test]
fn what_is_kept_is_ten_seconds() {
    let screen = screen((0..100).map(|_| quiet(&[])));
    assert_eq!(screen.seconds.len(), SECONDS);
    assert!(screen.picture(100).contains(" 100 s ·"));
}
