//! Memory stays bounded however much comes in: generated streams are fed through the decoders and
//! folds, and an allocator counts what is held at once.
//!
//! One test, since all tests of a program share its allocator.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use assay_analyses::costs::whole_trace::TraceFold;
use assay_analyses::costs::wire::{Count, WireFold, WirePorts};
use assay_analyses::window::Window;
use assay_captures::units::{Moment, Span};
use assay_captures::{pcap, strace};

struct Counting;

static HELD: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

fn more(bytes: usize) {
    MOST.fetch_max(HELD.fetch_add(bytes, Relaxed) + bytes, Relaxed);
}

// SAFETY: everything is handed to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        more(layout.size());
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Relaxed);
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Both blocks exist while the bytes are moved.
        more(size);
        HELD.fetch_sub(layout.size(), Relaxed);
        unsafe { System.realloc(block, layout, size) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

const MIB: usize = 1 << 20;

/// The most that `work` holds at once, in MiB, beyond what is held already.
fn most(work: impl FnOnce()) -> usize {
    let before = HELD.load(Relaxed);
    MOST.store(before, Relaxed);
    work();
    (MOST.load(Relaxed) - before).div_ceil(MIB)
}

/// A capture that is written as it is read.
struct Wire {
    decoder: pcap::Decoder,
    fold: WireFold,
    record: Vec<u8>,
    bytes: usize,
}

impl Wire {
    fn new() -> Self {
        let span = Span { start: Moment(0), end: Moment(u64::MAX) };
        let fold = WireFold::new(&[Window { span, requests: 0 }], WirePorts::default());
        let mut wire = Self { decoder: pcap::Decoder::new(), fold, record: vec![], bytes: 0 };
        // Microseconds, raw IPv4.
        let header = [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 262_144, 101];
        let header: Vec<u8> = header.iter().flat_map(|word| word.to_le_bytes()).collect();
        wire.decoder.feed(&header, &mut wire.fold);
        wire
    }

    /// A segment between a client's port and a server.
    fn segment(&mut self, client: u32, port: u16, up: bool, sequence: u32, payload: &[u8]) {
        let total = 40 + payload.len();
        let record = &mut self.record;
        record.clear();
        for word in [1_700_000_000, 0, total as u32, total as u32] {
            record.extend_from_slice(&word.to_le_bytes());
        }
        let (client, server) = ((0x0a00_0000 | client).to_be_bytes(), [10, 200, 0, 1]);
        record.extend_from_slice(&[0x45, 0]);
        record.extend_from_slice(&(total as u16).to_be_bytes());
        record.extend_from_slice(&[0, 0, 0, 0, 64, 6, 0, 0]);
        let (from, to) = if up { (client, server) } else { (server, client) };
        let ports = if up { [40_000, port] } else { [port, 40_000] };
        record.extend_from_slice(&from);
        record.extend_from_slice(&to);
        record.extend(ports.iter().flat_map(|port| port.to_be_bytes()));
        record.extend_from_slice(&sequence.to_be_bytes());
        record.extend_from_slice(&[0, 0, 0, 0, 0x50, 0, 0xff, 0xff, 0, 0, 0, 0]);
        record.extend_from_slice(payload);
        self.bytes += record.len();
        self.decoder.feed(record, &mut self.fold);
    }

    fn count(mut self, count: Count) -> u64 {
        self.decoder.finish(&mut self.fold);
        let origin = assay_analyses::cost::Origin {
            subject: String::new(),
            variant: String::new(),
            route: String::new(),
            pass: "inspect".into(),
            capture: None,
        };
        self.fold.finish(&origin).totals.get(count)
    }
}

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    [&[kind][..], &(4 + body.len() as u32).to_be_bytes(), body].concat()
}

const READY: &[u8] = b"Z\0\0\0\x05I";

/// 200 MiB of answers on a few connections.
fn ordinary() {
    let mut wire = Wire::new();
    let query = message(b'Q', b"select filler from pages where id = 7\0");
    let mut answer: Vec<u8> = (0..50).flat_map(|_| message(b'D', &[b'x'; 1000])).collect();
    answer.extend(message(b'C', b"SELECT 50\0"));
    answer.extend(READY);
    let mut sequences = [(1_u32, 1_u32); 8];
    let mut rows = 0;
    while wire.bytes < 200 * MIB {
        for (client, (up, down)) in (0..).zip(&mut sequences) {
            wire.segment(client, 5432, true, *up, &query);
            wire.segment(client, 5432, false, *down, &answer);
            *up = up.wrapping_add(query.len() as u32);
            *down = down.wrapping_add(answer.len() as u32);
            rows += 50;
        }
    }
    assert_eq!(wire.count(Count::Rows), rows);
}

