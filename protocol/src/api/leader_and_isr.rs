//! LeaderAndIsr (4): the controller of a ZooKeeper cluster tells brokers which of their partitions they lead and which
//! they follow.
//!
//! Kafka 4 has dropped it: with KRaft, brokers read the metadata log. Version 1 tells a new replica from one whose log
//! has gone missing with its disk (KIP-112); 2 knows brokers by their epoch and groups partitions by topic (KIP-380);
//! 3 brings reassignments (KIP-455), 4 the flexible encoding (KIP-482), 5 topic ids and a type (KIP-516), 6 the state
//! of recovery (KIP-704), and 7 a KRaft controller that leads brokers which are not migrated yet (KIP-866).

use crate::{Message, Str, Uuid};

/// Makes the receiver lead and follow partitions.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 4, versions = 0..=7, flexible = 4.., response = LeaderAndIsrResponse)]
pub struct LeaderAndIsrRequest {
    /// The controller's id.
    pub controller_id: i32,
    /// Whether the controller is one of KRaft, during a migration (KIP-866).
    #[field(versions = 7..)]
    pub is_k_raft_controller: bool,
    /// The controller's epoch. A broker refuses one lower than it has seen.
    pub controller_epoch: i32,
    /// The epoch of the broker that is meant to receive this, -1 if the controller does not say.
    #[field(versions = 2.., ignorable, default = -1)]
    pub broker_epoch: i64,
    /// 1 if these are changes only, 2 if these are all the partitions that the receiver is to have, 0 if the
    /// controller does not say.
    #[field(versions = 5..)]
    pub r#type: i8,
    /// The partitions, before version 2.
    #[field(versions = ..=1)]
    pub ungrouped_partition_states: Vec<LeaderAndIsrPartitionState>,
    /// The partitions by topic, from version 2 on.
    #[field(versions = 2..)]
    pub topic_states: Vec<LeaderAndIsrTopicState>,
    /// Where the leaders of these partitions can be reached by the receiver.
    pub live_leaders: Vec<LeaderAndIsrLiveLeader>,
}

/// Partitions of one topic.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 2..=7, flexible = 4..)]
pub struct LeaderAndIsrTopicState {
    /// The topic's name.
    pub topic_name: Str,
    /// The topic's id; zero if it has none.
    #[field(versions = 5.., ignorable)]
    pub topic_id: Uuid,
    /// The partitions.
    pub partition_states: Vec<LeaderAndIsrPartitionState>,
}

/// Who has one partition.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=7, flexible = 4..)]
pub struct LeaderAndIsrPartitionState {
    /// The topic's name, before version 2.
    #[field(versions = ..=1, ignorable)]
    pub topic_name: Str,
    /// The partition's number.
    pub partition_index: i32,
    /// The epoch of the controller that last changed the partition.
    pub controller_epoch: i32,
    /// The leader's broker id; -1 for none, -2 if the topic is being deleted.
    pub leader: i32,
    /// The leader's epoch.
    pub leader_epoch: i32,
    /// The brokers in sync.
    pub isr: Vec<i32>,
    /// The partition's epoch, which every change raises: the version of its node in ZooKeeper.
    pub partition_epoch: i32,
    /// The brokers with a replica, the preferred leader first.
    pub replicas: Vec<i32>,
    /// Those of them that a reassignment adds; empty without one.
    #[field(versions = 3.., ignorable)]
    pub adding_replicas: Vec<i32>,
    /// Those of them that a reassignment removes; empty without one.
    #[field(versions = 3.., ignorable)]
    pub removing_replicas: Vec<i32>,
    /// Whether the receiver may create the replica. Otherwise it had it before, and where it is gone a disk has failed.
    #[field(versions = 1.., ignorable)]
    pub is_new: bool,
    /// 1 while the leader still recovers from an unclean election, 0 otherwise.
    #[field(versions = 6..)]
    pub leader_recovery_state: i8,
}

/// Where a leader can be reached.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=7, flexible = 4..)]
pub struct LeaderAndIsrLiveLeader {
    /// The leader's broker id.
    pub broker_id: i32,
    /// The host name or address of its listener for other brokers.
    pub host_name: Str,
    /// The port of that listener.
    pub port: i32,
}

/// What the broker made of it.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 4, versions = 0..=7, flexible = 4..)]
pub struct LeaderAndIsrResponse {
    /// The error of the whole request, 0 for none. STALE_CONTROLLER_EPOCH: the broker has heard from a later
    /// controller. STALE_BROKER_EPOCH: the request was for a former life of the broker.
    pub error_code: i16,
    /// The results by partition, before version 5.
    #[field(versions = ..=4)]
    pub partition_errors: Vec<LeaderAndIsrPartitionError>,
    /// The results by topic, from version 5 on.
    #[field(versions = 5..)]
    pub topics: Vec<LeaderAndIsrTopicError>,
}

/// Results for partitions of one topic.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 5..=7, flexible = 4..)]
pub struct LeaderAndIsrTopicError {
    /// The topic's id.
    pub topic_id: Uuid,
    /// The results, by partition.
    pub partition_errors: Vec<LeaderAndIsrPartitionError>,
}

/// The result for one partition.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=7, flexible = 4..)]
pub struct LeaderAndIsrPartitionError {
    /// The topic's name, before version 5.
    #[field(versions = ..=4, ignorable)]
    pub topic_name: Str,
    /// The partition's number.
    pub partition_index: i32,
    /// Why the broker does not do it, 0 if it does. KAFKA_STORAGE_ERROR: the replica's disk has failed.
    /// STALE_CONTROLLER_EPOCH: the leader epoch is not above the one it has. INCONSISTENT_TOPIC_ID: it has the topic
    /// under another id. UNKNOWN_TOPIC_OR_PARTITION: the receiver is not among the replicas.
    pub error_code: i16,
}
