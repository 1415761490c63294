//! WriteShareGroupState (85): a partition's leader has the share coordinator keep what a share group has read of it.
//!
//! Only what changed is sent. Until it is kept, no member's acknowledgement is confirmed.
//!
//! Version 0 came with KIP-932; in Kafka 3.9 and 4.0 it was unstable, with the same layout. 1 counts the records that
//! are done with, from which a group's lag is computed (KIP-1226).

use crate::{Message, Str, Uuid};

/// Changes state.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 85, versions = 0..=1, flexible = 0.., response = WriteShareGroupStateResponse)]
pub struct WriteShareGroupStateRequest {
    /// The group.
    pub group_id: Str,
    /// The changes, by topic.
    pub topics: Vec<WriteStateData>,
}

/// Changes for one topic.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=1, flexible = 0..)]
pub struct WriteStateData {
    /// The topic's id.
    pub topic_id: Uuid,
    /// The changes, by partition.
    pub partitions: Vec<PartitionData>,
}

/// What has changed in one partition.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=1, flexible = 0..)]
pub struct PartitionData {
    /// The partition's number.
    pub partition: i32,
    /// The epoch of the state, as it was read.
    pub state_epoch: i32,
    /// The epoch of the leader that writes.
    pub leader_epoch: i32,
    /// All records before this offset are done with; -1 if unchanged.
    pub start_offset: i64,
    /// How many records from that offset on are done with; -1 if the leader does not say.
    #[field(versions = 1.., ignorable, default = -1)]
    pub delivery_complete_count: i32,
    /// What became of records.
    pub state_batches: Vec<StateBatch>,
}

/// The state of a range of records.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=1, flexible = 0..)]
pub struct StateBatch {
    /// The first record's offset.
    pub first_offset: i64,
    /// The last record's offset.
    pub last_offset: i64,
    /// 0 available, 2 acknowledged, 4 archived: given up. That a record is being worked on (1) is not kept.
    pub delivery_state: i8,
    /// How many times the records were acquired.
    pub delivery_count: i16,
}

/// The outcome.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 85, versions = 0..=1, flexible = 0..)]
pub struct WriteShareGroupStateResponse {
    /// The outcomes by topic.
    pub results: Vec<WriteStateResult>,
}

/// Outcomes for one topic.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=1, flexible = 0..)]
pub struct WriteStateResult {
    /// The topic's id.
    pub topic_id: Uuid,
    /// The outcomes, by partition.
    pub partitions: Vec<PartitionResult>,
}

/// The outcome for one partition.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=1, flexible = 0..)]
pub struct PartitionResult {
    /// The partition's number.
    pub partition: i32,
    /// What went wrong, 0 for nothing: FENCED_LEADER_EPOCH, FENCED_STATE_EPOCH, UNKNOWN_TOPIC_OR_PARTITION,
    /// GROUP_ID_NOT_FOUND, INVALID_REQUEST, also for a partition whose state was never initialized; NOT_COORDINATOR,
    /// COORDINATOR_NOT_AVAILABLE and COORDINATOR_LOAD_IN_PROGRESS are worth another try.
    pub error_code: i16,
    /// The reason in words, `None` without an error.
    #[field(default = null)]
    pub error_message: Option<Str>,
}
