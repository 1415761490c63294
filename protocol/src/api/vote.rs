//! Vote (52): asks the voters of a KRaft quorum for their vote, sent by a controller that would lead the metadata log.
//!
//! The protocol is Raft's (KIP-595), written so that one request could hold the elections of many partitions; Kafka
//! votes on one, `__cluster_metadata` 0. Version 1 tells replicas of one id apart by their log directory, and says
//! where a leader is reached (KIP-853); 2 can ask beforehand, without a vote being spent, and calls the sender a
//! replica because it is not a candidate then (KIP-996).

use crate::{Message, Str, Uuid};

/// Asks for a vote.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 52, versions = 0..=2, flexible = 0.., response = VoteResponse)]
pub struct VoteRequest {
    /// The cluster that the sender belongs to, `None` if it does not say.
    #[field(default = null)]
    pub cluster_id: Option<Str>,
    /// The voter that is meant to receive this, -1 if the sender does not know it.
    #[field(versions = 1.., ignorable, default = -1)]
    pub voter_id: i32,
    /// The elections, by topic.
    pub topics: Vec<TopicData>,
}

/// Elections in partitions of one topic.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=2, flexible = 0..)]
pub struct TopicData {
    /// The topic's name.
    pub topic_name: Str,
    /// The elections, by partition.
    pub partitions: Vec<PartitionData>,
}

/// The election in one partition.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=2, flexible = 0..)]
pub struct PartitionData {
    /// The partition's number.
    pub partition_index: i32,
    /// The epoch that the sender would lead, or in a pre-vote the one that it is in. Kafka 3.9 calls it the
    /// candidate's epoch.
    pub replica_epoch: i32,
    /// The id of the sender, who wants to lead.
    pub replica_id: i32,
    /// The sender's log directory; zero if it is not known.
    #[field(versions = 1.., ignorable)]
    pub replica_directory_id: Uuid,
    /// The receiver's log directory; zero if the sender does not know it.
    #[field(versions = 1.., ignorable)]
    pub voter_directory_id: Uuid,
    /// The epoch of the last record in the sender's log.
    pub last_offset_epoch: i32,
    /// The offset after the last record in the sender's log. A voter whose log goes further does not vote for it.
    pub last_offset: i64,
    /// Whether this is a pre-vote: the sender wants to know if it would win, and the voter keeps its vote.
    #[field(versions = 2..)]
    pub pre_vote: bool,
}

/// The voter's answer.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 52, versions = 0..=2, flexible = 0..)]
pub struct VoteResponse {
    /// The error of the whole request, 0 for none. INCONSISTENT_CLUSTER_ID: the sender belongs to another cluster.
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
#[message(versions = 0..=2, flexible = 0.., name = "TopicData")]
pub struct TopicResponse {
    /// The topic's name.
    pub topic_name: Str,
    /// The answers, by partition.
    pub partitions: Vec<PartitionResponse>,
}

/// The answer for one partition.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=2, flexible = 0.., name = "PartitionData")]
pub struct PartitionResponse {
    /// The partition's number.
    pub partition_index: i32,
    /// Why the request was not considered, 0 if it was. FENCED_LEADER_EPOCH: the voter is in a later epoch.
    /// INVALID_VOTER_KEY: another voter was meant. INVALID_REQUEST: the end of the sender's log makes no sense.
    pub error_code: i16,
    /// The leader that the voter knows, -1 if none.
    pub leader_id: i32,
    /// The epoch that the voter is in.
    pub leader_epoch: i32,
    /// Whether the sender has the vote, or in a pre-vote would have it.
    pub vote_granted: bool,
}

/// Where a controller can be reached.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 1..=2, flexible = 0..)]
pub struct NodeEndpoint {
    /// The controller's id.
    pub node_id: i32,
    /// The host name or address of its listener.
    pub host: Str,
    /// The port of its listener.
    pub port: u16,
}
