//! Services whose database is not at an address of this machine's loopback: on a Unix socket, on
//! another host, or with the service itself in a container's network namespace.

use std::fs;
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use assay::experiment::PostgresSettings;
use assay::pinning::{CoreSet, usable_cores};
use assay::services::Postgres;
use assay::ui::Ui;
use nix::sched::{CloneFlags, unshare};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{Signal, kill};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::guarded_run::services_are_installed;
use crate::observe::Results;

/// A host between which and this one packets pass: whatever is sent to its port 5432 goes on to a
/// Postgres's Unix socket, which no network separates.
const RELAY: &str = r#"
import socket, sys, threading
def pass_on(a, b):
    try:
        while data := a.recv(65536):
            b.sendall(data)
    except OSError:
        pass
    for s in (a, b):
        try:
            s.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
listener = socket.create_server((sys.argv[1], int(sys.argv[2])))
print("ready", flush=True)
while True:
    client, _ = listener.accept()
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    server = socket.socket(socket.AF_UNIX)
    server.connect(sys.argv[3])
    for pair in ((client, server), (server, client)):
        threading.Thread(target=pass_on, args=pair, daemon=True).start()
"#;

pub(crate) fn cannot_be_run() -> bool {
    let has_ip = || Command::new("ip").arg("-V").output().is_ok_and(|done| done.status.success());
    !services_are_installed() || !nix::unistd::geteuid().is_root() || !has_ip()
}

fn ip(words: &[&str]) {
    let done = Command::new("ip").args(words).output().expect("ip runs");
    assert!(done.status.success(), "ip {words:?}: {}", String::from_utf8_lossy(&done.stderr));
}

/// A network namespace that stands for another host, with a cable to it.
struct Far {
    name: String,
    interface: String,
}

impl Far {
    /// This end has the first address of the network, the other the second.
    fn make(network: &str) -> Self {
        let number = std::process::id() % 100_000;
        let far = Self { name: format!("far-{number}"), interface: format!("far{number}") };
        let (name, near) = (far.name.as_str(), far.interface.as_str());
        ip(&["netns", "add", name]);
        ip(&["link", "add", near, "type", "veth", "peer", "name", "eth0", "netns", name]);
        ip(&["addr", "add", &format!("{network}.1/30"), "dev", near]);
        ip(&["link", "set", near, "up"]);
        ip(&["-n", name, "addr", "add", &format!("{network}.2/30"), "dev", "eth0"]);
        ip(&["-n", name, "link", "set", "eth0", "up"]);
        far
    }
}

impl Drop for Far {
    fn drop(&mut self) {
        // The cable goes with its other end.
        let _gone = Command::new("ip").args(["netns", "del", &self.name]).status();
    }
}

/// A process that ends with its owner, and with the test.
pub(crate) struct Running(pub(crate) Child);

impl Running {
    pub(crate) fn start(command: &mut Command) -> Self {
        let end = || Ok(set_pdeathsig(Signal::SIGTERM)?);
        // SAFETY: one system call between fork and exec.
        unsafe { command.pre_exec(end) };
        Self(command.stdin(Stdio::null()).spawn().expect("it starts"))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let pid = nix::unistd::Pid::from_raw(self.0.id().cast_signed());
        let _gone = kill(pid, Signal::SIGTERM);
        let _gone = self.0.wait();
    }
}

/// A Postgres, and the service of `tests/experiments/clients` wherever it is wanted.
pub(crate) struct Site {
    pub(crate) postgres: Postgres,
    pub(crate) folder: TempDir,
    _runtime: Runtime,
}

