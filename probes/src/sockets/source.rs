//! Sockets as a source of packets beside the ring of a network interface.

use std::collections::BTreeSet;
use std::fs;

use anyhow::Result;
use assay_captures::ids::Pid;
use assay_captures::manifest::{Manifest, Target};
use assay_captures::units::Moment;

use super::conversations::{Conversations, Fate, FrameSink};
use super::servers::Servers;
use super::sorter::{Sorter, Waiting};
use super::tap::Tap;
use crate::clock;
use crate::pcapng::Statistics;

/// What stands in the file beside the interface.
pub const DESCRIPTION: &str = "frames made up from what processes sent and received on their \
    sockets; bytes and moments are theirs, headers are not";
/// So many more sockets than after the last look, and it is looked which are still there.
const GROWTH: usize = 512;

/// Reads sockets, and hands frames to a sorter.
#[derive(Debug)]
pub struct Source {
    tap: Tap,
    conversations: Conversations,
    interface: u32,
    frames: u64,
    /// How many sockets were there after the last look.
    sockets: usize,
    uring: bool,
}

struct Frames<'a> {
    sorter: &'a mut Sorter,
    interface: u32,
    count: u64,
}

impl FrameSink for Frames<'_> {
    fn frame(&mut self, moment: Moment, frame: Vec<u8>, original: u32) {
        self.count += 1;
        self.sorter.push(moment, Waiting { interface: self.interface, frame, original });
    }
}

impl Source {
    /// Loads the programs for the clients under these roots.
    pub fn load(roots: &[Pid], targets: &[Target], inet: bool, interface: u32) -> Result<Self> {
        Ok(Self {
            tap: Tap::load(roots, inet)?,
            conversations: Conversations::new(Servers::new(targets)),
            interface,
            frames: 0,
            sockets: 0,
            uring: false,
        })
    }

    /// Records from here on.
    pub fn attach(&mut self) -> Result<()> {
        self.tap.attach()?;
        self.uring |= self.tap.uring()?;
        Ok(())
    }

    /// Records no more; costs nothing from here on.
    pub fn detach(&mut self) {
        self.tap.detach();
    }

    /// Takes what is there.
    pub fn read(&mut self, sorter: &mut Sorter) -> Result<()> {
        // Read each time, since the two clocks drift.
        let anchor = clock::anchor();
        let mut frames = Frames { sorter, interface: self.interface, count: 0 };
        let mut fates = Vec::new();
        let conversations = &mut self.conversations;
        self.tap.read(|record| {
            // A send belongs to where it began: its answer may be there before it returns.
            let since_boot = record.entered.unwrap_or(record.moment);
            let after = since_boot.0.wrapping_sub(anchor.monotonic.0);
            let moment = Moment(anchor.realtime.0.wrapping_add(after));
            match conversations.take(&record, moment, &mut frames) {
                Fate::Ignored => fates.push(record.inode),
                Fate::Kept | Fate::Gone => {}
            }
        });
        for inode in fates {
            self.tap.ignore(inode)?;
        }
        if self.conversations.len() > self.sockets + GROWTH {
            let living = living(&self.tap.processes());
            for inode in self.conversations.sweep(&living, clock::now(), &mut frames) {
                self.tap.forget(inode)?;
            }
            self.sockets = self.conversations.len();
        }
        self.sockets = self.sockets.min(self.conversations.len());
        self.frames += frames.count;
        Ok(())
    }

    /// Frames, with what was lost.
    pub fn statistics(&self) -> Result<Statistics> {
        let dropped = self.tap.losses()?.total();
        Ok(Statistics { received: self.frames + dropped, dropped })
    }

    /// Tells the manifest what was found and what was lost.
    pub fn tell(&mut self, manifest: &mut Manifest) -> Result<()> {
        let losses = self.tap.losses()?;
        self.uring |= self.tap.uring()?;
        let found: Vec<_> = self.conversations.servers.found(&manifest.targets).collect();
        manifest.targets.extend(found);
        let integrity = &mut manifest.integrity;
        integrity.insert("socket_frames".into(), self.frames);
        integrity.insert("socket_drops".into(), losses.dropped + losses.unreadable);
        integrity.insert("socket_misses".into(), losses.missed + losses.untracked);
        integrity.insert("io_uring".into(), u64::from(self.uring));
        manifest.notes.push(
            "bytes on sockets were copied in the kernel (BPF) at the client's send and receive \
             calls; the frames around them are made up"
                .into(),
        );
        if self.uring {
            manifest.notes.push(
                "io_uring is in use: what is sent and received through it is not seen here".into(),
            );
        }
        Ok(())
    }
}

/// The sockets that these processes have open.
fn living(pids: &[Pid]) -> BTreeSet<u64> {
    let mut inodes = BTreeSet::new();
    for pid in pids {
        let Ok(entries) = fs::read_dir(format!("/proc/{}/fd", pid.0)) else { continue };
        for link in entries.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok()) {
            let text = link.to_string_lossy();
            let inode = text.strip_prefix("socket:[").and_then(|rest| rest.strip_suffix(']'));
            inodes.extend(inode.and_then(|number| number.parse::<u64>().ok()));
        }
    }
    inodes
}
