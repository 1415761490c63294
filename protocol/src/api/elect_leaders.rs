//! ElectLeaders (43): makes the controller elect leaders of partitions.
//!
//! Sent to any broker, which forwards it to the controller, or to a controller itself (KIP-919), by whoever may alter
//! the cluster.
//!
//! Version 0 only elects preferred leaders (KIP-183); 1 can elect unclean ones too, and adds an error for the whole
//! answer (KIP-460); 2 is the first in the flexible encoding (KIP-482).

use crate::{Message, Str};

/// Asks for elections.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 43, versions = 0..=2, flexible = 2.., response = ElectLeadersResponse)]
pub struct ElectLeadersRequest {
    /// 0: the preferred replica, the first in the partition's list, shall lead, if it is alive and in sync. 1: where
    /// no in-sync replica is alive, any that is alive shall lead, and what only the others had is lost.
    #[field(versions = 1..)]
    pub election_type: i8,
    /// The partitions, by topic; `None` for all that the cluster has.
    pub topic_partitions: Option<Vec<TopicPartitions>>,
    /// For how many milliseconds the controller may take.
    #[field(default = 60000)]
    pub timeout_ms: i32,
}

/// Partitions of one topic.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=2, flexible = 2..)]
pub struct TopicPartitions {
    /// The topic's name.
    pub topic: Str,
    /// The numbers of the partitions.
    pub partitions: Vec<i32>,
}

/// How the elections went.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 43, versions = 0..=2, flexible = 2..)]
pub struct ElectLeadersResponse {
    /// For how many milliseconds a quota makes the client wait; 0 for none.
    pub throttle_time_ms: i32,
    /// Why there was no election at all, 0 if there are results. CLUSTER_AUTHORIZATION_FAILED; NOT_CONTROLLER and
    /// REQUEST_TIMED_OUT: try again. Every partition that was asked for by name has the same error then, which is
    /// where version 0 has it.
    #[field(versions = 1..)]
    pub error_code: i16,
    /// The outcomes, by topic. Where all partitions were asked for, those that need no election are left out.
    pub replica_election_results: Vec<ReplicaElectionResult>,
}

/// The outcomes for one topic.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=2, flexible = 2..)]
pub struct ReplicaElectionResult {
    /// The topic's name.
    pub topic: Str,
    /// The outcomes, by partition.
    pub partition_result: Vec<PartitionResult>,
}

/// The outcome for one partition.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=2, flexible = 2..)]
pub struct PartitionResult {
    /// The partition's number.
    pub partition_id: i32,
    /// Why the leader is who it was, 0 if one was elected. ELECTION_NOT_NEEDED: the preferred replica leads already,
    /// or, for an unclean election, some replica does. PREFERRED_LEADER_NOT_AVAILABLE: the preferred replica is not
    /// alive or not in sync. ELIGIBLE_LEADERS_NOT_AVAILABLE: no replica is alive. UNKNOWN_TOPIC_OR_PARTITION.
    pub error_code: i16,
    /// The reason in words, `None` if the controller gives none.
    pub error_message: Option<Str>,
}
