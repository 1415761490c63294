//! What Kafka owes to Java where a client can see it.

/// The `hashCode` of a `String`.
pub(crate) fn hash(text: &str) -> i32 {
    text.encode_utf16().fold(0_i32, |hash, unit| hash.wrapping_mul(31).wrapping_add(i32::from(unit)))
}
