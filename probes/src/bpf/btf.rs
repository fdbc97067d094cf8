//! The kernel's own description of its types (BTF): where a field lies in a structure.
//!
//! Format: `Documentation/bpf/btf.rst`.

const MAGIC: u16 = 0xeb9f;
const HEADER: usize = 24;
const KIND_STRUCT: u32 = 4;
const KIND_UNION: u32 = 5;
/// How deep nameless structures may lie in one another.
const DEPTH_MAX: u32 = 8;

/// The offset of a field of a structure in bytes; `None` where the data is not BTF of this
/// machine's byte order, or has no such field at a whole byte.
#[must_use]
pub fn field_offset(btf: &[u8], structure: &str, field: &str) -> Option<u32> {
    Btf::read(btf)?.offset(structure, field)
}

/// The types of a kernel, for more than one question.
#[derive(Debug)]
pub struct Btf<'a> {
    bytes: &'a [u8],
    strings: usize,
    /// Where each type begins; the first has number 1.
    types: Vec<usize>,
}

impl<'a> Btf<'a> {
    /// Goes through the types once; `None` where the data is not BTF of this machine's byte order.
    #[must_use]
    pub fn read(bytes: &'a [u8]) -> Option<Self> {
        if u16::from_ne_bytes(bytes.get(..2)?.try_into().ok()?) != MAGIC {
            return None;
        }
        let mut btf = Self { bytes, strings: 0, types: Vec::new() };
        let header = btf.word(4)? as usize;
        if header < HEADER {
            return None;
        }
        let mut at = header + btf.word(8)? as usize;
        let end = at + btf.word(12)? as usize;
        btf.strings = header + btf.word(16)? as usize;
        while at < end {
            let info = btf.word(at + 4)?;
            btf.types.push(at);
            at += 12 + extra(info >> 24 & 0x1f, (info & 0xffff) as usize)?;
        }
        Some(btf)
    }

    /// The offset of a field in bytes, also of one in a nameless structure or union inside.
    #[must_use]
    pub fn offset(&self, structure: &str, field: &str) -> Option<u32> {
        let named = self.types.iter().filter(|&&at| self.is_structure(at));
        let mut named = named.filter(|&&at| self.is_named(self.word(at), structure));
        let bits = named.find_map(|&at| self.bits(at, field, 0))?;
        bits.is_multiple_of(8).then_some(bits / 8)
    }

    fn bits(&self, at: usize, field: &str, depth: u32) -> Option<u32> {
        let info = self.word(at + 4)?;
        // With the flag set, the upper byte of an offset is a bit field's size.
        let mask = if info >> 31 == 1 { 0x00ff_ffff } else { u32::MAX };
        for member in (0..(info & 0xffff) as usize).map(|index| at + 12 + index * 12) {
            let name = self.word(member)?;
            let offset = self.word(member + 8)? & mask;
            if name == 0 && depth < DEPTH_MAX {
                let inside = self.types.get((self.word(member + 4)? as usize).checked_sub(1)?);
                let inside = inside.filter(|&&at| self.is_structure(at));
                if let Some(bits) = inside.and_then(|&at| self.bits(at, field, depth + 1)) {
                    return offset.checked_add(bits);
                }
            } else if self.is_named(Some(name), field) {
                return Some(offset);
            }
        }
        None
    }

    fn is_structure(&self, at: usize) -> bool {
        let kind = self.word(at + 4).map(|info| info >> 24 & 0x1f);
        matches!(kind, Some(KIND_STRUCT | KIND_UNION))
    }

    fn is_named(&self, offset: Option<u32>, name: &str) -> bool {
        let Some(offset) = offset else { return false };
        let text = self.bytes.get(self.strings + offset as usize..).unwrap_or_default();
        text.strip_prefix(name.as_bytes()).is_some_and(|rest| rest.first() == Some(&0))
    }

    fn word(&self, at: usize) -> Option<u32> {
        Some(u32::from_ne_bytes(self.bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
    }
}

/// Bytes that follow the common part of a type.
fn extra(kind: u32, count: usize) -> Option<usize> {
    Some(match kind {
        // int, variable, declaration tag
        1 | 14 | 17 => 4,
        // pointer, forward, typedef, volatile, const, restrict, function, float, type tag
        2 | 7..=12 | 16 | 18 => 0,
        3 => 12, // array
        KIND_STRUCT | KIND_UNION => count * 12,
        6 => count * 8,   // enumeration
        13 => count * 8,  // function prototype
        15 => count * 12, // data section
        19 => count * 12, // 64-bit enumeration
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_running_kernel_says_where_a_task_keeps_its_process_number() {
        // A kernel without it has nothing to compare with; the probe then says so in its manifest.
        let Ok(btf) = std::fs::read("/sys/kernel/btf/vmlinux") else { return };
        let tgid = field_offset(&btf, "task_struct", "tgid").unwrap();
        let pid = field_offset(&btf, "task_struct", "pid").unwrap();
        assert_eq!(tgid, pid + 4, "the two have stood side by side for decades");
        assert_eq!(field_offset(&btf, "task_struct", "no_such_field"), None);
        assert_eq!(field_offset(&btf, "no_such_structure", "pid"), None);
        let family = field_offset(&btf, "sock_common", "skc_family");
        assert_eq!(family, Some(16), "behind two nameless unions of eight bytes");
        let ports = ["skc_dport", "skc_num"].map(|name| field_offset(&btf, "sock_common", name));
        assert_eq!(ports, [Some(12), Some(14)], "in a nameless structure in a nameless union");
    }

    #[test]
    fn what_is_no_btf_or_ends_early_has_no_fields() {
        assert_eq!(field_offset(b"", "task_struct", "tgid"), None);
        assert_eq!(field_offset(&[0; 64], "task_struct", "tgid"), None);
        let mut torn = vec![0; 24];
        torn[..2].copy_from_slice(&MAGIC.to_ne_bytes());
        torn[4..8].copy_from_slice(&24u32.to_ne_bytes());
        torn[12..16].copy_from_slice(&u32::MAX.to_ne_bytes());
        assert_eq!(field_offset(&torn, "task_struct", "tgid"), None);
    }
}
