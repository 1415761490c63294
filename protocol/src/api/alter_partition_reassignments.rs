//! AlterPartitionReassignments (45): moves partitions to other brokers, or calls such a move off (KIP-455).
//!
//! Sent to any broker, which forwards it to the controller, or to a controller itself (KIP-919), by whoever may alter
//! the cluster. The answer comes when the moves have begun; ListPartitionReassignments (46) shows those that go on. A
//! new move for a partition that moves already takes the place of the old one.
//!
//! Version 1 can forbid that the number of replicas changes (KIP-860).

use crate::{Message, Str};

/// Begins moves and calls moves off.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 45, versions = 0..=1, flexible = 0.., response = AlterPartitionReassignmentsResponse)]
pub struct AlterPartitionReassignmentsRequest {
    /// For how many milliseconds the controller may take.
    #[field(default = 60000)]
    pub timeout_ms: i32,
    /// Whether a partition may have more or fewer replicas after its move than before; else such a move is
    /// INVALID_REPLICATION_FACTOR. Version 0 always allows it.
    #[field(versions = 1.., default = true)]
    pub allow_replication_factor_change: bool,
    /// The partitions, by topic.
    pub topics: Vec<ReassignableTopic>,
}

/// Partitions of one topic.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=1, flexible = 0..)]
pub struct ReassignableTopic {
    /// The topic's name.
    pub name: Str,
    /// The partitions.
    pub partitions: Vec<ReassignablePartition>,
}

/// Where a partition shall go.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=1, flexible = 0..)]
pub struct ReassignablePartition {
    /// The partition's number.
    pub partition_index: i32,
    /// The brokers that shall hold it, the preferred leader first; `None` to call off the move that goes on.
    #[field(default = null)]
    pub replicas: Option<Vec<i32>>,
}

/// Which moves have begun or are called off.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 45, versions = 0..=1, flexible = 0..)]
pub struct AlterPartitionReassignmentsResponse {
    /// For how many milliseconds a quota makes the client wait; 0 for none.
    pub throttle_time_ms: i32,
    /// Whether the number of replicas was allowed to change.
    #[field(versions = 1.., ignorable, default = true)]
    pub allow_replication_factor_change: bool,
    /// Why nothing was done, 0 if there are outcomes. CLUSTER_AUTHORIZATION_FAILED; NOT_CONTROLLER and
    /// REQUEST_TIMED_OUT: try again.
    pub error_code: i16,
    /// The reason in words, `None` if there was no error.
    pub error_message: Option<Str>,
    /// The outcomes, by topic.
    pub responses: Vec<ReassignableTopicResponse>,
}

/// The outcomes for one topic.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=1, flexible = 0..)]
pub struct ReassignableTopicResponse {
    /// The topic's name.
    pub name: Str,
    /// The outcomes, by partition.
    pub partitions: Vec<ReassignablePartitionResponse>,
}

/// The outcome for one partition.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=1, flexible = 0..)]
pub struct ReassignablePartitionResponse {
    /// The partition's number.
    pub partition_index: i32,
    /// Why nothing has changed, 0 if it has. NO_REASSIGNMENT_IN_PROGRESS: there is no move to call off.
    /// INVALID_REPLICA_ASSIGNMENT: the list is empty, names a broker twice, or one that is not registered; or to call
    /// the move off, a replica out of sync would have to lead, and the topic does not allow that.
    /// INVALID_REPLICATION_FACTOR, UNKNOWN_TOPIC_OR_PARTITION.
    pub error_code: i16,
    /// The reason in words, `None` if there was no error.
    pub error_message: Option<Str>,
}