impl Site {
    pub(crate) fn open() -> Self {
        let folder = TempDir::with_prefix("far-").expect("a folder");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o711);
        fs::set_permissions(folder.path(), mode).expect("ours");
        let cores = CoreSet::new(usable_cores().expect("cores")).expect("at least one");
        let mut build = tokio::runtime::Builder::new_current_thread();
        let runtime = build.enable_all().build().expect("an event loop");
        let (settings, progress) = (PostgresSettings::default(), Ui::new().work("test"));
        let started = Postgres::start(&settings, folder.path(), &cores, &progress);
        let postgres = runtime.block_on(started).expect("Postgres starts");
        Self { postgres, folder, _runtime: runtime }
    }

    fn port(&self) -> u16 {
        self.postgres.service.port.0
    }

    /// The URL, with another host or with what comes after the database.
    pub(crate) fn url(&self, host: &str, more: &str) -> String {
        let at = format!("@127.0.0.1:{}", self.port());
        self.postgres.url.replace(&at, &format!("@{host}")) + more
    }

    pub(crate) fn socket(&self) -> PathBuf {
        let name = format!(".s.PGSQL.{}", self.port());
        let mut pending = vec![self.folder.path().to_path_buf()];
        while let Some(place) = pending.pop() {
            for entry in fs::read_dir(&place).into_iter().flatten().flatten() {
                if entry.file_name().to_string_lossy() == name {
                    return entry.path();
                }
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    pending.push(entry.path());
                }
            }
        }
        panic!("no {name}");
    }

    /// Starts the service, and waits until it listens.
    pub(crate) fn service(&self, url: &str) -> (Running, String) {
        let free = TcpListener::bind("127.0.0.1:0").expect("a port");
        let bind = free.local_addr().expect("bound").to_string();
        drop(free);
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/experiments/clients");
        let mut command = Command::new("/usr/bin/python3");
        command.arg(script.join("service.py")).env("BIND", &bind).env("DATABASE_URL", url);
        let service = Running::start(&mut command);
        let until = Instant::now() + Duration::from_secs(20);
        while std::net::TcpStream::connect(&bind).is_err() {
            assert!(Instant::now() < until, "the service does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
        // Its workers accept once they have connected to Postgres.
        std::thread::sleep(Duration::from_millis(500));
        (service, bind)
    }

    pub(crate) fn observe(&self, options: &[&str]) -> Results {
        observe(&self.folder.path().join("run"), options)
    }
}

pub(crate) fn observe(run: &Path, options: &[&str]) -> Results {
    let _none = fs::remove_dir_all(run);
    let mut command = Command::new(env!("CARGO_BIN_EXE_assay"));
    command.arg("observe").args(options).arg("--json").arg("--out").arg(run);
    let done = command.env_remove("CARGO").stdin(Stdio::null()).output().expect("assay starts");
    let talk = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{}: {talk}", done.status);
    Results::read(&done.stdout)
}

/// What each path of the service costs by construction.
fn trips_are_right(observe: impl Fn(&str) -> Results) -> Results {
    let mut last = None;
    for (path, trips) in [("flush", 2.0), ("plain", 1.0)] {
        let results = observe(path);
        assert_eq!(results.amount("serial", "postgres.flights", &[]), trips, "{path}");
        last = Some(results);
    }
    last.expect("two")
}

#[test]
fn a_postgres_on_a_unix_socket_is_counted_by_the_calls_of_the_service() {
    if cannot_be_run() {
        return;
    }
    let site = Site::open();
    let socket = site.socket();
    let folder = socket.parent().expect("a folder").display().to_string();
    let url = site.url("", &format!("?host={folder}&port={}", site.port()));
    let (_service, bind) = site.service(&url);
    let results = trips_are_right(|path| {
        site.observe(&["--url", &format!("http://{bind}/{path}"), "--serial", "20"])
    });
    results.says(&format!("on the Unix socket {}", socket.display()));
    let url = format!("http://{bind}/flush");
    let loaded = site.observe(&["--url", &url, "--duration", "3", "--pass", "fair,wire"]);
    let trips = loaded.amount("wire", "postgres.flights", &[]);
    assert!((trips - 2.0).abs() < 0.1, "{trips}");
    // Its server was found by the socket's file.
    assert!(loaded.amount("fair", "cpu.time", &[("process", "postgres")]) > 0.0);
}

#[test]
fn a_postgres_on_another_host_is_counted_on_the_interface_that_leads_there() {
    if cannot_be_run() {
        return;
    }
    let site = Site::open();
    let far = Far::make("10.213.77");
    let script = site.folder.path().join("relay.py");
    fs::write(&script, RELAY).expect("a script");
    let mut relay = Command::new("ip");
    relay.args(["netns", "exec", &far.name, "/usr/bin/python3"]).arg(&script);
    relay.args(["10.213.77.2", "5432"]).arg(site.socket());
    let _relay = Running::start(&mut relay);
    let until = Instant::now() + Duration::from_secs(20);
    while std::net::TcpStream::connect("10.213.77.2:5432").is_err() {
        assert!(Instant::now() < until, "the relay does not listen");
        std::thread::sleep(Duration::from_millis(20));
    }
    let (_service, bind) = site.service(&site.url("10.213.77.2:5432", "?sslmode=disable"));
    let results = trips_are_right(|path| {
        site.observe(&["--url", &format!("http://{bind}/{path}"), "--serial", "20"])
    });
    results.says(&format!("packets of the interface {} and of loopback", far.interface));
}

#[test]
fn a_service_in_a_container_s_network_is_driven_and_recorded_inside_it() {
    if cannot_be_run() {
        return;
    }
    // The site lives on a thread that is in a network namespace of its own, and so do the
    // processes that it starts.
    let (started, site) = channel();
    let (stop, stopped) = channel::<()>();
    let inside = std::thread::spawn(move || {
        unshare(CloneFlags::CLONE_NEWNET).expect("root may");
        ip(&["link", "set", "lo", "up"]);
        let site = Site::open();
        let (service, bind) = site.service(&site.postgres.url);
        started.send((service.0.id(), bind)).expect("the test waits");
        let _end = stopped.recv();
    });
    let (pid, bind) = site.recv().expect("the service runs");
    let run = TempDir::with_prefix("far-").expect("a folder");
    let results = trips_are_right(|path| {
        let (pid, url) = (pid.to_string(), format!("http://{bind}/{path}"));
        observe(&run.path().join("run"), &["--pid", &pid, "--url", &url, "--serial", "20"])
    });
    results.says("the service is in another network namespace");
    results.says("requests are sent from inside it");
    drop(stop);
    inside.join().expect("it ends");
}
