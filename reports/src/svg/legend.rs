//! What the colours stand for: above the content, as many names a line as fit.

use super::canvas::{Canvas, Side, TEXT, WIDTH, width};
use super::palette::Colour;

/// Side of a patch of colour, and the space to its name and to the next patch.
const PATCH: i32 = 10;
const GAP: i32 = 5;
const SPACE: i32 = 14;
/// Height of a line.
pub(super) const LINE: i32 = TEXT + 6;

/// The names of a legend, laid out.
pub(super) struct Legend {
    places: Vec<(i32, i32, String, Colour)>,
    /// Height that it takes.
    pub(super) height: i32,
}

impl Legend {
    /// Lays names out; a single one needs no legend.
    pub(super) fn new(names: &[String]) -> Self {
        Self::coloured(names, Colour::Series)
    }

    /// The same with colours of its own.
    pub(super) fn coloured(names: &[String], colour: impl Fn(usize) -> Colour) -> Self {
        if names.len() < 2 {
            return Self { places: Vec::new(), height: 0 };
        }
        let (mut x, mut y) = (0, LINE / 2);
        let mut places = Vec::new();
        for (index, name) in names.iter().enumerate() {
            let name = crate::plain::line(name, 48);
            let own = PATCH + GAP + width(&name);
            if x > 0 && x + own > WIDTH {
                x = 0;
                y += LINE;
            }
            places.push((x, y, name, colour(index)));
            x += own + SPACE;
        }
        Self { places, height: y + LINE / 2 + 4 }
    }

    /// Draws it at the top.
    pub(super) fn draw(&self, canvas: &mut Canvas<'_>) {
        for (x, y, name, colour) in &self.places {
            let half = PATCH / 2;
            canvas.bar((*x, y - half), (x + PATCH, y + half), *colour);
            canvas.text(name, (x + PATCH + GAP, *y), Side::Start, Colour::Ink, WIDTH);
        }
    }
}
