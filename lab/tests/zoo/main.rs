//! The zoo: real Postgres clients perform operations whose round trips are known, while the wire
//! is captured, and the counts must be those of `expected.tsv`.
//!
//! An operation is delimited by the talk with its client: the test names it, the client answers,
//! and what passes until a moment after the answer is the operation's.

mod client;
mod expected;
mod server;

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use assay::pinning::{CoreSet, usable_cores};
use assay::probe::{ProbeSession, ProbeTarget};
use assay_analyses::costs::wire::{Count, Counts, WireFold, WirePorts};
use assay_analyses::trips::Reason;
use assay_analyses::window::Window;
use assay_captures::capture;
use assay_captures::ids::Role;
use assay_captures::pcap;
use assay_captures::units::Span;

use self::client::Client;
use self::expected::{Books, Row, rows};
use self::server::Server;

/// What one operation did on the wire.
struct Measured {
    row: Row,
    got: Result<Books, String>,
}

/// One client's version and what it did.
struct Visit {
    version: String,
    measured: Vec<Measured>,
}

fn say(text: &str) {
    let _gone = writeln!(io::stderr(), "{text}");
}

fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("lab lies in the workspace")
}

/// The wire probe, built if it is not.
fn probe() -> PathBuf {
    let folder = Path::new(env!("CARGO_BIN_EXE_assay")).parent().expect("programs lie in a folder");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--quiet", "--locked", "-p", "assay-probes", "--bin", "assay-probe-wire"]);
    cargo.arg("--target-dir").arg(folder.parent().expect("a target folder"));
    if folder.ends_with("release") {
        cargo.arg("--release");
    }
    let status = cargo.current_dir(workspace()).status().expect("cargo starts");
    assert!(status.success(), "the wire probe cannot be built");
    folder.join("assay-probe-wire")
}

/// Whether packets can be recorded and a Postgres started; says so where not.
fn can_record() -> bool {
    let root = nix::unistd::geteuid().is_root();
    let installed = assay::tools::INITDB.find().is_some();
    if !root || !installed {
        say("zoo: left out, since it needs root to record packets, and an installed Postgres");
    }
    root && installed
}

/// Has a client perform its rows and reads from the capture what each did.
fn visit(server: &Server, program: &Path, mut client: Client, rows: Vec<Row>) -> Visit {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let cores = CoreSet::new(usable_cores().expect("cores")).expect("at least one");
    let (role, port) = (Role::Postgres, server.port());
    let target = ProbeTarget { role, pids: Vec::new(), port, path: None };
    let out = folder.path().join("wire");
    let probe = ProbeSession::start("wire", program, &out, &[target], &[], true, &cores)
        .expect("the probe records");
    let spans: Vec<_> = rows.iter().map(|row| client.perform(&row.operation)).collect();
    probe.stop().expect("the capture is closed");
    let mut bytes = Vec::new();
    capture::feed_packets(&out, |chunk| bytes.extend_from_slice(chunk)).expect("a capture");
    let measured = rows.into_iter().zip(spans).map(|(row, span)| Measured {
        row,
        got: span.map(|span| books(&count(&bytes, span, server))),
    });
    let measured = measured.collect();
    Visit { version: client.version().to_owned(), measured }
}

fn count(capture: &[u8], span: Span, server: &Server) -> Counts {
    let ports = WirePorts { postgres: vec![server.port().0], ..WirePorts::default() };
    let mut fold = WireFold::new(&[Window { span, requests: 1 }], ports);
    let mut decoder = pcap::Decoder::default();
    decoder.feed(capture, &mut fold);
    decoder.finish(&mut fold);
    let outcome = fold.finish(&assay_analyses::cost::Origin {
        subject: String::new(),
        variant: String::new(),
        route: String::new(),
        pass: "zoo".to_owned(),
        capture: None,
    });
    assert_eq!(outcome.integrity.problems, Vec::<String>::new());
    outcome.totals
}

fn books(counts: &Counts) -> Books {
    let set_up = counts.get(Count::SetUpFlights);
    let mut why = Vec::new();
    if set_up > 0 {
        why.push(format!("set-up {set_up}"));
    }
    for reason in Reason::ALL {
        let trips = counts.by_reason(Count::Flights, reason);
        if trips > 0 {
            why.push(format!("{} {trips}", reason.word()));
        }
    }
    Books {
        trips: set_up + counts.get(Count::Flights),
        ready: counts.get(Count::ReadyForQuery),
        executions: counts.get(Count::Executions),
        why: if why.is_empty() { "-".to_owned() } else { why.join(", ") },
    }
}

