//! What each decoder costs beside copying the same bytes, which is what reading them at all takes.
//! `side_by_side.py` prints the ratios.

mod inputs;

use std::collections::HashMap;
use std::hint::black_box;

use assay_captures::parsed::{Problem, Sink};
use assay_captures::pcap::{self, Record};
use assay_captures::tcp::{Connection, Event, EventSink, Streams};
use assay_captures::{
    callgrind, folded, gctrace, http, perf_script, postgres, pprof, redis, strace,
};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use inputs::Input;

/// As much as a file is read in at once.
const CHUNK: usize = 128 * 1024;

/// Counts what it is given. A problem would mean that not all of the input is read.
#[derive(Default)]
struct Counted(u64);

impl<R> Sink<R> for Counted {
    fn record(&mut self, record: R) {
        black_box(&record);
        self.0 += 1;
    }

    fn problem(&mut self, problem: Problem) {
        panic!("the input of a benchmark is faulty: {problem}");
    }
}

/// Copies the bytes, then decodes them.
fn compare(criterion: &mut Criterion, name: &str, input: &Input, decode: impl Fn(&[u8]) -> u64) {
    assert!(decode(&input.bytes) > 0, "{name}: nothing was decoded");
    let mut group = criterion.benchmark_group(name);
    let bytes = input.bytes.len() as u64;
    group.throughput(Throughput::ElementsAndBytes { elements: input.units, bytes });
    let mut copy = vec![0; CHUNK];
    group.bench_function("copy", |bencher| {
        bencher.iter(|| {
            for chunk in input.bytes.chunks(CHUNK) {
                copy[..chunk.len()].copy_from_slice(chunk);
                black_box(&copy);
            }
        });
    });
    group.bench_function("decode", |bencher| bencher.iter(|| decode(black_box(&input.bytes))));
    group.finish();
}

/// A decoder of text or of one format, which takes chunks and tells a sink.
macro_rules! decoded {
    ($decoder:expr) => {
        |bytes: &[u8]| {
            let (mut decoder, mut counted) = ($decoder, Counted::default());
            bytes.chunks(CHUNK).for_each(|chunk| decoder.feed(chunk, &mut counted));
            decoder.finish(&mut counted);
            counted.0
        }
    };
}

fn texts(criterion: &mut Criterion) {
    let strace_log = inputs::lines(include_bytes!("../../fixtures/strace/last-process.strace"));
    compare(criterion, "strace", &strace_log, decoded!(strace::Decoder::new()));
    let profile = inputs::lines(include_bytes!("../../fixtures/callgrind/instr-jumps.out"));
    compare(criterion, "callgrind", &profile, decoded!(callgrind::Decoder::default()));
    compare(criterion, "gctrace", &inputs::gctrace(), decoded!(gctrace::Decoder::default()));
    let script = inputs::perf_script();
    compare(criterion, "perf script", &script, decoded!(perf_script::Decoder::default()));
    let stacks = inputs::folded();
    compare(criterion, "folded", &stacks, decoded!(folded::Decoder::default()));
    compare(criterion, "pprof", &inputs::pprof(), decoded!(pprof::Decoder::default()));
}

/// Packets put together to what was said, by the decoder of one protocol.
struct Talks<D> {
    new: fn(bool) -> D,
    say: fn(&mut D, &Event<'_>, &mut u64),
    open: HashMap<Connection, D>,
    messages: u64,
}

struct Wire<D> {
    streams: Streams,
    talks: Talks<D>,
}

impl<D> Sink<Record<'_>> for Wire<D> {
    fn record(&mut self, record: Record<'_>) {
        if let Record::Packet(packet) = record {
            self.streams.feed(&packet, &mut self.talks);
        }
    }

    fn problem(&mut self, problem: Problem) {
        panic!("the input of a benchmark is faulty: {problem}");
    }
}

impl<D> EventSink for Talks<D> {
    fn event(&mut self, event: Event<'_>) {
        let (Event::Opened { connection, .. } | Event::Chunk { connection, .. }) = event else {
            return;
        };
        let decoder = self.open.entry(connection).or_insert_with(|| (self.new)(true));
        (self.say)(decoder, &event, &mut self.messages);
    }
}

fn conversations<D>(
    bytes: &[u8],
    new: fn(bool) -> D,
    say: fn(&mut D, &Event<'_>, &mut u64),
) -> u64 {
    let talks = Talks { new, say, open: HashMap::new(), messages: 0 };
    let mut wire = Wire { streams: Streams::default(), talks };
    let mut decoder = pcap::Decoder::new();
    bytes.chunks(CHUNK).for_each(|chunk| decoder.feed(chunk, &mut wire));
    decoder.finish(&mut wire);
    wire.streams.finish(&mut wire.talks);
    wire.talks.messages
}

macro_rules! say {
    ($protocol:ident) => {
        |decoder: &mut $protocol::Decoder, event: &Event<'_>, messages: &mut u64| {
            if let Event::Chunk { from, moment, bytes, .. } = *event {
                decoder.feed(from, moment, bytes, &mut |message| {
                    black_box(&message);
                    *messages += 1;
                });
            }
        }
    };
}

fn wire(criterion: &mut Criterion) {
    let input = inputs::postgres();
    compare(criterion, "pcap", &input, decoded!(pcap::Decoder::new()));
    compare(criterion, "pcap to tcp", &input, |bytes| {
        conversations(
            bytes,
            |_| (),
            |(), event, chunks| {
                black_box(event);
                *chunks += 1;
            },
        )
    });
    compare(criterion, "pcap to postgres", &input, |bytes| {
        conversations(bytes, postgres::Decoder::new, say!(postgres))
    });
    compare(criterion, "pcap to redis", &inputs::redis(), |bytes| {
        conversations(bytes, redis::Decoder::new, say!(redis))
    });
    compare(criterion, "pcap to http", &inputs::http(), |bytes| {
        conversations(bytes, http::Decoder::new, say!(http))
    });
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(20);
    targets = texts, wire
}
criterion_main!(benches);
