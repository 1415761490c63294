//! ReadShareGroupState (84): a partition's leader asks the share coordinator what a share group has read of it.
//!
//! The leader does so once, when the group reads from it for the first time. The request tells the coordinator who
//! leads, so that what an earlier leader would still write is fenced.
//!
//! Version 0 came with KIP-932; in Kafka 3.9 and 4.0 it was unstable, with the same layout.

use crate::{Message, Str, Uuid};

/// Asks for state.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 84, versions = 0..=0, flexible = 0.., response = ReadShareGroupStateResponse)]
pub struct ReadShareGroupStateRequest {
    /// The group.
    pub group_id: Str,
    /// The partitions, by topic.
    pub topics: Vec<ReadStateData>,
}

/// Partitions of one topic.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=0, flexible = 0..)]
pub struct ReadStateData {
    /// The topic's id.
    pub topic_id: Uuid,
    /// The partitions.
    pub partitions: Vec<PartitionData>,
}

/// A partition whose state is asked for.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=0, flexible = 0..)]
pub struct PartitionData {
    /// The partition's number.
    pub partition: i32,
    /// The epoch of the leader that asks.
    pub leader_epoch: i32,
}

/// The state of each partition.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 84, versions = 0..=0, flexible = 0..)]
pub struct ReadShareGroupStateResponse {
    /// The states by topic.
    pub results: Vec<ReadStateResult>,
}

/// States for one topic.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=0, flexible = 0..)]
pub struct ReadStateResult {
    /// The topic's id.
    pub topic_id: Uuid,
    /// The states, by partition.
    pub partitions: Vec<PartitionResult>,
}

/// The state of one partition.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=0, flexible = 0..)]
pub struct PartitionResult {
    /// The partition's number.
    pub partition: i32,
    /// Why there is no state, 0 if there is: FENCED_LEADER_EPOCH, UNKNOWN_TOPIC_OR_PARTITION, GROUP_ID_NOT_FOUND,
    /// INVALID_REQUEST, also for a partition whose state was never initialized; NOT_COORDINATOR,
    /// COORDINATOR_NOT_AVAILABLE and COORDINATOR_LOAD_IN_PROGRESS are worth another try.
    pub error_code: i16,
    /// The reason in words, `None` without an error.
    #[field(default = null)]
    pub error_message: Option<Str>,
    /// The epoch of the state, to write it with; see
    /// [`initialize_share_group_state`](super::initialize_share_group_state).
    pub state_epoch: i32,
    /// All records before this offset are done with; -1 if the group has not begun.
    pub start_offset: i64,
    /// What became of records from that offset on; those that are not in a batch were never acquired.
    pub state_batches: Vec<StateBatch>,
}

/// The state of a range of records.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=0, flexible = 0..)]
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
