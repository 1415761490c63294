//! Bytes as hexadecimal digits, and back.

/// Appends two lower-case digits for each byte.
pub(crate) fn push_hex(text: &mut String, bytes: &[u8]) {
    text.reserve(2 * bytes.len());
    for byte in bytes {
        text.push(char::from(DIGITS[usize::from(byte >> 4)]));
        text.push(char::from(DIGITS[usize::from(byte & 0xf)]));
    }
}

/// Bytes as lower-case digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let mut text = String::new();
    push_hex(&mut text, bytes);
    text
}

/// The bytes that digits of either case stand for.
///
/// # Errors
/// Something is no digit, or a digit lacks its second half.
pub(crate) fn unhex(digits: &[u8]) -> Result<Vec<u8>, String> {
    let (pairs, rest) = digits.as_chunks::<2>();
    let mut bytes = Vec::with_capacity(pairs.len());
    for (index, [high, low]) in pairs.iter().enumerate() {
        match (VALUES[usize::from(*high)], VALUES[usize::from(*low)]) {
            (high @ 0..16, low @ 0..16) => bytes.push(high << 4 | low),
            (0..16, _) => return Err(format!("position {} of the hex is no hexadecimal digit", 2 * index + 2)),
            _ => return Err(format!("position {} of the hex is no hexadecimal digit", 2 * index + 1)),
        }
    }
    if rest.is_empty() { Ok(bytes) } else { Err(format!("the hex has an odd number of digits, {}", digits.len())) }
}

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// What each byte is worth as a digit; 16 for what is none.
const VALUES: [u8; 256] = {
    let mut values = [16; 256];
    let mut value = 0;
    while value < 16 {
        values[DIGITS[value as usize] as usize] = value;
        values[DIGITS[value as usize].to_ascii_uppercase() as usize] = value;
        value += 1;
    }
    values
};
