//! One function a format. Each panics if the format's decoder breaks a promise.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Debug;
use std::hash::{DefaultHasher, Hash, Hasher};

use assay_captures::mask::{Flows, Protocol};
use assay_captures::parsed::{Problem, Sink};
use assay_captures::pcap::{self, Record};
use assay_captures::tcp::{Connection, Event, EventSink, Side, Streams};
use assay_captures::units::Moment;
use assay_captures::{
    allocation_counts, bpf_counts, callgrind, dhat, folded, gctrace, http, json_lines, load_tools,
    perf_script, postgres, pprof, recognise, redis, strace, usage,
};

/// A function that tries a format with any bytes.
pub type Try = fn(&[u8]);

/// All formats: the name of the target, and its function. Those with most risk come first.
pub const FORMATS: [(&str, Try); 15] = [
    ("wire", wire),
    ("strace", strace),
    ("callgrind", callgrind),
    ("postgres", postgres),
    ("redis", redis),
    ("http", http),
    ("mask", mask),
    ("pprof", pprof),
    ("dhat", dhat),
    ("perf_script", perf_script),
    ("folded", folded),
    ("load_tools", load_tools),
    ("gctrace", gctrace),
    ("json_lines", json_lines),
    ("recognise", recognise),
];

/// What a decoder said: how many records and problems, and a hash of them all.
#[derive(Debug, Default)]
struct Said {
    records: u64,
    problems: u64,
    hash: DefaultHasher,
    text: String,
}

impl Said {
    fn say(&mut self, what: &impl Debug) {
        use std::fmt::Write as _;
        self.text.clear();
        let _never = write!(self.text, "{what:?}");
        self.text.hash(&mut self.hash);
    }

    fn answer(&self) -> (u64, u64, u64) {
        (self.records, self.problems, self.hash.finish())
    }
}

impl<R: Debug> Sink<R> for Said {
    fn record(&mut self, record: R) {
        self.records += 1;
        self.say(&record);
    }

    fn problem(&mut self, problem: Problem) {
        self.problems += 1;
        self.say(&problem);
    }
}

/// Reads the bytes at once and in small pieces; both answers must be the same, and neither may
/// hold more than a few records or problems a byte.
fn same(bytes: &[u8], read: impl Fn(&[u8], usize) -> Said) {
    let whole = read(bytes, usize::MAX).answer();
    let pieces = read(bytes, 1 + bytes.len() % 61).answer();
    assert_eq!(whole, pieces, "the size of the pieces changes the answer");
    let most = 64 + 8 * bytes.len() as u64;
    assert!(whole.0 <= most && whole.1 <= most, "more is said than the file holds: {whole:?}");
}

/// A packet capture, down to the messages of all three protocols.
pub fn wire(bytes: &[u8]) {
    same(bytes, |bytes, piece| {
        let mut wire = Wire::default();
        let mut decoder = pcap::Decoder::default();
        bytes.chunks(piece).for_each(|piece| decoder.feed(piece, &mut wire));
        decoder.finish(&mut wire);
        wire.streams.finish(&mut wire.talks);
        wire.talks.said
    });
}

/// strace's log or table.
pub fn strace(bytes: &[u8]) {
    same(bytes, |bytes, piece| {
        let (mut decoder, mut said) = (strace::Decoder::new(), Said::default());
        bytes.chunks(piece).for_each(|piece| decoder.feed(piece, &mut said));
        decoder.finish(&mut said);
        said
    });
    let mut totals = strace::Totals::default();
    let mut decoder = strace::Decoder::new();
    decoder.feed(bytes, &mut totals);
    decoder.finish(&mut totals);
    for argument in strace::arguments(bytes) {
        strace::descriptor(argument).map(|descriptor| strace::socket(descriptor.target));
    }
}

/// A callgrind profile, and what it adds up to: no function may have more than the total.
pub fn callgrind(bytes: &[u8]) {
    same(bytes, |bytes, piece| {
        let (mut decoder, mut said) = (callgrind::Decoder::default(), Said::default());
        bytes.chunks(piece).for_each(|piece| decoder.feed(piece, &mut said));
        decoder.finish(&mut said);
        said
    });
    let (mut decoder, mut profile) = (callgrind::Decoder::default(), callgrind::Profile::default());
    decoder.feed(bytes, &mut profile);
    decoder.finish(&mut profile);
    let _parts = profile.parts().count();
}

