//! DescribeLogDirs (35): how much of which partitions is in a broker's log directories (KIP-113).
//!
//! Sent to the broker itself, by whoever may describe the cluster. While a replica moves from one directory to
//! another (AlterReplicaLogDirs, 34), its partition is in both.
//!
//! From version 1 on the broker answers before it throttles (KIP-219); 2 is the first in the flexible encoding
//! (KIP-482); 3 adds an error for the whole answer (KIP-784), where one who may not ask had an empty one before; 4
//! tells the size of the volumes (KIP-827); 5 which directories take no more partitions (KIP-1066). Kafka 4.0 dropped
//! version 0 (KIP-896).

use crate::{Message, Str};

/// Asks what is in the receiving broker's log directories.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 35, versions = 0..=5, flexible = 2.., response = DescribeLogDirsResponse)]
pub struct DescribeLogDirsRequest {
    /// The partitions to tell of, by topic; `None` for all that the broker has. With none in the list the directories
    /// are told nevertheless, with nothing in them.
    pub topics: Option<Vec<DescribableLogDirTopic>>,
}

/// Partitions of one topic.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=5, flexible = 2..)]
pub struct DescribableLogDirTopic {
    /// The topic's name.
    pub topic: Str,
    /// The numbers of the partitions. What the broker does not have is left out of the answer.
    pub partitions: Vec<i32>,
}

/// The directories.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 35, versions = 0..=5, flexible = 2..)]
pub struct DescribeLogDirsResponse {
    /// For how many milliseconds a quota makes the client wait; 0 for none.
    pub throttle_time_ms: i32,
    /// Why there are no directories, CLUSTER_AUTHORIZATION_FAILED for instance; 0 if there are.
    #[field(versions = 3.., ignorable)]
    pub error_code: i16,
    /// All the broker's directories, whether one of the partitions is in them or not.
    pub results: Vec<DescribeLogDirsResult>,
}

/// A directory.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=5, flexible = 2..)]
pub struct DescribeLogDirsResult {
    /// KAFKA_STORAGE_ERROR if the directory is offline, 0 if all is well.
    pub error_code: i16,
    /// Its absolute path.
    pub log_dir: Str,
    /// The partitions in it, by topic.
    pub topics: Vec<DescribeLogDirsTopic>,
    /// The bytes of the volume that the directory is on, -1 if unknown. Remote storage does not count.
    #[field(versions = 4.., ignorable, default = -1)]
    pub total_bytes: i64,
    /// The bytes that are left on the volume, -1 if unknown. Remote storage does not count.
    #[field(versions = 4.., ignorable, default = -1)]
    pub usable_bytes: i64,
    /// Whether the directory is cordoned: it keeps what it has, and no new partition is put there.
    #[field(versions = 5.., ignorable)]
    pub is_cordoned: bool,
}

/// Partitions of one topic in a directory.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=5, flexible = 2..)]
pub struct DescribeLogDirsTopic {
    /// The topic's name.
    pub name: Str,
    /// The partitions.
    pub partitions: Vec<DescribeLogDirsPartition>,
}

/// A partition in a directory.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=5, flexible = 2..)]
pub struct DescribeLogDirsPartition {
    /// The partition's number.
    pub partition_index: i32,
    /// The bytes of its segments here.
    pub partition_size: i64,
    /// By how many offsets this log is behind: the replica itself behind the partition's high watermark (at least 0),
    /// a copy behind the end of the log that it shall replace; -1 if that cannot be told.
    pub offset_lag: i64,
    /// Whether this is a copy that shall replace the replica's log in another directory.
    pub is_future_key: bool,
}
