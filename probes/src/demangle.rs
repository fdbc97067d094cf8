//! Symbols as their authors wrote them.

use std::borrow::Cow;

/// Rust's names of both manglings without their hash, and C++'s. perf itself does not know all of
/// them.
#[must_use]
pub fn readable(symbol: &str) -> Cow<'_, str> {
    if let Ok(name) = rustc_demangle::try_demangle(symbol) {
        return Cow::Owned(format!("{name:#}"));
    }
    if symbol.starts_with("_Z")
        && let Ok(name) = cpp_demangle::Symbol::new(symbol)
        && let Ok(name) = name.demangle()
    {
        return Cow::Owned(name);
    }
    Cow::Borrowed(symbol)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_of_three_manglings_are_readable_and_others_stay() {
        for (symbol, expected) in [
            ("_ZN4tera8renderer6render17h0123456789abcdefE", "tera::renderer::render"),
            ("_RNvNtCs1234_7mycrate3foo3bar", "mycrate::foo::bar"),
            ("_ZN3foo3barEi", "foo::bar(int)"),
            (
                "_ZNSt6vectorIiSaIiEE9push_backEOi",
                "std::vector<int, std::allocator<int> >::push_back(int&&)",
            ),
            ("_Znot_mangled", "_Znot_mangled"),
            ("malloc", "malloc"),
        ] {
            assert_eq!(readable(symbol), expected);
        }
    }
}
