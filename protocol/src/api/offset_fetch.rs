//! OffsetFetch (9): how far a group has read.
//!
//! Version 0 looks into ZooKeeper, and 1 into the group's log; 2 can ask for all topics and has an error for the
//! whole answer; 5 adds the leader epoch (KIP-320); 7 can wait for open transactions (KIP-447); from 8 on one request
//! asks for many groups (KIP-709), and the fields of the single group are gone; 9 names the member of a KIP-848
//! group; 10 names topics by id.

use crate::{Message, Str, Uuid};

/// Asks for the committed offsets of groups.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 9, versions = 0..=10, flexible = 6.., response = OffsetFetchResponse)]
pub struct OffsetFetchRequest {
    /// The one group, before version 8.
    #[field(versions = ..=7)]
    pub group_id: Str,
    /// The topics asked about, before version 8; `None` means all that the group has offsets for.
    #[field(versions = ..=7, nullable = 2..=7)]
    pub topics: Option<Vec<OffsetFetchRequestTopic>>,
    /// The groups, from version 8 on.
    #[field(versions = 8..)]
    pub groups: Vec<OffsetFetchRequestGroup>,
    /// Whether to answer UNSTABLE_OFFSET_COMMIT for partitions that an open transaction is about to
    /// commit.
    #[field(versions = 7..)]
    pub require_stable: bool,
}

/// Partitions of one topic asked about, before version 8.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=7, flexible = 6..)]
pub struct OffsetFetchRequestTopic {
    /// The topic's name.
    pub name: Str,
    /// The numbers of the partitions.
    pub partition_indexes: Vec<i32>,
}

/// One group asked about.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 8..=10, flexible = 6..)]
pub struct OffsetFetchRequestGroup {
    /// The group.
    pub group_id: Str,
    /// The member of a KIP-848 group that asks, `None` for anybody else.
    #[field(versions = 9.., nullable = 9.., ignorable, default = null)]
    pub member_id: Option<Str>,
    /// That member's epoch, -1 for anybody else.
    #[field(versions = 9.., ignorable, default = -1)]
    pub member_epoch: i32,
    /// The topics asked about; `None` means all that the group has offsets for.
    pub topics: Option<Vec<OffsetFetchRequestTopics>>,
}

/// Partitions of one topic asked about, from version 8 on.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 8..=10, flexible = 6..)]
pub struct OffsetFetchRequestTopics {
    /// The topic's name.
    #[field(versions = ..=9, ignorable)]
    pub name: Str,
    /// The topic's id.
    #[field(versions = 10.., ignorable)]
    pub topic_id: Uuid,
    /// The numbers of the partitions.
    pub partition_indexes: Vec<i32>,
}

/// Committed offsets: of one group in the message itself before version 8, of a list of groups
/// after.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 9, versions = 0..=10, flexible = 6..)]
pub struct OffsetFetchResponse {
    /// For how many milliseconds a quota makes the client wait; 0 for none.
    #[field(versions = 3.., ignorable)]
    pub throttle_time_ms: i32,
    /// The offsets by topic, before version 8.
    #[field(versions = ..=7)]
    pub topics: Vec<OffsetFetchResponseTopic>,
    /// Why there are no offsets, before version 8; 0 if there are.
    #[field(versions = 2..=7, ignorable)]
    pub error_code: i16,
    /// The answers for each group, from version 8 on.
    #[field(versions = 8..)]
    pub groups: Vec<OffsetFetchResponseGroup>,
}

/// The offsets for one topic, before version 8.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=7, flexible = 6..)]
pub struct OffsetFetchResponseTopic {
    /// The topic's name.
    pub name: Str,
    /// The offsets, by partition.
    pub partitions: Vec<OffsetFetchResponsePartition>,
}

/// The offset for one partition, before version 8.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=7, flexible = 6..)]
pub struct OffsetFetchResponsePartition {
    /// The partition's number.
    pub partition_index: i32,
    /// The committed offset, -1 if the group has committed none.
    pub committed_offset: i64,
    /// The leader epoch committed with it, -1 if unknown.
    #[field(versions = 5.., ignorable, default = -1)]
    pub committed_leader_epoch: i32,
    /// What the committer put beside the offset.
    pub metadata: Option<Str>,
    /// Why there is no offset, 0 if there is one or none was committed.
    pub error_code: i16,
}

/// The answer for one group.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 8..=10, flexible = 6..)]
pub struct OffsetFetchResponseGroup {
    /// The group.
    pub group_id: Str,
    /// The offsets, by topic.
    pub topics: Vec<OffsetFetchResponseTopics>,
    /// Why there are no offsets of this group, 0 if there are.
    pub error_code: i16,
}

/// The offsets for one topic, from version 8 on.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 8..=10, flexible = 6..)]
pub struct OffsetFetchResponseTopics {
    /// The topic's name.
    #[field(versions = ..=9, ignorable)]
    pub name: Str,
    /// The topic's id.
    #[field(versions = 10.., ignorable)]
    pub topic_id: Uuid,
    /// The offsets, by partition.
    pub partitions: Vec<OffsetFetchResponsePartitions>,
}

/// The offset for one partition, from version 8 on.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 8..=10, flexible = 6..)]
pub struct OffsetFetchResponsePartitions {
    /// The partition's number.
    pub partition_index: i32,
    /// The committed offset, -1 if the group has committed none.
    pub committed_offset: i64,
    /// The leader epoch committed with it, -1 if unknown.
    #[field(ignorable, default = -1)]
    pub committed_leader_epoch: i32,
    /// What the committer put beside the offset.
    pub metadata: Option<Str>,
    /// Why there is no offset, 0 if there is one or none was committed.
    pub error_code: i16,
}
