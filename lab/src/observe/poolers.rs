//! What stands behind a pooler: the other leg of each trip.

use assay_captures::ids::Role;

use super::found::{Found, FoundService, Wanted, find};
use super::snapshot::Snapshot;

/// Adds whom the poolers talk to that a service was found to talk to.
pub(super) fn add_legs(snapshot: &Snapshot, found: &mut Found, ours: u64) {
    for pooler in
        found.of(Role::Pooler).filter_map(|service| service.server.clone()).collect::<Vec<_>>()
    {
        let Ok(behind) = find(snapshot, &Wanted::Pid(pooler.root.0), ours) else { continue };
        // Packets are recorded in the service's network namespace alone.
        if behind.network != found.network {
            continue;
        }
        found.unix |= behind.unix;
        for service in behind.services {
            found.add(FoundService { behind: true, direct: false, ..service });
        }
    }
}

/// Takes away the legs that cannot be told from the first one: captures know servers by port.
pub(super) fn leave_out_what_looks_alike(found: &mut Found) -> Vec<String> {
    let taken: Vec<u16> = found.of(Role::Pooler).map(|pooler| pooler.place.port().0).collect();
    let mut notes = Vec::new();
    found.services.retain(|service| {
        let alike = service.behind
            && service.role != Some(Role::Pooler)
            && taken.contains(&service.place.port().0);
        if alike {
            notes.push(format!(
                "the pooler and the server behind it, {}, have the same port: only trips to the \
                 pooler are given",
                service.place
            ));
        }
        !alike
    });
    notes
}

/// What is to be known of each pooler, one sentence each.
pub(super) fn notes(found: &Found) -> Vec<String> {
    let behind: Vec<String> = found
        .services
        .iter()
        .filter(|service| service.behind && service.role == Some(Role::Postgres))
        .map(|service| service.place.to_string())
        .collect();
    let bypassed = found.services.iter().any(|service| service.behind && service.direct);
    let of = |pooler: &FoundService| {
        let name = pooler.server.as_ref().map_or("a pooler", |server| server.name.as_str());
        let place = &pooler.place;
        let legs = match behind.as_slice() {
            [] => "what it says to Postgres was not seen".to_owned(),
            servers => format!(
                "those of the pooler to Postgres at {} have rows of their own",
                servers.join(", ")
            ),
        };
        let bypassed = match bypassed {
            true => "; connections that go past the pooler are counted there, too",
            false => "",
        };
        format!(
            "Postgres is spoken to through {name} at {place}: round trips are those to the pooler; \
             {legs}{bypassed}"
        )
    };
    found.of(Role::Pooler).map(of).collect()
}
