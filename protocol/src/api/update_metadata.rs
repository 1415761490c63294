//! UpdateMetadata (6): the controller of a ZooKeeper cluster tells every broker what to answer Metadata requests with.
//!
//! Kafka 4 has dropped it: with KRaft, brokers read the metadata log. Version 1 gives a broker several addresses; 2
//! brings racks (KIP-36), 3 names of listeners (KIP-103), 4 offline replicas (KIP-112); 5 knows brokers by their epoch
//! and groups partitions by topic (KIP-380); 6 brings the flexible encoding (KIP-482), 7 topic ids (KIP-516), and 8 a
//! KRaft controller that leads brokers which are not migrated yet (KIP-866).

use crate::{Message, Str, Uuid};

/// Changes what the receiver knows of the cluster.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 6, versions = 0..=8, flexible = 6.., response = UpdateMetadataResponse)]
pub struct UpdateMetadataRequest {
    /// The controller's id.
    pub controller_id: i32,
    /// Whether the controller is one of KRaft, during a migration (KIP-866).
    #[field(versions = 8..)]
    pub is_k_raft_controller: bool,
    /// 1 if these are changes only, 2 if these are all the partitions of the cluster, 0 if the controller does not say.
    /// Only a KRaft controller does.
    #[field(versions = 8.., tag = 0)]
    pub r#type: i8,
    /// The controller's epoch. A broker refuses one lower than it has seen.
    pub controller_epoch: i32,
    /// The epoch of the broker that is meant to receive this, -1 if the controller does not say.
    #[field(versions = 5.., ignorable, default = -1)]
    pub broker_epoch: i64,
    /// The partitions that have changed, before version 5.
    #[field(versions = ..=4)]
    pub ungrouped_partition_states: Vec<UpdateMetadataPartitionState>,
    /// The partitions that have changed by topic, from version 5 on.
    #[field(versions = 5..)]
    pub topic_states: Vec<UpdateMetadataTopicState>,
    /// All the brokers that are alive.
    pub live_brokers: Vec<UpdateMetadataBroker>,
}

/// Partitions of one topic.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 5..=8, flexible = 6..)]
pub struct UpdateMetadataTopicState {
    /// The topic's name.
    pub topic_name: Str,
    /// The topic's id; zero if it has none.
    #[field(versions = 7.., ignorable)]
    pub topic_id: Uuid,
    /// The partitions.
    pub partition_states: Vec<UpdateMetadataPartitionState>,
}

/// Who has one partition.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=8, flexible = 6..)]
pub struct UpdateMetadataPartitionState {
    /// The topic's name, before version 5.
    #[field(versions = ..=4, ignorable)]
    pub topic_name: Str,
    /// The partition's number.
    pub partition_index: i32,
    /// The epoch of the controller that last changed the partition.
    pub controller_epoch: i32,
    /// The leader's broker id; -1 for none, -2 if the topic is being deleted and the receiver is to forget it.
    pub leader: i32,
    /// The leader's epoch.
    pub leader_epoch: i32,
    /// The brokers in sync.
    pub isr: Vec<i32>,
    /// The version of the partition's node in ZooKeeper, which every change raises.
    pub zk_version: i32,
    /// The brokers with a replica, the preferred leader first.
    pub replicas: Vec<i32>,
    /// Those of them whose replica cannot be had: the broker or its disk is gone.
    #[field(versions = 4.., ignorable)]
    pub offline_replicas: Vec<i32>,
}

/// A broker and where to reach it.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=8, flexible = 6..)]
pub struct UpdateMetadataBroker {
    /// The broker's id.
    pub id: i32,
    /// The advertised host name or address, in version 0.
    #[field(versions = 0, ignorable)]
    pub v0_host: Str,
    /// The advertised port, in version 0.
    #[field(versions = 0, ignorable)]
    pub v0_port: i32,
    /// The broker's listeners, from version 1 on.
    #[field(versions = 1.., ignorable)]
    pub endpoints: Vec<UpdateMetadataEndpoint>,
    /// The rack the broker says it stands in, `None` if it does not say.
    #[field(versions = 2.., ignorable)]
    pub rack: Option<Str>,
}

/// One listener of a broker.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 1..=8, flexible = 6..)]
pub struct UpdateMetadataEndpoint {
    /// The advertised port.
    pub port: i32,
    /// The advertised host name or address.
    pub host: Str,
    /// The listener's name. Before version 3 it is that of the security protocol.
    #[field(versions = 3.., ignorable)]
    pub listener: Str,
    /// How to talk to it: 0 PLAINTEXT, 1 SSL, 2 SASL_PLAINTEXT, 3 SASL_SSL.
    pub security_protocol: i16,
}

/// Whether the broker took it in.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 6, versions = 0..=8, flexible = 6..)]
pub struct UpdateMetadataResponse {
    /// 0 if it did. STALE_CONTROLLER_EPOCH: the broker has heard from a later controller. STALE_BROKER_EPOCH: the
    /// request was for a former life of the broker.
    pub error_code: i16,
}
