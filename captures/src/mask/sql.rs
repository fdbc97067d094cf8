//! A lexer for PostgreSQL that says, byte by byte, what stands in place of each.
//!
//! Lexical rules: <https://www.postgresql.org/docs/current/sql-syntax-lexical.html>. Literals and
//! comments are masked; keywords, names, parameters and operators stay.

use super::{DIGIT, MASK};

/// Longest tag of a dollar quote: a name has at most 63 bytes.
const TAG_MAX: usize = 65;

/// Masks one statement text.
#[derive(Debug, Default)]
pub(super) struct Lexer {
    state: State,
    /// `$tag$` of the dollar quote that is open.
    tag: Vec<u8>,
}

#[derive(Clone, Copy, Debug, Default)]
enum State {
    #[default]
    Plain,
    /// A name or keyword; whether it is `e` so far, which begins a string with escapes.
    Word {
        escape: bool,
    },
    Number {
        /// After `0x`, `0o` or `0b` letters are digits too.
        prefixed: bool,
    },
    /// `$` and perhaps more: a parameter or the tag of a dollar quote.
    Dollar,
    Parameter,
    /// Whether backslashes escape.
    Text(bool),
    /// A quote in a string: its end, or the first of two that stand for one.
    TextQuote(bool),
    TextEscape,
    QuotedName,
    Dash,
    LineComment,
    Slash,
    BlockComment {
        depth: u32,
        last: u8,
    },
    /// How many bytes of the closing tag have been seen.
    DollarText(usize),
    /// Nothing is understood any more.
    Blind,
}

impl Lexer {
    /// What stands in place of the next byte.
    pub(super) fn step(&mut self, byte: u8) -> u8 {
        match self.state {
            State::Plain => self.plain(byte),
            State::Word { .. } if is_name(byte) => {
                self.state = State::Word { escape: false };
                byte
            }
            State::Word { escape } if byte == b'\'' => self.turn(State::Text(escape), byte),
            State::Number { prefixed } => self.number(byte, prefixed),
            State::Dollar => self.dollar(byte),
            State::Parameter if byte.is_ascii_digit() => byte,
            State::Dash if byte == b'-' => self.turn(State::LineComment, byte),
            State::Slash if byte == b'*' => {
                self.turn(State::BlockComment { depth: 1, last: 0 }, byte)
            }
            State::Word { .. } | State::Parameter | State::Dash | State::Slash => self.plain(byte),
            State::Text(escapes) => match byte {
                b'\'' => self.turn(State::TextQuote(escapes), byte),
                b'\\' if escapes => self.turn(State::TextEscape, MASK),
                _ => MASK,
            },
            State::TextEscape => self.turn(State::Text(true), MASK),
            State::TextQuote(escapes) => match byte {
                b'\'' => self.turn(State::Text(escapes), byte),
                // A string goes on after a line break, with the escapes it began with.
                b' ' | b'\t' | b'\r' | b'\n' => byte,
                _ => self.plain(byte),
            },
            State::QuotedName if byte == b'"' => self.turn(State::Plain, byte),
            State::QuotedName => byte,
            State::LineComment if byte == b'\n' => self.turn(State::Plain, byte),
            State::LineComment | State::Blind => MASK,
            State::BlockComment { depth, last } => self.block_comment(byte, depth, last),
            State::DollarText(matched) => self.dollar_text(byte, matched),
        }
    }

    fn turn(&mut self, state: State, byte: u8) -> u8 {
        self.state = state;
        byte
    }

    fn plain(&mut self, byte: u8) -> u8 {
        let (state, byte) = match byte {
            b'\'' => (State::Text(false), byte),
            b'"' => (State::QuotedName, byte),
            b'-' => (State::Dash, byte),
            b'/' => (State::Slash, byte),
            b'$' => {
                self.tag.clear();
                self.tag.push(b'$');
                (State::Dollar, byte)
            }
            b'0'..=b'9' => (State::Number { prefixed: false }, DIGIT),
            _ if is_name(byte) => (State::Word { escape: matches!(byte, b'e' | b'E') }, byte),
            _ => (State::Plain, byte),
        };
        self.turn(state, byte)
    }

