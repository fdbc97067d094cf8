//! Services picked out of snapshots that are written down, and out of the real one.

use std::net::TcpListener;

use assay_captures::ids::{Pid, Port, Role};

use super::routes::routes;
use super::tables::{own_addresses, sockets, unix_sockets};
use super::*;

/// `pid parent name program network sockets…`, one a line.
fn processes(text: &str) -> Snapshot {
    let mut snapshot = Snapshot::default();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let words: Vec<&str> = line.split(' ').collect();
        let seen = Seen {
            parent: words[1].parse().unwrap(),
            name: words[2].to_owned(),
            program: Some(words[3].into()),
            network: words[4].parse().unwrap(),
            sockets: Some(words[5..].iter().map(|word| word.parse().unwrap()).collect()),
            forwards_to: None,
        };
        let pid = words[0].parse().unwrap();
        let network = snapshot.networks.entry(seen.network).or_default();
        network.through = pid;
        snapshot.processes.insert(pid, seen);
    }
    snapshot
}

/// `network inode local remote`; `-` as the other end of one that listens.
fn with_sockets(mut snapshot: Snapshot, text: &str) -> Snapshot {
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let words: Vec<&str> = line.split(' ').collect();
        let listens = words[3] == "-";
        let socket = Socket {
            inode: words[1].parse().unwrap(),
            local: words[2].parse().unwrap(),
            remote: if listens { "0.0.0.0:0" } else { words[3] }.parse().unwrap(),
            state: if listens { State::Listening } else { State::Connected },
        };
        let network = snapshot.networks.entry(words[0].parse().unwrap()).or_default();
        network.sockets.push(socket);
        network.addresses.insert(socket.local.ip());
    }
    snapshot
}

/// A pre-forking service with a Postgres on an odd port and a Redis, both on this machine.
fn prefork() -> Snapshot {
    let snapshot = processes(
        "1 0 init /init 1
         10 1 gunicorn /python 1 100
         11 10 gunicorn /python 1 100 201
         12 10 gunicorn /python 1 100 202 203
         20 1 postgres /postgres 1 300
         21 20 postgres /postgres 1 401
         30 1 redis-server /redis 1 500
         40 1 curl /curl 1 600",
    );
    with_sockets(
        snapshot,
        "1 100 127.0.0.1:8080 -
         1 300 127.0.0.1:9999 -
         1 500 0.0.0.0:7777 -
         1 201 127.0.0.1:50001 127.0.0.1:9999
         1 202 127.0.0.1:50002 127.0.0.1:9999
         1 203 127.0.0.1:50003 127.0.0.1:7777
         1 401 127.0.0.1:9999 127.0.0.1:50001
         1 600 127.0.0.1:50009 127.0.0.1:8080",
    )
}

fn show(found: &Found) -> String {
    let pids = |pids: &mut dyn Iterator<Item = &Pid>| {
        pids.map(|pid| pid.0.to_string()).collect::<Vec<_>>().join(" ")
    };
    let mut lines = vec![format!(
        "{}: roots {}, processes {}",
        found.name,
        pids(&mut found.roots.iter()),
        pids(&mut found.processes.keys())
    )];
    for service in &found.services {
        let role = service.role.map_or("?", Role::word);
        let server = service.server.as_ref();
        let server = server.map_or("elsewhere".into(), |s| format!("{} {}", s.name, s.root.0));
        lines.push(format!("{} × {} {role}, {server}", service.connections, service.place));
    }
    lines.join("\n")
}

#[test]
fn a_service_of_several_processes_is_found_by_its_port_with_whom_it_talks_to() {
    let wanted = [Wanted::Port(8080), Wanted::Pid(10), Wanted::Name("gunicorn".into())];
    for wanted in wanted {
        let found = find(&prefork(), &wanted, 1).unwrap();
        assert_eq!(
            show(&found),
            "gunicorn: roots 10, processes 10 11 12\n\
             1 × 127.0.0.1:7777 redis, redis-server 30\n\
             2 × 127.0.0.1:9999 postgres, postgres 20"
        );
        assert_eq!(found.port(&wanted).unwrap().0, 8080);
    }
}