/// A DHAT heap profile.
pub fn dhat(bytes: &[u8]) {
    same(bytes, |bytes, piece| {
        let (mut decoder, mut said) = (dhat::Decoder::default(), Said::default());
        bytes.chunks(piece).for_each(|piece| decoder.feed(piece, &mut said));
        decoder.finish(&mut said);
        said
    });
}

/// A pprof profile, gzipped or not.
pub fn pprof(bytes: &[u8]) {
    same(bytes, |bytes, piece| {
        let (mut decoder, mut said) = (pprof::Decoder::default(), Said::default());
        bytes.chunks(piece).for_each(|piece| decoder.feed(piece, &mut said));
        decoder.finish(&mut said);
        said
    });
}

/// The text of perf script.
pub fn perf_script(bytes: &[u8]) {
    same(bytes, |bytes, piece| {
        let (mut decoder, mut said) = (perf_script::Decoder::default(), Said::default());
        bytes.chunks(piece).for_each(|piece| decoder.feed(piece, &mut said));
        decoder.finish(&mut said);
        said
    });
}

/// Folded stacks.
pub fn folded(bytes: &[u8]) {
    same(bytes, |bytes, piece| {
        let (mut decoder, mut said) = (folded::Decoder::default(), Said::default());
        bytes.chunks(piece).for_each(|piece| decoder.feed(piece, &mut said));
        decoder.finish(&mut said);
        said
    });
}

/// Output of a Go program with GC traces in it.
pub fn gctrace(bytes: &[u8]) {
    same(bytes, |bytes, piece| {
        let (mut decoder, mut said) = (gctrace::Decoder::default(), Said::default());
        bytes.chunks(piece).for_each(|piece| decoder.feed(piece, &mut said));
        decoder.finish(&mut said);
        said
    });
}

/// What a load generator printed.
pub fn load_tools(bytes: &[u8]) {
    same(bytes, |bytes, piece| {
        let (mut decoder, mut said) = (load_tools::Decoder::default(), Said::default());
        bytes.chunks(piece).for_each(|piece| decoder.feed(piece, &mut said));
        decoder.finish(&mut said);
        said
    });
}

/// Our own formats of one JSON record a line.
pub fn json_lines(bytes: &[u8]) {
    same(bytes, |bytes, piece| {
        let mut said = Said::default();
        let mut usage = json_lines::Decoder::<usage::Sample>::default();
        let mut syscalls = json_lines::Decoder::<bpf_counts::Sample>::default();
        let mut allocations = json_lines::Decoder::<allocation_counts::Sample>::default();
        bytes.chunks(piece).for_each(|piece| usage.feed(piece, &mut said));
        usage.finish(&mut said);
        bytes.chunks(piece).for_each(|piece| syscalls.feed(piece, &mut said));
        syscalls.finish(&mut said);
        bytes.chunks(piece).for_each(|piece| allocations.feed(piece, &mut said));
        allocations.finish(&mut said);
        said
    });
}

/// What a file is.
pub fn recognise(bytes: &[u8]) {
    assert!(!recognise::kind(&bytes[..bytes.len().min(recognise::HEAD)]).name().is_empty());
}

/// A conversation of Postgres.
pub fn postgres(bytes: &[u8]) {
    let mut decoder = postgres::Decoder::new(starts(bytes));
    let mut said = Said::default();
    conversation(bytes, |from, moment, what| match what {
        Ok(bytes) => decoder.feed(from, moment, bytes, &mut |message| said.say(&message)),
        Err(length) => decoder.gap(from, moment, length, &mut |message| said.say(&message)),
    });
    let _any = (postgres::is_frontend(bytes), postgres::is_backend(bytes));
}

/// A conversation of Redis.
pub fn redis(bytes: &[u8]) {
    let mut decoder = redis::Decoder::new(starts(bytes));
    let mut said = Said::default();
    conversation(bytes, |from, moment, what| match what {
        Ok(bytes) => decoder.feed(from, moment, bytes, &mut |message| said.say(&message)),
        Err(length) => decoder.gap(from, moment, length, &mut |message| said.say(&message)),
    });
    let _any = (redis::is_client(bytes), redis::is_server(bytes));
}

