//! Plain values of the public API that several roles share.

use std::fmt;
use std::sync::Arc;

/// One partition of a topic.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopicPartition {
    /// The topic's name.
    pub topic: Arc<str>,
    /// The partition's number, from 0.
    pub partition: i32,
}

impl TopicPartition {
    /// Returns partition `partition` of `topic`.
    pub fn new(topic: impl Into<Arc<str>>, partition: i32) -> Self {
        Self { topic: topic.into(), partition }
    }
}

impl fmt::Display for TopicPartition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.topic, self.partition)
    }
}

impl<T: Into<Arc<str>>> From<(T, i32)> for TopicPartition {
    fn from((topic, partition): (T, i32)) -> Self {
        Self::new(topic, partition)
    }
}

/// A broker, as the cluster advertises it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BrokerInfo {
    /// The broker's id.
    pub id: i32,
    /// The name or address that clients connect to.
    pub host: Arc<str>,
    /// The port that clients connect to.
    pub port: u16,
    /// The rack (or availability zone) that the broker says it is in.
    pub rack: Option<Arc<str>>,
}

/// A topic and its partitions.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TopicInfo {
    /// The topic's name.
    pub name: Arc<str>,
    /// The topic's id, in Kafka's text form; `None` from brokers that do not tell it.
    pub topic_id: Option<Arc<str>>,
    /// Whether Kafka itself keeps its state in it.
    pub is_internal: bool,
    /// The partitions, in order of their numbers.
    pub partitions: Vec<PartitionInfo>,
}

/// One partition and where its replicas are.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PartitionInfo {
    /// The partition's number, from 0.
    pub partition: i32,
    /// The broker that leads it, if one does.
    pub leader: Option<i32>,
    /// The epoch of its leadership, if known.
    pub leader_epoch: Option<i32>,
    /// The brokers that hold a replica.
    pub replicas: Vec<i32>,
    /// The replicas that are in sync.
    pub isr: Vec<i32>,
    /// The replicas that are offline.
    pub offline_replicas: Vec<i32>,
}