#[test]
fn workers_with_a_socket_each_have_the_parent_that_started_them() {
    let snapshot = processes(
        "1 0 init /init 1
         10 1 server /server 1
         11 10 server /server 1 101
         12 10 server /server 1 102",
    );
    let snapshot = with_sockets(snapshot, "1 101 0.0.0.0:8080 -\n 1 102 0.0.0.0:8080 -");
    let found = find(&snapshot, &Wanted::Port(8080), 1).unwrap();
    assert_eq!(show(&found), "server: roots 10, processes 10 11 12");
}

#[test]
fn who_holds_the_socket_for_a_service_is_not_the_service() {
    let snapshot = processes("1 0 systemd /systemd 1 100\n 10 1 web /web 1 100");
    let snapshot = with_sockets(snapshot, "1 100 0.0.0.0:8080 -");
    let found = find(&snapshot, &Wanted::Port(8080), 1).unwrap();
    assert_eq!(show(&found), "web: roots 10, processes 10");
}

#[test]
fn a_service_in_another_network_namespace_is_found_and_so_is_its_database() {
    let snapshot = processes(
        "1 0 init /init 1
         10 1 web /web 2 100 201
         20 1 postgres /postgres 3 300
         30 1 postgres /postgres 1 400",
    );
    let snapshot = with_sockets(
        snapshot,
        "2 100 172.18.0.3:8080 -
         2 201 172.18.0.3:50001 172.18.0.2:5432
         3 300 172.18.0.2:5432 -
         1 400 127.0.0.1:5432 -",
    );
    let found = find(&snapshot, &Wanted::Port(8080), 1).unwrap();
    assert_eq!(
        show(&found),
        "web: roots 10, processes 10\n1 × 172.18.0.2:5432 postgres, postgres 20"
    );
    assert!(!found.network_is_ours);
    assert_eq!(found.through, Pid(10));
}

#[test]
fn a_database_on_another_machine_has_no_process_here() {
    let snapshot = processes("10 1 web /web 1 100 201");
    let snapshot =
        with_sockets(snapshot, "1 100 10.0.0.1:8080 -\n 1 201 10.0.0.1:50001 10.0.0.9:5432");
    let found = find(&snapshot, &Wanted::Port(8080), 1).unwrap();
    assert_eq!(show(&found), "web: roots 10, processes 10\n1 × 10.0.0.9:5432 postgres, elsewhere");
}

fn attached(found: Found, address: &str) -> Attachment {
    let network = (!found.network_is_ours).then_some(found.through);
    Attachment {
        wanted: Wanted::Port(8080),
        found,
        address: address.parse().unwrap(),
        port: Port(8080),
        foreign: false,
        vantage: Vantage { network, ..Vantage::default() },
        front: None,
        alike: Vec::new(),
    }
}

/// A service with a pooler on its own machine, a Postgres behind `eth0`, and a Redis at its own
/// outer address.
fn far() -> Snapshot {
    let snapshot = processes("10 1 web /web 1 100 201 202 203\n 20 1 pgbouncer /pgbouncer 1 300");
    let mut snapshot = with_sockets(
        snapshot,
        "1 100 10.0.0.1:8080 -
         1 300 127.0.0.1:6432 -
         1 201 10.0.0.1:50001 10.0.0.9:5432
         1 202 127.0.0.1:50002 127.0.0.1:6432
         1 203 10.0.0.1:50003 10.0.0.1:6379",
    );
    let eth0 = "eth0 00000000 0100000A 0003 0 0 0 00000000 0 0 0";
    snapshot.networks.get_mut(&1).unwrap().routes = routes(eth0, "");
    snapshot
}

fn ports(attached: &Attachment) -> Vec<u16> {
    attached.services().iter().map(|service| service.port.0).collect()
}

#[test]
fn a_server_whose_packets_are_not_recorded_is_said_and_never_counted_as_0() {
    let found = find(&far(), &Wanted::Port(8080), 1).unwrap();
    let mut attached = attached(found, "10.0.0.1:8080");
    attached.vantage.interfaces = Vantage::loopback();
    attached.vantage.refused = Some("no right".into());
    assert_eq!(ports(&attached), [6379, 6432], "an own address goes through loopback");
    let notes = attached.notes().join("\n");
    assert!(notes.contains("postgres at 10.0.0.9:5432: trips to it are not measured"), "{notes}");
    assert!(notes.contains("its packets pass eth0: no right"), "{notes}");
    assert!(notes.contains("through pgbouncer at 127.0.0.1:6432"), "{notes}");
}

