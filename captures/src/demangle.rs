//! Symbols as their authors wrote them.

use std::borrow::Cow;

/// Rust's names of both manglings without their hash, and C++'s. perf itself does not know all of
/// them.
#[must_use]
pub fn readable(symbol: &str) -> Cow<'_, str> {
    if symbol.len() > LONGEST {
        return Cow::Borrowed(symbol);
    }
    // callgrind counts levels of recursion behind the name: `_ZN1a1bE'2`.
    if let Some((name, level)) = symbol.rsplit_once('\'')
        && !level.is_empty()
        && level.bytes().all(|byte| byte.is_ascii_digit())
        && let Cow::Owned(name) = readable(name)
    {
        return Cow::Owned(format!("{name}'{level}"));
    }
    if let Ok(name) = rustc_demangle::try_demangle(symbol) {
        return Cow::Owned(format!("{name:#}"));
    }
    if symbol.starts_with("_Z")
        && let Ok(name) = cpp_demangle::Symbol::new(symbol)
    {
        let mut bounded = Bounded(String::new());
        let options = cpp_demangle::DemangleOptions::default();
        if name.structured_demangle(&mut bounded, &options).is_ok() {
            return Cow::Owned(bounded.0);
        }
    }
    half_done(symbol).map_or(Cow::Borrowed(symbol), Cow::Owned)
}

/// Longest symbol that is read; real ones of deep templates have a few thousand bytes.
const LONGEST: usize = 16 * 1024;

/// Some bytes of a symbol can stand for all that came before them, twice; so what is written has
/// a limit.
struct Bounded(String);

impl cpp_demangle::DemangleWrite for Bounded {
    fn write_string(&mut self, text: &str) -> std::fmt::Result {
        if self.0.len() + text.len() > 4 * LONGEST {
            return Err(std::fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

/// Rust's older names after a C++ demangler had them: `_$LT$u8$u20$as$u20$a..B$GT$::c::h012…`.
fn half_done(symbol: &str) -> Option<String> {
    let hash = symbol
        .rsplit_once("::h")
        .filter(|(_, hash)| hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()));
    if hash.is_none() && !symbol.contains("$LT$") {
        return None;
    }
    let mut name = hash.map_or(symbol, |(name, _)| name).replace("_$LT$", "<");
    for (escape, meant) in [
        ("$LT$", "<"),
        ("$GT$", ">"),
        ("$LP$", "("),
        ("$RP$", ")"),
        ("$C$", ","),
        ("$RF$", "&"),
        ("$BP$", "*"),
        ("$SP$", "@"),
        ("$u20$", " "),
        ("$u27$", "'"),
        ("$u5b$", "["),
        ("$u5d$", "]"),
        ("$u7b$", "{"),
        ("$u7d$", "}"),
        ("$u7e$", "~"),
        ("..", "::"),
    ] {
        name = name.replace(escape, meant);
    }
    Some(name)
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
            ("_ZN3foo3barEi'2", "foo::bar(int)'2"),
            ("_ZN4tera8renderer6render17h0123456789abcdefE'3", "tera::renderer::render'3"),
            ("msort'2", "msort'2"),
            (
                "_$LT$u8$u20$as$u20$core..clone..Clone$GT$::clone::h7bfab8630dda96cf",
                "<u8 as core::clone::Clone>::clone",
            ),
            ("emulator::main::hc2aaa9b4591a10c7", "emulator::main"),
            ("a::half", "a::half"),
            ("malloc", "malloc"),
        ] {
            assert_eq!(readable(symbol), expected);
        }
    }

    #[test]
    fn a_symbol_that_would_grow_without_end_stays_as_it_is() {
        // Each substitution doubles what it stands for.
        let mut symbol = "_Z1fSt4pairI1aS_E".to_owned();
        for index in 0..40 {
            let before = match index {
                0 => "S0_".to_owned(),
                _ => format!("S{index:X}_"),
            };
            symbol.push_str(&format!("St4pairI{before}{before}E"));
        }
        assert!(readable(&symbol).len() <= 5 * LONGEST);
        let long = format!("_ZN{}E", "1a".repeat(LONGEST));
        assert_eq!(readable(&long), long);
    }
}