/// 100,000 connections that are open at once.
fn many_connections() {
    let mut wire = Wire::new();
    let query = message(b'Q', b"select 1\0");
    let answer = [message(b'D', b"\0\x01\0\0\0\x011"), message(b'C', b"SELECT 1\0")].concat();
    let answer = [&answer[..], READY].concat();
    for client in 0..100_000 {
        wire.segment(client, 5432, true, 1, &query);
        wire.segment(client, 5432, false, 1, &answer);
    }
    assert_eq!(wire.count(Count::ReadyForQuery), 100_000);
}

/// Every text is another one, and long.
fn many_texts() {
    let mut wire = Wire::new();
    let mut sequence = 1;
    for number in 0..2_000 {
        let text = format!("select a{number}, {} from t\0", "column_with_a_name, ".repeat(1_500));
        let query = message(b'Q', text.as_bytes());
        wire.segment(1, 5432, true, sequence, &query);
        sequence += query.len() as u32;
    }
    wire.count(Count::Executions);
}

/// Every connection lacks a segment, and brings megabytes behind it.
fn many_holes() {
    let mut wire = Wire::new();
    let rows: Vec<u8> = (0..60).flat_map(|_| message(b'D', &[b'x'; 1000])).collect();
    for client in 0..100 {
        wire.segment(client, 5432, false, 1, READY);
        for place in 1..20 {
            wire.segment(client, 5432, false, place * 60_360, &rows);
        }
    }
    wire.count(Count::Rows);
}

/// A response of one chunk of 100 MiB, and a row that says it has a gigabyte.
fn huge_messages() {
    let mut wire = Wire::new();
    let body = [b'x'; 60_000];
    wire.segment(1, 80, true, 1, b"GET / HTTP/1.1\r\nhost: a\r\n\r\n");
    let head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n6400000\r\n";
    wire.segment(1, 80, false, 1, head);
    let row = [b'D', 0x3f, 0xff, 0xff, 0xff, 0, 1];
    wire.segment(2, 5432, false, 1, READY);
    wire.segment(2, 5432, false, 7, &row);
    let (mut first, mut second) = (1 + head.len() as u32, 14);
    for _ in 0..1_700 {
        wire.segment(1, 80, false, first, &body);
        wire.segment(2, 5432, false, second, &body);
        first += 60_000;
        second += 60_000;
    }
    wire.count(Count::HttpResponses);
}

fn traced(chunks: impl Iterator<Item = Vec<u8>>) -> u64 {
    let (mut decoder, mut fold) = (strace::Decoder::new(), TraceFold::new(None));
    for chunk in chunks {
        decoder.feed(&chunk, &mut fold);
    }
    decoder.finish(&mut fold);
    fold.totals.all().calls
}

/// One line of 100 MiB among others.
fn long_line() {
    let call = b"7 1700000000.000001 getpid() = 7 <0.000001>\n";
    let begin = b"7 1700000000.000002 write(1, \"".to_vec();
    let end = [b"\", 9) = 9 <0.000001>\n", &call[..]].concat();
    let middle = (0..1_600).map(|_| vec![b'x'; 65_536]);
    let chunks = [call.to_vec(), begin].into_iter().chain(middle).chain([end]);
    assert_eq!(traced(chunks), 3);
}

/// Names of calls, of errors and of threads that never come again.
fn many_names() {
    let lines = |from: u32| -> Vec<u8> {
        let line = |number: u32| {
            format!(
                "{number} 1700000000.000001 name{number}(1) = -1 E{number} (No) <0.000001>\n\
                 {number} 1700000000.000001 read(0,  <unfinished ...>\n"
            )
        };
        (from..from + 1_000).map(line).collect::<String>().into_bytes()
    };
    traced((0..400).map(|block| lines(1 + block * 1_000)));
}

#[test]
fn what_is_held_at_once_does_not_grow_with_what_comes_in() {
    let cases: [(&str, fn(), usize); 7] = [
        ("200 MiB of answers", ordinary, 2),
        ("100,000 connections", many_connections, 150),
        ("120 MB of long texts", many_texts, 64),
        ("holes in every connection", many_holes, 48),
        ("messages of 100 MiB", huge_messages, 2),
        ("a line of 100 MiB", long_line, 4),
        ("names that never come again", many_names, 64),
    ];
    let mut over = Vec::new();
    for (name, work, limit) in cases {
        let held = most(work);
        if held > limit {
            over.push(format!("{name}: {held} MiB held at once, more than {limit}"));
        }
    }
    assert!(over.is_empty(), "{over:#?}");
}
