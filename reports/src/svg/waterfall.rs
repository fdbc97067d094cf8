//! One request: a bar for all of it, and below one for each trip at its time.

use super::canvas::{Canvas, Side, TEXT, WIDTH, picture, pixels};
use super::legend::Legend;
use super::palette::Colour;
use crate::charts::{Waterfall, WaterfallTrip};
use crate::numbers;

const BAR: i32 = 9;
const ROW: i32 = TEXT + BAR + 9;
const AXIS: i32 = 22;

pub(super) fn draw(content: &Waterfall) -> String {
    let legend = Legend::coloured(
        &content.kinds.iter().map(|kind| kind.0.clone()).collect::<Vec<_>>(),
        |kind| Colour::Series(content.kinds[kind].1),
    );
    let rows = i32::try_from(content.trips.len()).unwrap_or(0) + 1;
    let last = content.trips.iter().map(|trip| trip.span.1).fold(content.length, f64::max);
    let place = |at: f64| pixels(at / last.max(1e-12) * f64::from(WIDTH - 2));
    let bottom = legend.height + rows * ROW;
    picture(bottom + AXIS, |canvas| {
        legend.draw(canvas);
        let out = place(content.length);
        for at in [0, out] {
            canvas.line((at, legend.height), (at, bottom), Colour::Grid, 1);
        }
        let whole = "request in → response out";
        row(canvas, whole, (0, out), legend.height, (Colour::Series(7), false));
        for (trip, index) in content.trips.iter().zip(1..) {
            let top = legend.height + index * ROW;
            let WaterfallTrip { span, kind, unawaited, text } = trip;
            let ends = (place(span.0), place(span.1));
            row(
                canvas,
                text,
                ends,
                top,
                (Colour::Series(content.kinds.get(*kind).map_or(0, |kind| kind.1)), *unawaited),
            );
        }
        let length = format!("{} {}", numbers::number(content.length, 2), content.unit);
        let middle = bottom + AXIS / 2;
        canvas.text("0", (0, middle), Side::Start, Colour::Faint, 20);
        let (side, at) = if out > WIDTH / 3 { (Side::End, out) } else { (Side::Start, out) };
        canvas.text(&length, (at, middle), side, Colour::Faint, WIDTH);
    })
}

/// A text with its bar below it. The text keeps to the side that has room for it.
fn row(
    canvas: &mut Canvas<'_>,
    text: &str,
    (from, to): (i32, i32),
    top: i32,
    (colour, hollow): (Colour, bool),
) {
    let (side, at, room) = if from < WIDTH / 2 {
        (Side::Start, from, WIDTH - from)
    } else {
        (Side::End, to.max(from + 2), to.max(from + 2))
    };
    canvas.text(text, (at, top + TEXT / 2 + 1), side, Colour::Ink, room);
    let (upper, lower) = (top + TEXT + 3, top + TEXT + 3 + BAR);
    let to = to.max(from + 2);
    if hollow {
        canvas.frame((from + 1, upper + 1), ((to - 1).max(from + 2), lower - 1), colour);
    } else {
        canvas.bar((from, upper), (to, lower), colour);
    }
}
