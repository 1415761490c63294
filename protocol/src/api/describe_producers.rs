//! DescribeProducers (61): what a partition's leader knows of the producers that write to it, for admin tools.
//!
//! It is how one finds a transaction that hangs and holds up readers of committed records (KIP-664). Each partition
//! must be asked of its leader.

use crate::{Message, Str};

/// Asks who writes to partitions.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 61, versions = 0..=0, flexible = 0.., response = DescribeProducersResponse)]
pub struct DescribeProducersRequest {
    /// The partitions asked about, by topic.
    pub topics: Vec<TopicRequest>,
}

/// Partitions of one topic asked about.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=0, flexible = 0..)]
pub struct TopicRequest {
    /// The topic's name.
    pub name: Str,
    /// The numbers of the partitions.
    pub partition_indexes: Vec<i32>,
}

/// Who writes to the partitions.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 61, versions = 0..=0, flexible = 0..)]
pub struct DescribeProducersResponse {
    /// For how many milliseconds a quota makes the client wait; 0 for none.
    pub throttle_time_ms: i32,
    /// The answers, by topic.
    pub topics: Vec<TopicResponse>,
}

/// Answers for partitions of one topic.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=0, flexible = 0..)]
pub struct TopicResponse {
    /// The topic's name.
    pub name: Str,
    /// The answers, by partition.
    pub partitions: Vec<PartitionResponse>,
}

/// Who writes to one partition.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=0, flexible = 0..)]
pub struct PartitionResponse {
    /// The partition's number.
    pub partition_index: i32,
    /// Why there is nothing to tell, 0 if there is. NOT_LEADER_OR_FOLLOWER: ask the leader. UNKNOWN_TOPIC_OR_PARTITION:
    /// there is no such partition. TOPIC_AUTHORIZATION_FAILED: the caller may not read the topic.
    pub error_code: i16,
    /// The reason in words, `None` if all went well or the broker gives none.
    #[field(default = null)]
    pub error_message: Option<Str>,
    /// The producers with an id that the broker has not forgotten yet (`producer.id.expiration.ms`); empty after an
    /// error.
    pub active_producers: Vec<ProducerState>,
}

/// One producer, as the partition's log has it.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=0, flexible = 0..)]
pub struct ProducerState {
    /// The producer's id.
    pub producer_id: i64,
    /// The producer's epoch. (Elsewhere it has 16 bits.)
    pub producer_epoch: i32,
    /// The sequence number of the last record that it wrote, -1 if the log has none of this epoch.
    #[field(default = -1)]
    pub last_sequence: i32,
    /// The timestamp of its last batch, in milliseconds since 1970; -1 if there is none.
    #[field(default = -1)]
    pub last_timestamp: i64,
    /// The epoch of the transaction coordinator that last ended a transaction of the producer here, -1 if none has.
    /// What aborts a transaction by force must bring it.
    pub coordinator_epoch: i32,
    /// The first offset of the producer's open transaction in this partition, -1 if none is open.
    #[field(default = -1)]
    pub current_txn_start_offset: i64,
}
