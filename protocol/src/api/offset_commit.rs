//! OffsetCommit (8): stores how far a group has read.
//!
//! Version 0 stores them in ZooKeeper; 1 stores them in the group's log, names the member and dates each offset; from
//! 2 to 4 the request says how long to keep them all instead (KIP-211); 6 adds the leader epoch
//! (KIP-320); 7 knows static members (KIP-345); 9 is the first that members of KIP-848 groups may
//! use; 10 names topics by id.

use crate::{Message, Str, Uuid};

/// Commits offsets for a group.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 8, versions = 0..=10, flexible = 8.., response = OffsetCommitResponse)]
pub struct OffsetCommitRequest {
    /// The group.
    pub group_id: Str,
    /// The generation (classic groups) or member epoch (KIP-848) of the member; -1 for a commit
    /// from outside the group.
    #[field(versions = 1.., ignorable, default = -1)]
    pub generation_id_or_member_epoch: i32,
    /// The member's id, empty for a commit from outside the group.
    #[field(versions = 1.., ignorable)]
    pub member_id: Str,
    /// The name of a static member, `None` for a dynamic one.
    #[field(versions = 7.., nullable = 7.., default = null)]
    pub group_instance_id: Option<Str>,
    /// For how many milliseconds to keep the offsets, -1 for as long as the broker is set up to.
    #[field(versions = 2..=4, ignorable, default = -1)]
    pub retention_time_ms: i64,
    /// The offsets, by topic.
    pub topics: Vec<OffsetCommitRequestTopic>,
}

/// The offsets for one topic.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=10, flexible = 8..)]
pub struct OffsetCommitRequestTopic {
    /// The topic's name.
    #[field(versions = ..=9, ignorable)]
    pub name: Str,
    /// The topic's id.
    #[field(versions = 10.., ignorable)]
    pub topic_id: Uuid,
    /// The offsets, by partition.
    pub partitions: Vec<OffsetCommitRequestPartition>,
}

/// The offset for one partition.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=10, flexible = 8..)]
pub struct OffsetCommitRequestPartition {
    /// The partition's number.
    pub partition_index: i32,
    /// The offset of the next record to read: one past the last that was dealt with.
    pub committed_offset: i64,
    /// The leader epoch of the last record that was dealt with, -1 if unknown.
    #[field(versions = 6.., ignorable, default = -1)]
    pub committed_leader_epoch: i32,
    /// When the offset was committed, in milliseconds since 1970, in version 1; -1 for when the broker gets it.
    #[field(versions = 1, default = -1)]
    pub commit_timestamp: i64,
    /// Whatever the committer wants to find beside the offset.
    pub committed_metadata: Option<Str>,
}

/// Whether the offsets are stored.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 8, versions = 0..=10, flexible = 8..)]
pub struct OffsetCommitResponse {
    /// For how many milliseconds a quota makes the client wait; 0 for none.
    #[field(versions = 3.., ignorable)]
    pub throttle_time_ms: i32,
    /// The outcomes, by topic.
    pub topics: Vec<OffsetCommitResponseTopic>,
}

/// The outcomes for one topic.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=10, flexible = 8..)]
pub struct OffsetCommitResponseTopic {
    /// The topic's name.
    #[field(versions = ..=9, ignorable)]
    pub name: Str,
    /// The topic's id.
    #[field(versions = 10.., ignorable)]
    pub topic_id: Uuid,
    /// The outcomes, by partition.
    pub partitions: Vec<OffsetCommitResponsePartition>,
}

/// The outcome for one partition.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=10, flexible = 8..)]
pub struct OffsetCommitResponsePartition {
    /// The partition's number.
    pub partition_index: i32,
    /// Why the offset was not stored, 0 if it was.
    pub error_code: i16,
}
