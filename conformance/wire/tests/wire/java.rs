//! What Java's clients and brokers compute, and these tests have to foresee.

/// The partition of a coordinators' topic that keeps a key: Java's hash of the string, made positive as Kafka makes it.
pub(crate) fn partition_for(key: &str, partitions: i32) -> i32 {
    let hash = key.encode_utf16().fold(0_i32, |hash, unit| hash.wrapping_mul(31).wrapping_add(i32::from(unit)));
    hash.checked_abs().unwrap_or(0) % partitions
}
