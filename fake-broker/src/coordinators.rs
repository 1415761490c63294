//! Which node coordinates a group or a transactional id.
//!
//! As in Kafka: the key's hash picks a partition of an internal topic, and the leader of that partition is the
//! coordinator, of everything else on that partition too. The topics are real, with leaders and epochs like any other,
//! so that coordinators move when nodes die.
//!
//! Over how many partitions the keys are spread, a broker of Kafka finds out when it starts: by the topic, if there is
//! one, else by its config; and it stays with that whatever becomes of the topic. Other than in Kafka, all nodes find
//! it out anew when one of them is started again.

pub(crate) mod log;

use krafka_protocol::Str;

use crate::config::Config;
use crate::configs::Overrides;
use crate::java;
use crate::state::State;
use crate::topics::Topics;

/// The internal topic whose partitions' leaders coordinate groups.
pub(crate) const OFFSETS_TOPIC: &str = "__consumer_offsets";

/// The internal topic whose partitions' leaders coordinate transactional producers.
pub(crate) const TRANSACTIONS_TOPIC: &str = "__transaction_state";

/// The internal topic whose partitions' leaders keep the state of share partitions.
pub(crate) const SHARE_TOPIC: &str = "__share_group_state";

/// Kafka's default number of their partitions.
const DEFAULT_PARTITIONS: i32 = 50;

/// Kafka's defaults for what they are made with.
const DEFAULT_SEGMENT_BYTES: i32 = 100 << 20;
const DEFAULT_MIN_INSYNC_REPLICAS: i32 = 2;

/// The configs of brokers that a coordinators' topic is made by.
struct TopicConfigs {
    partitions: &'static str,
    replicas: &'static str,
    segment_bytes: &'static str,
    /// Where it is not that of any topic.
    min_insync_replicas: Option<&'static str>,
}

