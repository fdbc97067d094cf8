//! Foreign text made harmless: names, SQL and messages come from outside and may hold anything.

use std::borrow::Cow;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// What stands for a character that could move the cursor, hide text or reverse it.
const REPLACEMENT: char = '\u{fffd}';

/// The longest foreign sentence that is printed, in columns.
pub const SENTENCE: usize = 400;

/// One line of visible text of at most `columns` columns: white space becomes one space, control,
/// bidirectional and invisible characters become `U+FFFD`, and what is too long ends in `…`.
#[must_use]
pub fn line(text: &str, columns: usize) -> String {
    let mut out = String::new();
    let mut width = 0;
    let mut space = false;
    let mut marks = 0;
    for character in text.chars() {
        if character.is_whitespace() {
            space = !out.is_empty();
            continue;
        }
        let character = visible(character);
        let own = character.width().unwrap_or(0);
        // Combining marks take no column: an endless pile of them must not get through.
        marks = if own == 0 { marks + 1 } else { 0 };
        if marks > 2 {
            continue;
        }
        if width + own + usize::from(space) > columns {
            while width + 1 > columns {
                let Some(last) = out.pop() else { return out };
                width -= last.width().unwrap_or(0);
            }
            out.push('…');
            return out;
        }
        if std::mem::take(&mut space) {
            out.push(' ');
            width += 1;
        }
        out.push(character);
        width += own;
    }
    out
}

/// A line of our own, with its spaces kept, cut to `columns`.
#[must_use]
pub fn cut(text: &str, columns: usize) -> String {
    if text.width() <= columns {
        return text.to_owned();
    }
    let mut out = String::new();
    let mut width = 0;
    for character in text.chars() {
        width += character.width().unwrap_or(0);
        if width + 1 > columns {
            break;
        }
        out.push(character);
    }
    out.push('…');
    out
}

fn visible(character: char) -> char {
    let hidden = character.is_control()
        || matches!(
            character,
            '\u{ad}'
                | '\u{61c}'
                | '\u{115f}'..='\u{1160}'
                | '\u{180e}'
                | '\u{200b}'..='\u{200f}'
                | '\u{202a}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{3164}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        );
    if hidden { REPLACEMENT } else { character }
}

/// Breaks a line at spaces into lines of at most `columns`; a longer word is cut.
#[must_use]
pub fn wrap(text: &str, columns: usize) -> Vec<String> {
    let columns = columns.max(1);
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let word: Cow<'_, str> =
            if word.width() > columns { line(word, columns).into() } else { word.into() };
        match lines.last_mut() {
            Some(last) if last.width() + 1 + word.width() <= columns => {
                last.push(' ');
                last.push_str(&word);
            }
            _ => lines.push(word.into_owned()),
        }
    }
    lines
}

/// A line with all characters escaped that Markdown or HTML could read as markup.
#[must_use]
pub fn markdown(text: &str, columns: usize) -> String {
    let mut out = String::new();
    for character in line(text, columns).chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\\' | '`' | '*' | '_' | '{' | '}' | '[' | ']' | '#' | '|' | '~' | '!' | '$' => {
                out.push('\\');
                out.push(character);
            }
            _ => out.push(character),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_moves_the_cursor_or_hides_text_gets_through() {
        assert_eq!(line("\u{1b}[31mred\u{1b}[0m", 40), "\u{fffd}[31mred\u{fffd}[0m");
        assert_eq!(line("a\u{202e}cba\u{200b}", 40), "a\u{fffd}cba\u{fffd}");
        assert_eq!(line("one\r\n\ttwo\u{2028}three ", 40), "one two three");
        assert_eq!(line("bell\u{7}\u{9b}", 40), "bell\u{fffd}\u{fffd}");
    }

    #[test]
    fn long_text_ends_in_an_ellipsis_within_its_columns() {
        assert_eq!(line("abcdef", 6), "abcdef");
        assert_eq!(line("abcdefg", 6), "abcde…");
        assert_eq!(line("字字字字", 6), "字字…");
        assert_eq!(line("abc def", 4), "abc…");
        assert_eq!(line("abc", 0), "");
        assert_eq!(line(&"x".repeat(100_000), 10).width(), 10);
        let pile = format!("a{}", "\u{301}".repeat(100_000));
        assert_eq!(line(&pile, 10).chars().count(), 3);
    }

    #[test]
    fn lines_break_at_spaces() {
        assert_eq!(wrap("per query, ping on", 10), ["per query,", "ping on"]);
        assert_eq!(wrap("abcdefghij", 4), ["abc…"]);
        assert!(wrap("", 4).is_empty());
    }

    #[test]
    fn markup_is_escaped() {
        assert_eq!(
            markdown("a|b <i>*x*</i> `c` [d](e)", 80),
            "a\\|b &lt;i&gt;\\*x\\*&lt;/i&gt; \\`c\\` \\[d\\](e)"
        );
    }
}
