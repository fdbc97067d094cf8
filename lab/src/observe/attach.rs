//! The service that was found, as the subject of a run: looked at again while it works, and
//! believed by what passes on its connections.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use assay_analyses::costs::wire::{self, Protocol};
use assay_captures::ids::{Port, Role};
use assay_captures::manifest::Target;

use super::found::{Found, FoundService, NotFound, Place, Wanted, find, likely_role, unix_server};
use super::options::Options;
use super::poolers;
use super::snapshot::Snapshot;
use super::tables::State;
use super::vantage::Vantage;
use crate::experiment::Variant;
use crate::services::RunningService;
use crate::subject::{Life, RunningSubject};

/// Between two looks at all processes: each costs a few milliseconds of CPU.
const BETWEEN_LOOKS: Duration = Duration::from_millis(40);

/// What was heard, by the server's port.
pub type Spoken = BTreeMap<u16, wire::Spoken>;

/// A service that already runs, as a run takes it for its subject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attachment {
    /// How it was named.
    pub wanted: Wanted,
    /// Its processes and connections.
    pub found: Found,
    /// Where requests go.
    pub address: SocketAddr,
    /// The port that it listens on itself.
    pub port: Port,
    /// Whether others send the requests.
    pub foreign: bool,
    /// From where it is watched.
    pub vantage: Vantage,
    /// What clients speak to it, where that was heard.
    pub front: Option<wire::Spoken>,
    /// What was left out since it looks like something else.
    pub alike: Vec<String>,
}

/// Finds the service that was asked for.
pub fn look_for(options: &Options) -> Result<Attachment, NotFound> {
    let snapshot = Snapshot::take();
    let found = look(&snapshot, &options.wanted)?;
    let target = options.targets.first().map(|target| target.address);
    let port = found.port(&options.wanted).or(target.map(|address| Port(address.port())));
    let Some(port) = port else {
        let (name, pids) = (&found.name, &found.roots);
        return Err(NotFound(format!("{name} ({pids:?}) listens on no TCP port; give --port")));
    };
    let address = target.unwrap_or(SocketAddr::from(([127, 0, 0, 1], port.0)));
    let network = (!found.network_is_ours).then_some(found.through);
    let inside = network.is_some() && means_another(&snapshot, address);
    let vantage = Vantage { network, inside, ..Vantage::default() };
    let foreign = options.targets.is_empty();
    let wanted = options.wanted.clone();
    let (front, alike) = (None, Vec::new());
    Ok(Attachment { wanted, found, address, port, foreign, vantage, front, alike })
}

/// Whether an address is this namespace's own, and nobody listens there.
fn means_another(snapshot: &Snapshot, address: SocketAddr) -> bool {
    let ours = snapshot.networks.get(&own_network(snapshot));
    let taken = ours.is_some_and(|ours| {
        let mut listening = ours.sockets.iter().filter(|socket| socket.state == State::Listening);
        listening.any(|socket| socket.local.port() == address.port())
    });
    address.ip().is_loopback() && !taken
}

fn look(snapshot: &Snapshot, wanted: &Wanted) -> Result<Found, NotFound> {
    let ours = own_network(snapshot);
    let mut found = find(snapshot, wanted, ours)?;
    poolers::add_legs(snapshot, &mut found, ours);
    Ok(found)
}

fn own_network(snapshot: &Snapshot) -> u64 {
    snapshot.processes.get(&std::process::id()).map_or(0, |own| own.network)
}

impl Attachment {
    /// The service as a subject, which is never touched.
    #[must_use]
    pub fn subject(&self, name: &str, variant: &Variant) -> RunningSubject {
        RunningSubject {
            subject: name.to_owned(),
            variant: variant.name.clone(),
            title: variant.title.clone(),
            address: self.address,
            roots: self.found.roots.clone(),
            port: self.port,
            life: Life::Foreign,
        }
    }

    /// Looks again and again until `done`, and keeps every server that was seen.
    pub fn look_until(&mut self, done: &AtomicBool) {
        loop {
            let last = done.load(Ordering::Relaxed);
            // One that is gone meanwhile is noticed by whoever asks it for something.
            if let Ok(found) = look(&Snapshot::take(), &self.wanted) {
                self.found.merge(found);
            }
            if last {
                return;
            }
            std::thread::sleep(BETWEEN_LOOKS);
        }
    }

    /// What passed on a connection says what is spoken there, whatever was thought before.
    pub fn believe(&mut self, spoken: &Spoken) {
        self.front = spoken.get(&self.port.0).copied();
        for service in &mut self.found.services {
            match spoken.get(&service.place.port().0) {
                None => {}
                Some(wire::Spoken::Encrypted) => service.encrypted = true,
                Some(wire::Spoken::Clear(protocol)) => {
                    service.heard = true;
                    service.role = match protocol {
                        Protocol::Postgres if service.role == Some(Role::Pooler) => service.role,
                        Protocol::Postgres => Some(Role::Postgres),
                        Protocol::Redis => Some(Role::Redis),
                        Protocol::Http => None,
                    };
                }
            }
        }
    }

    /// Takes the servers on Unix sockets that the wire probe has come upon.
    pub fn believe_sockets(&mut self, targets: &[Target]) {
        let snapshot = Snapshot::take();
        for target in targets {
            let (Some(path), Some(port)) = (&target.path, target.port) else { continue };
            let server = unix_server(&snapshot, path);
            let name = server.as_ref().map(|server| server.name.as_str());
            let pooler = likely_role(name, 0) == Some(Role::Pooler);
            // The calls of a pooler are recorded beside those of the service.
            let behind = !pooler && self.found.of(Role::Pooler).next().is_some();
            self.found.add(FoundService {
                place: Place::Unix(path.clone(), port.0),
                connections: 1,
                role: Some(if pooler { Role::Pooler } else { target.role }),
                heard: true,
                behind,
                direct: !behind,
                encrypted: false,
                hidden: false,
                interface: None,
                server,
            });
        }
    }

