//! The id of a topic, a directory or a member.

use std::fmt;
use std::str::FromStr;

/// Sixteen bytes that Kafka writes as 22 characters of URL-safe base64 without padding.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uuid(pub [u8; 16]);

impl Uuid {
    /// All zero: Kafka's "no id".
    pub const ZERO: Self = Self([0; 16]);

    /// Whether this is "no id".
    #[inline]
    pub fn is_zero(&self) -> bool {
        *self == Self::ZERO
    }
}

/// A text that is no [`Uuid`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParseUuidError;

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = u128::from_be_bytes(self.0);
        // 22 digits of six bits are 132: the last digit holds two bits and four zeros.
        for digit in 0..22u32 {
            let bits = if digit < 21 { number >> (122 - 6 * digit) } else { number << 4 };
            write!(f, "{}", char::from(ALPHABET[(bits & 0x3f) as usize]))?;
        }
        Ok(())
    }
}

impl fmt::Debug for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Uuid {
    type Err = ParseUuidError;

    fn from_str(text: &str) -> Result<Self, ParseUuidError> {
        let text = text.as_bytes();
        if text.len() != 22 {
            return Err(ParseUuidError);
        }
        let mut number = 0u128;
        for (index, character) in text.iter().enumerate() {
            let digit = ALPHABET.iter().position(|known| known == character).ok_or(ParseUuidError)? as u128;
            if index < 21 {
                number = number << 6 | digit;
            } else if digit & 0x0f == 0 {
                number = number << 2 | digit >> 4;
            } else {
                return Err(ParseUuidError);
            }
        }
        Ok(Self(number.to_be_bytes()))
    }
}

impl fmt::Display for ParseUuidError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an id is 22 characters of URL-safe base64")
    }
}

impl std::error::Error for ParseUuidError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_what_kafka_prints() {
        let metadata_topic = Uuid(1u128.to_be_bytes());
        let mixed = Uuid([0xfb, 0xff, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 255]);

        assert_eq!(Uuid::ZERO.to_string(), "AAAAAAAAAAAAAAAAAAAAAA");
        assert_eq!(metadata_topic.to_string(), "AAAAAAAAAAAAAAAAAAAAAQ");
        assert_eq!(mixed.to_string(), "-_8AAQIDBAUGBwgJCgsM_w");
        assert_eq!("-_8AAQIDBAUGBwgJCgsM_w".parse(), Ok(mixed));
    }

    #[test]
    fn text_that_is_no_id_is_refused() {
        for text in
            ["", "AAAAAAAAAAAAAAAAAAAAA", "AAAAAAAAAAAAAAAAAAAAAAA", "AAAAAAAAAAAAAAAAAAAAA/", "AAAAAAAAAAAAAAAAAAAAAB"]
        {
            assert_eq!(text.parse::<Uuid>(), Err(ParseUuidError), "{text}");
        }
    }

    #[test]
    fn an_id_is_shown_as_kafka_prints_it() {
        assert_eq!(format!("{:?}", Uuid::ZERO), "AAAAAAAAAAAAAAAAAAAAAA");
        assert_eq!("x".parse::<Uuid>().unwrap_err().to_string(), "an id is 22 characters of URL-safe base64");
    }
}
