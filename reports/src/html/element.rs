//! Text and names as HTML has them. Everything that is not ours goes through here.

use crate::plain;

/// Text with the characters escaped that HTML could read as markup, within elements and within
/// quoted attributes.
#[must_use]
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            _ => out.push(character),
        }
    }
    out
}

/// A foreign sentence: one line, visible characters only, no markup.
pub(super) fn text(foreign: &str) -> String {
    escape(&plain::line(foreign, plain::SENTENCE))
}

/// An id made of a foreign name: what is no letter or digit is spelled by its number, so that no
/// two names share one.
pub(super) fn id(kind: &str, name: &str) -> String {
    let mut out = format!("{kind}-");
    for character in name.chars().take(60) {
        if character.is_ascii_alphanumeric() {
            out.push(character);
        } else {
            out.push_str(&format!("_{:x}", u32::from(character)));
        }
    }
    out
}

/// A table of words with its first row as head and its first column as names.
pub(super) fn table(class: &str, head: &[String], rows: &[Vec<String>]) -> String {
    let mut out = format!("<div class=\"wide\"><table class=\"{class}\">\n<thead><tr>");
    for title in head {
        out.push_str(&format!("<th scope=\"col\">{}</th>", text(title)));
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    for row in rows {
        out.push_str("<tr>");
        for (index, cell) in row.iter().enumerate() {
            let cell = text(cell);
            if index == 0 {
                out.push_str(&format!("<th scope=\"row\">{cell}</th>"));
            } else {
                out.push_str(&format!("<td>{cell}</td>"));
            }
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody></table></div>\n");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_foreign_becomes_markup() {
        assert_eq!(escape("<b a=\"x\" b='y'>&"), "&lt;b a=&quot;x&quot; b=&#39;y&#39;&gt;&amp;");
        assert_eq!(text("a\u{202e}<\n"), "a\u{fffd}&lt;");
    }

    #[test]
    fn ids_of_two_names_differ() {
        assert_eq!(id("route", "index"), "route-index");
        assert_ne!(id("route", "a b"), id("route", "a-b"));
        assert!(
            id("route", "\"><script>")
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b))
        );
    }
}
