//! StopReplica (5): the controller of a ZooKeeper cluster tells a broker to stop its replicas, and perhaps delete them.
//!
//! Kafka 4 has dropped it: with KRaft, brokers read the metadata log. Version 1 knows brokers by their epoch and groups
//! partitions by topic (KIP-380); 2 brings the flexible encoding (KIP-482); 3 says for each partition whether to delete
//! it and in which leader epoch, so that an old request cannot undo a new one (KIP-570); 4 brings a KRaft controller
//! that leads brokers which are not migrated yet (KIP-866).

use crate::{Message, Str};

/// Makes the receiver stop replicas.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 5, versions = 0..=4, flexible = 2.., response = StopReplicaResponse)]
pub struct StopReplicaRequest {
    /// The controller's id.
    pub controller_id: i32,
    /// Whether the controller is one of KRaft, during a migration (KIP-866).
    #[field(versions = 4..)]
    pub is_k_raft_controller: bool,
    /// The controller's epoch. A broker refuses one lower than it has seen.
    pub controller_epoch: i32,
    /// The epoch of the broker that is meant to receive this, -1 if the controller does not say.
    #[field(versions = 1.., ignorable, default = -1)]
    pub broker_epoch: i64,
    /// Whether to delete the partitions, before version 3.
    #[field(versions = ..=2)]
    pub delete_partitions: bool,
    /// The partitions, in version 0.
    #[field(versions = 0)]
    pub ungrouped_partitions: Vec<StopReplicaPartitionV0>,
    /// The partitions by topic, in versions 1 and 2.
    #[field(versions = 1..=2)]
    pub topics: Vec<StopReplicaTopicV1>,
    /// The partitions by topic, from version 3 on.
    #[field(versions = 3..)]
    pub topic_states: Vec<StopReplicaTopicState>,
}

/// A partition, in version 0.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=0, flexible = 2..)]
pub struct StopReplicaPartitionV0 {
    /// The topic's name.
    pub topic_name: Str,
    /// The partition's number.
    pub partition_index: i32,
}

/// Partitions of one topic, in versions 1 and 2.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 1..=2, flexible = 2..)]
pub struct StopReplicaTopicV1 {
    /// The topic's name.
    pub name: Str,
    /// The numbers of the partitions.
    pub partition_indexes: Vec<i32>,
}

/// Partitions of one topic, from version 3 on.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 3..=4, flexible = 2..)]
pub struct StopReplicaTopicState {
    /// The topic's name.
    pub topic_name: Str,
    /// The partitions.
    pub partition_states: Vec<StopReplicaPartitionState>,
}

/// What to do with one partition, from version 3 on.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 3..=4, flexible = 2..)]
pub struct StopReplicaPartitionState {
    /// The partition's number.
    pub partition_index: i32,
    /// The leader epoch that the controller acts in: a broker refuses one lower than it has. -1 if it is not known, and
    /// -2 if the topic is being deleted: both are not checked.
    #[field(default = -1)]
    pub leader_epoch: i32,
    /// Whether to delete the partition.
    pub delete_partition: bool,
}

/// What the broker made of it.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 5, versions = 0..=4, flexible = 2..)]
pub struct StopReplicaResponse {
    /// The error of the whole request, 0 for none. STALE_CONTROLLER_EPOCH: the broker has heard from a later
    /// controller. STALE_BROKER_EPOCH: the request was for a former life of the broker.
    pub error_code: i16,
    /// The results, by partition.
    pub partition_errors: Vec<StopReplicaPartitionError>,
}

/// The result for one partition.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=4, flexible = 2..)]
pub struct StopReplicaPartitionError {
    /// The topic's name.
    pub topic_name: Str,
    /// The partition's number.
    pub partition_index: i32,
    /// Why the replica was not stopped, 0 if it was. KAFKA_STORAGE_ERROR: its disk has failed. FENCED_LEADER_EPOCH: the
    /// broker knows a later leader epoch.
    pub error_code: i16,
}
