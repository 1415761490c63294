//! TxnOffsetCommit (28): commits offsets of a group as a part of a transaction.
//!
//! Sent by a transactional producer to the group's coordinator (KIP-98), which keeps the offsets aside until the
//! transaction ends. Before the first of them, up to version 4, the producer tells the transaction coordinator with
//! [`add_offsets_to_txn`](super::add_offsets_to_txn).
//!
//! From version 1 on the broker answers before it throttles (KIP-219); 2 adds the leader epoch (KIP-320); 3 names the
//! member, so that one that has been replaced is refused (KIP-447), and is the first in the flexible encoding
//! (KIP-482); 4 may answer TRANSACTION_ABORTABLE (KIP-890); 5 and later mean transactions of version 2, in which the
//! group coordinator adds its partition to the transaction by itself (KIP-890, part 2), so that a producer may send
//! them only where the cluster's finalized feature `transaction.version` is 2 or more; 6 names topics by id and is
//! precise about members of KIP-848 groups (KIP-1319).

use crate::{Message, Str, Uuid};

/// Commits offsets for a group when a transaction commits.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 28, versions = 0..=6, flexible = 3.., response = TxnOffsetCommitResponse)]
pub struct TxnOffsetCommitRequest {
    /// The producer's transactional id.
    pub transactional_id: Str,
    /// The group.
    pub group_id: Str,
    /// The producer id that belongs to the transactional id.
    pub producer_id: i64,
    /// The producer's epoch.
    pub producer_epoch: i16,
    /// The generation (classic groups) or member epoch (KIP-848) of the member that has read the records; -1 for a
    /// commit from outside the group. Before version 3 only -1 can be said, and the member is not checked.
    #[field(versions = 3.., default = -1)]
    pub generation_id_or_member_epoch: i32,
    /// The member's id, empty for a commit from outside the group.
    #[field(versions = 3..)]
    pub member_id: Str,
    /// The name of a static member, `None` for a dynamic one.
    #[field(versions = 3.., nullable = 3.., default = null)]
    pub group_instance_id: Option<Str>,
    /// The offsets, by topic.
    pub topics: Vec<TxnOffsetCommitRequestTopic>,
}

/// The offsets for one topic.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=6, flexible = 3..)]
pub struct TxnOffsetCommitRequestTopic {
    /// The topic's name.
    #[field(versions = ..=5, ignorable)]
    pub name: Str,
    /// The topic's id.
    #[field(versions = 6.., ignorable)]
    pub topic_id: Uuid,
    /// The offsets, by partition.
    pub partitions: Vec<TxnOffsetCommitRequestPartition>,
}

/// The offset for one partition.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=6, flexible = 3..)]
pub struct TxnOffsetCommitRequestPartition {
    /// The partition's number.
    pub partition_index: i32,
    /// The offset of the next record to read: one past the last that was dealt with.
    pub committed_offset: i64,
    /// The leader epoch of the last record that was dealt with, -1 if unknown.
    #[field(versions = 2.., ignorable, default = -1)]
    pub committed_leader_epoch: i32,
    /// Whatever the committer wants to find beside the offset.
    pub committed_metadata: Option<Str>,
}

/// Whether the offsets will be stored.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 28, versions = 0..=6, flexible = 3..)]
pub struct TxnOffsetCommitResponse {
    /// For how many milliseconds a quota makes the client wait; 0 for none.
    pub throttle_time_ms: i32,
    /// The outcomes, by topic. What is wrong with the whole request is said for every partition.
    pub topics: Vec<TxnOffsetCommitResponseTopic>,
}

/// The outcomes for one topic.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=6, flexible = 3..)]
pub struct TxnOffsetCommitResponseTopic {
    /// The topic's name.
    #[field(versions = ..=5, ignorable)]
    pub name: Str,
    /// The topic's id.
    #[field(versions = 6.., ignorable)]
    pub topic_id: Uuid,
    /// The outcomes, by partition.
    pub partitions: Vec<TxnOffsetCommitResponsePartition>,
}

/// The outcome for one partition.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=6, flexible = 3..)]
pub struct TxnOffsetCommitResponsePartition {
    /// The partition's number.
    pub partition_index: i32,
    /// Why the offset is not part of the transaction, 0 if it is. NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE and
    /// REQUEST_TIMED_OUT: find the coordinator anew; before version 2 COORDINATOR_NOT_AVAILABLE also stands for
    /// COORDINATOR_LOAD_IN_PROGRESS, which old clients did not survive. UNKNOWN_TOPIC_OR_PARTITION, from version 6 on
    /// UNKNOWN_TOPIC_ID: try again with newer metadata. ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID and FENCED_INSTANCE_ID,
    /// from version 3 on, and STALE_MEMBER_EPOCH and GROUP_ID_NOT_FOUND, from 6 on: the member is no longer what the
    /// request says, so abort. TRANSACTION_ABORTABLE, from version 4 on: abort, and the producer may go on.
    /// INVALID_PRODUCER_EPOCH, INVALID_PRODUCER_ID_MAPPING and INVALID_TXN_STATE: the producer is not, or no longer,
    /// who the transaction belongs to.
    pub error_code: i16,
}
