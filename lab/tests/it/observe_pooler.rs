//! A pooler between a service and its Postgres: both legs, told apart.

use std::fs;
use std::io::{Write, stderr};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::MetadataExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::unistd::User;

use crate::observe_far::{Running, Site, cannot_be_run};

/// Asks the server before each transaction whether it is there, so that the two legs differ by one
/// trip.
fn settings(site: &Site, port: u16, behind: &str) -> String {
    let folder = site.folder.path().display();
    format!(
        "[databases]\napp = {behind} port={} dbname=app\n[pgbouncer]\n\
         listen_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n\
         auth_type = plain\nauth_file = {folder}/users\npool_mode = transaction\n\
         server_check_delay = 0\nserver_check_query = SELECT 1\nserver_tls_sslmode = disable\n",
        site.postgres.service.port.0
    )
}

/// Starts pgbouncer before the site's Postgres; the URL through it.
fn pooler(site: &Site, behind: &str) -> (Running, String) {
    let free = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = free.local_addr().expect("bound").port();
    drop(free);
    let url = &site.postgres.url;
    let (user, password) = url
        .trim_start_matches("postgres://")
        .split_once('@')
        .and_then(|(credentials, _)| credentials.split_once(':'))
        .expect("a URL with credentials");
    let users = format!("\"{user}\" \"{password}\"\n");
    fs::write(site.folder.path().join("users"), users).expect("ours");
    let file = site.folder.path().join("pgbouncer.ini");
    fs::write(&file, settings(site, port, behind)).expect("ours");
    let mut command = Command::new("pgbouncer");
    // It does not serve as root, and must reach the folder of the socket.
    let owner = fs::metadata(site.socket()).expect("it is there").uid();
    let owner = User::from_uid(owner.into()).expect("users are known").expect("this one, too");
    command.args(["-q", "-u", &owner.name]).arg(&file).stderr(Stdio::null());
    let running = Running::start(&mut command);
    let until = Instant::now() + Duration::from_secs(20);
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(Instant::now() < until, "pgbouncer does not listen");
        std::thread::sleep(Duration::from_millis(20));
    }
    (running, site.url(&format!("127.0.0.1:{port}"), "?sslmode=disable"))
}

#[test]
fn trips_to_the_pooler_and_its_own_to_postgres_are_told_apart() {
    let there = Command::new("pgbouncer").arg("--version").output().is_ok();
    if !there {
        let _gone = writeln!(stderr(), "left out: no pgbouncer; Debian package pgbouncer");
    }
    if cannot_be_run() || !there {
        return;
    }
    let site = Site::open();
    let folder = site.socket().parent().expect("a folder").display().to_string();
    for behind in ["host=127.0.0.1".to_owned(), format!("host={folder}")] {
        let (_pooler, url) = pooler(&site, &behind);
        let (_service, bind) = site.service(&url);
        let url = format!("http://{bind}/flush");
        let results = site.observe(&["--url", &url, "--serial", "20"]);
        let server = [("leg", "server")];
        assert_eq!(results.amount("serial", "postgres.flights", &[]), 2.0, "{behind}");
        // Flush, then Sync; before them the pooler's own question, and one more trip where its
        // version takes two spellings of UTF-8 for two encodings.
        let trips = results.amount("serial", "postgres.flights", &server);
        assert!((3.0..=4.0).contains(&trips), "{behind}: {trips}");
        assert_eq!(results.amount("serial", "postgres.executions", &[]), 1.0, "{behind}");
        // All of them but the Flush run a statement.
        let statements = results.amount("serial", "postgres.executions", &server);
        assert_eq!(statements, trips - 1.0, "{behind}");
        results.says("Postgres is spoken to through pgbouncer");
        results.says("those of the pooler to Postgres at");
        let options = ["--url", &url, "--duration", "2", "--pass", "fair"];
        let fair = site.observe(&options);
        for process in ["pooler", "postgres"] {
            let used = fair.amount("fair", "cpu.time", &[("process", process)]);
            assert!(used > 0.0, "{process} {behind}");
        }
    }
}
