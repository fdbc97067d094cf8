//! The file of the wire probe: packets of one source as they come, of two in the order of their
//! moments.

use std::fs::File;

use anyhow::{Context, Result};
use assay_captures::ids::Port;
use assay_captures::units::{Moment, Span};

use crate::clock;
use crate::frame;
use crate::pcapng::{Interface, Statistics, Writer};
use crate::ring::Captured;
use crate::sockets::sorter::{Sorter, Waiting};

/// How long a packet waits for an earlier one of another source: the kernel hands over packets in
/// blocks of 20 ms, and sockets are looked at as often.
const HOLD_NS: u64 = 100_000_000;

/// The file, and what has gone into it.
#[derive(Debug)]
pub struct PacketFile {
    name: &'static str,
    writer: Writer<File>,
    /// Present where packets have to be sorted.
    pub sorter: Option<Sorter>,
    subject_ports: Vec<Port>,
    /// Packets written.
    pub packets: u64,
    /// Bytes of their frames.
    pub bytes: u64,
    /// Responses that have begun to leave the subject's ports.
    pub responses: u64,
    began: Moment,
}

impl PacketFile {
    /// Begins the file; `sorted` where packets come from sockets.
    pub fn begin(
        name: &'static str,
        file: File,
        interfaces: &[Interface<'_>],
        subject_ports: Vec<Port>,
        sorted: bool,
    ) -> Result<Self> {
        let application = concat!("assay-probe-wire ", env!("CARGO_PKG_VERSION"));
        let writer = Writer::begin(file, application, interfaces)
            .with_context(|| format!("cannot write {name}"))?;
        Ok(Self {
            name,
            writer,
            sorter: sorted.then(Sorter::default),
            subject_ports,
            packets: 0,
            bytes: 0,
            responses: 0,
            began: clock::now(),
        })
    }

    /// Takes a packet of a ring.
    pub fn captured(&mut self, interface: u32, packet: &Captured<'_>) -> Result<()> {
        match &mut self.sorter {
            None => self.write(interface, packet.moment, packet.frame, packet.original),
            Some(sorter) => {
                let frame = packet.frame.to_vec();
                sorter.push(packet.moment, Waiting { interface, frame, original: packet.original });
                Ok(())
            }
        }
    }

    /// Writes what has waited long enough, and hands all to the file. A whole file after each
    /// block: whoever kills the probe loses little.
    pub fn flush(&mut self) -> Result<()> {
        self.release(Moment(clock::now().0.saturating_sub(HOLD_NS)))
    }

    /// Writes everything that waits: nothing more comes from before now.
    pub fn settle(&mut self) -> Result<()> {
        self.release(Moment(u64::MAX))
    }

    /// Writes the counters of an interface as they stand.
    pub fn statistics(&mut self, interface: u32, counts: Statistics) -> Result<()> {
        let span = Span { start: self.began, end: clock::now() };
        self.writer
            .statistics(interface, span, counts)
            .with_context(|| format!("cannot write {}", self.name))
    }

    /// Bytes of the file so far.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.writer.length()
    }

    /// Where the file is whole, if a write has failed.
    #[must_use]
    pub fn torn_after(&self) -> Option<u64> {
        self.writer.torn_after()
    }

    /// Packets that came too late for their place.
    #[must_use]
    pub fn late(&self) -> u64 {
        self.sorter.as_ref().map_or(0, Sorter::late)
    }

    fn release(&mut self, before: Moment) -> Result<()> {
        while let Some((moment, packet)) = self.sorter.as_mut().and_then(|s| s.pop(before)) {
            self.write(packet.interface, moment, &packet.frame, packet.original)?;
        }
        self.writer.flush().with_context(|| format!("cannot write {}", self.name))
    }

    fn write(&mut self, interface: u32, at: Moment, frame: &[u8], original: u32) -> Result<()> {
        self.packets += 1;
        self.bytes += frame.len() as u64;
        if frame::begins_response(frame, &self.subject_ports) {
            self.responses += 1;
        }
        self.writer
            .packet(interface, at, frame, original)
            .with_context(|| format!("cannot write {}", self.name))
    }
}