    fn number(&mut self, byte: u8, prefixed: bool) -> u8 {
        match byte {
            b'0'..=b'9' => DIGIT,
            b'a'..=b'f' | b'A'..=b'F' if prefixed => DIGIT,
            b'x' | b'X' | b'o' | b'O' | b'b' | b'B' => {
                self.turn(State::Number { prefixed: true }, byte)
            }
            b'.' | b'_' | b'e' | b'E' => byte,
            _ => self.plain(byte),
        }
    }

    fn dollar(&mut self, byte: u8) -> u8 {
        match byte {
            b'0'..=b'9' if self.tag.len() == 1 => self.turn(State::Parameter, byte),
            b'$' => {
                self.tag.push(byte);
                self.turn(State::DollarText(0), byte)
            }
            _ if self.tag.len() >= TAG_MAX => self.turn(State::Blind, MASK),
            _ if is_name(byte) => {
                self.tag.push(byte);
                byte
            }
            _ => self.plain(byte),
        }
    }

    /// Bytes that may be the closing tag stay: they say no more than the opening one did.
    fn dollar_text(&mut self, byte: u8, matched: usize) -> u8 {
        let (state, byte) = if self.tag.get(matched) == Some(&byte) {
            let closed = matched + 1 == self.tag.len();
            (if closed { State::Plain } else { State::DollarText(matched + 1) }, byte)
        } else if byte == b'$' {
            (State::DollarText(1), byte)
        } else {
            (State::DollarText(0), MASK)
        };
        self.turn(state, byte)
    }

    fn block_comment(&mut self, byte: u8, depth: u32, last: u8) -> u8 {
        let (depth, last) = match (last, byte) {
            (b'*', b'/') => (depth - 1, 0),
            (b'/', b'*') => (depth.saturating_add(1), 0),
            _ => (depth, byte),
        };
        self.state = if depth == 0 { State::Plain } else { State::BlockComment { depth, last } };
        if matches!(byte, b'*' | b'/') { byte } else { MASK }
    }
}

/// A byte of a name: letters of any script, digits, `_`, `$`.
fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte >= 0x80 || matches!(byte, b'_' | b'$')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mask(text: &str) -> String {
        let mut lexer = Lexer::default();
        String::from_utf8(text.bytes().map(|byte| lexer.step(byte)).collect()).unwrap()
    }

    #[test]
    fn literals_go_and_shapes_stay() {
        for (before, after) in [
            ("SELECT 1", "SELECT 1"),
            (
                "select a1, \"B 2\" from t9 where x = $12",
                "select a1, \"B 2\" from t9 where x = $12",
            ),
            ("x = 'it''s' and y", "x = 'xx''x' and y"),
            ("x = 'back\\' and y = 'z'", "x = 'xxxxx' and y = 'x'"),
            ("x = E'a\\'b' or y", "x = E'xxxx' or y"),
            ("E'a'\n 'b\\'c' d", "E'x'\n 'xxxx' d"),
            ("date'2020-01-02'::date", "date'xxxxxxxxxx'::date"),
            ("-12.5e-3 + 0xFFab + 1_000", "-11.1e-1 + 1x1111 + 1_111"),
            ("a -- secret 'x\nfrom b", "a --xxxxxxxxxx\nfrom b"),
            ("a /* one /* two */ 'q */ b", "a /*xxxxx/*xxxxx*/xxxx*/ b"),
            ("$$secret$$ z", "$$xxxxxx$$ z"),
            ("$fn$ a $x$ $f$fn$ + $1", "$fn$xxx$x$x$f$fn$ + $1"),
            ("a-1, b/2, c->'k'", "a-1, b/1, c->'x'"),
            ("name = 'Zoë'", "name = 'xxxx'"),
            ("x'1F' b'01' U&'\\0061'", "x'xx' b'xx' U&'xxxxx'"),
            ("copy t from stdin", "copy t from stdin"),
        ] {
            assert_eq!(mask(before), after, "{before}");
        }
    }

    #[test]
    fn masking_twice_changes_nothing_more() {
        for text in ["a = 'b''c' -- d", "/* x */ 12", "$t$ a $t$", "E'\\n''' 5"] {
            let once = mask(text);
            assert_eq!(mask(&once), once);
        }
    }

    #[test]
    fn a_tag_longer_than_a_name_blinds_it() {
        let text = format!("${}$ secret", "a".repeat(70));
        assert!(!mask(&text).contains("secret"));
    }
}
