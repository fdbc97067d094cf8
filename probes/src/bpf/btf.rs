//! The kernel's own description of its types (BTF): where a field lies in a structure.
//!
//! Format: `Documentation/bpf/btf.rst`.

const MAGIC: u16 = 0xeb9f;
const HEADER: usize = 24;
const KIND_STRUCT: u32 = 4;

/// The offset of a field of a structure in bytes; `None` where the data is not BTF of this
/// machine's byte order, or has no such field at a whole byte.
#[must_use]
pub fn field_offset(btf: &[u8], structure: &str, field: &str) -> Option<u32> {
    if u16::from_ne_bytes(btf.get(..2)?.try_into().ok()?) != MAGIC {
        return None;
    }
    let word = |at: usize| -> Option<u32> {
        Some(u32::from_ne_bytes(btf.get(at..at.checked_add(4)?)?.try_into().ok()?))
    };
    let header = word(4)? as usize;
    if header < HEADER {
        return None;
    }
    let types = header + word(8)? as usize;
    let types_end = types + word(12)? as usize;
    let strings = header + word(16)? as usize;
    let is_named = |offset: u32, name: &str| {
        let text = btf.get(strings + offset as usize..).unwrap_or_default();
        text.strip_prefix(name.as_bytes()).is_some_and(|rest| rest.first() == Some(&0))
    };
    let mut at = types;
    while at < types_end {
        let (name, info) = (word(at)?, word(at + 4)?);
        let count = (info & 0xffff) as usize;
        let kind = info >> 24 & 0x1f;
        let body = at + 12;
        if kind == KIND_STRUCT && is_named(name, structure) {
            // With the flag set, the upper byte of an offset is a bit field's size.
            let mask = if info >> 31 == 1 { 0x00ff_ffff } else { u32::MAX };
            for member in (0..count).map(|index| body + index * 12) {
                if is_named(word(member)?, field) {
                    let bits = word(member + 8)? & mask;
                    return bits.is_multiple_of(8).then_some(bits / 8);
                }
            }
            return None;
        }
        at = body + extra(kind, count)?;
    }
    None
}

/// Bytes that follow the common part of a type.
fn extra(kind: u32, count: usize) -> Option<usize> {
    Some(match kind {
        // int, variable, declaration tag
        1 | 14 | 17 => 4,
        // pointer, forward, typedef, volatile, const, restrict, function, float, type tag
        2 | 7..=12 | 16 | 18 => 0,
        3 => 12,                       // array
        KIND_STRUCT | 5 => count * 12, // structure, union
        6 => count * 8,                // enumeration
        13 => count * 8,               // function prototype
        15 => count * 12,              // data section
        19 => count * 12,              // 64-bit enumeration
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
