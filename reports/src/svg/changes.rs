//! Changes against the reference, to both sides of none.

use super::canvas::{Canvas, Side, TEXT, WIDTH, picture, pixels, width};
use super::legend::Legend;
use super::palette::Colour;
use crate::charts::{Change, Changes};

const BAR: i32 = 14;
const HEAD: i32 = TEXT + 8;

pub(super) fn draw(content: &Changes) -> String {
    let legend = Legend::coloured(&content.arms, |arm| Colour::Series(arm + 1));
    let arms = i32::try_from(content.arms.len()).unwrap_or(0);
    let rows = i32::try_from(content.rows.len()).unwrap_or(0);
    let row = HEAD + arms * (BAR + 2) + 6;
    let changes = || content.rows.iter().flat_map(|row| &row.changes).flatten();
    let ends = changes().map(|change| width(&change.text)).max().unwrap_or(0);
    let low = changes().map(|change| least(change).max(-100.0)).fold(0.0, f64::min);
    let high = changes().map(|change| most(change).min(200.0)).fold(0.0, f64::max);
    let span = (high - low).max(1e-9);
    let right = (WIDTH - ends - 12).max(WIDTH / 4);
    let place = |value: f64| {
        let value = value.clamp(low, high);
        4 + pixels((value - low) / span * f64::from(right - 4))
    };
    picture(legend.height + rows * row, |canvas| {
        legend.draw(canvas);
        let zero = place(0.0);
        for (content, index) in content.rows.iter().zip(0..) {
            let top = legend.height + index * row;
            canvas.text(&content.name, (0, top + TEXT / 2 + 2), Side::Start, Colour::Ink, WIDTH);
            for (change, arm) in content.changes.iter().zip(0..) {
                let upper = top + HEAD + arm * (BAR + 2);
                let Some(change) = change else { continue };
                one(canvas, change, upper, arm as usize, &place);
                let at = (right + 10, upper + BAR / 2);
                canvas.text(&change.text, at, Side::Start, Colour::Ink, WIDTH);
            }
            canvas.line((zero, top + HEAD - 2), (zero, top + row - 6), Colour::Faint, 1);
        }
    })
}

fn one(
    canvas: &mut Canvas<'_>,
    change: &Change,
    upper: i32,
    arm: usize,
    place: &impl Fn(f64) -> i32,
) {
    let (zero, end) = (place(0.0), place(change.percent));
    let (from, to) = ((zero.min(end), upper), (zero.max(end), upper + BAR));
    // The reference has the first colour in every chart.
    let colour = Colour::Series(arm + 1);
    if to.0 > from.0 {
        if change.unsure {
            canvas.frame((from.0 + 1, from.1 + 1), (to.0 - 1, to.1 - 1), colour);
        } else {
            canvas.bar(from, to, colour);
        }
    }
    if let Some((low, high)) = change.interval {
        let middle = upper + BAR / 2;
        canvas.line((place(low), middle), (place(high), middle), Colour::Ink, 1);
        for at in [low, high] {
            canvas.line((place(at), middle - 3), (place(at), middle + 3), Colour::Ink, 1);
        }
    }
}

fn least(change: &Change) -> f64 {
    change.interval.map_or(change.percent, |(low, _)| low.min(change.percent))
}

fn most(change: &Change) -> f64 {
    change.interval.map_or(change.percent, |(_, high)| high.max(change.percent))
}
