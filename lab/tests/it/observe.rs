//! A service that somebody else has started, observed from outside: the same figures as a run of
//! our own gives, and nothing of it changed.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use assay::experiment::{self, Experiment, RedisSettings};
use assay::pinning::{CoreSet, usable_cores};
use assay::processes;
use assay::services::{Postgres, Redis, Services};
use assay::subject::{self, RunningSubject, Surroundings};
use assay::ui::Ui;
use nix::sys::signal::Signal;
use serde_json::Value;
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::guarded_run::{Watched, services_are_installed};

/// What users have: services, and subjects that talk to them.
struct Site {
    folder: TempDir,
    runtime: Runtime,
    experiment: Experiment,
    services: Services,
    cores: CoreSet,
}

impl Site {
    fn open(file: &str) -> Self {
        let folder = TempDir::with_prefix("observe-").expect("a folder");
        // Services run as another user, who must be able to pass through.
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o711);
        fs::set_permissions(folder.path(), mode).expect("ours");
        let lab = Path::new(env!("CARGO_MANIFEST_DIR"));
        let experiment = experiment::load(&lab.join(file)).expect("it is in the repository");
        let cores = CoreSet::new(usable_cores().expect("cores")).expect("at least one");
        let mut build = tokio::runtime::Builder::new_current_thread();
        let runtime = build.enable_all().build().expect("an event loop");
        let progress = Ui::new().work("test");
        let services = runtime.block_on(async {
            let settings = experiment.postgres.clone().unwrap_or_default();
            let started = Postgres::start(&settings, folder.path(), &cores, &progress).await;
            let postgres = started.expect("Postgres starts");
            postgres.seed(&settings, &progress).await.expect("it is seeded");
            let redis = Redis::start(&RedisSettings::default(), folder.path(), &cores).await;
            let redis = Some(redis.expect("Redis starts"));
            subject::build(&experiment.subjects[0], folder.path(), &progress).await.expect("built");
            Services { postgres: Some(postgres), redis, ..Services::default() }
        });
        Self { folder, runtime, experiment, services, cores }
    }

    fn start(&self, variant: &str) -> RunningSubject {
        let mut arms = self.experiment.arms.iter();
        let arm = arms.find(|arm| arm.variant.name == variant).expect("a variant");
        let subject = &self.experiment.subjects[arm.subject];
        let around = Surroundings {
            services: &self.services,
            cores: &self.cores,
            scratch: self.folder.path(),
        };
        let started = subject::start(subject, &arm.variant, around, &[]);
        self.runtime.block_on(started).expect("the subject starts")
    }

    fn run(&self) -> PathBuf {
        self.folder.path().join("run")
    }

    fn command(&self, options: &[&str]) -> Command {
        let _none = fs::remove_dir_all(self.run());
        let mut command = Command::new(env!("CARGO_BIN_EXE_assay"));
        command.arg("observe").args(options).arg("--out").arg(self.run());
        command.env_remove("CARGO").stdin(Stdio::null());
        command
    }

    /// Observes, and gives the results.
    fn observe(&self, options: &[&str]) -> Results {
        let Output { status, stdout, stderr } =
            self.command(options).arg("--json").output().expect("assay starts");
        let talk = String::from_utf8_lossy(&stderr);
        assert!(status.success(), "{status}: {talk}");
        Results::read(&stdout)
    }
}

/// What `--json` says.
pub(crate) struct Results(Value);

impl Results {
    pub(crate) fn read(json: &[u8]) -> Self {
        Self(serde_json::from_slice(json).expect("it is JSON"))
    }

    /// Fails unless these words are somewhere in it.
    pub(crate) fn says(&self, words: &str) {
        let all = self.0.to_string();
        assert!(all.contains(words), "{words}: {all}");
    }

