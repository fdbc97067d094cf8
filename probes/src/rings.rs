//! The rings of all interfaces that are recorded, as one source of packets.

use std::os::fd::{AsFd, BorrowedFd};

use anyhow::Result;

use crate::packet_file::PacketFile;
use crate::pcapng::Statistics;
use crate::ring::Ring;

/// One ring an interface, in the order in which the file names them.
#[derive(Debug, Default)]
pub struct Rings {
    rings: Vec<Listening>,
}

#[derive(Debug)]
struct Listening {
    ring: Ring,
    listening: bool,
    /// Packets that came out of it.
    packets: u64,
}

impl Rings {
    /// Takes rings that are open and do not listen yet.
    #[must_use]
    pub fn new(rings: Vec<Ring>) -> Self {
        let fresh = |ring| Listening { ring, listening: false, packets: 0 };
        Self { rings: rings.into_iter().map(fresh).collect() }
    }

    /// Records from here on.
    pub fn listen(&mut self) -> Result<()> {
        for one in &mut self.rings {
            one.ring.listen()?;
            one.listening = true;
        }
        Ok(())
    }

    /// Takes what is there.
    pub fn read(&mut self, taken: &mut PacketFile) -> Result<()> {
        for (one, index) in self.rings.iter_mut().zip(0..) {
            let packets = &mut one.packets;
            one.ring.read(&mut |packet| {
                *packets += 1;
                taken.captured(index, &packet)
            })?;
        }
        Ok(())
    }

    /// Stops listening and takes the rest.
    pub fn pause(&mut self, taken: &mut PacketFile) -> Result<()> {
        // All are closed first, so that none records longer than the others.
        for one in &mut self.rings {
            if std::mem::take(&mut one.listening) {
                one.ring.close()?;
            }
        }
        for (one, index) in self.rings.iter_mut().zip(0..) {
            let packets = &mut one.packets;
            one.ring.drain(&mut |packet| {
                *packets += 1;
                taken.captured(index, &packet)
            })?;
        }
        Ok(())
    }

    /// Writes the counters of each as they stand.
    pub fn write_statistics(&mut self, taken: &mut PacketFile) -> Result<()> {
        for (one, index) in self.rings.iter_mut().zip(0..) {
            taken.statistics(index, one.ring.statistics()?)?;
        }
        Ok(())
    }

    /// What the kernel has counted on all of them.
    pub fn statistics(&mut self) -> Result<Statistics> {
        let mut sum = Statistics::default();
        for one in &mut self.rings {
            let counts = one.ring.statistics()?;
            sum.received += counts.received;
            sum.dropped += counts.dropped;
        }
        Ok(sum)
    }

    /// Packets that came out of them.
    #[must_use]
    pub fn packets(&self) -> u64 {
        self.rings.iter().map(|one| one.packets).sum()
    }

    /// How many there are; the next interface of the file has this number.
    #[must_use]
    pub fn len(&self) -> u32 {
        self.rings.iter().zip(1..).last().map_or(0, |(_, number)| number)
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rings.is_empty()
    }

    /// Readable when the first has something to take; several have to be looked at again and again.
    #[must_use]
    pub fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.rings.first().map(|one| one.ring.as_fd())
    }
}