#[test]
fn the_interfaces_that_lead_to_servers_are_recorded_in_the_service_s_namespace() {
    let wanted = |attached: &Attachment| {
        let servers = attached.found.services.iter();
        let names = attached.vantage.wanted(&attached.found, attached.foreign, servers);
        names.into_iter().collect::<Vec<_>>().join(" ")
    };
    let mut here = attached(find(&far(), &Wanted::Port(8080), 1).unwrap(), "10.0.0.1:8080");
    assert_eq!(wanted(&here), "eth0 lo");
    here.vantage.interfaces = ["eth0".to_owned(), "lo".to_owned()].into();
    assert_eq!(ports(&here), [6379, 5432, 6432]);
    assert_eq!(here.vantage.options(), ["--interface", "eth0", "--interface", "lo"]);
    // What leads to nothing that is understood is recorded no longer.
    here.found.services.retain(|service| service.place.port().0 != 5432);
    here.settle();
    assert_eq!(here.vantage.options(), ["--interface", "lo"]);
    // From outside, requests do not come by its loopback.
    let mut there = attached(find(&far(), &Wanted::Port(8080), 2).unwrap(), "10.0.0.1:8080");
    there.found.services.retain(|service| service.place.port().0 == 5432);
    assert_eq!(wanted(&there), "eth0");
    assert_eq!(there.vantage.options(), ["--netns", "10"]);
    there.vantage.inside = true;
    assert_eq!(wanted(&there), "eth0 lo");
}

#[test]
fn what_stands_behind_a_pooler_is_found_by_the_pooler_s_own_connections() {
    let behind = |port: u16| {
        let snapshot = processes(
            "10 1 web /web 1 100 201
             20 1 pgbouncer /pgbouncer 1 300 401 402
             30 1 postgres /postgres 1 500",
        );
        let sockets = format!(
            "1 100 127.0.0.1:8080 -
             1 300 127.0.0.1:6432 -
             1 500 127.0.0.2:{port} -
             1 201 127.0.0.1:50001 127.0.0.1:6432
             1 401 127.0.0.1:6432 127.0.0.1:50001
             1 402 127.0.0.1:50002 127.0.0.2:{port}"
        );
        let snapshot = with_sockets(snapshot, &sockets);
        let mut found = find(&snapshot, &Wanted::Port(8080), 1).unwrap();
        super::poolers::add_legs(&snapshot, &mut found, 1);
        let mut attached = attached(found, "127.0.0.1:8080");
        attached.vantage.interfaces = Vantage::loopback();
        attached.settle();
        attached
    };
    let told_apart = behind(5432);
    assert_eq!(
        show(&told_apart.found),
        "web: roots 10, processes 10\n\
         1 × 127.0.0.1:6432 pooler, pgbouncer 20\n\
         1 × 127.0.0.2:5432 postgres, postgres 30"
    );
    let notes = told_apart.notes().join("\n");
    assert!(notes.contains("those of the pooler to Postgres at 127.0.0.2:5432"), "{notes}");
    // Captures know servers by port.
    let alike = behind(6432);
    assert_eq!(ports(&alike), [6432]);
    let notes = alike.notes().join("\n");
    assert!(notes.contains("127.0.0.2:6432, have the same port"), "{notes}");
}

#[test]
fn a_port_that_docker_passes_on_leads_into_the_container() {
    let command = |line: &str| super::snapshot::forwards_to(&line.replace(' ', "\0"));
    let to = command(
        "/usr/bin/docker-proxy -proto tcp -host-ip 0.0.0.0 -host-port 8080 -container-ip \
         172.18.0.3 -container-port 80",
    );
    assert_eq!(to, Some("172.18.0.3:80".parse().unwrap()));
    assert_eq!(command("web -container-ip 172.18.0.3 -container-port 80"), None);
    let snapshot = processes("10 1 docker-proxy /docker-proxy 1 100\n 20 1 web /web 2 200");
    let mut snapshot = with_sockets(snapshot, "1 100 0.0.0.0:8080 -\n 2 200 172.18.0.3:80 -");
    snapshot.processes.get_mut(&10).unwrap().forwards_to = to;
    let found = find(&snapshot, &Wanted::Port(8080), 1).unwrap();
    assert_eq!(show(&found), "web: roots 20, processes 20");
    assert_eq!(found.port(&Wanted::Port(8080)), Some(Port(80)));
    assert!(!found.network_is_ours);
}

