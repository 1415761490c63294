//! DescribeTopicPartitions (75): a client asks for the partitions of topics, a page at a time.
//!
//! What Metadata tells of topics, without the brokers' addresses, and with the replicas that may become leaders while
//! no replica is in sync. Topics come in the order of their names, and no answer is larger than its limit.
//!
//! Version 0 came with KIP-966.

use crate::{Message, Str, Uuid};

/// Asks for a page of partitions.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 75, versions = 0..=0, flexible = 0.., response = DescribeTopicPartitionsResponse)]
pub struct DescribeTopicPartitionsRequest {
    /// The topics, each page with the same ones; empty for all.
    pub topics: Vec<TopicRequest>,
    /// How many partitions the answer should have at most. The broker has a limit besides
    /// (`max.request.partition.size.limit`), and takes less than 1 as 1.
    #[field(default = 2000)]
    pub response_partition_limit: i32,
    /// Where to go on: the last answer's `next_cursor`; `None` to begin.
    #[field(default = null)]
    pub cursor: Option<Cursor>,
}

/// A topic to describe.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=0, flexible = 0..)]
pub struct TopicRequest {
    /// The topic's name.
    pub name: Str,
}

/// The first partition of a page.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=0, flexible = 0..)]
pub struct Cursor {
    /// The topic's name. It is one of the request's topics, if that names any.
    pub topic_name: Str,
    /// The partition's number; not negative.
    pub partition_index: i32,
}

/// A page of partitions.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 75, versions = 0..=0, flexible = 0..)]
pub struct DescribeTopicPartitionsResponse {
    /// For how many milliseconds a quota makes the client wait; 0 for none.
    #[field(ignorable)]
    pub throttle_time_ms: i32,
    /// The topics, each with those of its partitions that are on this page.
    pub topics: Vec<DescribeTopicPartitionsResponseTopic>,
    /// Where the next page begins, `None` if this is the last one.
    #[field(default = null)]
    pub next_cursor: Option<Cursor>,
}

/// What the broker knows about a topic.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=0, flexible = 0..)]
pub struct DescribeTopicPartitionsResponseTopic {
    /// Why the topic cannot be described, 0 if it can: UNKNOWN_TOPIC_OR_PARTITION, INVALID_TOPIC_EXCEPTION or
    /// TOPIC_AUTHORIZATION_FAILED.
    pub error_code: i16,
    /// The topic's name. The schema allows null, brokers always tell it.
    pub name: Option<Str>,
    /// The topic's id; zero after an error.
    #[field(ignorable)]
    pub topic_id: Uuid,
    /// Whether the topic is Kafka's own, such as the one that keeps committed offsets.
    #[field(ignorable)]
    pub is_internal: bool,
    /// The partitions, in the order of their numbers.
    pub partitions: Vec<DescribeTopicPartitionsResponsePartition>,
    /// A bit set of what the caller may do to the topic; `i32::MIN` if the broker does not tell.
    #[field(default = -2147483648)]
    pub topic_authorized_operations: i32,
}

/// What the broker knows about a partition.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=0, flexible = 0..)]
pub struct DescribeTopicPartitionsResponsePartition {
    /// The partition's own error. Brokers leave it at 0, and let `leader_id` say that nobody leads.
    pub error_code: i16,
    /// The partition's number.
    pub partition_index: i32,
    /// The leader's broker id, -1 if there is none.
    pub leader_id: i32,
    /// The leader's epoch, -1 if unknown.
    #[field(ignorable, default = -1)]
    pub leader_epoch: i32,
    /// The brokers that hold the partition.
    pub replica_nodes: Vec<i32>,
    /// Those among them that have all that the leader has.
    pub isr_nodes: Vec<i32>,
    /// Those out of sync that still have all committed records, so that one of them may lead once nobody is in sync;
    /// `None` if the broker does not tell.
    #[field(default = null)]
    pub eligible_leader_replicas: Option<Vec<i32>>,
    /// Those that were in sync or eligible last, and were lost in an unclean shutdown; `None` if the broker does not
    /// tell.
    #[field(default = null)]
    pub last_known_elr: Option<Vec<i32>>,
    /// Those that are not there: their broker or their disk is down.
    #[field(ignorable)]
    pub offline_replicas: Vec<i32>,
}
