//! DeleteShareGroupState (86): a group coordinator has the share coordinator forget what a share group has read.
//!
//! When the group is deleted, or its offsets of a topic are.
//!
//! Version 0 came with KIP-932; in Kafka 3.9 and 4.0 it was unstable, with the same layout.

use crate::{Message, Str, Uuid};

/// Deletes state.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 86, versions = 0..=0, flexible = 0.., response = DeleteShareGroupStateResponse)]
pub struct DeleteShareGroupStateRequest {
    /// The group.
    pub group_id: Str,
    /// The partitions, by topic.
    pub topics: Vec<DeleteStateData>,
}

/// Partitions of one topic.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=0, flexible = 0..)]
pub struct DeleteStateData {
    /// The topic's id.
    pub topic_id: Uuid,
    /// The partitions.
    pub partitions: Vec<PartitionData>,
}

/// A partition whose state is to be deleted.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=0, flexible = 0..)]
pub struct PartitionData {
    /// The partition's number.
    pub partition: i32,
}

/// The outcome.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 86, versions = 0..=0, flexible = 0..)]
pub struct DeleteShareGroupStateResponse {
    /// The outcomes by topic.
    pub results: Vec<DeleteStateResult>,
}

/// Outcomes for one topic.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=0, flexible = 0..)]
pub struct DeleteStateResult {
    /// The topic's id.
    pub topic_id: Uuid,
    /// The outcomes, by partition.
    pub partitions: Vec<PartitionResult>,
}

/// The outcome for one partition.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=0, flexible = 0..)]
pub struct PartitionResult {
    /// The partition's number.
    pub partition: i32,
    /// What went wrong, 0 for nothing, also if there was no state: UNKNOWN_TOPIC_OR_PARTITION, GROUP_ID_NOT_FOUND,
    /// FENCED_STATE_EPOCH, INVALID_REQUEST; NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE and
    /// COORDINATOR_LOAD_IN_PROGRESS are worth another try.
    pub error_code: i16,
    /// The reason in words, `None` without an error.
    #[field(default = null)]
    pub error_message: Option<Str>,
}
