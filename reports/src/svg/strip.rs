//! The strip chart: laps of each arm against the best lap of the reference.

use super::canvas::{Side, TEXT, WIDTH, picture, pixels, width};
use super::palette::Colour;
use crate::charts::Strip;

const ROW: i32 = TEXT + 6 + 16 + 8;
const AXIS: i32 = 24;

pub(super) fn draw(content: &Strip) -> String {
    let rows = i32::try_from(content.rows.len()).unwrap_or(0);
    let ends = content.rows.iter().map(|row| width(&row.text)).max().unwrap_or(0);
    let left = 10;
    let right = (WIDTH - ends - 18).max(WIDTH / 2);
    let low = content.rows.iter().map(|row| row.slowest).fold(0.0, f64::min);
    let high = content.rows.iter().map(|row| row.best).fold(0.0, f64::max);
    let span = (high - low).max(1e-9);
    let place = |value: f64| left + pixels((value - low) / span * f64::from(right - left));
    let height = rows * ROW + AXIS;
    picture(height, |canvas| {
        for tick in ticks(low, high) {
            let x = place(tick);
            let colour = if tick == 0.0 { Colour::Faint } else { Colour::Grid };
            canvas.line((x, 0), (x, height - AXIS), colour, 1);
            let sign = if tick > 0.0 { "+" } else { "" };
            let label = format!("{sign}{}", crate::numbers::number(tick, 0));
            let at = (x.clamp(14, WIDTH - 20), height - AXIS / 2);
            canvas.text(&label, at, Side::Middle, Colour::Faint, 60);
        }
        for (index, row) in content.rows.iter().enumerate() {
            let top = i32::try_from(index).unwrap_or(0) * ROW;
            let colour = Colour::Series(index);
            canvas.text(&row.name, (0, top + TEXT / 2 + 1), Side::Start, Colour::Ink, WIDTH);
            let middle = top + TEXT + 14;
            canvas.bar((place(row.slowest), middle - 3), (place(row.best), middle + 3), colour);
            let tick = place(row.median);
            canvas.line((tick, middle - 8), (tick, middle + 8), Colour::Ink, 2);
            canvas.dot((place(row.best), middle), 5, colour, row.hollow);
            let at = (right + 14, middle);
            canvas.text(&row.text, at, Side::Start, Colour::Ink, WIDTH);
        }
    })
}

/// A handful of round percentages from one end to the other, zero among them.
fn ticks(low: f64, high: f64) -> Vec<f64> {
    let steps = [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0];
    let step = steps.into_iter().find(|step| (high - low) / step <= 6.0).unwrap_or(5000.0);
    let first = (low / step).ceil() as i64;
    let last = (high / step).floor() as i64;
    (first..=last.min(first + 20)).map(|tick| tick as f64 * step).collect()
}
