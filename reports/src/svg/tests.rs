//! Charts hold what they are given, also when it is nothing or strange.

use super::draw;
use crate::charts::{
    Changes, Chart, CurveLine, Curves, Drawing, Numbers, Stacked, StackedRow, Strip, StripRow,
    Waterfall, WaterfallTrip,
};

fn chart(drawing: Drawing) -> String {
    draw(&Chart {
        title: "a <title> & more".into(),
        says: String::new(),
        drawing,
        numbers: Numbers::default(),
    })
}

fn row(name: &str, sizes: &[f64]) -> StackedRow {
    StackedRow {
        name: name.into(),
        sizes: sizes.iter().copied().map(Some).collect(),
        interval: None,
        text: format!("{}", sizes.iter().sum::<f64>()),
    }
}

/// Widths of all filled rectangles of a colour.
fn widths(svg: &str, colour: &str) -> Vec<u32> {
    svg.split("<rect ")
        .skip(1)
        .filter(|rect| rect.split('>').next().unwrap().contains(&format!("fill=\"{colour}\"")))
        .map(|rect| {
            let width = rect.split("width=\"").nth(1).unwrap();
            width.split('"').next().unwrap().parse().unwrap()
        })
        .collect()
}

#[test]
fn lengths_of_bars_are_as_their_sizes() {
    let rows = vec![row("a", &[300.0, 100.0]), row("b", &[150.0, 50.0])];
    let parts = vec!["x".to_owned(), "y".to_owned()];
    let svg = chart(Drawing::Stacked(Stacked { parts, rest: false, rows }));
    let first: Vec<f64> = widths(&svg, "#005FA8").into_iter().map(f64::from).collect();
    // The patch of the legend, then a bar in each row.
    assert_eq!(first.len(), 3);
    assert!((first[1] / first[2] - 2.0).abs() < 0.03, "{first:?}");
}

#[test]
fn a_chart_names_itself_and_its_text_is_no_markup() {
    let rows = vec![row("<b>&\u{202e}", &[1.0])];
    let parts = vec!["x".to_owned()];
    let svg = chart(Drawing::Stacked(Stacked { parts, rest: false, rows }));
    assert!(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 480 "));
    assert!(svg.contains("role=\"img\" aria-label=\"a &lt;title&gt; &amp; more\""));
    assert!(svg.contains("&lt;b&gt;&amp;\u{fffd}"), "{svg}");
    assert!(!svg.contains("<b>"));
}

#[test]
fn nothing_and_strange_numbers_draw_without_harm() {
    let strange = [f64::NAN, f64::INFINITY, -1e300, 0.0];
    for value in strange {
        let rows = vec![row("a", &[value])];
        let parts = vec!["x".to_owned()];
        chart(Drawing::Stacked(Stacked { parts, rest: true, rows }));
        let name = String::new();
        let text = String::new();
        let (best, median, slowest) = (value, value, value);
        let row = StripRow { name, best, median, slowest, hollow: true, text };
        chart(Drawing::Strip(Strip { rows: vec![row] }));
        let line = CurveLine { name: String::new(), points: vec![(0.5, value), (value, 1.0)] };
        for y_logarithmic in [true, false] {
            chart(Drawing::Curves(Curves {
                x_title: String::new(),
                x_ticks: Vec::new(),
                y_title: String::new(),
                y_logarithmic,
                lines: vec![line.clone()],
            }));
        }
        let text = String::new();
        let trip = WaterfallTrip { span: (value, value), kind: 9, unawaited: true, text };
        chart(Drawing::Waterfall(Waterfall {
            length: value,
            unit: "ms",
            kinds: Vec::new(),
            trips: vec![trip],
        }));
    }
    chart(Drawing::Stacked(Stacked { parts: Vec::new(), rest: false, rows: Vec::new() }));
    chart(Drawing::Changes(Changes { arms: Vec::new(), rows: Vec::new() }));
}
