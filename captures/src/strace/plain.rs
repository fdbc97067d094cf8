//! What most lines hold, read without the grammar's alternatives: `9320  1796079698.037667 ` in
//! front, a decimal result, ` <0.000031>` behind. Whatever looks otherwise is `None` here, and the
//! grammar's to read; where there is an answer, the grammar would give the same.

use super::grammar::{PID_MAX, Prefix, Printed};
use crate::ids::Tid;
use crate::units::{Moment, Nanos};

/// The prefix that `-f -ttt` prints into a log.
#[inline]
pub(super) fn prefix(line: &[u8]) -> Option<(Prefix, &[u8])> {
    let (pid, digits) = number(line)?;
    let tid = u32::try_from(pid).ok().filter(|&pid| pid <= PID_MAX)?;
    let rest = line.get(digits..)?.strip_prefix(b" ")?;
    let rest = rest.strip_prefix(b" ").unwrap_or(rest);
    // Ten digits are after 2001, six decimals what `-ttt` prints.
    let (seconds, digits) = number(rest)?;
    let rest = rest.get(digits..)?.strip_prefix(b".")?;
    let (micros, decimals) = number(rest)?;
    if digits != 10 || decimals != 6 {
        return None;
    }
    let rest = rest.get(decimals..)?.strip_prefix(b" ")?;
    // Further columns begin with a bracket or a blank.
    if !matches!(rest.first()?, b'a'..=b'z' | b'_' | b'<' | b'-' | b'+') {
        return None;
    }
    let moment = Moment(seconds * 1_000_000_000 + micros * 1_000);
    let prefix = Prefix { tid: Some(Tid(tid)), stamp: Some(Printed::Unix(moment)) };
    Some((prefix, rest))
}

/// `0.000031`: seconds with six decimals, all of it.
#[inline]
pub(super) fn seconds(text: &[u8]) -> Option<Nanos> {
    let (seconds, digits) = number(text)?;
    let rest = text.get(digits..)?.strip_prefix(b".")?;
    let (micros, decimals) = number(rest)?;
    // Nine digits of seconds cannot overflow.
    (decimals == 6 && rest.len() == 6 && digits <= 9)
        .then_some(Nanos(seconds * 1_000_000_000 + micros * 1_000))
}

/// A decimal result, all of it: `55`, `-1`; not `017`, which is octal.
#[inline]
pub(super) fn result(text: &[u8]) -> Option<i64> {
    let (minus, digits_text) = match text.strip_prefix(b"-") {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (size, digits) = number(digits_text)?;
    if digits != digits_text.len() || (digits > 1 && digits_text[0] == b'0') {
        return None;
    }
    let size = size.cast_signed();
    Some(if minus { -size } else { size })
}

/// The value and length of the digits at the start; `None` without any, or with more than 18.
#[inline]
fn number(text: &[u8]) -> Option<(u64, usize)> {
    let mut value = 0;
    let mut digits = 0;
    while let Some(digit) = text.get(digits).map(|byte| byte.wrapping_sub(b'0'))
        && digit < 10
    {
        if digits == 18 {
            return None;
        }
        value = value * 10 + u64::from(digit);
        digits += 1;
    }
    (digits > 0).then_some((value, digits))
}

#[cfg(test)]
mod tests {
    use super::super::grammar;
    use super::*;

    #[test]
    fn what_is_read_plainly_the_grammar_reads_alike() {
        let mut plain = 0;
        for line in [
            "9320  1796079698.037667 read(3) = 0",
            "93201 1796079698.037667 <... futex resumed>) = 0",
            "4194304 1796079698.037667 +++ exited with 0 +++",
            "4194305 1796079698.037667 read(3) = 0",
            "9320  1796079698.037667 [00007f] read(3) = 0",
            "9320  1796079698.037667  read(3) = 0",
            "9320   1796079698.037667 read(3) = 0",
            "9320  1796079698.037667 (+     0.000120) read(3) = 0",
            "9320  1796079698.037667123 read(3) = 0",
            "9320  796079698.037667 read(3) = 0",
            "1796079698.037667 read(3) = 0",
            "9320<sh> 1796079698.037667 read(3) = 0",
            "9320 ",
            "",
        ] {
            if let Some((prefix, rest)) = self::prefix(line.as_bytes()) {
                plain += 1;
                assert_eq!((prefix, rest), grammar::prefix_by_rules(line.as_bytes()), "{line}");
            }
        }
        assert_eq!(plain, 3);
    }

    #[test]
    fn results_are_read_plainly_only_where_they_are_decimal() {
        let cases: [(&str, Option<i64>); 8] = [
            ("0", Some(0)),
            ("55", Some(55)),
            ("-1", Some(-1)),
            ("022", None),
            ("0x7f", None),
            ("-1 EAGAIN", None),
            ("", None),
            ("9999999999999999999", None),
        ];
        for (text, value) in cases {
            assert_eq!(result(text.as_bytes()), value, "{text}");
        }
        assert_eq!(seconds(b"0.000031"), Some(Nanos(31_000)));
        assert_eq!(seconds(b"0.00003"), None);
    }
}
