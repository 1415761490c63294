//! OffsetDelete (47): deletes offsets that a group has committed (KIP-496).
//!
//! Sent to the group's coordinator. Offsets of topics that the group still reads cannot be deleted. The API is for
//! classic groups and those of KIP-848; share groups have one of their own (DeleteShareGroupOffsets, 92).
//!
//! There is one version, and it is not in the flexible encoding.

use crate::{Message, Str};

/// Deletes committed offsets.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 47, versions = 0..=0, response = OffsetDeleteResponse)]
pub struct OffsetDeleteRequest {
    /// The group.
    pub group_id: Str,
    /// The partitions, by topic.
    pub topics: Vec<OffsetDeleteRequestTopic>,
}

/// Partitions of one topic.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=0)]
pub struct OffsetDeleteRequestTopic {
    /// The topic's name.
    pub name: Str,
    /// The partitions.
    pub partitions: Vec<OffsetDeleteRequestPartition>,
}

/// A partition.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=0)]
pub struct OffsetDeleteRequestPartition {
    /// The partition's number.
    pub partition_index: i32,
}

/// Which offsets are gone.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 47, versions = 0..=0)]
pub struct OffsetDeleteResponse {
    /// Why nothing was deleted, 0 if there are outcomes. GROUP_ID_NOT_FOUND, INVALID_GROUP_ID,
    /// GROUP_AUTHORIZATION_FAILED. NON_EMPTY_GROUP: the members are no consumers, so nobody knows what they read.
    /// NOT_COORDINATOR and COORDINATOR_NOT_AVAILABLE: find the coordinator anew. COORDINATOR_LOAD_IN_PROGRESS: try
    /// again.
    pub error_code: i16,
    /// For how many milliseconds a quota makes the client wait; 0 for none.
    #[field(ignorable)]
    pub throttle_time_ms: i32,
    /// The outcomes, by topic; empty after an error.
    pub topics: Vec<OffsetDeleteResponseTopic>,
}

/// The outcomes for one topic.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=0)]
pub struct OffsetDeleteResponseTopic {
    /// The topic's name.
    pub name: Str,
    /// The outcomes, by partition.
    pub partitions: Vec<OffsetDeleteResponsePartition>,
}

/// The outcome for one partition.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=0)]
pub struct OffsetDeleteResponsePartition {
    /// The partition's number.
    pub partition_index: i32,
    /// Why the offset is still there, 0 if there is none any more. GROUP_SUBSCRIBED_TO_TOPIC: the group reads the
    /// topic. UNKNOWN_TOPIC_OR_PARTITION, TOPIC_AUTHORIZATION_FAILED.
    pub error_code: i16,
}
