//! Overwrites the payload in a packet capture, in place.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use anyhow::{Context, Result, ensure};
use assay_captures::ids::Role;
use assay_captures::manifest::Target;
use assay_captures::mask::{Flows, Protocol};
use assay_captures::parsed::{Problem, Sink};
use assay_captures::pcap::{Decoder, Packet, Record};

/// How much of the file is read at once.
const CHUNK: usize = 256 * 1024;

/// What masking has gone through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Masked {
    /// Packets, those without payload included.
    pub packets: u64,
    /// Bytes of payload.
    pub bytes: u64,
}

/// Masks the whole file, of which `expected` packets were recorded. The file keeps its length and
/// all that is not payload. An error leaves payload in the file, and says so.
///
/// It needs no room on the disk: a full one must not keep what users sent.
pub fn mask(file: &File, targets: &[Target], expected: u64) -> Result<Masked> {
    let ports = targets.iter().filter_map(|target| Some((target.port?.0, spoken(target.role))));
    let mut masking = Masking {
        file,
        flows: Flows::new(ports.collect::<BTreeMap<u16, Protocol>>()),
        payload: Vec::new(),
        masked: Masked::default(),
        failed: None,
    };
    let mut decoder = Decoder::new();
    let mut chunk = vec![0; CHUNK];
    let mut offset = 0;
    loop {
        let length = match file.read_at(&mut chunk, offset) {
            Ok(0) => break,
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error).context("cannot read the capture to mask it"),
        };
        // The decoder never looks back, so what is overwritten has been read.
        decoder.feed(&chunk[..length], &mut masking);
        offset += length as u64;
    }
    decoder.finish(&mut masking);
    let Masking { masked, failed, .. } = masking;
    if let Some(reason) = failed {
        return Err(reason).context("the payload is not masked");
    }
    ensure!(
        masked.packets >= expected,
        "the payload is masked in {} of {expected} packets only",
        masked.packets
    );
    Ok(masked)
}

fn spoken(role: Role) -> Protocol {
    match role {
        Role::Subject => Protocol::Http,
        Role::Postgres | Role::Pooler => Protocol::Postgres,
        Role::Redis => Protocol::Redis,
        Role::Load => Protocol::Unknown,
    }
}

struct Masking<'a> {
    file: &'a File,
    flows: Flows,
    payload: Vec<u8>,
    masked: Masked,
    failed: Option<io::Error>,
}

impl Masking<'_> {
    fn packet(&mut self, packet: &Packet<'_>) {
        self.masked.packets += 1;
        self.masked.bytes += packet.payload.len() as u64;
        self.payload.clear();
        self.payload.extend_from_slice(packet.payload);
        self.flows.mask(packet, &mut self.payload);
        if self.payload != packet.payload
            && let Err(error) = self.file.write_all_at(&self.payload, packet.payload_offset)
        {
            self.failed.get_or_insert(error);
        }
    }
}

impl<'a> Sink<Record<'a>> for Masking<'_> {
    fn record(&mut self, record: Record<'a>) {
        if let Record::Packet(packet) = record {
            self.packet(&packet);
        }
    }

    // A torn end holds less than one packet; the count of packets tells of anything else.
    fn problem(&mut self, _: Problem) {}
}
