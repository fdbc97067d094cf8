//! Lines → stacks.

use crate::parsed::{Place, Problem, Sink};
use crate::text_lines::{Line, Lines};

use super::model::Stack;

/// Reads folded stacks as they stream by; keeps nothing but the line that is coming in.
#[derive(Debug, Default)]
pub struct Decoder {
    lines: Lines,
    /// Whether lines have two weights; the first stack decides.
    compares: Option<bool>,
}

impl Decoder {
    /// Takes the next bytes of the file.
    pub fn feed<S>(&mut self, bytes: &[u8], sink: &mut S)
    where
        S: for<'a> Sink<Stack<'a>>,
    {
        let compares = &mut self.compares;
        self.lines.feed(bytes, |line| read(line, compares, sink));
    }

    /// The file has ended.
    pub fn finish<S>(&mut self, sink: &mut S)
    where
        S: for<'a> Sink<Stack<'a>>,
    {
        let compares = &mut self.compares;
        self.lines.finish(|line| read(line, compares, sink));
    }
}

fn read<S>(line: Line<'_>, compares: &mut Option<bool>, sink: &mut S)
where
    S: for<'a> Sink<Stack<'a>>,
{
    let place = Place::Line(line.number);
    if line.cut {
        sink.problem(Problem::new(place, "too long for a stack"));
        return;
    }
    let text = String::from_utf8_lossy(line.text);
    let text = text.trim_end();
    // A frame may begin with a hash; the comments that writers leave have a blank after it.
    if text.trim_start().is_empty() || text.starts_with("# ") {
        return;
    }
    let Some((stack, weight)) = weighed(text) else {
        sink.problem(Problem::new(place, "not a stack and its weight"));
        return;
    };
    let before = weighed(stack);
    if !*compares.get_or_insert(before.is_some()) {
        let stack = Stack { text: stack, weight, earlier: None, line: line.number, ended: true };
        sink.record(Stack { ended: line.ended, ..stack });
        return;
    }
    match before {
        Some((text, earlier)) => sink.record(Stack {
            text,
            weight,
            earlier: Some(earlier),
            line: line.number,
            ended: line.ended,
        }),
        None => sink.problem(Problem::new(place, "one weight, where other lines have two")),
    }
}

/// Splits off the last word, if it is a weight: digits, and perhaps a fraction.
fn weighed(text: &str) -> Option<(&str, f64)> {
    let (stack, word) = text.rsplit_once([' ', '\t'])?;
    let stack = stack.trim_end();
    let plain = word.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    if stack.is_empty() || !plain || !word.starts_with(|first: char| first.is_ascii_digit()) {
        return None;
    }
    let weight: f64 = word.parse().ok()?;
    weight.is_finite().then_some((stack, weight))
}
