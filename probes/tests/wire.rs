//! The wire probe on real packets of `lo`. Needs the right to record packets.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod running;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;

use assay_captures::capture;
use assay_captures::manifest::Status;
use assay_captures::parsed::{Problem, Sink};
use assay_captures::pcap::{Decoder, FILE, PLAIN_FILE, Record};

use running::{Folder, Running, manifest};

const PROBE: &str = env!("CARGO_BIN_EXE_assay-probe-wire");
const REQUEST: &[u8] = b"POST /a?token=sesame HTTP/1.1\r\nContent-Length: 6\r\n\r\nsesame";
const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nsesame";

#[expect(clippy::print_stderr, reason = "a test that does nothing says so")]
fn may_record() -> bool {
    let root = nix::unistd::geteuid().is_root();
    if !root {
        eprintln!("skipped: recording packets needs root");
    }
    root
}

/// A server that answers each request on each connection.
fn server() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            std::thread::spawn(move || {
                let mut request = [0; REQUEST.len()];
                while stream.read_exact(&mut request).is_ok() {
                    stream.write_all(RESPONSE).unwrap();
                }
            });
        }
    });
    port
}

struct Client(TcpStream);

impl Client {
    fn new(port: u16) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.set_nodelay(true).unwrap();
        Self(stream)
    }

    fn ask(&mut self, times: usize) {
        let mut response = [0; RESPONSE.len()];
        for _ in 0..times {
            self.0.write_all(REQUEST).unwrap();
            self.0.read_exact(&mut response).unwrap();
        }
    }
}

/// Moments of the segments with payload, from and to a port, and what else was there.
#[derive(Default)]
struct Seen {
    port: u16,
    requests: Vec<u64>,
    responses: Vec<u64>,
    payload: Vec<u8>,
    drops: u64,
    problems: Vec<Problem>,
}

impl<'a> Sink<Record<'a>> for Seen {
    fn record(&mut self, record: Record<'a>) {
        match record {
            Record::Packet(packet) if !packet.payload.is_empty() => {
                let to_server = packet.destination.port == self.port;
                let side = if to_server { &mut self.requests } else { &mut self.responses };
                side.push(packet.moment.0);
                self.payload.extend(packet.payload);
                self.payload.push(b'\n');
            }
            Record::Drops { total, .. } => self.drops = total,
            _ => {}
        }
    }

    fn problem(&mut self, problem: Problem) {
        self.problems.push(problem);
    }
}

fn read(folder: &Path, port: u16) -> Seen {
    let mut seen = Seen { port, ..Seen::default() };
    let mut decoder = Decoder::new();
    decoder.feed(&bytes(folder), &mut seen);
    decoder.finish(&mut seen);
    seen
}

/// The file of the packets, unpacked.
fn bytes(folder: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    capture::feed_packets(folder, |chunk| bytes.extend_from_slice(chunk)).unwrap();
    bytes
}

