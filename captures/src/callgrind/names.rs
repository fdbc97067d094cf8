//! Name compression: `(3) main` defines, `(3)` refers, `main` stands for itself. Files, functions
//! and objects have a space of numbers each.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Hashes small numbers by one multiplication: these maps are asked once a line.
#[derive(Default)]
pub(super) struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 29)
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(u64::from(number));
    }

    fn write_u64(&mut self, number: u64) {
        // An odd constant near 2^64 divided by the golden ratio spreads neighbours well.
        self.0 = (self.0.rotate_left(23) ^ number).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
}

/// A map with small numbers as keys.
pub(super) type NumberMap<K, V> = HashMap<K, V, BuildHasherDefault<NumberHasher>>;

/// Every text once.
#[derive(Default)]
pub(super) struct Texts {
    texts: Vec<Box<str>>,
    numbers: HashMap<Box<str>, u32>,
}

impl Texts {
    /// The number of a text, which is kept if it is new.
    pub(super) fn number(&mut self, text: &[u8]) -> u32 {
        let text = String::from_utf8_lossy(text);
        if let Some(&number) = self.numbers.get(text.as_ref()) {
            return number;
        }
        let number = u32::try_from(self.texts.len()).unwrap_or(u32::MAX);
        let kept: Box<str> = text.into();
        self.texts.push(kept.clone());
        self.numbers.insert(kept, number);
        number
    }

    /// The text of a number.
    pub(super) fn text(&self, number: u32) -> &str {
        self.texts.get(number as usize).map_or("", |text| text)
    }
}

/// One space of compressed names.
#[derive(Default)]
pub(super) struct Space(NumberMap<u64, u32>);

impl Space {
    /// Resolves what stands after `fn=` and its kin. `Err` holds the number of a text for a name
    /// that is referred to but was never defined.
    pub(super) fn resolve(&mut self, name: &[u8], texts: &mut Texts) -> Result<u32, u32> {
        let Some((id, rest)) = compressed(name) else {
            return Ok(texts.number(name));
        };
        if rest.is_empty() {
            return self.0.get(&id).copied().ok_or_else(|| texts.number(name));
        }
        let number = texts.number(rest);
        self.0.insert(id, number);
        Ok(number)
    }

    /// Forgets all numbers: another program's file was appended.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

/// Splits `(3) main` into 3 and `main`. `(below main)` is a name, not a number.
fn compressed(name: &[u8]) -> Option<(u64, &[u8])> {
    let inner = name.strip_prefix(b"(")?;
    let digits = inner.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let rest = inner.get(digits..)?.strip_prefix(b")")?;
    let id = std::str::from_utf8(inner.get(..digits)?).ok()?.parse().ok()?;
    Some((id, rest.trim_ascii_start()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parentheses_around_a_name_are_not_a_number() {
        assert_eq!(compressed(b"(below main)"), None);
        assert_eq!(compressed(b"(12) main"), Some((12, &b"main"[..])));
        assert_eq!(compressed(b"(12)"), Some((12, &b""[..])));
        assert_eq!(compressed(b"()"), None);
        assert_eq!(compressed(b"(99999999999999999999) f"), None);
    }

    #[test]
    fn a_number_can_be_given_to_another_name() {
        let (mut space, mut texts) = (Space::default(), Texts::default());
        let first = space.resolve(b"(1) a", &mut texts);
        assert_eq!(space.resolve(b"(1)", &mut texts), first);
        let second = space.resolve(b"(1) b", &mut texts);
        assert_ne!(first, second);
        assert_eq!(space.resolve(b"(1)", &mut texts), second);
        assert!(space.resolve(b"(2)", &mut texts).is_err());
    }
}