/// Shows a visit; how many of its rows are not as expected.
fn judge(visit: &Visit) -> usize {
    say(&format!("\n{}", visit.version));
    let head = ["operation", "table", "expected", "got"];
    say(&format!("  {:<38} {:>6}  {:<44} {}", head[0], head[1], head[2], head[3]));
    let mut wrong = 0;
    for Measured { row, got } in &visit.measured {
        let is_right = got.as_ref() == Ok(&row.books);
        wrong += usize::from(!is_right);
        let expected = row.books.to_string();
        let got = match got {
            Ok(_) if is_right => "the same".to_owned(),
            Ok(got) => format!("{got}   ✗ DIFFERS"),
            Err(said) => format!("{said}   ✗ FAILED"),
        };
        say(&format!("  {:<38} {:>6}  {expected:<44} {got}", row.operation, row.known));
    }
    wrong
}

/// The visits as the table of `ZOO.md`.
fn page(visits: &[Visit]) -> String {
    let mut page = String::new();
    for visit in visits {
        let _ = writeln!(page, "### {}\n", visit.version);
        page.push_str("| operation | proxy: trips/Ready | trips | Ready | executions | why | |\n");
        page.push_str("| --- | --: | --: | --: | --: | --- | --- |\n");
        for Measured { row, got } in &visit.measured {
            let Ok(Books { trips, ready, executions, why }) = got else { continue };
            let (operation, known, explanation) = (&row.operation, &row.known, &row.explanation);
            let _ = writeln!(
                page,
                "| {operation} | {known} | {trips} | {ready} | {executions} | {why} | \
                 {explanation} |"
            );
        }
        page.push('\n');
    }
    page
}

fn run(names: &[&str], built: Option<&Path>, wanted: impl Fn(&Row) -> bool) {
    let program = probe();
    let server = Server::start();
    let mut visits = Vec::new();
    let mut wrong = 0;
    for name in names {
        let rows: Vec<Row> = rows().into_iter().filter(|row| row.client == **name).collect();
        let rows: Vec<Row> = rows.into_iter().filter(&wanted).collect();
        assert!(!rows.is_empty(), "expected.tsv has no rows for {name}");
        let client = Client::start(name, built, &server.environment());
        let visit = visit(&server, &program, client, rows);
        wrong += judge(&visit);
        visits.push(visit);
    }
    if let Some(file) = std::env::var_os("ASSAY_ZOO_PAGE") {
        std::fs::write(&file, page(&visits)).expect("the page can be written");
    }
    let rows: usize = visits.iter().map(|visit| visit.measured.len()).sum();
    say(&format!("\n{} clients, {rows} operations, {wrong} not as expected", visits.len()));
    assert_eq!(wrong, 0, "operations that are not as expected; see above");
}

#[test]
fn every_row_that_differs_from_the_table_of_the_proxy_says_why() {
    for row in rows() {
        let same = row.known == "-" || row.known == row.books.known();
        assert!(
            same || !row.explanation.is_empty(),
            "{}, {}: {} by the proxy, {} here, without an explanation",
            row.client,
            row.operation,
            row.known,
            row.books.known()
        );
    }
}

#[test]
fn clients_that_debian_packages_make_the_trips_that_are_known() {
    if can_record() {
        // Debian's psycopg comes without its pool, and its asyncpg has no hook for resets.
        run(&["psycopg", "asyncpg"], None, |row| {
            let left_out = if row.client == "psycopg" { "pool" } else { "without reset" };
            !row.operation.contains(left_out)
        });
    }
}

#[test]
fn all_clients_of_the_zoo_make_the_trips_that_are_known() {
    let Some(built) = std::env::var_os("ASSAY_ZOO") else {
        say("zoo: the clients that need building are left out; `just zoo` builds and asks them");
        return;
    };
    assert!(can_record(), "the zoo was asked for and cannot be measured");
    let only = std::env::var("ASSAY_ZOO_ONLY").unwrap_or_default();
    let only: Vec<&str> = only.split_whitespace().collect();
    let mut names: Vec<&str> = client::ALL.to_vec();
    names.retain(|name| only.is_empty() || only.contains(name));
    assert!(!names.is_empty(), "no client is called {only:?}; there are {:?}", client::ALL);
    run(&names, Some(Path::new(&built)), |_| true);
}
