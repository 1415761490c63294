//! AlterShareGroupOffsets (91): sets where a share group without members reads on (KIP-932), sent by tools to the
//! group's coordinator.

use crate::{Message, Str, Uuid};

/// Sets where a share group reads on.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 91, versions = 0, flexible = 0.., response = AlterShareGroupOffsetsResponse)]
pub struct AlterShareGroupOffsetsRequest {
    /// The group, which must have no members.
    pub group_id: Str,
    /// The new offsets, by topic.
    pub topics: Vec<AlterShareGroupOffsetsRequestTopic>,
}

/// The new offsets of one topic.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0, flexible = 0..)]
pub struct AlterShareGroupOffsetsRequestTopic {
    /// The topic's name.
    pub topic_name: Str,
    /// The new offsets, by partition.
    pub partitions: Vec<AlterShareGroupOffsetsRequestPartition>,
}

/// The new offset of one partition.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0, flexible = 0..)]
pub struct AlterShareGroupOffsetsRequestPartition {
    /// The partition's number.
    pub partition_index: i32,
    /// The first offset that the group shall read. What it knew about later records is forgotten.
    pub start_offset: i64,
}

/// Whether the offsets are set.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 91, versions = 0, flexible = 0..)]
pub struct AlterShareGroupOffsetsResponse {
    /// For how many milliseconds a quota makes the client wait; 0 for none.
    pub throttle_time_ms: i32,
    /// Why nothing was set, 0 if the partitions have the outcome. NON_EMPTY_GROUP while the group has members.
    pub error_code: i16,
    /// The reason in words, `None` if there is no error.
    #[field(default = null)]
    pub error_message: Option<Str>,
    /// The outcomes, by topic.
    pub responses: Vec<AlterShareGroupOffsetsResponseTopic>,
}

/// The outcomes for one topic.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0, flexible = 0..)]
pub struct AlterShareGroupOffsetsResponseTopic {
    /// The topic's name.
    pub topic_name: Str,
    /// The topic's id, zero if the broker does not know the topic.
    pub topic_id: Uuid,
    /// The outcomes, by partition.
    pub partitions: Vec<AlterShareGroupOffsetsResponsePartition>,
}

/// The outcome for one partition.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0, flexible = 0..)]
pub struct AlterShareGroupOffsetsResponsePartition {
    /// The partition's number.
    pub partition_index: i32,
    /// Why the offset was not set, 0 if it was.
    pub error_code: i16,
    /// The reason in words, `None` if there is no error.
    #[field(default = null)]
    pub error_message: Option<Str>,
}
