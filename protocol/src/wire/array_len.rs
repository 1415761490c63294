//! [`check_decode_array_len`]: whether to believe the length of an array.

use super::DecodeError;
use super::error::DecodeErrorKind;

/// Believes the length of an array that came from outside, or refuses it, before anything is allocated for it.
///
/// There is no fixed limit, since whatever it were, some legal cluster would be larger. What cannot be is more elements
/// than the smallest possible ones fill the rest of the input with. [`Reader`](super::Reader) holds all messages to
/// this, and charges what the elements take in memory to its budget besides.
///
/// ```
/// use krafka_protocol::wire::check_decode_array_len;
///
/// assert_eq!(check_decode_array_len(250_000, 4, 1_000_000)?, 250_000);
/// assert!(check_decode_array_len(250_001, 4, 1_000_000).is_err());
/// assert!(check_decode_array_len(-1, 4, 1_000_000).is_err());
/// # Ok::<(), krafka_protocol::DecodeError>(())
/// ```
///
/// # Errors
/// The length is negative, or `min_element_size` bytes for each element are more than are left.
#[inline]
pub fn check_decode_array_len(length: i32, min_element_size: usize, bytes_left: usize) -> Result<usize, DecodeError> {
    match usize::try_from(length) {
        Ok(count) if fit(count, min_element_size, bytes_left) => Ok(count),
        _ => {
            let kind = DecodeErrorKind::Length { what: "array", length: length.into(), left: bytes_left };
            Err(DecodeError::new(kind))
        }
    }
}

/// Whether so many elements of that size or more can be in so many bytes.
#[inline]
pub(super) fn fit(count: usize, min_element_size: usize, bytes_left: usize) -> bool {
    count.saturating_mul(min_element_size) <= bytes_left
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_as_fit_are_believed() {
        assert_eq!(check_decode_array_len(3, 4, 12), Ok(3));
        assert_eq!(check_decode_array_len(0, 4, 0), Ok(0));
        assert!(check_decode_array_len(3, 4, 11).is_err());
        assert!(check_decode_array_len(-1, 0, 11).is_err());
        assert!(check_decode_array_len(i32::MAX, usize::MAX, 11).is_err());
    }
}
