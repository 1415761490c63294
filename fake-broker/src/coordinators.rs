//! Which node coordinates a group: the leader of the partition of `__consumer_offsets` that the group's name falls on.
//!
//! The topic is real, with leaders and epochs like any other, so that coordinators move when nodes die, as in Kafka.

/// The internal topic whose partitions' leaders coordinate groups.
pub(crate) const OFFSETS_TOPIC: &str = "__consumer_offsets";

/// Kafka's default number of its partitions.
pub(crate) const OFFSETS_PARTITIONS: i32 = 50;

/// The partition of `__consumer_offsets` that keeps a group.
pub(crate) fn partition_for(group: &str) -> i32 {
    // Java's String.hashCode over UTF-16, made positive by clearing the sign, as Kafka does.
    let hash = group.encode_utf16().fold(0_i32, |hash, unit| hash.wrapping_mul(31).wrapping_add(i32::from(unit)));
    (hash & i32::MAX) % OFFSETS_PARTITIONS
}

#[cfg(test)]
mod tests {
    use super::partition_for;

    /// The values are what Java computes: `"my-group".hashCode() & 0x7fffffff) % 50` and so on.
    #[test]
    fn groups_fall_on_javas_partitions() {
        assert_eq!(partition_for(""), 0);
        assert_eq!(partition_for("a"), 97 % 50);
        assert_eq!(partition_for("ab"), (97 * 31 + 98) % 50);
    }
}
