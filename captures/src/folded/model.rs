//! The record of folded stacks.

/// One stack. Borrows from the line that it was read from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stack<'a> {
    /// The frames with semicolons between them, root first.
    pub text: &'a str,
    /// Its weight, in a unit that the file does not name: samples, microseconds, bytes.
    pub weight: f64,
    /// In a file that compares two profiles, the weight in the earlier one.
    pub earlier: Option<f64>,
    /// 1-based number of the line.
    pub line: u64,
    /// Whether a line feed ended it: without, a killed writer may have left digits out.
    pub ended: bool,
}

impl<'a> Stack<'a> {
    /// The frames, root first.
    pub fn frames(&self) -> impl DoubleEndedIterator<Item = &'a str> + use<'a> {
        self.text.split(';')
    }
}
