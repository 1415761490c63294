//! ListPartitionReassignments (46): the partitions that are moving to other brokers (KIP-455).
//!
//! Sent to any broker, which forwards it to the controller, or to a controller itself (KIP-919), by whoever may
//! describe the cluster. A move that AlterPartitionReassignments (45) has begun is over when it is no longer in this
//! list.

use crate::{Message, Str};

/// Asks which partitions are moving.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 46, versions = 0..=0, flexible = 0.., response = ListPartitionReassignmentsResponse)]
pub struct ListPartitionReassignmentsRequest {
    /// For how many milliseconds the controller may take.
    #[field(default = 60000)]
    pub timeout_ms: i32,
    /// The partitions asked about, by topic; `None` for all that move.
    #[field(default = null)]
    pub topics: Option<Vec<ListPartitionReassignmentsTopics>>,
}

/// Partitions of one topic.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=0, flexible = 0..)]
pub struct ListPartitionReassignmentsTopics {
    /// The topic's name.
    pub name: Str,
    /// The numbers of the partitions.
    pub partition_indexes: Vec<i32>,
}

/// The partitions that are moving.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 46, versions = 0..=0, flexible = 0..)]
pub struct ListPartitionReassignmentsResponse {
    /// For how many milliseconds a quota makes the client wait; 0 for none.
    pub throttle_time_ms: i32,
    /// Why there is no list, 0 if there is one. CLUSTER_AUTHORIZATION_FAILED; NOT_CONTROLLER and REQUEST_TIMED_OUT:
    /// try again.
    pub error_code: i16,
    /// The reason in words, `None` if there was no error.
    pub error_message: Option<Str>,
    /// The moves, by topic. A partition that does not move, or does not exist, is left out.
    pub topics: Vec<OngoingTopicReassignment>,
}

/// The moves of one topic.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=0, flexible = 0..)]
pub struct OngoingTopicReassignment {
    /// The topic's name.
    pub name: Str,
    /// The partitions that are moving.
    pub partitions: Vec<OngoingPartitionReassignment>,
}

/// A partition that is moving.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=0, flexible = 0..)]
pub struct OngoingPartitionReassignment {
    /// The partition's number.
    pub partition_index: i32,
    /// All brokers that hold it at the moment, those that come and those that go among them.
    pub replicas: Vec<i32>,
    /// The brokers that come: they are catching up.
    pub adding_replicas: Vec<i32>,
    /// The brokers that go, as soon as the others have caught up.
    pub removing_replicas: Vec<i32>,
}
