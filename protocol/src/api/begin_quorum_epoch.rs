//! BeginQuorumEpoch (53): a new leader of the metadata log tells the voters that it was elected.
//!
//! The leader sends it to voters that do not fetch from it yet, until they do (KIP-595). Version 1 brings the flexible
//! encoding, says which voter is meant, and where the leader is reached (KIP-853).

use crate::{Message, Str, Uuid};

/// Announces leaders.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 53, versions = 0..=1, flexible = 1.., response = BeginQuorumEpochResponse)]
pub struct BeginQuorumEpochRequest {
    /// The cluster that the leader belongs to, `None` if it does not say.
    #[field(default = null)]
    pub cluster_id: Option<Str>,
    /// The voter that is meant to receive this, -1 if the leader does not know it.
    #[field(versions = 1.., ignorable, default = -1)]
    pub voter_id: i32,
    /// The leaders, by topic. Kafka has one quorum, that of `__cluster_metadata` 0.
    pub topics: Vec<TopicData>,
    /// Where the leader can be reached, listener by listener.
    #[field(versions = 1.., ignorable)]
    pub leader_endpoints: Vec<LeaderEndpoint>,
}

/// Leaders of partitions of one topic.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=1, flexible = 1..)]
pub struct TopicData {
    /// The topic's name.
    pub topic_name: Str,
    /// The leaders, by partition.
    pub partitions: Vec<PartitionData>,
}

/// The leader of one partition.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=1, flexible = 1..)]
pub struct PartitionData {
    /// The partition's number.
    pub partition_index: i32,
    /// The receiver's log directory; zero if the leader does not know it.
    #[field(versions = 1.., ignorable)]
    pub voter_directory_id: Uuid,
    /// The id of the leader, who sends this.
    pub leader_id: i32,
    /// The epoch for which it was elected.
    pub leader_epoch: i32,
}

/// One listener of the leader.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 1..=1, flexible = 1..)]
pub struct LeaderEndpoint {
    /// The listener's name, `CONTROLLER` for instance.
    pub name: Str,
    /// The listener's host name or address.
    pub host: Str,
    /// The listener's port.
    pub port: u16,
}

/// Whether the voter follows.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 53, versions = 0..=1, flexible = 1..)]
pub struct BeginQuorumEpochResponse {
    /// The error of the whole request, 0 for none. INCONSISTENT_CLUSTER_ID: the leader belongs to another cluster.
    /// INVALID_REQUEST: not about the partition that there is.
    pub error_code: i16,
    /// The answers, by topic.
    pub topics: Vec<TopicResponse>,
    /// Where the leaders named in the answers can be reached; absent if there are none.
    #[field(versions = 1.., tag = 0)]
    pub node_endpoints: Vec<NodeEndpoint>,
}

/// Answers for partitions of one topic.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=1, flexible = 1.., name = "TopicData")]
pub struct TopicResponse {
    /// The topic's name.
    pub topic_name: Str,
    /// The answers, by partition.
    pub partitions: Vec<PartitionResponse>,
}

/// The answer for one partition.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=1, flexible = 1.., name = "PartitionData")]
pub struct PartitionResponse {
    /// The partition's number.
    pub partition_index: i32,
    /// Why the voter does not follow, 0 if it does. FENCED_LEADER_EPOCH: it is in a later epoch. INVALID_VOTER_KEY:
    /// another voter was meant.
    pub error_code: i16,
    /// The leader that the voter knows, -1 if none.
    pub leader_id: i32,
    /// The epoch that the voter is in.
    pub leader_epoch: i32,
}

/// Where a controller can be reached.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 1..=1, flexible = 1..)]
pub struct NodeEndpoint {
    /// The controller's id.
    pub node_id: i32,
    /// The host name or address of its listener.
    pub host: Str,
    /// The port of its listener.
    pub port: u16,
}
