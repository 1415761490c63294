//! InitializeShareGroupState (83): a group coordinator has the share coordinator begin to keep a partition's state.
//!
//! What a share group has read of a partition is kept by a share coordinator, in a log of its own. The group's
//! coordinator asks for it when a topic is subscribed to for the first time, or when an administrator resets offsets.
//!
//! Version 0 came with KIP-932; in Kafka 3.9 and 4.0 it was unstable, with the same layout.

use crate::{Message, Str, Uuid};

/// Begins to keep state.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 83, versions = 0..=0, flexible = 0.., response = InitializeShareGroupStateResponse)]
pub struct InitializeShareGroupStateRequest {
    /// The group.
    pub group_id: Str,
    /// The partitions, by topic.
    pub topics: Vec<InitializeStateData>,
}

/// Partitions of one topic.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=0, flexible = 0..)]
pub struct InitializeStateData {
    /// The topic's id.
    pub topic_id: Uuid,
    /// The partitions.
    pub partitions: Vec<PartitionData>,
}

/// A partition's first state.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=0, flexible = 0..)]
pub struct PartitionData {
    /// The partition's number.
    pub partition: i32,
    /// The epoch of this state: each initialization has a higher one, so that what belongs to an earlier one is fenced.
    pub state_epoch: i32,
    /// The offset where the group begins; -1 to leave that to the partition's leader and the group's settings.
    pub start_offset: i64,
}

/// The outcome.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 83, versions = 0..=0, flexible = 0..)]
pub struct InitializeShareGroupStateResponse {
    /// The outcomes by topic.
    pub results: Vec<InitializeStateResult>,
}

/// Outcomes for one topic.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=0, flexible = 0..)]
pub struct InitializeStateResult {
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
    /// What went wrong, 0 for nothing: FENCED_STATE_EPOCH, UNKNOWN_TOPIC_OR_PARTITION, INVALID_REQUEST;
    /// NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE and COORDINATOR_LOAD_IN_PROGRESS are worth another try.
    pub error_code: i16,
    /// The reason in words, `None` without an error.
    #[field(default = null)]
    pub error_message: Option<Str>,
}