#[test]
fn listening_and_connected_unix_sockets_are_read() {
    let table = "Num       RefCount Protocol Flags    Type St Inode Path\n\
        000: 00000002 00000000 00010000 0001 01 100 /run/postgresql/.s.PGSQL.5432\n\
        001: 00000003 00000000 00000000 0001 03 200\n\
        002: 00000003 00000000 00000000 0001 03 201 /run/postgresql/.s.PGSQL.5432\n\
        003: 00000002 00000000 00000000 0002 01 300 /run/systemd/notify\n\
        torn";
    let found = unix_sockets(table);
    let path = "/run/postgresql/.s.PGSQL.5432";
    assert_eq!(found.listeners, [UnixListener { inode: 100, path: path.into() }]);
    assert_eq!(found.connected, [200, 201].into());
    let mut snapshot = processes("10 1 postgres /postgres 3 100\n 20 1 web /web 1 200");
    snapshot.networks.get_mut(&3).unwrap().unix = found.clone();
    snapshot.networks.get_mut(&1).unwrap().unix = found;
    let server = super::found::unix_server(&snapshot, path).unwrap();
    assert_eq!(server, FoundServer { root: Pid(10), name: "postgres".into() });
    assert!(find(&snapshot, &Wanted::Pid(20), 1).unwrap().unix);
}

#[test]
fn what_is_not_there_is_said_with_what_to_do() {
    let said = |wanted: Wanted| find(&prefork(), &wanted, 1).unwrap_err().to_string();
    assert_eq!(said(Wanted::Port(81)), "nothing listens on port 81; is it started?");
    assert_eq!(said(Wanted::Pid(99)), "there is no process 99; is it still running?");
    assert_eq!(said(Wanted::Name("x".into())), "there is no process named \"x\"; see `ps -e`");
    let mut hidden = prefork();
    hidden.processes.values_mut().for_each(|seen| seen.sockets = None);
    let said = find(&hidden, &Wanted::Port(8080), 1).unwrap_err().to_string();
    assert!(said.contains("run it as root"), "{said}");
}

#[test]
fn lines_of_both_tables_are_read() {
    let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when\n\
        0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 31337 1 0\n\
        1: 0000000000000000FFFF00000100007F:1538 0000000000000000FFFF00000100007F:C350 01 \
        00000000:00000000 00:00000000 00000000 0 0 7 1 0\n\
        2: torn";
    let found: Vec<Socket> = sockets(table).collect();
    assert_eq!(found.len(), 2);
    assert_eq!(found[0].local, "127.0.0.1:8080".parse().unwrap());
    assert_eq!((found[0].state, found[0].inode), (State::Listening, 31337));
    assert_eq!(found[1].local, "127.0.0.1:5432".parse().unwrap());
    assert_eq!(found[1].remote, "127.0.0.1:50000".parse().unwrap());
    assert_eq!((found[1].state, found[1].inode), (State::Connected, 7));
}

#[test]
fn own_addresses_are_read_from_the_routing_tables() {
    let trie = "Main:\n  +-- 0.0.0.0/0 3 0 5\n     |-- 0.0.0.0\n        /0 universe UNICAST\n\
        |-- 172.18.0.3\n           /32 host LOCAL\n     |-- 172.18.255.255\n  /32 link BROADCAST";
    let inet6 = "00000000000000000000000000000001 01 80 10 80       lo\n";
    let found: Vec<String> = own_addresses(trie, inet6).iter().map(ToString::to_string).collect();
    assert_eq!(found, ["172.18.0.3", "::1"]);
}

#[test]
fn this_very_process_is_found_by_its_port() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let snapshot = Snapshot::take();
    let ours = snapshot.processes[&std::process::id()].network;
    let found = find(&snapshot, &Wanted::Port(port), ours).unwrap();
    assert!(found.processes.contains_key(&Pid(std::process::id())));
    assert!(found.network_is_ours);
}