/// Over how many partitions the keys of each kind are spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spread {
    groups: i32,
    transactions: i32,
    shares: i32,
}

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
    /// What Kafka sets for that topic when it makes it, besides what configs of the brokers say.
    fn topic_configs(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Group => &[("cleanup.policy", "compact"), ("compression.type", "producer")],
            Self::Transaction => &[
                ("cleanup.policy", "compact"),
                ("compression.type", "uncompressed"),
                ("unclean.leader.election.enable", "false"),
            ],
            Self::Share => &[("cleanup.policy", "delete"), ("compression.type", "producer"), ("retention.ms", "-1")],
        }
    }

    /// The configs of brokers that say the rest.
    fn broker_configs(self) -> TopicConfigs {
        match self {
            Self::Group => TopicConfigs {
                partitions: "offsets.topic.num.partitions",
                replicas: "offsets.topic.replication.factor",
                segment_bytes: "offsets.topic.segment.bytes",
                min_insync_replicas: None,
            },
            Self::Transaction => TopicConfigs {
                partitions: "transaction.state.log.num.partitions",
                replicas: "transaction.state.log.replication.factor",
                segment_bytes: "transaction.state.log.segment.bytes",
                min_insync_replicas: Some("transaction.state.log.min.isr"),
            },
            Self::Share => TopicConfigs {
                partitions: "share.coordinator.state.topic.num.partitions",
                replicas: "share.coordinator.state.topic.replication.factor",
                segment_bytes: "share.coordinator.state.topic.segment.bytes",
                min_insync_replicas: Some("share.coordinator.state.topic.min.isr"),
            },
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

impl Spread {
    /// What brokers find out that start now.
    pub(crate) fn found_by(config: &Config, topics: &Topics) -> Self {
        let count = |kind: CoordinatorKind| {
            let present = topics.by_name(kind.topic()).and_then(|topic| i32::try_from(topic.partitions.len()).ok());
            present.unwrap_or_else(|| configured_partitions(config, kind))
        };
        Self {
            groups: count(CoordinatorKind::Group),
            transactions: count(CoordinatorKind::Transaction),
            shares: count(CoordinatorKind::Share),
        }
    }

    /// The partition of a kind's topic that keeps a key: Java's hash of the string, made positive as Kafka makes it.
    pub(crate) fn partition_for(self, kind: CoordinatorKind, key: &str) -> i32 {
        let partitions = match kind {
            CoordinatorKind::Group => self.groups,
            CoordinatorKind::Transaction => self.transactions,
            CoordinatorKind::Share => self.shares,
        };
        java::hash(key).checked_abs().unwrap_or(0) % partitions.max(1)
    }
}

/// How many partitions a kind's topic is made with.
fn configured_partitions(config: &Config, kind: CoordinatorKind) -> i32 {
    config.number(kind.broker_configs().partitions).unwrap_or(DEFAULT_PARTITIONS)
}

/// The node that leads a partition of a kind's topic.
pub(crate) fn find_on(state: &State, kind: CoordinatorKind, partition: i32) -> Option<i32> {
    state.topics.partition(kind.topic(), partition)?.leader
}

/// The node that coordinates a key, or `None` while its partition has no leader, or the topic is not there.
pub(crate) fn find(state: &State, kind: CoordinatorKind, key: &str) -> Option<i32> {
    let pinned = state.pinned.get(&(kind, Str::from(key))).copied();
    let led_by = || find_on(state, kind, state.spread.partition_for(kind, key));
    pinned.filter(|node| state.nodes.is_up(*node)).or_else(led_by)
}

/// Makes a node the coordinator of one key alone, or no longer.
pub(crate) fn pin(state: &mut State, kind: CoordinatorKind, key: &str, node: Option<i32>) {
    match node {
        Some(node) => state.pinned.insert((kind, Str::from(key)), node),
        None => state.pinned.remove(&(kind, Str::from(key))),
    };
}

/// Creates the topic of a kind when it is asked for the first time, as Kafka does; where there is no node, nobody asks.
pub(crate) fn ensure_topic(state: &mut State, kind: CoordinatorKind) {
    if state.topics.by_name(kind.topic()).is_none() && state.has_room().is_ok() {
        let configs = kind.broker_configs();
        let config = &state.config;
        let replicas = config.number(configs.replicas).unwrap_or(config.replication_factor);
        let partitions = configured_partitions(config, kind);
        let mut given: Overrides =
            kind.topic_configs().iter().map(|&(name, value)| (name.into(), value.into())).collect();
        let mut set = |name: &str, value: i32| given.insert(name.into(), Str::from(value.to_string()));
        set("segment.bytes", config.number(configs.segment_bytes).unwrap_or(DEFAULT_SEGMENT_BYTES));
        if let Some(name) = configs.min_insync_replicas {
            // A cluster of one node could not write with Kafka's defaults; whoever runs one sets them as low.
            let least = config.number(name).unwrap_or(if replicas < 2 { 1 } else { DEFAULT_MIN_INSYNC_REPLICAS });
            set("min.insync.replicas", least);
        }
        let assignments = (0..partitions).map(|index| state.place(index, replicas)).collect();
        state.add_topic_on(Str::from_static(kind.topic()), assignments, given);
    }
}

/// Whether a topic is one of the coordinators' own.
pub(crate) fn is_internal(topic: &str) -> bool {
    [OFFSETS_TOPIC, TRANSACTIONS_TOPIC, SHARE_TOPIC].contains(&topic)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a JVM computes; the hash of the fourth is the one integer without a positive twin.
    #[test]
    fn keys_fall_on_javas_partitions() {
        let java = [("", 0), ("group", 47), ("my-consumer-group", 13), ("polygenelubricants", 0), ("gröup", 32)];

        let spread = Spread::found_by(&Config::default(), &Topics::default());
        for (key, partition) in java {
            assert_eq!(spread.partition_for(CoordinatorKind::Group, key), partition, "{key}");
        }
    }
}
