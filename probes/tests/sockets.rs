//! The wire probe on sockets that no packet capture sees, and in other network namespaces. Needs
//! the right to load BPF programs.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[allow(dead_code, reason = "other tests start their children more plainly")]
mod child;
mod running;

use std::io::{IoSlice, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Command, Stdio};

use assay_captures::capture;
use assay_captures::parsed::{Problem, Sink};
use assay_captures::pcap::{Decoder, Record};
use assay_captures::tcp::{Event, EventSink, Side, Streams};

use child::{Subject, next_stage, part};
use running::{Folder, Running, manifest};

const PROBE: &str = env!("CARGO_BIN_EXE_assay-probe-wire");
const PLACE: &str = "ASSAY_TEST_PLACE";
const STARTUP: &[u8] = b"\0\0\0\x08\0\x03\0\0";
const SYNC: &[u8] = b"S\0\0\0\x04";
const READY: &[u8] = b"Z\0\0\0\x05I";
/// `SELECT 'sesame'`, with its head.
const QUERY: &[u8] = b"Q\0\0\0\x14SELECT 'sesame'\0";
const MASKED: &[u8] = b"Q\0\0\0\x14SELECT 'xxxxxx'\0";

#[expect(clippy::print_stderr, reason = "a test that does nothing says so")]
fn may_record() -> bool {
    let root = nix::unistd::geteuid().is_root();
    if !root {
        eprintln!("skipped: loading BPF programs needs root");
    }
    root
}

/// A server that answers every message of five bytes and more with READY.
fn serve(path: &Path) {
    let listener = UnixListener::bind(path).unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            std::thread::spawn(move || {
                let mut head = [0; 8];
                stream.read_exact(&mut head).unwrap();
                let _ = stream.write_all(READY);
                let mut kind = [0; 5];
                while stream.read_exact(&mut kind).is_ok() {
                    let length = u32::from_be_bytes(kind[1..].try_into().unwrap()) as usize - 4;
                    stream.read_exact(&mut vec![0; length]).unwrap();
                    let _ = stream.write_all(READY);
                }
            });
        }
    });
}

/// What each side of the connections said, one after the other.
#[derive(Default)]
struct Told {
    streams: Streams,
    talk: Talk,
}

#[derive(Default)]
struct Talk {
    connections: usize,
    from_start: usize,
    finished: usize,
    sent: Vec<u8>,
    received: Vec<u8>,
    gaps: u64,
    moments: Vec<u64>,
}

impl EventSink for Talk {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Opened { from_start, .. } => {
                self.connections += 1;
                self.from_start += usize::from(from_start);
            }
            Event::Chunk { from, bytes, moment, .. } => {
                let side = if from == Side::Client { &mut self.sent } else { &mut self.received };
                side.extend_from_slice(bytes);
                self.moments.push(moment.0);
            }
            Event::Gap { length, .. } => self.gaps += length,
            Event::Closed { end, .. } => {
                self.finished += usize::from(end == assay_captures::tcp::End::Finished);
            }
        }
    }
}

impl Sink<Record<'_>> for Told {
    fn record(&mut self, record: Record<'_>) {
        if let Record::Packet(packet) = record {
            self.streams.feed(&packet, &mut self.talk);
        }
    }

    fn problem(&mut self, problem: Problem) {
        panic!("{problem}");
    }
}

/// The file of the packets, unpacked.
fn bytes(folder: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    capture::feed_packets(folder, |chunk| bytes.extend_from_slice(chunk)).unwrap();
    bytes
}

fn read(folder: &Path) -> Talk {
    let mut told = Told::default();
    let mut decoder = Decoder::new();
    decoder.feed(&bytes(folder), &mut told);
    decoder.finish(&mut told);
    told.streams.finish(&mut told.talk);
    told.talk
}

fn place() -> String {
    std::env::var(PLACE).unwrap()
}

fn hear(stream: &mut UnixStream, times: usize) {
    stream.read_exact(&mut vec![0; READY.len() * times]).unwrap();
}

