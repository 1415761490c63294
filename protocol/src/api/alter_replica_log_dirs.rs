//! AlterReplicaLogDirs (34): moves replicas between the log directories of one broker (KIP-113).
//!
//! Sent to the broker that has the replicas, by whoever may alter the cluster. The answer comes when the moves have
//! begun; the broker copies each log aside, and swaps the copy in when it has caught up. DescribeLogDirs (35) shows
//! how far it is. A partition that the broker does not have yet is answered with REPLICA_NOT_AVAILABLE, and still
//! remembered: when it comes, it is put there.
//!
//! From version 1 on the broker answers before it throttles (KIP-219); 2 is the first in the flexible encoding
//! (KIP-482). Kafka 4.0 dropped version 0 (KIP-896).

use crate::{Message, Str};

/// Moves replicas of the receiving broker.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 34, versions = 0..=2, flexible = 2.., response = AlterReplicaLogDirsResponse)]
pub struct AlterReplicaLogDirsRequest {
    /// The directories, each with what shall be in it.
    pub dirs: Vec<AlterReplicaLogDir>,
}

/// A directory and what shall be in it.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=2, flexible = 2..)]
pub struct AlterReplicaLogDir {
    /// The absolute path, one of the broker's `log.dirs`.
    pub path: Str,
    /// The partitions, by topic.
    pub topics: Vec<AlterReplicaLogDirTopic>,
}

/// Partitions of one topic.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=2, flexible = 2..)]
pub struct AlterReplicaLogDirTopic {
    /// The topic's name.
    pub name: Str,
    /// The numbers of the partitions.
    pub partitions: Vec<i32>,
}

/// Which moves have begun.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 34, versions = 0..=2, flexible = 2..)]
pub struct AlterReplicaLogDirsResponse {
    /// For how many milliseconds a quota makes the client wait; 0 for none.
    pub throttle_time_ms: i32,
    /// The outcomes, by topic.
    pub results: Vec<AlterReplicaLogDirTopicResult>,
}

/// The outcomes for one topic.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=2, flexible = 2..)]
pub struct AlterReplicaLogDirTopicResult {
    /// The topic's name.
    pub topic_name: Str,
    /// The outcomes, by partition.
    pub partitions: Vec<AlterReplicaLogDirPartitionResult>,
}

/// The outcome for one partition.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=2, flexible = 2..)]
pub struct AlterReplicaLogDirPartitionResult {
    /// The partition's number.
    pub partition_index: i32,
    /// Why the replica does not move, 0 if it does or is there already. LOG_DIR_NOT_FOUND: the broker has no such
    /// directory. KAFKA_STORAGE_ERROR: it, or another, is offline. REPLICA_NOT_AVAILABLE: the replica is not here
    /// yet. INVALID_TOPIC_EXCEPTION: the topic's name is too long for the copy's. CLUSTER_AUTHORIZATION_FAILED is
    /// said for every partition.
    pub error_code: i16,
}
