//! ReadShareGroupStateSummary (87): a group coordinator asks the share coordinator how far a share group has read.
//!
//! What [`read_share_group_state`](super::read_share_group_state) tells, without the single records: enough for an
//! administrator's tool that lists a group's offsets.
//!
//! Version 0 came with KIP-932; in Kafka 3.9 and 4.0 it was unstable, and its response lacked the leader epoch. What
//! is here is the stable layout of Kafka 4.1 and later. 1 counts the records that are done with, from which a group's
//! lag is computed (KIP-1226).

use crate::{Message, Str, Uuid};

/// Asks for summaries.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 87, versions = 0..=1, flexible = 0.., response = ReadShareGroupStateSummaryResponse)]
pub struct ReadShareGroupStateSummaryRequest {
    /// The group.
    pub group_id: Str,
    /// The partitions, by topic.
    pub topics: Vec<ReadStateSummaryData>,
}

/// Partitions of one topic.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=1, flexible = 0..)]
pub struct ReadStateSummaryData {
    /// The topic's id.
    pub topic_id: Uuid,
    /// The partitions.
    pub partitions: Vec<PartitionData>,
}

/// A partition whose state is asked for.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=1, flexible = 0..)]
pub struct PartitionData {
    /// The partition's number.
    pub partition: i32,
    /// The leader's epoch; -1 if the sender does not know it. The coordinator fences nobody by it.
    pub leader_epoch: i32,
}

/// The summary of each partition.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 87, versions = 0..=1, flexible = 0..)]
pub struct ReadShareGroupStateSummaryResponse {
    /// The summaries by topic.
    pub results: Vec<ReadStateSummaryResult>,
}

/// Summaries for one topic.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=1, flexible = 0..)]
pub struct ReadStateSummaryResult {
    /// The topic's id.
    pub topic_id: Uuid,
    /// The summaries, by partition.
    pub partitions: Vec<PartitionResult>,
}

/// The summary of one partition.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=1, flexible = 0..)]
pub struct PartitionResult {
    /// The partition's number.
    pub partition: i32,
    /// Why there is no summary, 0 if there is: UNKNOWN_TOPIC_OR_PARTITION, GROUP_ID_NOT_FOUND, FENCED_LEADER_EPOCH,
    /// INVALID_REQUEST; NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE and COORDINATOR_LOAD_IN_PROGRESS are worth another
    /// try.
    pub error_code: i16,
    /// The reason in words, `None` without an error.
    #[field(default = null)]
    pub error_message: Option<Str>,
    /// The epoch of the state; see [`initialize_share_group_state`](super::initialize_share_group_state).
    pub state_epoch: i32,
    /// The epoch of the last leader that the coordinator heard of; 0 before the first.
    pub leader_epoch: i32,
    /// All records before this offset are done with; -1 if the group has not begun.
    pub start_offset: i64,
    /// How many records from that offset on are done with; -1 if unknown.
    #[field(versions = 1.., ignorable, default = -1)]
    pub delivery_complete_count: i32,
}
