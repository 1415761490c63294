//! DescribeShareGroupOffsets (90): where share groups read (KIP-932), from their coordinator, for tools.
//!
//! Version 1 tells how far behind they are (KIP-1226).

use crate::{Message, Str, Uuid};

/// Asks where share groups read.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 90, versions = 0..=1, flexible = 0.., response = DescribeShareGroupOffsetsResponse)]
pub struct DescribeShareGroupOffsetsRequest {
    /// The groups.
    pub groups: Vec<DescribeShareGroupOffsetsRequestGroup>,
}

/// One group asked about.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=1, flexible = 0..)]
pub struct DescribeShareGroupOffsetsRequestGroup {
    /// The group.
    pub group_id: Str,
    /// The topics asked about; `None` means all that the group reads.
    pub topics: Option<Vec<DescribeShareGroupOffsetsRequestTopic>>,
}

/// Partitions of one topic asked about.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=1, flexible = 0..)]
pub struct DescribeShareGroupOffsetsRequestTopic {
    /// The topic's name.
    pub topic_name: Str,
    /// The numbers of the partitions.
    pub partitions: Vec<i32>,
}

/// Where the groups read.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 90, versions = 0..=1, flexible = 0..)]
pub struct DescribeShareGroupOffsetsResponse {
    /// For how many milliseconds a quota makes the client wait; 0 for none.
    pub throttle_time_ms: i32,
    /// The answers, by group.
    pub groups: Vec<DescribeShareGroupOffsetsResponseGroup>,
}

/// The answer for one group.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=1, flexible = 0..)]
pub struct DescribeShareGroupOffsetsResponseGroup {
    /// The group.
    pub group_id: Str,
    /// The answers, by topic.
    pub topics: Vec<DescribeShareGroupOffsetsResponseTopic>,
    /// Why there is no answer for the group, 0 if there is.
    pub error_code: i16,
    /// The reason in words, `None` if there is no error.
    #[field(default = null)]
    pub error_message: Option<Str>,
}

/// The answers for one topic.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=1, flexible = 0..)]
pub struct DescribeShareGroupOffsetsResponseTopic {
    /// The topic's name.
    pub topic_name: Str,
    /// The topic's id.
    pub topic_id: Uuid,
    /// The answers, by partition.
    pub partitions: Vec<DescribeShareGroupOffsetsResponsePartition>,
}

/// Where a group reads one partition.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=1, flexible = 0..)]
pub struct DescribeShareGroupOffsetsResponsePartition {
    /// The partition's number.
    pub partition_index: i32,
    /// The first offset that the group has not done with: everything before it was accepted, rejected or given up. -1
    /// if the group has not begun to read the partition.
    pub start_offset: i64,
    /// The epoch of the partition's leader.
    pub leader_epoch: i32,
    /// How many records the group has yet to deal with, -1 if unknown.
    #[field(versions = 1.., ignorable, default = -1)]
    pub lag: i64,
    /// Why there is no answer for the partition, 0 if there is.
    pub error_code: i16,
    /// The reason in words, `None` if there is no error.
    #[field(default = null)]
    pub error_message: Option<Str>,
}