fn holds(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

#[test]
fn every_packet_between_on_and_off_is_there_masked_and_no_other() {
    if !may_record() {
        return;
    }
    let folder = Folder::new("wire-windows");
    let out = folder.join("wire");
    let port = server();
    let mut probe =
        Running::start(PROBE, &out, &["--off", "--target", &format!("subject:port={port}")]);
    probe.ready();
    let mut client = Client::new(port);
    client.ask(10);
    let on = probe.tell("on");
    client.ask(300);
    let off = probe.tell("off");
    client.ask(10);
    let on_again = probe.tell("on");
    client.ask(200);
    let mut second = Client::new(port);
    second.ask(100);
    probe.tell("off");
    client.ask(10);
    let (last, status) = probe.end();
    assert_eq!(last["status"], "complete", "{last}");
    assert!(status.success());

    let seen = read(&out, port);
    assert_eq!(seen.problems, []);
    assert_eq!((seen.requests.len(), seen.responses.len()), (600, 600));
    assert!(seen.requests.iter().all(|&at| at > on && (at < off || at > on_again)));
    assert_eq!(seen.drops, 0);
    let manifest = manifest(&out);
    assert_eq!(manifest.integrity["drops"], 0);
    assert_eq!(manifest.integrity["responses"], 600);
    assert_eq!(manifest.integrity["packets"], manifest.integrity["received"]);

    assert_eq!(manifest.files, [FILE], "what was recorded raw is gone");
    assert!(out.join(FILE).is_file() && !out.join(PLAIN_FILE).exists());
    assert!(!holds(&bytes(&out), "sesame"), "nothing said stays");
    let text = String::from_utf8(seen.payload).unwrap();
    let request = "POST /a?token=xxxxxx HTTP/1.1\r\nContent-Length: 6\r\n\r\nxxxxxx\n";
    assert_eq!(text.matches(request).count(), 600, "all of them are still read as requests");
}

#[test]
fn a_probe_that_is_killed_leaves_a_file_that_can_be_read_and_no_end() {
    if !may_record() {
        return;
    }
    let folder = Folder::new("wire-killed");
    let out = folder.join("wire");
    let port = server();
    let target = format!("subject:port={port}");
    let mut probe = Running::start(PROBE, &out, &["--target", &target]);
    probe.ready();
    let mut client = Client::new(port);
    client.ask(100);
    // Longer than the kernel keeps a block that is not full.
    std::thread::sleep(std::time::Duration::from_millis(200));
    probe.child.kill().unwrap();
    probe.child.wait().unwrap();
    assert_eq!(manifest(&out).status, Status::Recording);
    let seen = read(&out, port);
    assert_eq!((seen.requests.len(), seen.responses.len()), (100, 100));
}

#[test]
fn it_stops_by_itself_after_so_many_requests_and_keeps_payload_when_told_to() {
    if !may_record() {
        return;
    }
    let folder = Folder::new("wire-limit");
    let out = folder.join("wire");
    let port = server();
    let target = format!("subject:port={port}");
    let words = ["--target", &target, "--max-requests", "50", "--keep-payload"];
    let mut probe = Running::start(PROBE, &out, &words);
    probe.ready();
    Client::new(port).ask(60);
    let (last, _) = probe.wait();
    assert_eq!(last["status"], "complete");
    assert!(read(&out, port).responses.len() >= 50);
    let bytes = bytes(&out);
    assert!(holds(&bytes, "sesame"));
    assert!(manifest(&out).notes[0].contains("not masked, as was asked for"));
}

#[test]
fn a_full_disk_is_one_line_and_what_is_there_is_masked() {
    if !may_record() {
        return;
    }
    let folder = Folder::new("wire-full");
    let disk = folder.join("disk");
    std::fs::create_dir(&disk).unwrap();
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=256k", "none"])
        .arg(&disk)
        .status()
        .unwrap();
    if !mounted.success() {
        return;
    }
    let out = disk.join("wire");
    let port = server();
    let target = format!("subject:port={port}");
    let mut probe = Running::start(PROBE, &out, &["--target", &target]);
    probe.ready();
    let mut client = Client::new(port);
    client.ask(3000);
    let (last, status) = probe.wait();
    let manifest = manifest(&out);
    let bytes = bytes(&out);
    let seen = read(&out, port);
    let unmounted = Command::new("umount").arg(&disk).status().unwrap();
    assert!(unmounted.success());

    let reason = last["reason"].as_str().unwrap();
    assert!(reason.starts_with("cannot write capture.pcapng: No space left on device"), "{reason}");
    assert_eq!(status.code(), Some(1));
    assert_eq!(manifest.status, Status::Failed);
    assert_eq!(manifest.reason.as_deref(), Some(reason));
    assert_eq!(manifest.notes, [""; 0]);
    assert!(seen.requests.len() > 100);
    assert_eq!(seen.problems, []);
    assert!(!holds(&bytes, "sesame"));
}

#[test]
fn what_cannot_be_recorded_is_said() {
    if !may_record() {
        return;
    }
    let folder = Folder::new("wire-errors");
    for (name, words, said) in [
        ("a", &["--interface", "nowhere0", "--target", "redis:port=1"][..], "no network interface"),
        ("b", &["--target", "redis:pid=1"], "no port to watch: give --target ROLE:port=N"),
        ("c", &["--cpu", "1000", "--target", "redis:port=1"], "CPU 1000"),
    ] {
        let (last, _) = Running::start(PROBE, &folder.join(name), words).wait();
        let reason = last["reason"].as_str().unwrap();
        assert!(reason.contains(said), "{reason}");
    }
}
