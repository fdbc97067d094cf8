//! Where a key stands in a TOML text, so that an error can say on which line.

use toml::de::{DeTable, DeValue};

/// One step of a path: a key, or a place in an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step<'a> {
    /// A key of a table.
    Key(&'a str),
    /// A place in an array, 0-based.
    Place(usize),
}

/// The line of the deepest part of `path` that is there; 1 when nothing is.
pub(super) fn line_of(text: &str, path: &[Step<'_>]) -> usize {
    let Ok(root) = DeTable::parse(text) else { return 1 };
    let mut start = 0;
    let mut table = Some(root.get_ref());
    let mut value: Option<&DeValue<'_>> = None;
    for step in path {
        let next = match step {
            Step::Key(key) => {
                let found = table.and_then(|table| {
                    table.iter().find(|(name, _)| name.get_ref().as_ref() == *key)
                });
                found.map(|(name, value)| (name.span().start, value.get_ref()))
            }
            Step::Place(place) => value
                .and_then(|value| value.as_array())
                .and_then(|array| array.get(*place))
                .map(|item| (item.span().start, item.get_ref())),
        };
        let Some((at, found)) = next else { break };
        start = at;
        table = found.as_table();
        value = Some(found);
    }
    line_at(text, start)
}

/// The 1-based line of a byte.
pub(crate) fn line_at(text: &str, byte: usize) -> usize {
    let before = &text.as_bytes()[..byte.min(text.len())];
    before.iter().filter(|&&byte| byte == b'\n').count() + 1
}