    /// Leaves only the interfaces that lead to what is understood.
    pub fn settle(&mut self) {
        self.alike = poolers::leave_out_what_looks_alike(&mut self.found);
        let understood = self.found.services.iter().filter(|service| service.role.is_some());
        let wanted = self.vantage.wanted(&self.found, self.foreign, understood);
        self.vantage.interfaces.retain(|name| wanted.contains(name));
    }

    /// What it talks to and Assay understands.
    #[must_use]
    pub fn services(&self) -> Vec<RunningService> {
        // Where nothing is known of interfaces yet, all are still to be recorded.
        let known = !self.vantage.interfaces.is_empty();
        let shown = self.found.services.iter();
        let shown = shown.filter(|service| !known || self.vantage.shows(service));
        shown.filter_map(running).collect()
    }

    /// What attaching cannot give, and what was found and is not understood, one sentence each.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        let mut notes = vec![
            "a service that was already running: allocations are not measured (their counter must \
             be in the process from its start), nor pg_stat_statements asked"
                .to_owned(),
        ];
        if self.found.hidden {
            notes.push(
                "whom it talks to may not be seen: Postgres and Redis are missing; run it as root \
                 or as the service's own user"
                    .to_owned(),
            );
        }
        notes.extend(self.vantage.notes());
        notes.extend(poolers::notes(&self.found));
        notes.extend(self.alike.iter().cloned());
        if let (true, Some(reason)) = (self.found.unix, &self.vantage.blind) {
            notes.push(format!(
                "it has connections on Unix sockets, and what passes there is not seen: {reason}"
            ));
        }
        if let Some(wire::Spoken::Encrypted) = self.front {
            notes.push(
                "clients speak TLS with it: its responses cannot be counted on the wire, and the \
                 driver's own count is used"
                    .to_owned(),
            );
        }
        for service in &self.found.services {
            match self.vantage.shows(service) {
                true => notes.extend(of_service(service)),
                false => notes.push(self.out_of_reach(service)),
            }
        }
        notes
    }

    /// What cannot be counted of a server whose packets are not recorded: it is never 0.
    fn out_of_reach(&self, service: &FoundService) -> String {
        let what = service.role.map_or("what stands there", |role| role.word());
        let why = match (&self.vantage.refused, &service.interface) {
            (Some(reason), Some(name)) => format!("its packets pass {name}: {reason}"),
            (_, None) => "by which interface its packets pass cannot be told".to_owned(),
            (None, Some(name)) => format!("its packets pass {name}, which is not recorded"),
        };
        format!(
            "{} of its connections lead to {} at {}: trips to it are not measured, since {why}; \
             assay observe -- COMMAND counts them by the calls of the service",
            service.connections, what, service.place
        )
    }
}

/// What is to be known of one server.
fn of_service(service: &FoundService) -> Vec<String> {
    let mut notes = Vec::new();
    let place = &service.place;
    if let (Place::Unix(path, _), Some(role)) = (place, service.role) {
        notes.push(format!(
            "{} is spoken to on the Unix socket {path}: its bytes were copied at the service's own \
             calls (BPF), which costs about 1 µs a call; CPU time holds that cost where the wire \
             is recorded",
            role.word()
        ));
    }
    match (service.role, &service.server) {
        (None, _) if service.heard => notes
            .push(format!("it also talks HTTP to {place}: what that costs there is not counted")),
        (None, _) => notes.push(format!(
            "{} of its connections lead to {place}: what they speak is not understood",
            service.connections
        )),
        (Some(role), None) if service.hidden => notes.push(format!(
            "{} at {place} runs here, but who it is may not be seen: its CPU time and switches are \
             not measured; root may",
            role.word()
        )),
        (Some(role), None) => notes.push(format!(
            "{} at {place} does not run here: its CPU time and switches are not measured",
            role.word()
        )),
        (Some(_), Some(_)) => {}
    }
    if let (Some(role), true) = (service.role, service.encrypted) {
        notes.push(format!(
            "{} at {place} is spoken to through TLS: encrypted, so trips are not measured; \
             sslmode=disable on loopback or a pooler's clear leg would show them",
            role.word()
        ));
    }
    notes
}

/// As a run takes it; none where it is not known what it speaks.
fn running(found: &FoundService) -> Option<RunningService> {
    let path = match &found.place {
        Place::Inet(_) => None,
        Place::Unix(path, _) => Some(path.clone()),
    };
    Some(RunningService {
        role: found.role?,
        port: found.place.port(),
        path,
        pid: found.server.as_ref().map(|server| server.root),
        version: found.server.as_ref().map_or_else(String::new, |server| server.name.clone()),
        private: false,
        settings: BTreeMap::new(),
    })
}

/// The role's services by their addresses, for people.
#[must_use]
pub fn in_words(found: &Found) -> String {
    let number = found.processes.len();
    let mut text =
        format!("{}, {number} process{}", found.name, if number == 1 { "" } else { "es" });
    for role in [Role::Pooler, Role::Postgres, Role::Redis] {
        for service in found.of(role) {
            let behind = match &service.server {
                Some(server) => format!("{}, process {}", server.name, server.root.0),
                None if service.hidden => "on this machine, by somebody else".to_owned(),
                None => "not on this machine".to_owned(),
            };
            let (word, place) = (role.word(), &service.place);
            let _never = write!(text, "; {word} at {place} ({behind})");
        }
    }
    text
}
