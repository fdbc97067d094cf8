//! Writes pcapng with one section and stamps in nanoseconds.
//!
//! Format: <https://www.ietf.org/archive/id/draft-ietf-opsawg-pcapng-03.html>.

use std::io::{self, Write};

use assay_captures::units::{Moment, Span};

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const INTERFACE_STATISTICS: u32 = 5;
const ENHANCED_PACKET: u32 = 6;
const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;
const LINK_TYPE_ETHERNET: u16 = 1;

/// Flushed to the file when this much has gathered.
const BUFFER: usize = 256 * 1024;

/// Writes blocks through a buffer. A file is whole after each [`flush`](Self::flush).
#[derive(Debug)]
pub struct Writer<W> {
    file: W,
    buffer: Vec<u8>,
    written: u64,
    torn: bool,
}

/// Where packets were recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interface<'a> {
    /// Its name.
    pub name: &'a str,
    /// What a reader must know of it.
    pub description: Option<&'a str>,
}

/// What the kernel counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Packets that passed the filter, those lost included.
    pub received: u64,
    /// Of these, packets for which there was no room.
    pub dropped: u64,
}

impl<W: Write> Writer<W> {
    /// Begins a file with what recorded it and the interfaces, which are numbered from 0.
    pub fn begin(file: W, application: &str, interfaces: &[Interface<'_>]) -> io::Result<Self> {
        let mut writer =
            Self { file, buffer: Vec::with_capacity(2 * BUFFER), written: 0, torn: false };
        let mut section = Vec::new();
        section.extend(BYTE_ORDER_MAGIC.to_le_bytes());
        // Version 1.0; the section's length is not known beforehand.
        section.extend([1, 0, 0, 0]);
        section.extend(u64::MAX.to_le_bytes());
        option(&mut section, 4, application.as_bytes());
        option(&mut section, 0, &[]);
        writer.block(SECTION_HEADER, &section);

        for interface in interfaces {
            let mut description = Vec::new();
            description.extend(LINK_TYPE_ETHERNET.to_le_bytes());
            // Reserved, and no limit to a packet's length.
            description.extend([0; 6]);
            if let Some(text) = interface.description {
                // The comment is what Wireshark shows first, the description what it lists.
                option(&mut description, 1, text.as_bytes());
                option(&mut description, 3, text.as_bytes());
            }
            option(&mut description, 2, interface.name.as_bytes());
            // Stamps count 10^-9 seconds.
            option(&mut description, 9, &[9]);
            option(&mut description, 0, &[]);
            writer.block(INTERFACE_DESCRIPTION, &description);
        }
        writer.flush()?;
        Ok(writer)
    }

    /// Adds a packet of which `captured` was kept.
    pub fn packet(
        &mut self,
        interface: u32,
        moment: Moment,
        captured: &[u8],
        original: u32,
    ) -> io::Result<()> {
        let padding = captured.len().wrapping_neg() % 4;
        // Packets are at most a block of the ring long.
        let length = (32 + captured.len() + padding) as u32;
        let buffer = &mut self.buffer;
        buffer.extend(ENHANCED_PACKET.to_le_bytes());
        buffer.extend(length.to_le_bytes());
        buffer.extend(interface.to_le_bytes());
        buffer.extend(halves(moment));
        buffer.extend((captured.len() as u32).to_le_bytes());
        buffer.extend(original.to_le_bytes());
        buffer.extend_from_slice(captured);
        buffer.extend_from_slice(&[0; 3][..padding]);
        buffer.extend(length.to_le_bytes());
        if self.buffer.len() >= BUFFER { self.flush() } else { Ok(()) }
    }

    /// Adds the counters of an interface as they stand at the end of `span`, cumulative.
    pub fn statistics(&mut self, interface: u32, span: Span, counts: Statistics) -> io::Result<()> {
        let mut body = Vec::new();
        body.extend(interface.to_le_bytes());
        body.extend(halves(span.end));
        option(&mut body, 2, &halves(span.start));
        option(&mut body, 3, &halves(span.end));
        option(&mut body, 4, &counts.received.to_le_bytes());
        option(&mut body, 5, &counts.dropped.to_le_bytes());
        option(&mut body, 0, &[]);
        self.block(INTERFACE_STATISTICS, &body);
        self.flush()
    }

    /// Hands what has gathered to the file. After a failure nothing more is written: it would
    /// stand behind half a block.
    pub fn flush(&mut self) -> io::Result<()> {
        if self.torn {
            return Err(io::Error::other("an earlier write has failed"));
        }
        let mut taken = 0;
        let result = loop {
            match self.file.write(&self.buffer[taken..]) {
                Ok(0) if taken < self.buffer.len() => break Err(io::ErrorKind::WriteZero.into()),
                Ok(length) => taken += length,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => break Err(error),
            }
            if taken == self.buffer.len() {
                break Ok(());
            }
        };
        self.torn = result.is_err();
        self.written += whole_blocks(&self.buffer, taken);
        self.buffer.clear();
        result
    }

    /// The length up to which the file holds whole blocks, where a failed write has left half a
    /// one behind that.
    #[must_use]
    pub fn torn_after(&self) -> Option<u64> {
        self.torn.then_some(self.written)
    }

    /// Where it writes to.
    pub fn file(&self) -> &W {
        &self.file
    }

    /// Bytes so far, those in the buffer included.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }

    fn block(&mut self, kind: u32, body: &[u8]) {
        let length = body.len() as u32 + 12;
        self.buffer.extend(kind.to_le_bytes());
        self.buffer.extend(length.to_le_bytes());
        self.buffer.extend_from_slice(body);
        self.buffer.extend(length.to_le_bytes());
    }
}

/// How many of the first `taken` bytes of a row of blocks are blocks with their ends.
fn whole_blocks(blocks: &[u8], taken: usize) -> u64 {
    let mut whole = 0;
    while let Some(Some(length)) = blocks.get(whole + 4..).map(<[u8]>::first_chunk) {
        let next = whole + u32::from_le_bytes(*length) as usize;
        if next > taken {
            break;
        }
        whole = next;
    }
    whole as u64
}

/// A 64-bit stamp as the format has it: the upper half first.
fn halves(moment: Moment) -> [u8; 8] {
    let mut bytes = [0; 8];
    bytes[..4].copy_from_slice(&((moment.0 >> 32) as u32).to_le_bytes());
    bytes[4..].copy_from_slice(&(moment.0 as u32).to_le_bytes());
    bytes
}

/// Appends an option, padded to 32 bits; code 0 ends the list.
fn option(body: &mut Vec<u8>, code: u16, value: &[u8]) {
    let kept = &value[..value.len().min(usize::from(u16::MAX))];
    body.extend(code.to_le_bytes());
    body.extend((kept.len() as u16).to_le_bytes());
    body.extend_from_slice(kept);
    body.resize(body.len().next_multiple_of(4), 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    const LO: Interface<'static> = Interface { name: "lo", description: None };

    /// Takes so many bytes.
    #[derive(Debug)]
    struct Full(usize);

    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let taken = bytes.len().min(self.0);
            self.0 -= taken;
            if taken == 0 && !bytes.is_empty() {
                Err(io::ErrorKind::StorageFull.into())
            } else {
                Ok(taken)
            }
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn after_a_failed_write_it_is_known_what_is_whole() {
        let mut writer = Writer::begin(Full(1000), "probe", &[LO]).unwrap();
        let head = writer.length();
        writer.packet(0, Moment(1), &[7; 100], 100).unwrap();
        writer.flush().unwrap();
        assert_eq!(writer.torn_after(), None);
        writer.packet(0, Moment(1), &[7; 100], 100).unwrap();
        writer.packet(0, Moment(1), &[7; 2000], 2000).unwrap();
        assert_eq!(writer.flush().unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert_eq!(writer.torn_after(), Some(head + 2 * 132));
        assert!(writer.flush().is_err());
    }

    #[test]
    fn blocks_have_their_length_at_both_ends_and_whole_words() {
        let mut writer = Writer::begin(Vec::new(), "assay-probe-wire", &[LO]).unwrap();
        for length in 0..9 {
            writer.packet(0, Moment(0x0123_4567_89ab_cdef), &vec![7; length], 99).unwrap();
        }
        let span = Span { start: Moment(1), end: Moment(2) };
        writer.statistics(0, span, Statistics { received: 9, dropped: 0 }).unwrap();
        assert_eq!(writer.length(), writer.file.len() as u64);

        let mut rest = writer.file.as_slice();
        let mut kinds = Vec::new();
        while !rest.is_empty() {
            let word = |at: usize| u32::from_le_bytes(rest[at..at + 4].try_into().unwrap());
            let length = word(4) as usize;
            assert_eq!(length % 4, 0);
            assert_eq!(word(length - 4), length as u32);
            if word(0) == ENHANCED_PACKET {
                assert_eq!((word(12), word(16)), (0x0123_4567, 0x89ab_cdef));
                assert_eq!(word(24), 99);
            }
            kinds.push(word(0));
            rest = &rest[length..];
        }
        assert_eq!(kinds[..2], [SECTION_HEADER, INTERFACE_DESCRIPTION]);
        assert_eq!(kinds[2..11], [ENHANCED_PACKET; 9]);
        assert_eq!(kinds[11..], [INTERFACE_STATISTICS]);
    }
}
