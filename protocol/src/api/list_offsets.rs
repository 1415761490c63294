//! ListOffsets (2): the offset of a point in time, or of an end of the log.
//!
//! Version 0 gives offsets at the starts of the log's segments, as many as were asked for, and 1 a single offset with
//! its timestamp (KIP-79); 2 can stop at the last stable offset; 4 works with leader epochs (KIP-320); 7 finds the
//! largest timestamp (KIP-734); 8, 9, 11 know tiered storage (KIP-405, KIP-1005, KIP-1023); 10 may
//! wait for it (KIP-1075).

use crate::{Message, Str};

/// Asks the leader of some partitions which offset belongs to a timestamp.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 2, versions = 0..=11, flexible = 6.., response = ListOffsetsResponse)]
pub struct ListOffsetsRequest {
    /// The asking replica, -1 for a consumer. Set it: the default, 0, is the number of a broker.
    pub replica_id: i32,
    /// 0 takes the high watermark for the log's end, 1 the last stable offset.
    #[field(versions = 2..)]
    pub isolation_level: i8,
    /// The partitions asked about, by topic.
    pub topics: Vec<ListOffsetsTopic>,
    /// For how many milliseconds the broker may look into remote storage.
    #[field(versions = 10.., ignorable)]
    pub timeout_ms: i32,
}

/// Partitions of one topic.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=11, flexible = 6..)]
pub struct ListOffsetsTopic {
    /// The topic's name.
    pub name: Str,
    /// The partitions and what is asked of each.
    pub partitions: Vec<ListOffsetsPartition>,
}

/// One partition and the point in time asked about.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=11, flexible = 6..)]
pub struct ListOffsetsPartition {
    /// The partition's number.
    pub partition_index: i32,
    /// The leader epoch that the sender knows, -1 if none. The broker refuses one that differs from
    /// its own.
    #[field(versions = 4.., ignorable, default = -1)]
    pub current_leader_epoch: i32,
    /// Milliseconds since 1970: the first record at or after them is meant. Negative numbers are
    /// points of the log: -1 its end, -2 its start, -3 the record with the largest timestamp (7),
    /// -4 the start of what is on the broker's own disk (8), -5 the end of what is in remote
    /// storage (9), -6 the first offset that is not there yet (11).
    pub timestamp: i64,
    /// How many offsets to give at most, in version 0.
    #[field(versions = 0, default = 1)]
    pub max_num_offsets: i32,
}

/// The offsets found.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 2, versions = 0..=11, flexible = 6..)]
pub struct ListOffsetsResponse {
    /// For how many milliseconds a quota makes the client wait; 0 for none.
    #[field(versions = 2.., ignorable)]
    pub throttle_time_ms: i32,
    /// The answers, by topic.
    pub topics: Vec<ListOffsetsTopicResponse>,
}

/// The answers for one topic.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=11, flexible = 6..)]
pub struct ListOffsetsTopicResponse {
    /// The topic's name.
    pub name: Str,
    /// The answers, by partition.
    pub partitions: Vec<ListOffsetsPartitionResponse>,
}

/// The offset found in one partition.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=11, flexible = 6..)]
pub struct ListOffsetsPartitionResponse {
    /// The partition's number.
    pub partition_index: i32,
    /// Why there is no answer, 0 if there is.
    pub error_code: i16,
    /// The starts of the segments that were last changed at or before the timestamp, and the log's end if that is among
    /// them, latest first; in version 0.
    #[field(versions = 0)]
    pub old_style_offsets: Vec<i64>,
    /// The timestamp of the record found; -1 for an end of the log, or if no record is that late.
    #[field(versions = 1.., default = -1)]
    pub timestamp: i64,
    /// The offset found, -1 if no record is that late.
    #[field(versions = 1.., default = -1)]
    pub offset: i64,
    /// The leader epoch of the record found, -1 if unknown.
    #[field(versions = 4.., default = -1)]
    pub leader_epoch: i32,
}
