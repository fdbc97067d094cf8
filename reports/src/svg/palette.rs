//! Colours: told apart by people who see fewer of them, and in grey by their lightness; at least
//! 3 : 1 against the ground they stand on.

use plotters::style::RGBColor;

/// A colour by what it is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    /// Text.
    Ink,
    /// Text that stands back.
    Faint,
    /// Lines behind the content.
    Grid,
    /// The ground.
    Paper,
    /// The content: one of `SERIES`, going round.
    Series(usize),
}

/// Colours of the content on a light ground.
const SERIES: [(u8, u8, u8); 8] = [
    (0x00, 0x5F, 0xA8),
    (0xC2, 0x4E, 0x00),
    (0x1E, 0x7B, 0x3C),
    (0x9A, 0x3F, 0x8F),
    (0x3B, 0x2E, 0x85),
    (0x00, 0x80, 0x80),
    (0x8A, 0x5A, 0x00),
    (0x5B, 0x66, 0x70),
];

/// The grey one.
pub(super) const GREY: usize = 7;

const INK: (u8, u8, u8) = (0x1B, 0x1F, 0x24);
const FAINT: (u8, u8, u8) = (0x56, 0x5F, 0x69);
const GRID: (u8, u8, u8) = (0xD5, 0xDA, 0xDF);
const PAPER: (u8, u8, u8) = (0xFE, 0xFE, 0xFE);

/// Each colour as drawn, and what stands for it on a dark ground: a style sheet swaps them.
pub const DARK: [(&str, &str); 12] = [
    ("#1B1F24", "#E6E9EC"),
    ("#565F69", "#A4ADB7"),
    ("#D5DADF", "#3A424B"),
    ("#FEFEFE", "#15191D"),
    ("#005FA8", "#62B0F0"),
    ("#C24E00", "#FF9350"),
    ("#1E7B3C", "#5CC781"),
    ("#9A3F8F", "#DE8FD4"),
    ("#3B2E85", "#A79BFF"),
    ("#008080", "#45C9C4"),
    ("#8A5A00", "#DDB35A"),
    ("#5B6670", "#9AA6B2"),
];

impl Colour {
    /// As plotters has it.
    pub(super) fn rgb(self) -> RGBColor {
        let (red, green, blue) = match self {
            Self::Ink => INK,
            Self::Faint => FAINT,
            Self::Grid => GRID,
            Self::Paper => PAPER,
            Self::Series(index) => SERIES[index % SERIES.len()],
        };
        RGBColor(red, green, blue)
    }
}