/// The child: says the same things by every call there is.
fn all_calls() {
    let mut stream = UnixStream::connect(place()).unwrap();
    let fd = stream.as_raw_fd();
    stream.write_all(STARTUP).unwrap();
    hear(&mut stream, 1);
    // write, in two halves.
    stream.write_all(&QUERY[..7]).unwrap();
    stream.write_all(&QUERY[7..]).unwrap();
    hear(&mut stream, 1);
    // writev, with an empty buffer between.
    let buffers = [IoSlice::new(SYNC), IoSlice::new(b""), IoSlice::new(QUERY)];
    assert_eq!(stream.write_vectored(&buffers).unwrap(), SYNC.len() + QUERY.len());
    hear(&mut stream, 2);
    let vector = |bytes: &'static [u8]| libc::iovec {
        iov_base: bytes.as_ptr().cast_mut().cast(),
        iov_len: bytes.len(),
    };
    let mut vectors = [vector(&QUERY[..5]), vector(&QUERY[5..]), vector(SYNC)];
    // SAFETY: all zero is an empty message.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = vectors.as_mut_ptr();
    message.msg_iovlen = 3;
    // SAFETY: the message and what it points to live across the call.
    unsafe { libc::sendmsg(fd, &raw const message, 0) };
    hear(&mut stream, 2);
    // SAFETY: as above.
    let mut several: [libc::mmsghdr; 2] = unsafe { std::mem::zeroed() };
    for (index, message) in several.iter_mut().enumerate() {
        message.msg_hdr.msg_iov = &raw mut vectors[index];
        message.msg_hdr.msg_iovlen = 1;
    }
    // SAFETY: as above.
    unsafe { libc::sendmmsg(fd, several.as_mut_ptr(), 2, 0) };
    // Looking takes nothing; taking comes after.
    let mut buffer = [0u8; 64];
    // SAFETY: the buffer is as long as is said.
    unsafe {
        libc::recv(fd, buffer.as_mut_ptr().cast(), 64, libc::MSG_PEEK);
        libc::send(fd, SYNC.as_ptr().cast(), SYNC.len(), libc::MSG_NOSIGNAL);
    }
    hear(&mut stream, 2);
}

fn many_children() {
    let own = std::env::current_exe().unwrap();
    let mut children: Vec<_> = (0..20)
        .map(|_| {
            Command::new(&own)
                .args(["--exact", "the_part_of_a_short_child", "--nocapture"])
                .env("ASSAY_TEST_PART", "short")
                .stdout(Stdio::null())
                .spawn()
                .unwrap()
        })
        .collect();
    for child in &mut children {
        assert!(child.wait().unwrap().success());
    }
}

fn large() {
    let mut stream = UnixStream::connect(place()).unwrap();
    stream.write_all(STARTUP).unwrap();
    hear(&mut stream, 1);
    let body = vec![b'-'; 300_000];
    let mut message = b"Q".to_vec();
    message.extend((body.len() as u32 + 4).to_be_bytes());
    message.extend(&body);
    stream.write_all(&message).unwrap();
    hear(&mut stream, 1);
}

#[test]
fn the_part_of_a_short_child() {
    if part().as_deref() == Some("short") {
        let mut stream = UnixStream::connect(place()).unwrap();
        stream.write_all(STARTUP).unwrap();
        hear(&mut stream, 1);
        // Even this process sees the socket last: it ends without closing it.
        std::mem::forget(stream);
    }
}

/// The child's side of all tests here.
#[test]
fn the_part_of_the_subject() {
    let Some(part) = part() else { return };
    if part == "short" {
        return;
    }
    while let Some(stage) = next_stage() {
        match (part.as_str(), stage) {
            ("client", b'a') => all_calls(),
            ("client", b'b') => many_children(),
            ("client", b'c') => large(),
            _ => {}
        }
    }
}

struct Recorded {
    talk: Talk,
    manifest: assay_captures::manifest::Manifest,
    bytes: Vec<u8>,
}

/// Records one stage of a child.
fn record(name: &str, stage: u8) -> Recorded {
    let folder = Folder::new(name);
    let path = folder.join(".s.PGSQL.7");
    serve(&path);
    let mut subject = Subject::start_with(
        "the_part_of_the_subject",
        "client",
        &[(PLACE, path.to_str().unwrap())],
    );
    let out = folder.join("wire");
    let words = ["--target", &subject.target(), "--sockets", "unix"];
    let mut probe = Running::start(PROBE, &out, &words);
    probe.ready();
    // Somebody else's connection to the same server.
    let mut other = UnixStream::connect(&path).unwrap();
    other.write_all(STARTUP).unwrap();
    hear(&mut other, 1);
    subject.stage(stage);
    let (last, status) = probe.end();
    assert_eq!(last["status"], "complete", "{last}");
    assert!(status.success());
    Recorded { talk: read(&out), manifest: manifest(&out), bytes: bytes(&out) }
}

#[test]
fn every_call_that_sends_or_receives_gives_its_bytes_once_and_masked() {
    if !may_record() {
        return;
    }
    let Recorded { talk, manifest, bytes } = record("sockets-calls", b'a');
    let halves = [&MASKED[..5], &MASKED[5..]].concat();
    let expected = [STARTUP, MASKED, SYNC, MASKED, MASKED, SYNC, &halves, SYNC].concat();
    assert_eq!(talk.sent.escape_ascii().to_string(), expected.escape_ascii().to_string());
    assert_eq!(talk.received, READY.repeat(8));
    assert_eq!((talk.connections, talk.from_start, talk.finished, talk.gaps), (1, 1, 1, 0));
    assert!(talk.moments.is_sorted());
    assert_eq!(manifest.integrity["drops"], 0);
    assert_eq!(manifest.backend.as_deref(), Some("bpf"));
    let found = manifest.targets.last().unwrap();
    assert_eq!(found.port.map(|port| port.0), Some(7), "the port that the path speaks of");
    assert!(!bytes.windows(6).any(|window| window == b"sesame"));
}

