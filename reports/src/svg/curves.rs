//! Lines over a common axis, the vertical one by decades or from zero.

use super::canvas::{Canvas, Side, WIDTH, picture, pixels};
use super::legend::Legend;
use super::palette::Colour;
use crate::charts::Curves;
use crate::numbers;

const PLOT: i32 = 220;
const LEFT: i32 = 52;
const BELOW: i32 = 40;

/// The vertical axis.
struct Axis {
    low: f64,
    high: f64,
    logarithmic: bool,
}

pub(super) fn draw(content: &Curves) -> String {
    let names: Vec<String> = content.lines.iter().map(|line| line.name.clone()).collect();
    let legend = Legend::new(&names);
    let top = legend.height + 8;
    let axis = Axis::of(content);
    let x = |place: f64| LEFT + pixels(place * f64::from(WIDTH - LEFT - 14));
    let y = |value: f64| top + PLOT - pixels(axis.place(value) * f64::from(PLOT));
    picture(top + PLOT + BELOW, |canvas| {
        legend.draw(canvas);
        axes(canvas, content, &axis, (&x, &y), top);
        for (line, index) in content.lines.iter().zip(0..) {
            let points = line.points.iter().map(|&(place, value)| (x(place), y(value)));
            canvas.path(points.collect(), Colour::Series(index));
        }
    })
}

fn axes(
    canvas: &mut Canvas<'_>,
    content: &Curves,
    axis: &Axis,
    (x, y): (&impl Fn(f64) -> i32, &impl Fn(f64) -> i32),
    top: i32,
) {
    for value in axis.ticks() {
        let at = y(value);
        canvas.line((LEFT, at), (WIDTH, at), Colour::Grid, 1);
        let decimals = if value >= 10.0 || value == 0.0 {
            0
        } else if value >= 1.0 {
            1
        } else {
            2
        };
        let label = numbers::number(value, decimals);
        canvas.text(&label, (LEFT - 6, at), Side::End, Colour::Faint, LEFT);
    }
    for (place, label) in &content.x_ticks {
        let at = x(*place);
        canvas.line((at, top), (at, top + PLOT), Colour::Grid, 1);
        canvas.text(label, (at, top + PLOT + 11), Side::Middle, Colour::Faint, 60);
    }
    let below = top + PLOT + 30;
    canvas.text(&content.x_title, (WIDTH, below), Side::End, Colour::Faint, WIDTH);
    canvas.text(&content.y_title, (0, below), Side::Start, Colour::Faint, LEFT * 3);
}

impl Axis {
    fn of(content: &Curves) -> Self {
        let values = || content.lines.iter().flat_map(|line| &line.points).map(|point| point.1);
        let high = values().fold(0.0, f64::max);
        let least = values().filter(|value| *value > 0.0).fold(f64::INFINITY, f64::min);
        if content.y_logarithmic && least.is_finite() && high > 0.0 {
            let low = step_below(least);
            return Self { low, high: step_above(high).max(low * 2.0), logarithmic: true };
        }
        Self { low: 0.0, high: if high > 0.0 { high * 1.05 } else { 1.0 }, logarithmic: false }
    }

    fn place(&self, value: f64) -> f64 {
        let share = if self.logarithmic {
            (value.max(self.low) / self.low).log10() / (self.high / self.low).log10()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        share.clamp(0.0, 1.0)
    }

    fn ticks(&self) -> Vec<f64> {
        if self.logarithmic {
            return steps().filter(|step| (self.low..=self.high * 1.001).contains(step)).collect();
        }
        let raw = self.high / 5.0;
        let decade = 10f64.powf(raw.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].into_iter().find(|step| step * decade >= raw);
        let step = step.unwrap_or(10.0) * decade;
        (0..=5).map(|index| f64::from(index) * step).filter(|tick| *tick <= self.high).collect()
    }
}

/// 1, 2 and 5 of each decade.
fn steps() -> impl Iterator<Item = f64> {
    (-6..9).flat_map(|decade| [1.0, 2.0, 5.0].map(|step| step * 10f64.powi(decade)))
}

fn step_below(value: f64) -> f64 {
    steps().filter(|step| *step <= value).last().unwrap_or(1e-6)
}

fn step_above(value: f64) -> f64 {
    steps().find(|step| *step >= value).unwrap_or(1e9)
}
