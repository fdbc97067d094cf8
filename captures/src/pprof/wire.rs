//! The protobuf encoding: varints, and fields of a message.
//! <https://protobuf.dev/programming-guides/encoding/>

/// One field of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value<'a> {
    /// A varint, or a fixed number, which no field that we read has.
    Number(u64),
    /// A string, message or packed numbers.
    Bytes(&'a [u8]),
}

impl<'a> Value<'a> {
    pub(super) fn number(self) -> u64 {
        match self {
            Self::Number(number) => number,
            Self::Bytes(_) => 0,
        }
    }

    pub(super) fn bytes(self) -> &'a [u8] {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Number(_) => &[],
        }
    }

    /// Each number of a repeated field, packed or not.
    pub(super) fn numbers(self, mut each: impl FnMut(u64)) -> Result<(), Broken> {
        match self {
            Self::Number(number) => each(number),
            Self::Bytes(mut packed) => {
                while !packed.is_empty() {
                    each(varint(&mut packed)?);
                }
            }
        }
        Ok(())
    }
}

/// Not a protobuf message, or one that was cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Broken {
    /// How many bytes were left where it broke.
    pub(super) left: usize,
}

/// Takes the next varint.
pub(super) fn varint(bytes: &mut &[u8]) -> Result<u64, Broken> {
    let broken = Broken { left: bytes.len() };
    let mut number = 0;
    for shift in (0..70).step_by(7) {
        let (&byte, rest) = bytes.split_first().ok_or(broken)?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
        if byte < 0x80 {
            return Ok(number);
        }
    }
    Err(broken)
}

/// Takes the next field: its number and its value.
pub(super) fn field<'a>(bytes: &mut &'a [u8]) -> Result<(u64, Value<'a>), Broken> {
    let broken = Broken { left: bytes.len() };
    let tag = varint(bytes)?;
    if tag >> 3 == 0 {
        return Err(broken);
    }
    let value = match tag & 7 {
        0 => Value::Number(varint(bytes)?),
        1 => Value::Number(fixed(take(bytes, 8).ok_or(broken)?)),
        5 => Value::Number(fixed(take(bytes, 4).ok_or(broken)?)),
        2 => {
            let length = usize::try_from(varint(bytes)?).map_err(|_| broken)?;
            Value::Bytes(take(bytes, length).ok_or(broken)?)
        }
        _ => return Err(broken),
    };
    Ok((tag >> 3, value))
}

/// Calls `each` with every field of a message.
pub(super) fn fields<'a>(
    mut message: &'a [u8],
    mut each: impl FnMut(u64, Value<'a>) -> Result<(), Broken>,
) -> Result<(), Broken> {
    while !message.is_empty() {
        let (number, value) = field(&mut message)?;
        each(number, value)?;
    }
    Ok(())
}

fn take<'a>(bytes: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(taken)
}

fn fixed(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_varint_is_read_and_a_longer_one_is_not() {
        let mut largest = &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01][..];
        assert_eq!(varint(&mut largest), Ok(u64::MAX));
        assert!(varint(&mut &[0xff; 11][..]).is_err());
        assert!(varint(&mut &[0x80][..]).is_err());
    }

    #[test]
    fn a_length_beyond_the_end_is_broken() {
        assert!(field(&mut &[0x0a, 0x05, 1, 2][..]).is_err());
        assert_eq!(field(&mut &[0x0a, 0x02, 1, 2][..]), Ok((1, Value::Bytes(&[1, 2]))));
    }
}