    /// The amounts of a metric in a pass, whatever their labels.
    pub(crate) fn amounts<'a>(
        &'a self,
        pass: &'a str,
        metric: &'a str,
    ) -> impl Iterator<Item = &'a Value> {
        let costs = self.0["costs"].as_array().expect("costs").iter();
        let these = costs.filter(move |cost| cost["metric"] == metric && cost["pass"] == pass);
        these.map(|cost| &cost["amount"])
    }

    pub(crate) fn amount(&self, pass: &str, metric: &str, labels: &[(&str, &str)]) -> f64 {
        let wanted: BTreeMap<&str, &str> = labels.iter().copied().collect();
        let costs = self.0["costs"].as_array().expect("costs").iter();
        let found: Vec<&Value> = costs
            .filter(|cost| {
                let labels = cost["labels"].as_object().expect("labels");
                cost["metric"] == metric
                    && cost["pass"] == pass
                    && labels.len() == wanted.len()
                    && wanted
                        .iter()
                        .all(|(name, value)| labels.get(*name).is_some_and(|own| own == value))
            })
            .collect();
        let [cost] = found[..] else { panic!("{pass} {metric} {labels:?}: {found:#?}") };
        cost["amount"].as_f64().unwrap_or_else(|| panic!("not measured: {cost:#}"))
    }
}

fn cannot_be_run() -> bool {
    !services_are_installed() || !nix::unistd::geteuid().is_root()
}

/// One answer, whole: its status.
fn get(address: SocketAddr, path: &str) -> u16 {
    let mut stream = TcpStream::connect(address).expect("the service listens");
    let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("it reads");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("it answers");
    String::from_utf8_lossy(&answer[9..12]).parse().expect("a status")
}

const BLOG: &str = "experiments/blog/experiment.toml";
const PAGE: &str = "/post/post-10";

#[test]
fn each_variant_of_the_blog_makes_the_trips_that_a_run_of_our_own_counts() {
    if cannot_be_run() {
        return;
    }
    let site = Site::open(BLOG);
    for (variant, trips) in [("query-ping", 9.0), ("query", 6.0), ("page-ping", 5.0), ("page", 4.0)]
    {
        let running = site.start(variant);
        let url = format!("http://{}{PAGE}", running.address);
        let results = site.observe(&["--url", &url, "--serial", "20"]);
        assert_eq!(results.amount("serial", "postgres.flights", &[]), trips, "{variant}");
        assert_eq!(results.amount("serial", "postgres.executions", &[]), 3.0, "{variant}");
        let received = results.amount("serial", "syscalls", &[("name", "sendto")]);
        assert_eq!(received, trips, "{variant}: each trip is one sendto");
    }
}

#[test]
fn all_passes_measure_a_running_service_and_leave_it_as_it_was() {
    if cannot_be_run() {
        return;
    }
    let site = Site::open(BLOG);
    let running = site.start("query-ping");
    let url = format!("http://{}{PAGE}", running.address);
    let results = site.observe(&["--url", &url, "--duration", "4"]);
    assert_eq!(results.amount("serial", "postgres.flights", &[]), 9.0);
    let loaded = results.amount("wire", "postgres.flights", &[]);
    assert!((loaded - 9.0).abs() < 0.1, "{loaded}");
    let sent = results.amount("syscalls", "syscalls", &[("name", "sendto")]);
    assert!((sent - 9.0).abs() < 0.1, "{sent}");
    for process in ["subject", "postgres"] {
        assert!(results.amount("fair", "cpu.time", &[("process", process)]) > 0.0);
        let waited = [("kind", "voluntary"), ("process", process)];
        assert!(results.amount("fair", "context_switches", &waited) > 0.0);
    }
    // The services were found by themselves, with their processes.
    let services = site.services.running();
    for service in services {
        let pid = service.pid.expect("it is ours").0;
        let name = format!("/proc/{pid}/comm");
        let name = fs::read_to_string(&name).expect("it runs");
        let recorded = results.0["versions"].to_string() + &results.0.to_string();
        assert!(recorded.contains(name.trim()), "{name}");
    }
    assert_eq!(get(running.address, PAGE), 200);
    let report = Command::new(env!("CARGO_BIN_EXE_assay"))
        .arg("report")
        .arg(site.run())
        .output()
        .expect("assay starts");
    let table = String::from_utf8_lossy(&report.stdout).into_owned();
    assert!(table.contains("pool pings"), "{table}");
    assert!(table.contains("allocations are not measured"), "{table}");
}