/// A conversation of HTTP.
pub fn http(bytes: &[u8]) {
    let mut decoder = http::Decoder::new(starts(bytes));
    let mut said = Said::default();
    conversation(bytes, |from, moment, what| match what {
        Ok(bytes) => decoder.feed(from, moment, bytes, &mut |message| said.say(&message)),
        Err(length) => decoder.gap(from, moment, length, &mut |message| said.say(&message)),
    });
    decoder.close(Moment(0), &mut |message| said.say(&message));
    let _any = (http::is_request(bytes), http::is_response(bytes));
}

/// Masking of a packet capture.
pub fn mask(bytes: &[u8]) {
    let protocols = [(5432, Protocol::Postgres), (6379, Protocol::Redis), (8080, Protocol::Http)];
    let mut masked = Masked(Flows::new(BTreeMap::from(protocols)));
    let mut decoder = pcap::Decoder::default();
    decoder.feed(bytes, &mut masked);
    decoder.finish(&mut masked);
}

fn starts(bytes: &[u8]) -> bool {
    bytes.first().is_none_or(|first| first & 1 == 0)
}

/// Cuts the bytes into what two sides say: a byte for the side or a hole, one for the length.
fn conversation(bytes: &[u8], mut say: impl FnMut(Side, Moment, Result<&[u8], u64>)) {
    let (mut rest, mut moment) = (bytes, 0);
    while let [head, length, after @ ..] = rest {
        let from = if head & 2 == 0 { Side::Client } else { Side::Server };
        let (piece, next) = after.split_at(usize::from(*length).min(after.len()));
        moment += 1;
        let hole = head & 0x1c == 0x1c;
        say(from, Moment(moment), if hole { Err(u64::from(*length) << 4) } else { Ok(piece) });
        rest = next;
    }
}

struct Masked(Flows);

impl Sink<Record<'_>> for Masked {
    fn record(&mut self, record: Record<'_>) {
        if let Record::Packet(packet) = record {
            let mut payload = packet.payload.to_vec();
            self.0.mask(&packet, &mut payload);
        }
    }

    fn problem(&mut self, _: Problem) {}
}

#[derive(Default)]
struct Wire {
    streams: Streams,
    talks: Talks,
}

#[derive(Default)]
struct Talks {
    open: HashMap<Connection, (http::Decoder, postgres::Decoder, redis::Decoder)>,
    said: Said,
}

impl Sink<Record<'_>> for Wire {
    fn record(&mut self, record: Record<'_>) {
        self.talks.said.records += 1;
        match record {
            Record::Packet(packet) => self.streams.feed(&packet, &mut self.talks),
            record => self.talks.said.say(&record),
        }
    }

    fn problem(&mut self, problem: Problem) {
        self.talks.said.problems += 1;
        self.talks.said.say(&problem);
    }
}

impl EventSink for Talks {
    fn event(&mut self, event: Event<'_>) {
        let said = &mut self.said;
        match event {
            Event::Opened { connection, from_start, .. } => {
                let decoders = (
                    http::Decoder::new(from_start),
                    postgres::Decoder::new(from_start),
                    redis::Decoder::new(from_start),
                );
                self.open.insert(connection, decoders);
            }
            Event::Chunk { connection, from, moment, bytes } => {
                let Some((http, postgres, redis)) = self.open.get_mut(&connection) else { return };
                http.feed(from, moment, bytes, &mut |message| said.say(&message));
                postgres.feed(from, moment, bytes, &mut |message| said.say(&message));
                redis.feed(from, moment, bytes, &mut |message| said.say(&message));
            }
            Event::Gap { connection, from, moment, length } => {
                let Some((http, postgres, redis)) = self.open.get_mut(&connection) else { return };
                http.gap(from, moment, length, &mut |message| said.say(&message));
                postgres.gap(from, moment, length, &mut |message| said.say(&message));
                redis.gap(from, moment, length, &mut |message| said.say(&message));
            }
            Event::Closed { connection, moment, .. } => {
                if let Some((mut http, ..)) = self.open.remove(&connection) {
                    http.close(moment, &mut |message| said.say(&message));
                }
            }
        }
    }
}
