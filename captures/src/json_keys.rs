//! The keys of a JSON object's head, by depth: what a document is shows in its own keys, not in
//! whatever words its strings hold.

/// Keys of the outermost object and of the objects directly in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Keys<'a> {
    /// Of the outermost object.
    pub(crate) top: Vec<&'a str>,
    /// Of the objects that are its values: the outer key and the inner.
    pub(crate) second: Vec<(&'a str, &'a str)>,
}

/// Keys that are looked at; the head of a document has far fewer.
const KEYS_MOST: usize = 4_096;

impl<'a> Keys<'a> {
    /// Reads as much of an object as the head holds. Broken JSON ends it.
    pub(crate) fn of(head: &'a str) -> Self {
        let mut keys = Self::default();
        let bytes = head.as_bytes();
        // What is open: true for an object, false for a list.
        let mut open: Vec<bool> = Vec::new();
        let (mut at, mut expects_key, mut outer) = (0, false, "");
        while let Some(&byte) = bytes.get(at) {
            match byte {
                b'{' | b'[' => {
                    open.push(byte == b'{');
                    expects_key = byte == b'{';
                }
                b'}' | b']' => {
                    open.pop();
                    expects_key = false;
                    if open.is_empty() {
                        break;
                    }
                }
                b',' => expects_key = open.last() == Some(&true),
                b'"' => {
                    let Some(end) = string_end(bytes, at + 1) else { break };
                    if std::mem::take(&mut expects_key) {
                        let key = head.get(at + 1..end).unwrap_or_default();
                        match open[..] {
                            [true] => {
                                outer = key;
                                keys.top.push(key);
                            }
                            [true, true] => keys.second.push((outer, key)),
                            _ => {}
                        }
                    }
                    at = end;
                }
                _ if open.is_empty() && !byte.is_ascii_whitespace() => break,
                _ => {}
            }
            if keys.top.len() + keys.second.len() > KEYS_MOST || open.len() > 128 {
                break;
            }
            at += 1;
        }
        keys
    }

    /// Whether the outermost object has a key.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.top.contains(&key)
    }

    /// Whether an object in the outermost one, under `outer`, has a key for which `wanted` holds.
    pub(crate) fn has_in(&self, outer: &str, wanted: impl Fn(&str) -> bool) -> bool {
        self.second.iter().any(|&(of, key)| of == outer && wanted(key))
    }
}

/// Where a string ends: the place of its closing quote.
fn string_end(bytes: &[u8], mut at: usize) -> Option<usize> {
    loop {
        match bytes.get(at)? {
            b'"' => return Some(at),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_told_from_values_and_from_keys_further_in() {
        let text = r#" {"a":"\"b\":1","c":{"d":{"e":1},"f":["g",{"h":2}]},"i":[{"j":1}],"k" "#;
        let keys = Keys::of(text);
        assert_eq!(keys.top, ["a", "c", "i", "k"]);
        assert_eq!(keys.second, [("c", "d"), ("c", "f")]);
        assert!(keys.has("i") && !keys.has("b") && keys.has_in("c", |key| key == "f"));
    }

    #[test]
    fn whatever_is_no_object_has_no_keys() {
        for text in ["", "x", "[{\"a\":1}]", "\"a\":1", "{\"a", "}{"] {
            assert_eq!(Keys::of(text).top.len(), 0, "{text}");
        }
    }
}
