//! Horizontal bars of parts. Each row has its name above the bar and its figure at the end.

use super::canvas::{Canvas, Side, TEXT, WIDTH, picture, pixels, width};
use super::legend::Legend;
use super::palette::{Colour, GREY};
use crate::charts::{Stacked, StackedRow};

const BAR: i32 = 16;
const ROW: i32 = TEXT + 6 + BAR + 10;

pub(super) fn draw(content: &Stacked) -> String {
    let parts = content.parts.len();
    // What is left over is grey in every chart.
    let colour =
        |part: usize| Colour::Series(if content.rest && part + 1 == parts { GREY } else { part });
    let legend = Legend::coloured(&content.parts, colour);
    let rows = i32::try_from(content.rows.len()).unwrap_or(0);
    let ends = content.rows.iter().map(|row| width(&row.text)).max().unwrap_or(0);
    let room = (WIDTH - ends - 12).max(WIDTH / 3);
    let largest = content.rows.iter().map(longest).fold(0.0, f64::max);
    let scale = if largest > 0.0 { f64::from(room) / largest } else { 0.0 };
    picture(legend.height + rows * ROW + 2, |canvas| {
        legend.draw(canvas);
        for (row, index) in content.rows.iter().zip(0..) {
            let top = legend.height + index * ROW;
            // Without parts, each bar has the colour of its variant.
            let own = |part: usize| {
                if parts == 1 { Colour::Series(index as usize) } else { colour(part) }
            };
            bar(canvas, row, top, scale, own);
        }
    })
}

/// What a row needs of the axis.
fn longest(row: &StackedRow) -> f64 {
    let sum: f64 = row.sizes.iter().flatten().sum();
    row.interval.map_or(sum, |(_, high)| sum.max(high))
}

fn bar(
    canvas: &mut Canvas<'_>,
    row: &StackedRow,
    top: i32,
    scale: f64,
    colour: impl Fn(usize) -> Colour,
) {
    canvas.text(&row.name, (0, top + TEXT / 2 + 1), Side::Start, Colour::Ink, WIDTH);
    let (upper, lower) = (top + TEXT + 5, top + TEXT + 5 + BAR);
    let middle = (upper + lower) / 2;
    let place = |value: f64| pixels(value * scale);
    let mut from = 0.0;
    for (index, size) in row.sizes.iter().enumerate() {
        let Some(size) = size else { continue };
        let to = from + size;
        // A pixel of the ground between parts, so that they are told apart in grey too.
        let right = (place(to) - i32::from(row.sizes.len() > 1)).max(place(from));
        if right > place(from) {
            canvas.bar((place(from), upper), (right, lower), colour(index));
        }
        from = to;
    }
    let mut end = place(from);
    if let Some((low, high)) = row.interval {
        canvas.line((place(low), middle), (place(high), middle), Colour::Ink, 1);
        for at in [low, high] {
            canvas.line((place(at), middle - 4), (place(at), middle + 4), Colour::Ink, 1);
        }
        end = end.max(place(high));
    }
    canvas.text(&row.text, (end + 8, middle), Side::Start, Colour::Ink, WIDTH);
}