#[test]
fn children_that_live_for_a_moment_are_caught_and_others_are_not() {
    if !may_record() {
        return;
    }
    let talk = record("sockets-children", b'b').talk;
    assert_eq!((talk.connections, talk.from_start), (20, 20));
    assert_eq!(talk.sent, STARTUP.repeat(20));
    assert_eq!(talk.received, READY.repeat(20));
}

#[test]
fn a_large_message_is_whole() {
    if !may_record() {
        return;
    }
    let talk = record("sockets-large", b'c').talk;
    assert_eq!(talk.sent.len(), STARTUP.len() + 300_005);
    assert_eq!((talk.gaps, talk.finished), (0, 1));
}

#[test]
fn what_is_said_while_it_is_off_is_not_recorded() {
    if !may_record() {
        return;
    }
    let folder = Folder::new("sockets-off");
    let path = folder.join(".s.PGSQL.7");
    serve(&path);
    let environment = [(PLACE, path.to_str().unwrap())];
    let mut subject = Subject::start_with("the_part_of_the_subject", "client", &environment);
    let out = folder.join("wire");
    let words = ["--off", "--target", &subject.target(), "--sockets", "unix"];
    let mut probe = Running::start(PROBE, &out, &words);
    probe.ready();
    subject.stage(b'c');
    let on = probe.tell("on");
    subject.stage(b'a');
    let off = probe.tell("off");
    subject.stage(b'c');
    probe.send("stop");
    assert_eq!(probe.wait().0["status"], "complete");
    let talk = read(&out);
    assert_eq!(talk.connections, 1);
    assert_eq!(talk.received, READY.repeat(8));
    assert!(talk.moments.iter().all(|&moment| on < moment && moment < off));
}

#[test]
fn sockets_without_a_process_are_refused() {
    if !may_record() {
        return;
    }
    let folder = Folder::new("sockets-errors");
    let own = format!("postgres:pid={},path=/x", std::process::id());
    let words = ["--target", own.as_str()];
    let (last, _) = Running::start(PROBE, &folder.join("a"), &words).wait();
    let reason = last["reason"].as_str().unwrap();
    assert!(reason.contains("give --target subject:pid=N"), "{reason}");
}

/// The child in a network namespace of its own: a server and a client on its loopback.
#[test]
fn the_part_of_a_container() {
    if part().as_deref() != Some("container") {
        return;
    }
    let listener = TcpListener::bind("127.0.0.1:5432").unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut bytes = [0; STARTUP.len()];
            stream.read_exact(&mut bytes).unwrap();
            stream.write_all(READY).unwrap();
        }
    });
    while next_stage().is_some() {
        let mut stream = TcpStream::connect("127.0.0.1:5432").unwrap();
        stream.write_all(STARTUP).unwrap();
        stream.read_exact(&mut [0; READY.len()]).unwrap();
    }
}

#[test]
fn packets_in_another_network_namespace_are_recorded_and_those_at_home_are_not() {
    if !may_record() {
        return;
    }
    let folder = Folder::new("sockets-netns");
    let own = std::env::current_exe().unwrap();
    let script = format!(
        "ip link set lo up && exec {} --exact the_part_of_a_container --nocapture --test-threads=1",
        own.display()
    );
    let mut command = Command::new("unshare");
    command.args(["--net", "sh", "-c", &script]);
    let Some(mut subject) = Subject::try_start(command, "container", &[]) else { return };
    let out = folder.join("wire");
    let pid = subject.pid().to_string();
    let words = ["--target", "postgres:port=5432", "--netns", &pid];
    let mut probe = Running::start(PROBE, &out, &words);
    probe.ready();
    subject.stage(b'a');
    subject.stage(b'a');
    let (last, _) = probe.end();
    assert_eq!(last["status"], "complete", "{last}");
    let talk = read(&out);
    assert_eq!((talk.connections, talk.from_start), (2, 2));
    assert_eq!(talk.sent, STARTUP.repeat(2));

    let gone = ["--target", "postgres:port=5432", "--netns", "2147483647"];
    let (last, _) = Running::start(PROBE, &folder.join("gone"), &gone).wait();
    let reason = last["reason"].as_str().unwrap();
    assert!(reason.starts_with("cannot open the network namespace of process"), "{reason}");
}
