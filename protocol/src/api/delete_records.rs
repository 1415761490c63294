//! DeleteRecords (21): makes partitions forget their oldest records (KIP-107).
//!
//! Sent to each partition's leader. Nothing is rewritten: the log start offset moves up, and whole segments below it
//! are deleted when the broker comes to it. The leader answers when every live replica has moved its start.
//!
//! From version 1 on the broker answers before it throttles (KIP-219); 2 is the first in the flexible encoding
//! (KIP-482).

use crate::{Message, Str};

/// Deletes records from partitions that the receiving broker leads.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 21, versions = 0..=2, flexible = 2.., response = DeleteRecordsResponse)]
pub struct DeleteRecordsRequest {
    /// The partitions, by topic.
    pub topics: Vec<DeleteRecordsTopic>,
    /// For how many milliseconds the leader may wait for the other replicas before it answers REQUEST_TIMED_OUT. Its
    /// own log has moved then all the same.
    pub timeout_ms: i32,
}

/// Partitions of one topic.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=2, flexible = 2..)]
pub struct DeleteRecordsTopic {
    /// The topic's name.
    pub name: Str,
    /// The partitions, each with its offset.
    pub partitions: Vec<DeleteRecordsPartition>,
}

/// Up to where to delete.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=2, flexible = 2..)]
pub struct DeleteRecordsPartition {
    /// The partition's number.
    pub partition_index: i32,
    /// The first offset to keep; -1 for the high watermark, which deletes all that is committed. Beyond the high
    /// watermark it is OFFSET_OUT_OF_RANGE; below the log start offset nothing is left to do, and that is no error.
    pub offset: i64,
}

/// What is left.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 21, versions = 0..=2, flexible = 2..)]
pub struct DeleteRecordsResponse {
    /// For how many milliseconds a quota makes the client wait; 0 for none.
    pub throttle_time_ms: i32,
    /// The outcomes, by topic.
    pub topics: Vec<DeleteRecordsTopicResult>,
}

/// The outcomes for one topic.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=2, flexible = 2..)]
pub struct DeleteRecordsTopicResult {
    /// The topic's name.
    pub name: Str,
    /// The outcomes, by partition.
    pub partitions: Vec<DeleteRecordsPartitionResult>,
}

/// The outcome for one partition.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=2, flexible = 2..)]
pub struct DeleteRecordsPartitionResult {
    /// The partition's number.
    pub partition_index: i32,
    /// The least log start offset of the live replicas: no consumer is given records below it any more. -1 after an
    /// error.
    pub low_watermark: i64,
    /// Why the records are not deleted everywhere, 0 if they are. NOT_LEADER_OR_FOLLOWER: look up the leader anew.
    /// POLICY_VIOLATION: the topic's `cleanup.policy` does not delete. INVALID_TOPIC_EXCEPTION: the topic is
    /// internal.
    pub error_code: i16,
}
