//! More than a probe should ever see: thousands of short connections, ports used again, packets
//! that come faster than they are taken, threads that come and go. Counts are then right or
//! refused, and memory is bounded.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;

use assay::processes;
use nix::libc;
use nix::sys::signal::{Signal, kill};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, setsockopt, socket, sockopt};
use nix::unistd::Pid;
use serde_json::Value;

use crate::guarded_run::all_faults_are_tried;

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok";

/// Whether packets can be recorded; says so where not.
fn may_record() -> bool {
    let root = nix::unistd::geteuid().is_root();
    if !root {
        let _gone = writeln!(std::io::stderr(), "left out: recording packets needs root");
    }
    root
}

/// A server of one answer a connection, with so many more bytes in it.
fn server(more: usize) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("it is bound").port();
    thread::spawn(move || {
        let long = format!("HTTP/1.1 200 OK\r\ncontent-length: {more}\r\n\r\n").into_bytes();
        let long = [long, vec![b'x'; more]].concat();
        let answer = if more > 0 { &long } else { ANSWER };
        for mut stream in listener.incoming().flatten() {
            let mut line = String::new();
            let mut reader = BufReader::new(stream.try_clone().expect("one descriptor more"));
            while reader.read_line(&mut line).is_ok_and(|length| length > 2) {
                line.clear();
            }
            let _gone = stream.write_all(answer);
        }
    });
    port
}

fn ask(mut stream: impl Read + Write) {
    stream.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").expect("the server reads");
    let mut answer = Vec::new();
    let _reset = stream.read_to_end(&mut answer);
    assert!(answer.starts_with(b"HTTP/1.1 200"));
}

/// A probe of the wire, ready.
struct Wire {
    child: Child,
    out: PathBuf,
    _folder: tempfile::TempDir,
}

impl Wire {
    fn start(port: u16, words: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let out = folder.path().join("wire");
        let program = Path::new(env!("CARGO_BIN_EXE_assay")).with_file_name("assay-probe-wire");
        let mut child = Command::new(program)
            .arg("--out")
            .arg(&out)
            .args(["--target", &format!("subject:port={port}")])
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the probes are built");
        let mut line = String::new();
        let output = child.stdout.as_mut().expect("it is a pipe");
        BufReader::new(output).read_line(&mut line).expect("it says that it is ready");
        assert!(line.contains("ready"), "{line}");
        Self { child, out, _folder: folder }
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(self.child.id().cast_signed())
    }

    /// The highest memory so far, in bytes.
    fn peak(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid())).expect("it runs");
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
        kilobytes.expect("the kernel says it") * 1024
    }

    /// Ends it; what `assay inspect` makes of its capture, and the memory that it took for that.
    fn inspected(mut self) -> (Value, u64) {
        drop(self.child.stdin.take());
        assert!(self.child.wait().expect("it is our child").success());
        let mut inspect = Command::new(env!("CARGO_BIN_EXE_assay"))
            .args(["inspect", "--json"])
            .arg(&self.out)
            .stdout(Stdio::piped())
            .spawn()
            .expect("assay starts");
        let mut text = Vec::new();
        let output = inspect.stdout.as_mut().expect("it is a pipe");
        output.read_to_end(&mut text).expect("it prints");
        let peak = reap(&inspect);
        // It has been waited for already, with what it used.
        let _no_child = inspect.wait();
        (serde_json::from_slice(&text).expect("it prints JSON"), peak)
    }
}

/// Waits for a child; the highest memory that it had, in bytes.
fn reap(child: &Child) -> u64 {
    let mut status = 0;
    // SAFETY: plain numbers, and the kernel writes to two live locals.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::wait4(child.id().cast_signed(), &raw mut status, 0, &raw mut usage);
        usage
    };
    usage.ru_maxrss.cast_unsigned() * 1024
}

/// The responses that a capture holds; figures are divided by them.
fn counted(inspection: &Value) -> u32 {
    let lines = inspection["integrity"].as_array().expect("what was checked");
    let lines = lines.iter().filter_map(Value::as_str);
    let held = lines.filter_map(|line| line.split_once("the capture holds ")).next();
    let number = held.and_then(|(_, rest)| rest.strip_suffix(" HTTP responses"));
    let digits: String = number.unwrap_or_default().chars().filter(char::is_ascii_digit).collect();
    digits.parse().expect("a number of responses")
}

fn responses(inspection: &Value) -> &Value {
    let costs = inspection["costs"].as_array().expect("costs");
    let found = costs.iter().find(|cost| cost["metric"] == "http.responses");
    found.unwrap_or_else(|| panic!("no responses: {inspection:#}"))
}

