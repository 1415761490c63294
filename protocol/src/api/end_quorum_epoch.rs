//! EndQuorumEpoch (54): a leader of the metadata log resigns, so that the others need not wait until they miss it.
//!
//! A controller that shuts down sends it to the voters (KIP-595). Version 1 brings the flexible encoding, names the
//! successors by id and log directory, and says where the leader is reached (KIP-853).

use crate::{Message, Str, Uuid};

/// Announces that leaders resign.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 54, versions = 0..=1, flexible = 1.., response = EndQuorumEpochResponse)]
pub struct EndQuorumEpochRequest {
    /// The cluster that the leader belongs to, `None` if it does not say.
    #[field(default = null)]
    pub cluster_id: Option<Str>,
    /// The leaders, by topic. Kafka has one quorum, that of `__cluster_metadata` 0.
    pub topics: Vec<TopicData>,
    /// Where the leader can be reached, listener by listener.
    #[field(versions = 1.., ignorable)]
    pub leader_endpoints: Vec<LeaderEndpoint>,
}

/// Resigning leaders of partitions of one topic.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=1, flexible = 1..)]
pub struct TopicData {
    /// The topic's name.
    pub topic_name: Str,
    /// The leaders, by partition.
    pub partitions: Vec<PartitionData>,
}

/// The resigning leader of one partition.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=1, flexible = 1..)]
pub struct PartitionData {
    /// The partition's number.
    pub partition_index: i32,
    /// The id of the leader, who sends this.
    pub leader_id: i32,
    /// The epoch that it led.
    pub leader_epoch: i32,
    /// The ids of the voters, the one with the most of the log first: it stands for election at once, and the further
    /// down a voter is, the longer it waits. Before version 1.
    #[field(versions = 0, ignorable)]
    pub preferred_successors: Vec<i32>,
    /// The same from version 1 on.
    #[field(versions = 1.., ignorable)]
    pub preferred_candidates: Vec<ReplicaInfo>,
}

/// A voter that could lead.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 1..=1, flexible = 1..)]
pub struct ReplicaInfo {
    /// The voter's id.
    pub candidate_id: i32,
    /// The voter's log directory; zero if it is not known.
    pub candidate_directory_id: Uuid,
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

/// Whether the voter has heard it.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 54, versions = 0..=1, flexible = 1..)]
pub struct EndQuorumEpochResponse {
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
    /// 0 if the voter took note. FENCED_LEADER_EPOCH: it is in a later epoch.
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
