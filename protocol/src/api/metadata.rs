//! Metadata (3): which brokers there are, and who leads each partition.
//!
//! Version 1 tells "all topics" (null) from "none" (empty); 5 lists offline replicas; 7 adds leader
//! epochs (KIP-320); 10 carries topic ids, which only a version 12 broker also accepts in the
//! question (KIP-516); 13 has one error for the whole answer, of which REBOOTSTRAP_REQUIRED is the
//! reason (KIP-1102).

use crate::{Message, NodeIds, Str, Uuid};

/// Asks for the brokers of the cluster and for the partitions of some topics.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 3, versions = 0..=13, flexible = 9.., response = MetadataResponse)]
pub struct MetadataRequest {
    /// The topics asked about; `None` means all of them. In version 0, which has no null, empty
    /// means all.
    #[field(nullable = 1..)]
    pub topics: Option<Vec<MetadataRequestTopic>>,
    /// Whether the broker may create a missing topic, if it is set up to do so. Before version 4 it
    /// always may.
    #[field(versions = 4.., default = true)]
    pub allow_auto_topic_creation: bool,
    /// Whether to tell what the caller may do to the cluster; DescribeCluster has taken this over
    /// (KIP-700).
    #[field(versions = 8..=10)]
    pub include_cluster_authorized_operations: bool,
    /// Whether to tell what the caller may do to each topic (KIP-430).
    #[field(versions = 8..)]
    pub include_topic_authorized_operations: bool,
}

impl MetadataRequest {
    /// Asks for every topic of the cluster, from version 1 on.
    pub fn all_topics() -> Self {
        Self { topics: None, ..Self::default() }
    }
}

/// A topic asked about, by name or, from version 12 on, by id.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=13, flexible = 9..)]
pub struct MetadataRequestTopic {
    /// The topic's id; zero when it is asked for by name. No broker reads it before version 12.
    #[field(versions = 10.., ignorable)]
    pub topic_id: Uuid,
    /// The topic's name; `None` when it is asked for by id.
    #[field(nullable = 10..)]
    pub name: Option<Str>,
}

/// What one broker knows of the cluster at this moment; it may lag behind the controller.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 3, versions = 0..=13, flexible = 9..)]
pub struct MetadataResponse {
    /// For how many milliseconds a quota makes the client wait; 0 for none.
    #[field(versions = 3.., ignorable)]
    pub throttle_time_ms: i32,
    /// The brokers that are alive, with the addresses of the listener that the request came in by.
    pub brokers: Vec<MetadataResponseBroker>,
    /// The cluster's id, `None` if it has none.
    #[field(versions = 2.., nullable = 2.., ignorable, default = null)]
    pub cluster_id: Option<Str>,
    /// The broker to send admin requests to, -1 if none is known. With KRaft it is any live broker.
    #[field(versions = 1.., ignorable, default = -1)]
    pub controller_id: i32,
    /// The topics asked for, each with its own error.
    pub topics: Vec<MetadataResponseTopic>,
    /// A bit set of what the caller may do to the cluster; `i32::MIN` when that was not asked for.
    #[field(versions = 8..=10, default = -2147483648)]
    pub cluster_authorized_operations: i32,
    /// The error of the whole request, 0 for none. 129 tells the client to bootstrap again
    /// (KIP-1102).
    #[field(versions = 13.., ignorable)]
    pub error_code: i16,
}

/// One broker and where to reach it.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=13, flexible = 9..)]
pub struct MetadataResponseBroker {
    /// The broker's id.
    pub node_id: i32,
    /// The advertised host name or address.
    pub host: Str,
    /// The advertised port.
    pub port: i32,
    /// The rack the broker says it stands in, `None` if it does not say.
    #[field(versions = 1.., nullable = 1.., ignorable, default = null)]
    pub rack: Option<Str>,
}

/// One topic and its partitions.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=13, flexible = 9..)]
pub struct MetadataResponseTopic {
    /// Why there is nothing to tell of this topic; 0 if there is.
    pub error_code: i16,
    /// The topic's name; `None` if it was asked for by an id that the broker does not know.
    #[field(nullable = 12..)]
    pub name: Option<Str>,
    /// The topic's id; zero if it was asked for by a name that the broker does not know.
    #[field(versions = 10.., ignorable)]
    pub topic_id: Uuid,
    /// Whether Kafka keeps the topic for itself, as it does the committed offsets.
    #[field(versions = 1.., ignorable)]
    pub is_internal: bool,
    /// The partitions, in no certain order.
    pub partitions: Vec<MetadataResponsePartition>,
    /// A bit set of what the caller may do to the topic; `i32::MIN` when that was not asked for.
    #[field(versions = 8.., default = -2147483648)]
    pub topic_authorized_operations: i32,
}

/// One partition: its leader and its replicas.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=13, flexible = 9..)]
pub struct MetadataResponsePartition {
    /// Why the partition cannot be used just now, LEADER_NOT_AVAILABLE for instance; 0 if it can.
    pub error_code: i16,
    /// The partition's number.
    pub partition_index: i32,
    /// The leading broker, -1 while there is none.
    pub leader_id: i32,
    /// How often the leader has changed; -1 if unknown. Of two answers the one with the higher
    /// epoch is newer.
    #[field(versions = 7.., ignorable, default = -1)]
    pub leader_epoch: i32,
    /// Every broker that holds a replica, the preferred leader first.
    pub replica_nodes: NodeIds,
    /// The replicas that have kept up with the leader.
    pub isr_nodes: NodeIds,
    /// The replicas whose broker or disk is down.
    #[field(versions = 5.., ignorable)]
    pub offline_replicas: NodeIds,
}
