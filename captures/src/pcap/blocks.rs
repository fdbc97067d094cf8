//! Numbers, options and time stamps of a pcapng section.

use pcap_parser::pcapng::{parse_option_be, parse_option_le};
use pcap_parser::{PcapError, PcapNGOption};

use crate::units::{Moment, Nanos};

/// Byte order of a file or of a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Little,
    Big,
}

impl Order {
    /// The 16-bit number at `offset`; 0 beyond the end.
    pub(super) fn u16(self, bytes: &[u8], offset: usize) -> u16 {
        let Some(&[a, b]) = bytes.get(offset..).and_then(<[u8]>::first_chunk::<2>) else {
            return 0;
        };
        match self {
            Self::Little => u16::from_le_bytes([a, b]),
            Self::Big => u16::from_be_bytes([a, b]),
        }
    }

    /// The 32-bit number at `offset`; 0 beyond the end.
    pub(super) fn u32(self, bytes: &[u8], offset: usize) -> u32 {
        let Some(&four) = bytes.get(offset..).and_then(<[u8]>::first_chunk::<4>) else {
            return 0;
        };
        match self {
            Self::Little => u32::from_le_bytes(four),
            Self::Big => u32::from_be_bytes(four),
        }
    }

    /// A 64-bit option value; `None` if it has another length. pcap-parser's own accessor reads
    /// little-endian in sections of either order.
    fn u64(self, value: &[u8]) -> Option<u64> {
        let eight = <[u8; 8]>::try_from(value).ok()?;
        Some(match self {
            Self::Little => u64::from_le_bytes(eight),
            Self::Big => u64::from_be_bytes(eight),
        })
    }

    /// Calls `each` with the number and value of every option in `bytes`.
    pub(super) fn options(self, mut bytes: &[u8], mut each: impl FnMut(u16, &[u8])) {
        while bytes.len() >= 4 {
            let parsed: Result<(&[u8], PcapNGOption<'_>), _> = match self {
                Self::Little => parse_option_le::<PcapError<&[u8]>>(bytes),
                Self::Big => parse_option_be::<PcapError<&[u8]>>(bytes),
            };
            let Ok((rest, option)) = parsed else { return };
            let length = usize::from(option.len);
            let Some(value) = option.value.get(..length) else { return };
            if option.code.0 == 0 || rest.len() >= bytes.len() {
                return;
            }
            each(option.code.0, value);
            bytes = rest;
        }
    }
}

/// How the stamps of an interface count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamps {
    /// Units per second (`if_tsresol`); 0 stands for a resolution that 64 bits cannot hold.
    pub(super) per_second: u64,
    /// Seconds to add (`if_tsoffset`).
    pub(super) offset: i64,
}

impl Default for Stamps {
    fn default() -> Self {
        Self { per_second: 1_000_000, offset: 0 }
    }
}

impl Stamps {
    /// The moment of a stamp; saturates at both ends of what a moment can say.
    pub(super) fn moment(self, stamp: u64) -> Moment {
        if self.per_second == 0 {
            return Moment(0);
        }
        let seconds = stamp / self.per_second;
        let rest = stamp % self.per_second;
        let nanos = match self.per_second {
            1_000_000 => rest * 1_000,
            1_000_000_000 => rest,
            per_second => (u128::from(rest) * 1_000_000_000 / u128::from(per_second)) as u64,
        };
        let seconds = i128::from(seconds) + i128::from(self.offset);
        let total = seconds * 1_000_000_000 + i128::from(nanos);
        Moment(u64::try_from(total.max(0)).unwrap_or(u64::MAX))
    }

    /// Length of one unit, rounded up to 1 ns.
    pub(super) fn resolution(self) -> Nanos {
        Nanos(1_000_000_000_u64.checked_div(self.per_second).unwrap_or(0).max(1))
    }
}

/// The time options of an interface description.
pub(super) fn interface_stamps(order: Order, options: &[u8]) -> Stamps {
    const TSRESOL: u16 = 9;
    const TSOFFSET: u16 = 14;
    let mut stamps = Stamps::default();
    order.options(options, |code, value| match (code, value) {
        (TSRESOL, &[resolution]) => {
            let exponent = u32::from(resolution & 0x7f);
            let base: u64 = if resolution & 0x80 == 0 { 10 } else { 2 };
            stamps.per_second = base.checked_pow(exponent).unwrap_or(0);
        }
        (TSOFFSET, value) => stamps.offset = order.u64(value).unwrap_or(0).cast_signed(),
        _ => {}
    });
    stamps
}

/// Packets lost so far, as an interface statistics block says.
pub(super) fn statistics_drops(order: Order, options: &[u8]) -> Option<u64> {
    const IFDROP: u16 = 5;
    const OSDROP: u16 = 7;
    let mut drops = None;
    order.options(options, |code, value| {
        if code == IFDROP || code == OSDROP {
            let more = order.u64(value).unwrap_or(0);
            drops = Some(drops.unwrap_or(0_u64).saturating_add(more));
        }
    });
    drops
}

/// Packets lost before this one, as its own options say.
pub(super) fn packet_drops(order: Order, options: &[u8]) -> u64 {
    const DROPCOUNT: u16 = 4;
    let mut drops = 0;
    order.options(options, |code, value| {
        if code == DROPCOUNT {
            drops = order.u64(value).unwrap_or(0);
        }
    });
    drops
}
