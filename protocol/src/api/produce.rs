//! Produce (0): appends record batches to partitions.
//!
//! Version 1 tells for how long a quota mutes the client; 2 tells when the broker appended, and allows messages with
//! a timestamp (magic 1, KIP-32); 3 takes record batches only (magic 2) and knows transactions (KIP-98); 5 tells
//! where the log starts; 7 allows zstd (KIP-110); 8 names the records at fault (KIP-467); 9 is flexible; 10 tells
//! where a moved leader went (KIP-951); 11 may ask the producer to abort its transaction, and 12 adds partitions to
//! a transaction by itself (KIP-890); 13 names topics by id instead of by name (KIP-516). Brokers from 4.0 on still
//! advertise 0 to 2, for librdkafka's sake, and refuse them (KIP-896).

use crate::{Bytes, Message, Str, Uuid};

/// Appends a record set to each of some partitions that the receiving broker leads.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 0, versions = 0..=13, flexible = 9.., response = ProduceResponse)]
pub struct ProduceRequest {
    /// The producer's transactional id, `None` outside transactions.
    #[field(versions = 3.., default = null)]
    pub transactional_id: Option<Str>,
    /// Who must have the records before the answer: -1 all in-sync replicas, 1 the leader, 0 nobody
    /// (then no answer comes).
    pub acks: i16,
    /// For how many milliseconds the leader may wait for its followers.
    pub timeout_ms: i32,
    /// The records, by topic.
    pub topic_data: Vec<TopicProduceData>,
}

/// The records for one topic.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=13, flexible = 9..)]
pub struct TopicProduceData {
    /// The topic's name.
    #[field(versions = ..=12, ignorable)]
    pub name: Str,
    /// The topic's id.
    #[field(versions = 13.., ignorable)]
    pub topic_id: Uuid,
    /// The records, by partition.
    pub partition_data: Vec<PartitionProduceData>,
}

/// The records for one partition.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=13, flexible = 9..)]
pub struct PartitionProduceData {
    /// The partition's number.
    pub index: i32,
    /// Exactly one encoded record batch, from version 3 on; before that any number of messages of the older formats.
    /// The schema allows null, the broker does not.
    #[field(records)]
    pub records: Option<Bytes>,
}

/// The outcome for each partition. With acks 0 there is no response at all.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 0, versions = 0..=13, flexible = 9..)]
pub struct ProduceResponse {
    /// The outcomes, by topic.
    pub responses: Vec<TopicProduceResponse>,
    /// For how many milliseconds a quota makes the client wait; 0 for none.
    #[field(versions = 1.., ignorable)]
    pub throttle_time_ms: i32,
    /// Where the leaders named in the outcomes can be reached (KIP-951); absent if no leader has
    /// moved.
    #[field(versions = 10.., tag = 0)]
    pub node_endpoints: Vec<NodeEndpoint>,
}

/// The outcomes for one topic.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=13, flexible = 9..)]
pub struct TopicProduceResponse {
    /// The topic's name.
    #[field(versions = ..=12, ignorable)]
    pub name: Str,
    /// The topic's id.
    #[field(versions = 13.., ignorable)]
    pub topic_id: Uuid,
    /// The outcomes, by partition.
    pub partition_responses: Vec<PartitionProduceResponse>,
}

/// The outcome for one partition.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=13, flexible = 9..)]
pub struct PartitionProduceResponse {
    /// The partition's number.
    pub index: i32,
    /// Why nothing was appended, 0 if it was.
    pub error_code: i16,
    /// The offset that the first record got; -1 after an error, and when a duplicate is too old to
    /// be remembered.
    pub base_offset: i64,
    /// The broker's time of the append in milliseconds, if the topic uses LogAppendTime; otherwise
    /// -1.
    #[field(versions = 2.., ignorable, default = -1)]
    pub log_append_time_ms: i64,
    /// The first offset that the partition still has; -1 if unknown.
    #[field(versions = 5.., ignorable, default = -1)]
    pub log_start_offset: i64,
    /// The records that made the broker refuse the whole batch (KIP-467).
    #[field(versions = 8.., ignorable)]
    pub record_errors: Vec<BatchIndexAndErrorMessage>,
    /// The reason in words, `None` if the broker gives none.
    #[field(versions = 8.., nullable = 8.., ignorable, default = null)]
    pub error_message: Option<Str>,
    /// Who leads the partition now, if the receiver does not (KIP-951).
    #[field(versions = 10.., tag = 0)]
    pub current_leader: LeaderIdAndEpoch,
}

/// A record that the broker would not have.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 8..=13, flexible = 9..)]
pub struct BatchIndexAndErrorMessage {
    /// The record's place in the batch, from 0.
    pub batch_index: i32,
    /// What is wrong with it, `None` if the broker does not say.
    #[field(default = null)]
    pub batch_index_error_message: Option<Str>,
}

/// The leader of a partition, as far as the answering broker knows.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 10..=13, flexible = 9..)]
pub struct LeaderIdAndEpoch {
    /// The leader's broker id, -1 if unknown.
    #[field(default = -1)]
    pub leader_id: i32,
    /// The leader's epoch, -1 if unknown.
    #[field(default = -1)]
    pub leader_epoch: i32,
}

/// Where a broker can be reached.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 10..=13, flexible = 9..)]
pub struct NodeEndpoint {
    /// The broker's id.
    pub node_id: i32,
    /// The advertised host name or address.
    pub host: Str,
    /// The advertised port.
    pub port: i32,
    /// The rack the broker says it stands in, `None` if it does not say.
    #[field(default = null)]
    pub rack: Option<Str>,
}
