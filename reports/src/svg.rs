//! Charts as SVG: real text, no fonts, no style sheet needed. Drawn by plotters.

mod canvas;
mod changes;
mod curves;
mod legend;
mod palette;
mod stacked;
mod strip;
mod waterfall;

#[cfg(test)]
mod tests;

use crate::charts::{Chart, Drawing};

pub use palette::{Colour, DARK};

/// Draws a chart. The `<svg>` element names itself by the chart's title to whoever cannot see it.
#[must_use]
pub fn draw(chart: &Chart) -> String {
    let drawn = match &chart.drawing {
        Drawing::Stacked(content) => stacked::draw(content),
        Drawing::Strip(content) => strip::draw(content),
        Drawing::Curves(content) => curves::draw(content),
        Drawing::Changes(content) => changes::draw(content),
        Drawing::Waterfall(content) => waterfall::draw(content),
    };
    canvas::labelled(&drawn, &chart.title)
}
