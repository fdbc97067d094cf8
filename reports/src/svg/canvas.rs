//! A canvas in the units of the page: rectangles, lines, circles and text by role.

use plotters::backend::SVGBackend;
use plotters::prelude::{DrawingBackend, IntoFont, TextStyle};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color, ShapeStyle};
use unicode_width::UnicodeWidthStr;

use super::palette::Colour;
use crate::plain;

/// Width of every chart, in pixels of the page at full size.
pub(super) const WIDTH: i32 = 480;
/// Size of all text.
pub(super) const TEXT: i32 = 12;
/// What a character takes at most on the average, in pixels.
const CHARACTER: f64 = 6.6;

/// What is being drawn.
pub(super) struct Canvas<'a> {
    backend: SVGBackend<'a>,
}

/// Where a text stands against its point.
#[derive(Clone, Copy, Debug)]
pub(super) enum Side {
    /// It begins there.
    Start,
    /// Its middle is there.
    Middle,
    /// It ends there.
    End,
}

/// Draws a picture of a height in pixels.
pub(super) fn picture(height: i32, draw: impl FnOnce(&mut Canvas<'_>)) -> String {
    let mut text = String::new();
    {
        let size = (WIDTH.unsigned_abs(), height.unsigned_abs());
        let mut canvas = Canvas { backend: SVGBackend::with_string(&mut text, size) };
        draw(&mut canvas);
        // Writing into a string cannot fail.
        let _ = canvas.backend.present();
    }
    text
}

impl Canvas<'_> {
    /// A filled rectangle from one corner to the opposite one.
    pub(super) fn bar(&mut self, from: (i32, i32), to: (i32, i32), colour: Colour) {
        let style: ShapeStyle = colour.rgb().filled();
        let _ = self.backend.draw_rect(from, to, &style, true);
    }

    /// The outline of a rectangle.
    pub(super) fn frame(&mut self, from: (i32, i32), to: (i32, i32), colour: Colour) {
        let _ = self.backend.draw_rect(from, to, &colour.rgb().stroke_width(2), false);
    }

    /// A straight line.
    pub(super) fn line(&mut self, from: (i32, i32), to: (i32, i32), colour: Colour, width: u32) {
        let _ = self.backend.draw_line(from, to, &colour.rgb().stroke_width(width));
    }

    /// A line through points.
    pub(super) fn path(&mut self, points: Vec<(i32, i32)>, colour: Colour) {
        let _ = self.backend.draw_path(points, &colour.rgb().stroke_width(2));
    }

    /// A dot, hollow or not.
    pub(super) fn dot(&mut self, at: (i32, i32), radius: u32, colour: Colour, hollow: bool) {
        if hollow {
            let paper: ShapeStyle = Colour::Paper.rgb().filled();
            let _ = self.backend.draw_circle(at, radius, &paper, true);
            let _ = self.backend.draw_circle(at, radius, &colour.rgb().stroke_width(2), false);
        } else {
            let style: ShapeStyle = colour.rgb().filled();
            let _ = self.backend.draw_circle(at, radius, &style, true);
        }
    }

    /// One line of text whose middle height is at the point, cut to `most` pixels.
    pub(super) fn text(
        &mut self,
        text: &str,
        at: (i32, i32),
        side: Side,
        colour: Colour,
        most: i32,
    ) {
        let columns = (f64::from(most.max(0)) / CHARACTER).floor() as usize;
        let text = plain::line(text, columns.max(1));
        let horizontal = match side {
            Side::Start => HPos::Left,
            Side::Middle => HPos::Center,
            Side::End => HPos::Right,
        };
        let colour = colour.rgb();
        let style = TextStyle::from(("sans-serif", TEXT).into_font())
            .color(&colour)
            .pos(Pos::new(horizontal, VPos::Center));
        let _ = self.backend.draw_text(&text, &style, at);
    }
}

/// A place in pixels: what is no number is nowhere, and nothing is far outside of the picture.
pub(super) fn pixels(place: f64) -> i32 {
    place.clamp(-20_000.0, 20_000.0).round() as i32
}

/// How many pixels a text takes, at most.
pub(super) fn width(text: &str) -> i32 {
    (text.width() as f64 * CHARACTER).ceil() as i32
}

/// The same picture, scaling with the page, with a name for whoever cannot see it, and without
/// the white space between elements.
pub(super) fn labelled(svg: &str, title: &str) -> String {
    let Some((_, rest)) = svg.split_once('>') else { return String::new() };
    let height = svg.split_once("height=\"").and_then(|(_, rest)| rest.split_once('"'));
    let height = height.map_or("0", |(height, _)| height);
    let title = crate::html::escape(&plain::line(title, plain::SENTENCE));
    let body: String = rest.lines().map(str::trim).collect();
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         role=\"img\" aria-label=\"{title}\">{body}"
    )
}
