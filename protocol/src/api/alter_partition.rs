//! AlterPartition (56): the leader of a partition asks the controller to change the set of replicas in sync (KIP-497).
//!
//! A broker sends it when a follower has fallen behind or caught up; only the controller changes the set, so leader and
//! controller cannot disagree for long. Version 1 tells whether an unclean election is still being recovered from
//! (KIP-704); 2 names topics by id (KIP-841); 3 gives the brokers' epochs, so that a broker that was restarted cannot
//! get in by the merits of its former life (KIP-903). Kafka 4 has dropped versions 0 and 1.

use crate::{Message, Str, Uuid};

/// Asks for changes to partitions that the sender leads.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 56, versions = 0..=3, flexible = 0.., response = AlterPartitionResponse)]
pub struct AlterPartitionRequest {
    /// The broker that asks.
    pub broker_id: i32,
    /// The epoch that the controller gave the broker when it registered, -1 if unknown.
    #[field(default = -1)]
    pub broker_epoch: i64,
    /// The partitions, by topic.
    pub topics: Vec<TopicData>,
}

/// Partitions of one topic to change.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=3, flexible = 0..)]
pub struct TopicData {
    /// The topic's name, before version 2.
    #[field(versions = ..=1, ignorable)]
    pub topic_name: Str,
    /// The topic's id, from version 2 on.
    #[field(versions = 2.., ignorable)]
    pub topic_id: Uuid,
    /// The partitions.
    pub partitions: Vec<PartitionData>,
}

/// The change to one partition.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=3, flexible = 0..)]
pub struct PartitionData {
    /// The partition's number.
    pub partition_index: i32,
    /// The epoch in which the sender leads.
    pub leader_epoch: i32,
    /// The brokers that are to be the set of replicas in sync, the leader among them. Before version 3.
    #[field(versions = ..=2)]
    pub new_isr: Vec<i32>,
    /// The same from version 3 on.
    #[field(versions = 3..)]
    pub new_isr_with_epochs: Vec<BrokerState>,
    /// 1 while the leader still recovers from an unclean election, and is alone in sync; 0 otherwise.
    #[field(versions = 1..)]
    pub leader_recovery_state: i8,
    /// The epoch of the partition that the change starts from: one that has changed since then stays as it is.
    pub partition_epoch: i32,
}

/// A broker, and which life of it is in sync.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 3..=3, flexible = 0..)]
pub struct BrokerState {
    /// The broker's id.
    pub broker_id: i32,
    /// The broker's epoch when it fetched; -1 if the leader does not know it, then it is not checked.
    #[field(default = -1)]
    pub broker_epoch: i64,
}

/// What the controller made of it.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 56, versions = 0..=3, flexible = 0..)]
pub struct AlterPartitionResponse {
    /// For how many milliseconds a quota makes the sender wait; 0 for none.
    pub throttle_time_ms: i32,
    /// The error of the whole request, 0 for none. STALE_BROKER_EPOCH: the broker has registered again since.
    /// NOT_CONTROLLER: ask the active one.
    pub error_code: i16,
    /// The results, by topic.
    pub topics: Vec<TopicResponse>,
}

/// Results for partitions of one topic.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=3, flexible = 0.., name = "TopicData")]
pub struct TopicResponse {
    /// The topic's name, before version 2.
    #[field(versions = ..=1, ignorable)]
    pub topic_name: Str,
    /// The topic's id, from version 2 on.
    #[field(versions = 2.., ignorable)]
    pub topic_id: Uuid,
    /// The results, by partition.
    pub partitions: Vec<PartitionResponse>,
}

/// One partition as it is now; after an error its number says which, and the rest is zero.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=3, flexible = 0.., name = "PartitionData")]
pub struct PartitionResponse {
    /// The partition's number.
    pub partition_index: i32,
    /// Why the partition was not changed, 0 if it was. FENCED_LEADER_EPOCH: the sender does not lead any more.
    /// INVALID_UPDATE_VERSION: the partition has changed since. NOT_CONTROLLER: the sender knows more than the
    /// receiver. INELIGIBLE_REPLICA (OPERATION_NOT_ATTEMPTED before version 2): a broker of the new set is fenced,
    /// shuts down or has been restarted. NEW_LEADER_ELECTED (FENCED_LEADER_EPOCH before version 2): it was changed, and
    /// has another leader for it. UNKNOWN_TOPIC_ID (UNKNOWN_TOPIC_OR_PARTITION before version 2): there is no such
    /// topic. INVALID_REQUEST: the new set makes no sense.
    pub error_code: i16,
    /// The leader's broker id.
    pub leader_id: i32,
    /// The leader's epoch.
    pub leader_epoch: i32,
    /// The brokers in sync.
    pub isr: Vec<i32>,
    /// 1 while the leader still recovers from an unclean election, 0 otherwise.
    #[field(versions = 1.., ignorable)]
    pub leader_recovery_state: i8,
    /// The partition's epoch, which every change raises.
    pub partition_epoch: i32,
}
