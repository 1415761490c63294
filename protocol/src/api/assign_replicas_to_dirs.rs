//! AssignReplicasToDirs (73): a broker tells the controller in which of its log directories replicas lie.
//!
//! So the controller knows which partitions lose a replica when one disk of several fails. A broker says so for
//! replicas that it has placed or moved itself; where the controller chose the directory, it knows already.
//!
//! Version 0 came with KIP-858.

use crate::{Message, Uuid};

/// Says where replicas lie.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 73, versions = 0..=0, flexible = 0.., response = AssignReplicasToDirsResponse)]
pub struct AssignReplicasToDirsRequest {
    /// The broker that asks.
    pub broker_id: i32,
    /// The epoch that the broker got when it registered, -1 if it has none.
    #[field(default = -1)]
    pub broker_epoch: i64,
    /// The directories, with what lies in each.
    pub directories: Vec<DirectoryData>,
}

/// Replicas in one directory.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=0, flexible = 0..)]
pub struct DirectoryData {
    /// The directory's id, from its `meta.properties`. One that the broker did not register counts as offline.
    pub id: Uuid,
    /// The replicas, by topic.
    pub topics: Vec<TopicData>,
}

/// Replicas of one topic.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=0, flexible = 0..)]
pub struct TopicData {
    /// The topic's id.
    pub topic_id: Uuid,
    /// The partitions.
    pub partitions: Vec<PartitionData>,
}

/// A replica.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=0, flexible = 0..)]
pub struct PartitionData {
    /// The partition's number.
    pub partition_index: i32,
}

/// What the controller has noted down.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 73, versions = 0..=0, flexible = 0..)]
pub struct AssignReplicasToDirsResponse {
    /// For how many milliseconds a quota makes the broker wait; 0 for none.
    pub throttle_time_ms: i32,
    /// Why nothing was noted down, 0 if something was: STALE_BROKER_EPOCH, CLUSTER_AUTHORIZATION_FAILED,
    /// UNSUPPORTED_VERSION while the cluster's metadata version is older than Kafka 3.7's, or NOT_CONTROLLER from a
    /// controller that is not the active one.
    pub error_code: i16,
    /// The directories of the request.
    pub directories: Vec<DirectoryResponse>,
}

/// The outcome for one directory.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=0, flexible = 0.., name = "DirectoryData")]
pub struct DirectoryResponse {
    /// The directory's id.
    pub id: Uuid,
    /// The replicas, by topic.
    pub topics: Vec<TopicResponse>,
}

/// The outcome for replicas of one topic.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=0, flexible = 0.., name = "TopicData")]
pub struct TopicResponse {
    /// The topic's id.
    pub topic_id: Uuid,
    /// The partitions.
    pub partitions: Vec<PartitionResponse>,
}

/// The outcome for one replica.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=0, flexible = 0.., name = "PartitionData")]
pub struct PartitionResponse {
    /// The partition's number.
    pub partition_index: i32,
    /// Why its directory was not noted down, 0 if it was: UNKNOWN_TOPIC_ID, UNKNOWN_TOPIC_OR_PARTITION, or
    /// NOT_LEADER_OR_FOLLOWER where the broker holds no replica.
    pub error_code: i16,
}
