//! DescribeQuorum (55): how the quorum of the metadata log stands, for admin tools.
//!
//! A broker hands the request on to the controllers, and the leader among them answers (KIP-595). Version 1 tells when
//! a replica last fetched (KIP-836); 2 brings messages, log directories and where the controllers are reached
//! (KIP-853).

use crate::{Message, Str, Uuid};

/// Asks how quorums stand.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 55, versions = 0..=2, flexible = 0.., response = DescribeQuorumResponse)]
pub struct DescribeQuorumRequest {
    /// The partitions asked about, by topic. Kafka has one quorum, that of `__cluster_metadata` 0.
    pub topics: Vec<TopicData>,
}

/// Partitions of one topic asked about.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=2, flexible = 0..)]
pub struct TopicData {
    /// The topic's name.
    pub topic_name: Str,
    /// The partitions.
    pub partitions: Vec<PartitionData>,
}

/// A partition asked about.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=2, flexible = 0..)]
pub struct PartitionData {
    /// The partition's number.
    pub partition_index: i32,
}

/// How the quorums stand.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 55, versions = 0..=2, flexible = 0..)]
pub struct DescribeQuorumResponse {
    /// The error of the whole request, CLUSTER_AUTHORIZATION_FAILED for instance; 0 for none.
    pub error_code: i16,
    /// The reason in words, `None` if all went well or the controller gives none.
    #[field(versions = 2.., ignorable)]
    pub error_message: Option<Str>,
    /// The quorums, by topic.
    pub topics: Vec<TopicResponse>,
    /// Where the voters can be reached.
    #[field(versions = 2..)]
    pub nodes: Vec<Node>,
}

/// Quorums of partitions of one topic.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=2, flexible = 0.., name = "TopicData")]
pub struct TopicResponse {
    /// The topic's name.
    pub topic_name: Str,
    /// The quorums, by partition.
    pub partitions: Vec<PartitionResponse>,
}

/// The quorum of one partition, as its leader sees it.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=2, flexible = 0.., name = "PartitionData")]
pub struct PartitionResponse {
    /// The partition's number.
    pub partition_index: i32,
    /// Why there is nothing to tell, 0 if there is. NOT_LEADER_OR_FOLLOWER: the receiver does not lead, ask another
    /// controller. UNKNOWN_TOPIC_OR_PARTITION: this partition has no quorum.
    pub error_code: i16,
    /// The reason in words, `None` if all went well or the controller gives none.
    #[field(versions = 2.., ignorable)]
    pub error_message: Option<Str>,
    /// The leader's id, -1 if it is not known.
    pub leader_id: i32,
    /// The leader's epoch.
    pub leader_epoch: i32,
    /// The offset after the last record that most voters have; -1 if the leader does not know it yet.
    pub high_watermark: i64,
    /// The replicas that elect the leader, itself among them.
    pub current_voters: Vec<ReplicaState>,
    /// The replicas that only follow: brokers, and controllers that do not vote.
    pub observers: Vec<ReplicaState>,
}

/// How far one replica has come.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=2, flexible = 0..)]
pub struct ReplicaState {
    /// The replica's id.
    pub replica_id: i32,
    /// The replica's log directory; zero if it is not known.
    #[field(versions = 2..)]
    pub replica_directory_id: Uuid,
    /// The offset after the last record that the leader knows the replica to have; -1 if it does not know.
    pub log_end_offset: i64,
    /// When the replica last fetched, in milliseconds since 1970 by the leader's clock; -1 if that is not known, and
    /// for the leader itself.
    #[field(versions = 1.., ignorable, default = -1)]
    pub last_fetch_timestamp: i64,
    /// When the replica was last known to have all that the leader had, in milliseconds since 1970 by the leader's
    /// clock; for the leader itself the present moment, -1 if that is not known.
    #[field(versions = 1.., ignorable, default = -1)]
    pub last_caught_up_timestamp: i64,
}

/// One voter and where to reach it.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 2..=2, flexible = 0..)]
pub struct Node {
    /// The voter's id.
    pub node_id: i32,
    /// The voter's listeners.
    pub listeners: Vec<Listener>,
}

/// One listener of a voter.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 2..=2, flexible = 0..)]
pub struct Listener {
    /// The listener's name, `CONTROLLER` for instance.
    pub name: Str,
    /// The listener's host name or address.
    pub host: Str,
    /// The listener's port.
    pub port: u16,
}
