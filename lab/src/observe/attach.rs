//! The service that was found, as the subject of a run: looked at again while it works, and
//! believed by what passes on its connections.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use assay_analyses::costs::wire::{self, Protocol};
use assay_captures::ids::{Port, Role};

use super::found::{Found, FoundService, NotFound, Wanted, find};
use super::options::Options;
use super::snapshot::Snapshot;
use crate::experiment::Variant;
use crate::services::RunningService;
use crate::subject::{Life, RunningSubject};

/// Between two looks at all processes: each costs a few milliseconds of CPU.
const BETWEEN_LOOKS: Duration = Duration::from_millis(40);

/// Programs that speak as Postgres and pass everything on.
const POOLERS: [&str; 4] = ["pgbouncer", "odyssey", "pgcat", "pgpool"];

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
}

/// Finds the service that was asked for.
pub fn look_for(options: &Options) -> Result<Attachment, NotFound> {
    let found = look(&options.wanted)?;
    let target = options.targets.first().map(|target| target.address);
    let port = found.port(&options.wanted).or(target.map(|address| Port(address.port())));
    let Some(port) = port else {
        let (name, pids) = (&found.name, &found.roots);
        return Err(NotFound(format!("{name} ({pids:?}) listens on no TCP port; give --port")));
    };
    let loopback = SocketAddr::from(([127, 0, 0, 1], port.0));
    Ok(Attachment {
        wanted: options.wanted.clone(),
        address: target.unwrap_or(loopback),
        port,
        foreign: options.targets.is_empty(),
        found,
    })
}

fn look(wanted: &Wanted) -> Result<Found, NotFound> {
    let snapshot = Snapshot::take();
    let own = snapshot.processes.get(&std::process::id());
    find(&snapshot, wanted, own.map_or(0, |own| own.network))
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
            if let Ok(found) = look(&self.wanted) {
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
        for service in &mut self.found.services {
            match spoken.get(&service.address.port()) {
                None => {}
                Some(wire::Spoken::Encrypted) => service.encrypted = true,
                Some(wire::Spoken::Clear(protocol)) => {
                    service.heard = true;
                    service.role = match protocol {
                        Protocol::Postgres => Some(Role::Postgres),
                        Protocol::Redis => Some(Role::Redis),
                        Protocol::Http => None,
                    };
                }
            }
        }
    }

    /// What it talks to and Assay understands.
    #[must_use]
    pub fn services(&self) -> Vec<RunningService> {
        self.found.services.iter().filter_map(running).collect()
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
        for service in &self.found.services {
            let address = service.address;
            if !service.within_reach {
                notes.push(out_of_reach(service));
                continue;
            }
            if let Some(pooler) = pooler(service) {
                notes.push(format!(
                    "Postgres here is {pooler} at {address}: trips are those to the pooler, and \
                     what the pooler says to Postgres is not recorded"
                ));
            }
            match (service.role, &service.server) {
                (None, _) if service.heard => notes.push(format!(
                    "it also talks HTTP to {address}: what that costs there is not counted"
                )),
                (None, _) => notes.push(format!(
                    "{} of its connections lead to {address}: what they speak is not understood",
                    service.connections
                )),
                (Some(role), None) if service.hidden => notes.push(format!(
                    "{} at {address} runs here, but who it is may not be seen: its CPU time and \
                     switches are not measured; root may",
                    role.word()
                )),
                (Some(role), None) => notes.push(format!(
                    "{} at {address} does not run here: its CPU time and switches are not measured",
                    role.word()
                )),
                (Some(_), Some(_)) => {}
            }
            if let (Some(role), true) = (service.role, service.encrypted) {
                notes.push(format!(
                    "{} at {address} is spoken to through TLS: encrypted, so trips are not \
                     measured; sslmode=disable on loopback or a pooler's clear leg would show them",
                    role.word()
                ));
            }
        }
        notes
    }
}

/// What cannot be counted of a server whose packets pass elsewhere: it is never 0.
fn out_of_reach(service: &FoundService) -> String {
    let what = service.role.map_or("what stands there", |role| role.word());
    format!(
        "{} of its connections lead to {} at {}, whose packets do not pass this loopback: trips to \
         it are not measured; assay observe -- COMMAND counts them by the calls of the service",
        service.connections, what, service.address
    )
}

/// The name of the pooler that answers as Postgres.
fn pooler(service: &FoundService) -> Option<&str> {
    let name = service.server.as_ref()?.name.as_str();
    (service.role == Some(Role::Postgres) && POOLERS.contains(&name)).then_some(name)
}

/// A server whose packets pass elsewhere is none of the run's: its figures would read 0.
fn running(found: &FoundService) -> Option<RunningService> {
    if !found.within_reach {
        return None;
    }
    Some(RunningService {
        role: found.role?,
        port: Port(found.address.port()),
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
    for role in [Role::Postgres, Role::Redis] {
        for service in found.of(role) {
            let behind = match &service.server {
                Some(server) => format!("{}, process {}", server.name, server.root.0),
                None if service.hidden => "on this machine, by somebody else".to_owned(),
                None => "not on this machine".to_owned(),
            };
            let (word, address) = (role.word(), service.address);
            let _never = write!(text, "; {word} at {address} ({behind})");
        }
    }
    text
}
