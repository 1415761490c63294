//! What a coordinator sees of the rest of the cluster.

use std::collections::BTreeSet;

use krafka_protocol::{Str, Uuid};

use crate::faults::KafkaVersion;
use crate::nodes::Nodes;
use crate::topics::{Topic, Topics};

/// The topics and nodes at one moment, and the version of Kafka that the coordinator looks like.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Image<'a> {
    topics: &'a Topics,
    nodes: &'a Nodes,
    pub(super) version: KafkaVersion,
    /// The topics that who asks may not describe, if he was asked.
    hidden: Option<&'a BTreeSet<Str>>,
}

/// What makes an assignment another one when it changes: Kafka keeps a hash of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TopicMetadata {
    pub(super) id: Uuid,
    /// The racks of the replicas of each partition.
    racks: Vec<BTreeSet<Str>>,
}

impl<'a> Image<'a> {
    /// What the node sees.
    pub(crate) fn of(topics: &'a Topics, nodes: &'a Nodes, node: i32) -> Self {
        let version = nodes.find(node).map(|node| node.version).unwrap_or_default();
        Self { topics, nodes, version, hidden: None }
    }

    /// The same, for somebody who may not describe these topics.
    pub(crate) fn hiding(self, hidden: &'a BTreeSet<Str>) -> Self {
        Self { hidden: Some(hidden), ..self }
    }

    /// The topics that who asks may not describe.
    pub(super) fn hidden(&self) -> BTreeSet<Str> {
        self.hidden.cloned().unwrap_or_default()
    }

    pub(super) fn id_of(&self, topic: &str) -> Option<Uuid> {
        self.topics.by_name(topic).map(|topic| topic.id)
    }

    pub(super) fn name_of(&self, topic: Uuid) -> Option<Str> {
        self.topics.name_of(&topic)
    }

    /// How many partitions a topic has; none if it is gone.
    pub(super) fn partitions(&self, topic: Uuid) -> i32 {
        self.topics.by_id(topic).map_or(0, |topic| i32::try_from(topic.partitions.len()).unwrap_or(i32::MAX))
    }

    pub(super) fn metadata(&self, topic: &str) -> Option<TopicMetadata> {
        let topic = self.topics.by_name(topic)?;
        let rack_of = |id: &i32| self.nodes.find(*id).and_then(|node| node.rack.clone());
        let racks = topic.partitions.iter().map(|partition| partition.replicas.iter().filter_map(rack_of).collect());
        Some(TopicMetadata { id: topic.id, racks: racks.collect() })
    }

    /// The names of all topics.
    pub(super) fn topic_names(&self) -> impl Iterator<Item = &'a Str> {
        self.topics.iter().map(|topic: &Topic| &topic.name)
    }
}