#[test]
fn what_others_send_is_watched_and_divided_by_the_responses_on_the_wire() {
    if cannot_be_run() {
        return;
    }
    let site = Site::open(BLOG);
    let running = site.start("query");
    let (address, stop) = (running.address, Arc::new(AtomicBool::new(false)));
    let others = thread::spawn({
        let stop = Arc::clone(&stop);
        move || {
            while !stop.load(Ordering::Relaxed) {
                assert_eq!(get(address, PAGE), 200);
            }
        }
    });
    let port = address.port().to_string();
    let results = site.observe(&["--port", &port, "--foreign-load", "--duration", "3"]);
    stop.store(true, Ordering::Relaxed);
    others.join().expect("each answer was good");
    let trips = results.amount("foreign", "postgres.flights", &[]);
    assert!((trips - 6.0).abs() < 0.3, "{trips}");
    assert!(results.amount("foreign", "syscalls", &[]) > 6.0);
    assert!(results.amount("foreign", "throughput", &[]) > 1.0);
    assert!(results.amount("foreign", "cpu.time", &[("process", "subject")]) > 0.0);
}

#[test]
fn what_others_mix_is_told_apart_by_route() {
    if cannot_be_run() {
        return;
    }
    let site = Site::open("tests/experiments/clients/experiment.toml");
    let running = site.start("default");
    let (address, stop) = (running.address, Arc::new(AtomicBool::new(false)));
    let others = thread::spawn({
        let stop = Arc::clone(&stop);
        move || {
            let mut stream = TcpStream::connect(address).expect("the service listens");
            let mut answer = [0; 4096];
            // Bursts, so that slices of time hold different mixtures.
            for path in ["/flush", "/plain"].into_iter().cycle() {
                for _ in 0..20 {
                    let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n");
                    stream.write_all(request.as_bytes()).expect("it reads");
                    assert!(stream.read(&mut answer).expect("it answers") > 0);
                    thread::sleep(Duration::from_millis(3));
                }
                if stop.load(Ordering::Relaxed) {
                    break;
                }
            }
        }
    });
    let port = address.port().to_string();
    let results = site.observe(&["--port", &port, "--foreign-load", "--duration", "4"]);
    stop.store(true, Ordering::Relaxed);
    others.join().expect("each answer was good");
    for (path, trips) in [("GET /flush", 2.0), ("GET /plain", 1.0)] {
        let found = results.amount("foreign", "postgres.flights", &[("path", path)]);
        assert!((found - trips).abs() < 0.2, "{path}: {found}");
    }
}

#[test]
fn all_workers_of_a_preforked_service_are_observed() {
    if cannot_be_run() {
        return;
    }
    let site = Site::open("tests/experiments/clients/experiment.toml");
    let running = site.start("default");
    let base = format!("http://{}", running.address);
    let (flush, plain) = (format!("{base}/flush"), format!("{base}/plain"));
    for (url, trips) in [(&flush, 2.0), (&plain, 1.0)] {
        let results = site.observe(&["--url", url, "--serial", "20"]);
        assert_eq!(results.amount("serial", "postgres.flights", &[]), trips, "{url}");
        assert!(results.amount("serial", "syscalls", &[("name", "sendto")]) >= 2.0);
    }
}

#[test]
fn a_service_lives_on_when_assay_is_killed() {
    if cannot_be_run() {
        return;
    }
    let site = Site::open(BLOG);
    let running = site.start("query-ping");
    let url = format!("http://{}{PAGE}", running.address);
    for stage in ["fair …", "serial …", "wire …", "syscalls …", "cpu …"] {
        let mut watched = Watched::start(site.command(&["--url", &url, "--duration", "4"]));
        watched.wait_for(stage);
        thread::sleep(Duration::from_millis(100));
        let everyone = watched.everyone();
        watched.send(watched.front_pid(), Signal::SIGKILL);
        watched.end();
        assert_eq!(get(running.address, PAGE), 200, "{stage}");
        let gone = |pid: &i32| {
            let process = processes::process(nix::unistd::Pid::from_raw(*pid));
            process.is_none_or(|process| process.zombie)
        };
        // The guardian waits for probes to close what they have recorded.
        for _ in 0..2_000 {
            if everyone.iter().all(gone) {
                break;
            }
            thread::sleep(Duration::from_millis(10));
        }
        assert!(everyone.iter().all(gone), "{stage}: something of assay still runs");
        let root = processes::process(nix::unistd::Pid::from_raw(running.roots[0].0.cast_signed()));
        assert!(root.is_some_and(|process| !process.zombie), "{stage}");
        assert_eq!(get(running.address, PAGE), 200, "{stage}");
    }
}
