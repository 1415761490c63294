//! Which node coordinates a group or a transactional id.
//!
//! As in Kafka: the key's hash picks a partition of an internal topic, and the leader of that partition is the
//! coordinator, of everything else on that partition too. The topics are real, with leaders and epochs like any other,
//! so that coordinators move when nodes die.

pub(crate) mod log;

use krafka_protocol::Str;

use crate::configs::Overrides;
use crate::java;
use crate::state::State;

/// The internal topic whose partitions' leaders coordinate groups.
pub(crate) const OFFSETS_TOPIC: &str = "__consumer_offsets";

/// The internal topic whose partitions' leaders coordinate transactional producers.
pub(crate) const TRANSACTIONS_TOPIC: &str = "__transaction_state";

/// The internal topic whose partitions' leaders keep the state of share partitions.
pub(crate) const SHARE_TOPIC: &str = "__share_group_state";

/// Kafka's default number of their partitions.
const PARTITIONS: i32 = 50;

/// What is coordinated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum CoordinatorKind {
    /// A group, with its offsets.
    Group,
    /// A transactional id.
    Transaction,
    /// The state of a share partition.
    Share,
}

impl CoordinatorKind {
    /// What Kafka sets for that topic when it makes it.
    fn topic_configs(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Group => {
                &[("cleanup.policy", "compact"), ("compression.type", "producer"), ("segment.bytes", "104857600")]
            }
            Self::Transaction => &[
                ("cleanup.policy", "compact"),
                ("compression.type", "uncompressed"),
                ("min.insync.replicas", "2"),
                ("segment.bytes", "104857600"),
                ("unclean.leader.election.enable", "false"),
            ],
            Self::Share => &[
                ("cleanup.policy", "delete"),
                ("compression.type", "producer"),
                ("min.insync.replicas", "2"),
                ("retention.ms", "-1"),
                ("segment.bytes", "104857600"),
            ],
        }
    }

    /// The topic that keeps what is coordinated.
    pub(crate) fn topic(self) -> &'static str {
        match self {
            Self::Group => OFFSETS_TOPIC,
            Self::Transaction => TRANSACTIONS_TOPIC,
            Self::Share => SHARE_TOPIC,
        }
    }
}

/// The node that leads a partition of a kind's topic.
pub(crate) fn find_on(state: &State, kind: CoordinatorKind, partition: i32) -> Option<i32> {
    state.topics.partition(kind.topic(), partition)?.leader
}

/// The node that coordinates a key, or `None` while its partition has no leader, or the topic is not there.
pub(crate) fn find(state: &State, kind: CoordinatorKind, key: &str) -> Option<i32> {
    let pinned = state.pinned.get(&(kind, Str::from(key))).copied();
    let led_by = || find_on(state, kind, partition_for(key));
    pinned.filter(|node| state.nodes.is_up(*node)).or_else(led_by)
}

/// Makes a node the coordinator of one key alone, or no longer.
pub(crate) fn pin(state: &mut State, kind: CoordinatorKind, key: &str, node: Option<i32>) {
    match node {
        Some(node) => state.pinned.insert((kind, Str::from(key)), node),
        None => state.pinned.remove(&(kind, Str::from(key))),
    };
}

/// Creates the topic of a kind when it is asked for the first time, as Kafka does.
pub(crate) fn ensure_topic(state: &mut State, kind: CoordinatorKind) {
    if state.topics.by_name(kind.topic()).is_none() {
        let replicas = state.config.replication_factor;
        let assignments = (0..PARTITIONS).map(|index| state.place(index, replicas)).collect();
        let mut given: Overrides =
            kind.topic_configs().iter().map(|&(name, value)| (name.into(), value.into())).collect();
        // A cluster of one node could not write with Kafka's defaults; whoever runs one sets them as low.
        if let Some(least) = given.get_mut("min.insync.replicas").filter(|_| replicas < 2) {
            *least = Str::from_static("1");
        }
        state.add_topic_on(Str::from_static(kind.topic()), assignments, given);
    }
}

/// Whether a topic is one of the coordinators' own.
pub(crate) fn is_internal(topic: &str) -> bool {
    [OFFSETS_TOPIC, TRANSACTIONS_TOPIC, SHARE_TOPIC].contains(&topic)
}

/// The partition of the internal topic that keeps a key: Java's hash of the string, made positive as Kafka makes it.
pub(crate) fn partition_for(key: &str) -> i32 {
    java::hash(key).checked_abs().unwrap_or(0) % PARTITIONS
}

#[cfg(test)]
mod tests {
    use super::partition_for;

    /// What a JVM computes; the hash of the fourth is the one integer without a positive twin.
    #[test]
    fn keys_fall_on_javas_partitions() {
        let java = [("", 0), ("group", 47), ("my-consumer-group", 13), ("polygenelubricants", 0), ("gröup", 32)];

        for (key, partition) in java {
            assert_eq!(partition_for(key), partition, "{key}");
        }
    }
}