#[test]
fn ten_thousand_short_connections_are_counted_in_memory_that_does_not_grow() {
    if !all_faults_are_tried() || !may_record() {
        return;
    }
    let measured = |connections: u32| {
        let port = server(0);
        let wire = Wire::start(port, &[]);
        for _ in 0..connections {
            ask(TcpStream::connect(("127.0.0.1", port)).expect("it listens"));
        }
        let probe = wire.peak();
        let (inspection, peak) = wire.inspected();
        assert_eq!(counted(&inspection), connections, "{inspection:#}");
        assert_eq!(responses(&inspection)["status"], "measured", "{inspection:#}");
        (probe, peak)
    };
    let (few, many) = (measured(1_000), measured(10_000));
    const ROOM: u64 = 8 << 20;
    assert!(many.0 < few.0 + ROOM, "the probe: {} bytes, then {}", few.0, many.0);
    assert!(many.1 < few.1 + ROOM, "the reader: {} bytes, then {}", few.1, many.1);
}

/// A port of 127.0.0.1.
fn loopback(port: u16) -> libc::sockaddr_in {
    libc::sockaddr_in {
        sin_family: libc::AF_INET as u16,
        sin_port: port.to_be(),
        sin_addr: libc::in_addr { s_addr: u32::from(Ipv4Addr::LOCALHOST).to_be() },
        sin_zero: [0; 8],
    }
}

#[test]
fn connections_from_one_port_again_and_again_are_told_apart() {
    if !may_record() {
        return;
    }
    let port = server(0);
    let wire = Wire::start(port, &[]);
    // A port that is free again, since its listener is dropped at once.
    let own = TcpListener::bind("127.0.0.1:0").and_then(|own| own.local_addr());
    let own = own.expect("a free port").port();
    for _ in 0..100 {
        let flags = SockFlag::SOCK_CLOEXEC;
        let client = socket(AddressFamily::Inet, SockType::Stream, flags, None).expect("a socket");
        setsockopt(&client, sockopt::ReuseAddr, &true).expect("the kernel takes it");
        // Closed by a reset, so that the port is free again at once.
        let linger = libc::linger { l_onoff: 1, l_linger: 0 };
        setsockopt(&client, sockopt::Linger, &linger).expect("the kernel takes it");
        let (from, to) = (loopback(own), loopback(port));
        let length = size_of::<libc::sockaddr_in>() as libc::socklen_t;
        // SAFETY: two live addresses of the length that is said.
        let connected = unsafe {
            libc::bind(client.as_raw_fd(), (&raw const from).cast(), length) == 0
                && libc::connect(client.as_raw_fd(), (&raw const to).cast(), length) == 0
        };
        assert!(connected, "{}", std::io::Error::last_os_error());
        let mut stream = TcpStream::from(client);
        stream.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").expect("the server reads");
        let mut answer = [0; ANSWER.len()];
        stream.read_exact(&mut answer).expect("the server answers");
    }
    let (inspection, _) = wire.inspected();
    assert_eq!(counted(&inspection), 100, "{inspection:#}");
}

#[test]
fn counts_of_a_capture_that_lost_packets_are_refused_with_their_number() {
    if !may_record() {
        return;
    }
    let port = server(1 << 20);
    let wire = Wire::start(port, &["--ring", "2"]);
    ask(TcpStream::connect(("127.0.0.1", port)).expect("it listens"));
    kill(wire.pid(), Signal::SIGSTOP).expect("it runs");
    for _ in 0..6 {
        ask(TcpStream::connect(("127.0.0.1", port)).expect("it listens"));
    }
    kill(wire.pid(), Signal::SIGCONT).expect("it runs");
    let (inspection, _) = wire.inspected();
    let cost = responses(&inspection);
    let known = ["lower bound", "not measured"];
    assert!(cost["status"].as_str().is_some_and(|status| known.contains(&status)), "{cost}");
    let reason = cost["reason"].as_str().unwrap_or_default();
    let dropped = reason
        .strip_prefix("the recorder dropped ")
        .and_then(|rest| rest.split(' ').next()?.parse::<u64>().ok());
    assert!(dropped.is_some_and(|dropped| dropped > 0), "{reason}");
}

#[test]
fn nobody_else_is_harmed_by_a_probe_that_is_killed() {
    if !may_record() {
        return;
    }
    // The server is this process; it goes on answering.
    let port = server(0);
    let address: SocketAddr = (Ipv4Addr::LOCALHOST, port).into();
    let mut wire = Wire::start(port, &[]);
    ask(TcpStream::connect(address).expect("it listens"));
    wire.child.kill().expect("it runs");
    wire.child.wait().expect("it is our child");
    ask(TcpStream::connect(address).expect("it listens"));
    let left = processes::descendants(nix::unistd::getpid());
    assert!(left.iter().all(|process| process.pid != wire.pid()), "{left:?}");
}
