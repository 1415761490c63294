//! OffsetForLeaderEpoch (23): where a leader epoch ends, to find out whether a log was cut
//! (KIP-320, KIP-101).
//!
//! Version 0 is KIP-101's; 1 tells which epoch it is that ends there (KIP-279); 2 checks the asker's own epoch; 3 is
//! the first for consumers, with the asking replica in the request.

use crate::{Message, Str};

/// Asks the leader of some partitions where epochs end.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 23, versions = 0..=4, flexible = 4.., response = OffsetForLeaderEpochResponse)]
pub struct OffsetForLeaderEpochRequest {
    /// The asking replica, -1 for a consumer; -2 may see beyond the high watermark, for debugging.
    #[field(versions = 3.., ignorable, default = -2)]
    pub replica_id: i32,
    /// The partitions asked about, by topic.
    pub topics: Vec<OffsetForLeaderTopic>,
}

/// Partitions of one topic.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=4, flexible = 4..)]
pub struct OffsetForLeaderTopic {
    /// The topic's name.
    pub topic: Str,
    /// The partitions and what is asked of each.
    pub partitions: Vec<OffsetForLeaderPartition>,
}

/// One partition and the epoch asked about.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=4, flexible = 4..)]
pub struct OffsetForLeaderPartition {
    /// The partition's number.
    pub partition: i32,
    /// The leader epoch that the sender knows, -1 if none. The broker answers FENCED_LEADER_EPOCH
    /// if its own is higher, UNKNOWN_LEADER_EPOCH if it is lower.
    #[field(versions = 2.., ignorable, default = -1)]
    pub current_leader_epoch: i32,
    /// The epoch whose end is wanted.
    pub leader_epoch: i32,
}

/// Where the epochs end.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 23, versions = 0..=4, flexible = 4..)]
pub struct OffsetForLeaderEpochResponse {
    /// For how many milliseconds a quota makes the client wait; 0 for none.
    #[field(versions = 2.., ignorable)]
    pub throttle_time_ms: i32,
    /// The answers, by topic.
    pub topics: Vec<OffsetForLeaderTopicResult>,
}

/// The answers for one topic.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=4, flexible = 4..)]
pub struct OffsetForLeaderTopicResult {
    /// The topic's name.
    pub topic: Str,
    /// The answers, by partition.
    pub partitions: Vec<EpochEndOffset>,
}

/// Where an epoch ends in one partition.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=4, flexible = 4..)]
pub struct EpochEndOffset {
    /// Why there is no answer, 0 if there is.
    pub error_code: i16,
    /// The partition's number.
    pub partition: i32,
    /// The largest epoch not above the one asked for that the leader has records of; -1 if it has
    /// none.
    #[field(versions = 1.., ignorable, default = -1)]
    pub leader_epoch: i32,
    /// The offset after the last record of that epoch, -1 if there is none.
    #[field(default = -1)]
    pub end_offset: i64,
}
