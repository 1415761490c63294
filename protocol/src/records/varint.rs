//! Zigzag varints, as records use them for lengths and deltas.

/// The length of the longest varint of 64 bits.
pub(super) const MAX_LEN_I64: usize = 10;
/// The length of the longest varint of 32 bits.
pub(super) const MAX_LEN_I32: usize = 5;

/// Reads a 32-bit zigzag varint and moves `input` behind it; `None` if it ends early or does not fit.
#[inline(always)]
pub(super) fn read_i32(input: &mut &[u8]) -> Option<i32> {
    // Nearly all are of one or two bytes: lengths below 64 or 8192.
    match **input {
        [a, ref rest @ ..] if a < 0x80 => {
            *input = rest;
            Some(zigzag_i32(u32::from(a)))
        }
        [a, b, ref rest @ ..] if b < 0x80 => {
            *input = rest;
            Some(zigzag_i32(u32::from(a & 0x7f) | u32::from(b) << 7))
        }
        _ => {
            let (value, rest) = read_long(input)?;
            *input = rest;
            Some(zigzag_i32(u32::try_from(value).ok()?))
        }
    }
}

/// Reads a 64-bit zigzag varint and moves `input` behind it; `None` if it ends early or does not fit.
#[inline(always)]
pub(super) fn read_i64(input: &mut &[u8]) -> Option<i64> {
    match **input {
        [a, ref rest @ ..] if a < 0x80 => {
            *input = rest;
            Some(zigzag_i64(u64::from(a)))
        }
        _ => {
            let (value, rest) = read_long(input)?;
            *input = rest;
            Some(zigzag_i64(value))
        }
    }
}

fn read_long(input: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0;
    for (index, &byte) in input.iter().take(MAX_LEN_I64).enumerate() {
        // The tenth byte has room for one bit.
        if index == MAX_LEN_I64 - 1 && byte > 1 {
            return None;
        }
        value |= u64::from(byte & 0x7f) << (7 * index);
        if byte < 0x80 {
            return Some((value, &input[index + 1..]));
        }
    }
    None
}

const fn zigzag_i32(value: u32) -> i32 {
    (value >> 1) as i32 ^ -((value & 1) as i32)
}

const fn zigzag_i64(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

/// The length of the varint of `value`.
#[inline(always)]
pub(super) const fn len_i32(value: i32) -> usize {
    len_u64(((value << 1) ^ (value >> 31)) as u32 as u64)
}

/// The length of the varint of `value`.
#[inline(always)]
pub(super) const fn len_i64(value: i64) -> usize {
    len_u64(((value << 1) ^ (value >> 63)) as u64)
}

#[inline(always)]
const fn len_u64(value: u64) -> usize {
    // Two branches that always go the same way are cheaper than the formula below.
    if value < 0x80 {
        1
    } else if value < 0x4000 {
        2
    } else {
        // Seven bits a byte.
        (70 - value.leading_zeros() as usize) / 7
    }
}

/// Writes the varint of `value`.
#[inline(always)]
pub(super) fn push_i32(out: &mut Vec<u8>, value: i32) {
    push_u64(out, u64::from(((value << 1) ^ (value >> 31)) as u32));
}

/// Writes the varint of `value`.
#[inline(always)]
pub(super) fn push_i64(out: &mut Vec<u8>, value: i64) {
    push_u64(out, ((value << 1) ^ (value >> 63)) as u64);
}

#[inline(always)]
fn push_u64(out: &mut Vec<u8>, value: u64) {
    // Two bytes that are pushed at once are one check for room.
    if value < 0x80 {
        out.push(value as u8);
    } else if value < 0x4000 {
        out.extend_from_slice(&[value as u8 | 0x80, (value >> 7) as u8]);
    } else {
        push_long(out, value);
    }
}

fn push_long(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_survives_the_round_trip() {
        let edges = (0..64).flat_map(|bit| [1_i64 << bit, (1_i64 << bit).wrapping_sub(1), -(1_i64 << (bit % 63))]);
        for value in edges.chain([0, -1, i64::MIN, i64::MAX]) {
            let mut bytes = Vec::new();
            push_i64(&mut bytes, value);

            assert_eq!(bytes.len(), len_i64(value), "{value}");
            let mut input = &bytes[..];
            assert_eq!(read_i64(&mut input), Some(value));
            assert!(input.is_empty());
            assert_eq!(read_i64(&mut &bytes[..bytes.len() - 1]), None, "{value} cut short");

            let value = value as i32;
            let mut bytes = Vec::new();
            push_i32(&mut bytes, value);
            assert_eq!(bytes.len(), len_i32(value), "{value}");
            let mut input = &bytes[..];
            assert_eq!(read_i32(&mut input), Some(value));
            assert!(input.is_empty());
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        assert_eq!(read_i32(&mut &[0xff, 0xff, 0xff, 0xff, 0x0f][..]), Some(i32::MIN));
        assert_eq!(read_i32(&mut &[0xff, 0xff, 0xff, 0xff, 0x1f][..]), None);
        assert_eq!(read_i32(&mut &[0x80; 16][..]), None);
        assert_eq!(read_i64(&mut &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01][..]), Some(i64::MIN));
        assert_eq!(read_i64(&mut &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02][..]), None);
        assert_eq!(read_i64(&mut &[0x80; 16][..]), None);
        assert_eq!(read_i64(&mut &[][..]), None);
    }

    /// Java writes the shortest form and reads any.
    #[test]
    fn longer_forms_are_read() {
        assert_eq!(read_i32(&mut &[0x82, 0x00][..]), Some(1));
        assert_eq!(read_i32(&mut &[0x82, 0x80, 0x00][..]), Some(1));
    }
}
