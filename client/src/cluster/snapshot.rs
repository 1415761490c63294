//! What the client knows of the cluster at one moment: an immutable value that all roles share.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use krafka_protocol::{ErrorCode, NodeIds, Str, Uuid};

/// A broker's address, as its cluster advertises it (or as the user gave it: then `id` is negative).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Node {
    /// The broker's id. Bootstrap addresses count down from -1, as in the Java client.
    pub(crate) id: i32,
    pub(crate) host: Str,
    pub(crate) port: u16,
    pub(crate) rack: Option<Str>,
}

impl Node {
    /// The `index`-th address that the user gave.
    pub(crate) fn bootstrap(index: usize, host: &str, port: u16) -> Self {
        Self { id: -1 - index as i32, host: Str::from(host), port, rack: None }
    }
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.id < 0 {
            f.write_str("bootstrap server ")?;
        } else {
            write!(f, "broker {} at ", self.id)?;
        }
        // An IPv6 address is told apart from its port by brackets.
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

/// One partition, as the metadata last told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PartitionView {
    /// The leader, if there is one and its node is known.
    pub(crate) leader: Option<i32>,
    /// The highest leader epoch that was seen, or -1 if none was. An answer without an epoch does not lower it.
    pub(crate) leader_epoch: i32,
    pub(crate) replicas: NodeIds,
    pub(crate) isr: NodeIds,
    pub(crate) offline: NodeIds,
}

impl PartitionView {
    /// A partition of which nothing is known but that it exists.
    pub(crate) fn leaderless() -> Self {
        Self { leader: None, leader_epoch: -1, replicas: NodeIds::new(), isr: NodeIds::new(), offline: NodeIds::new() }
    }
}

/// One topic. `partitions[i]` is partition `i`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TopicView {
    pub(crate) name: Str,
    /// The topic's id, or zero where the broker does not tell it.
    pub(crate) id: Uuid,
    pub(crate) is_internal: bool,
    pub(crate) partitions: Vec<PartitionView>,
}

/// What the cluster looks like. Replaced as a whole, never changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Snapshot {
    /// Counts up with each replacement.
    pub(crate) version: u64,
    pub(crate) cluster_id: Option<Str>,
    pub(crate) controller: Option<i32>,
    pub(crate) nodes: BTreeMap<i32, Arc<Node>>,
    /// How many of them are known by hints alone.
    pub(crate) hinted: usize,
    pub(crate) topics: BTreeMap<Str, Arc<TopicView>>,
    /// Topics that the last answer about them called erroneous (unknown, unauthorized, invalid): why.
    pub(crate) errors: BTreeMap<Str, ErrorCode>,
    /// Those of them that were there before, as they were: a topic that is back under the same id has not forgotten
    /// its epochs.
    pub(crate) past: BTreeMap<Str, Arc<TopicView>>,
}

impl Snapshot {
    /// The node with this id, if the cluster has it.
    pub(crate) fn node(&self, id: i32) -> Option<&Arc<Node>> {
        self.nodes.get(&id)
    }

    /// The topic of this name, if it is loaded and exists.
    pub(crate) fn topic(&self, name: &str) -> Option<&Arc<TopicView>> {
        self.topics.get(name)
    }

    /// One partition of a loaded topic.
    pub(crate) fn partition(&self, topic: &str, partition: i32) -> Option<&PartitionView> {
        self.topic(topic)?.partitions.get(usize::try_from(partition).ok()?)
    }

    /// The node that leads a partition, with the epoch of its leadership.
    pub(crate) fn leader(&self, topic: &str, partition: i32) -> Option<(&Arc<Node>, i32)> {
        let view = self.partition(topic, partition)?;
        Some((self.node(view.leader?)?, view.leader_epoch))
    }

    /// Whether a partition has a replica at a node that is up, by all that is known.
    pub(crate) fn has_replica_at(&self, node: i32, topic: &str, partition: i32) -> bool {
        let is_up = |view: &PartitionView| view.replicas.contains(&node) && !view.offline.contains(&node);
        self.node(node).is_some() && self.partition(topic, partition).is_some_and(is_up)
    }
}
