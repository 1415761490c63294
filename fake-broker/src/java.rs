//! What Kafka owes to Java where a client can see it.

/// The `hashCode` of a `String`.
pub(crate) fn hash(text: &str) -> i32 {
    text.encode_utf16().fold(0_i32, |hash, unit| hash.wrapping_mul(31).wrapping_add(i32::from(unit)))
}

/// Things in the order of a `HashMap` of which nothing is said, in which they are put one after the other.
pub(crate) fn in_hash_order<T>(mut things: Vec<T>, hash: impl Fn(&T) -> i32) -> Vec<T> {
    let mut table = 16;
    // The table doubles when it is more than three quarters full.
    while things.len() > table * 3 / 4 {
        table *= 2;
    }
    // Those that meet in a slot stay in the order in which they came.
    things.sort_by_key(|thing| slot(hash(thing), table));
    things
}

/// Where a `HashMap` with so many slots has what hashes to this.
pub(crate) fn slot(hash: i32, slots: usize) -> usize {
    let hash = hash.cast_unsigned();
    (hash ^ (hash >> 16)) as usize & (slots - 1)
}

/// `Double.parseDouble`, which knows suffixes of types and hexadecimal digits, and no other names than these two.
pub(crate) fn parse_double(text: &str) -> Option<f64> {
    let text = text.trim();
    let (sign, digits) = match text.as_bytes().first()? {
        b'-' => (-1.0, &text[1..]),
        b'+' => (1.0, &text[1..]),
        _ => (1.0, text),
    };
    match digits {
        "NaN" => return Some(f64::NAN),
        "Infinity" => return Some(sign * f64::INFINITY),
        _ => {}
    }
    let digits = digits.strip_suffix(['f', 'F', 'd', 'D']).unwrap_or(digits);
    let number = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(digits) => parse_hexadecimal(digits)?,
        // Rust's own has names, too, and signs of which there was one already.
        None if digits.starts_with(|char: char| char.is_ascii_digit() || char == '.') => digits.parse().ok()?,
        None => return None,
    };
    Some(sign * number)
}

/// Digits before and behind a point, and a power of two.
fn parse_hexadecimal(text: &str) -> Option<f64> {
    let (digits, exponent) = text.split_once(['p', 'P'])?;
    let exponent: i32 = exponent.parse().ok()?;
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let mut number = 0.0_f64;
    for digit in whole.chars().chain(fraction.chars()) {
        number = number.mul_add(16.0, f64::from(digit.to_digit(16)?));
    }
    let places = i32::try_from(fraction.len()).ok()?.checked_mul(4)?;
    Some(number * 2.0_f64.powi(exponent.saturating_sub(places)))
}

/// `Double.toString`.
pub(crate) fn double(number: f64) -> String {
    if number.is_infinite() {
        return if number > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    if number == 0.0 || number.is_nan() || (1e-3..1e7).contains(&number.abs()) {
        return format!("{number:?}");
    }
    let shortest = format!("{number:e}");
    // There is always a digit behind the point.
    let text = if shortest.contains('.') { shortest } else { format!("{number:.1e}") };
    text.replace('e', "E")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What Java 17 says of the same.
    #[test]
    fn doubles_are_written_as_java_writes_them() {
        let cases = [
            (-1.0, "-1.0"),
            (7.0, "7.0"),
            (99_999_999_999.0, "9.9999999999E10"),
            (-0.0, "-0.0"),
            (0.001, "0.001"),
            (-1e-5, "-1.0E-5"),
            (1_234_567.5, "1234567.5"),
            (9_999_999.0, "9999999.0"),
            (1e7, "1.0E7"),
            (123_456_789_012_345_678.0, "1.2345678901234568E17"),
            (1.000_000_000_000_000_2, "1.0000000000000002"),
            (-5e-324, "-4.9E-324"),
            (f64::NEG_INFINITY, "-Infinity"),
            (f64::NAN, "NaN"),
        ];
        for (number, text) in cases {
            assert_eq!(double(number), text);
        }
    }

    #[test]
    fn doubles_are_read_as_java_reads_them() {
        let cases = [
            (" 7 ", 7.0),
            ("+0.5", 0.5),
            ("0.5d", 0.5),
            ("5.", 5.0),
            (".5", 0.5),
            ("3.4e38f", 3.4e38),
            ("0x1p3", 8.0),
            ("0x1.8p-1", 0.75),
            ("-1E+1", -10.0),
            ("1e400", f64::INFINITY),
            ("-Infinity", f64::NEG_INFINITY),
        ];
        for (text, number) in cases {
            assert_eq!(parse_double(text), Some(number), "{text}");
        }
        assert!(parse_double("NaN").is_some_and(f64::is_nan));
        for text in ["", "nan", "inf", "infinity", "1_0", "7e", "--1", "+-1", "+", ".", "0x1", "0xp1", "f", "Infinityf"]
        {
            assert_eq!(parse_double(text), None, "{text}");
        }
    }
}
