//! From where a service is watched: which network namespace, which interfaces, and whether Unix
//! sockets are seen.

use std::collections::BTreeSet;

use assay_captures::ids::Pid;

use super::found::{Found, FoundService, Place};

const LOOPBACK: &str = "lo";

/// From where a service is watched and spoken to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Vantage {
    /// A process of the service's network namespace, where that is not the namespace of this one.
    pub network: Option<Pid>,
    /// Whether requests are sent from inside that namespace: an address such as 127.0.0.1 means
    /// another thing there.
    pub inside: bool,
    /// The interfaces whose packets are recorded, ascending; none are before they are known.
    pub interfaces: BTreeSet<String>,
    /// Why others are not, where that was tried.
    pub refused: Option<String>,
    /// Why Unix sockets are not seen, where that was tried.
    pub blind: Option<String>,
}

impl Vantage {
    /// The interfaces that show requests and these servers.
    #[must_use]
    pub fn wanted<'a>(
        &self,
        found: &Found,
        foreign: bool,
        servers: impl Iterator<Item = &'a FoundService>,
    ) -> BTreeSet<String> {
        let mut wanted = BTreeSet::new();
        let from_outside = self.network.is_some() && !self.inside;
        if foreign || !from_outside {
            wanted.insert(LOOPBACK.to_owned());
        }
        let open = found.listens.iter().any(|address| !address.ip().is_loopback());
        if from_outside || (foreign && open) {
            wanted.extend(found.clients.iter().cloned());
            wanted.extend(found.way_out.clone());
        }
        wanted.extend(servers.filter_map(|server| server.interface.clone()));
        wanted
    }

    /// Only what is always there.
    #[must_use]
    pub fn loopback() -> BTreeSet<String> {
        BTreeSet::from([LOOPBACK.to_owned()])
    }

    /// Whether what is said to a server is recorded.
    #[must_use]
    pub fn shows(&self, server: &FoundService) -> bool {
        match &server.place {
            // The fields of a probe's target are separated by commas.
            Place::Unix(path, _) => self.blind.is_none() && !path.contains(','),
            Place::Inet(_) => {
                server.interface.as_ref().is_some_and(|name| self.interfaces.contains(name))
            }
        }
    }

    /// What the wire probe has to be told.
    #[must_use]
    pub fn options(&self) -> Vec<String> {
        let named = self.interfaces.iter();
        let named = named.flat_map(|name| ["--interface".to_owned(), name.clone()]);
        let network = self.network.iter();
        let network = network.flat_map(|pid| ["--netns".to_owned(), pid.0.to_string()]);
        named.chain(network).collect()
    }

    /// What was used beside the loopback interface of this machine, one sentence each.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if let Some(pid) = self.network {
            let requests = match self.inside {
                true => ", and requests are sent from inside it",
                false => "",
            };
            notes.push(format!(
                "the service is in another network namespace (a container's), that of process {}: \
                 packets are recorded in it{requests}",
                pid.0
            ));
        }
        let others: Vec<&str> =
            self.interfaces.iter().map(String::as_str).filter(|name| *name != LOOPBACK).collect();
        if !others.is_empty() {
            let loopback = self.interfaces.contains(LOOPBACK);
            let names = others.join(", ");
            let beside = if loopback { " and of loopback" } else { "" };
            notes.push(format!("packets of the interface {names}{beside} were recorded"));
        }
        notes
    }
}
