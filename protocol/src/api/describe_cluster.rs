//! DescribeCluster (60): the brokers, or the controllers, of the cluster.
//!
//! Version 1 can ask a controller for controllers (KIP-919); 2 can list fenced brokers too
//! (KIP-1073).

use crate::{Message, Str};

/// Asks for the nodes of the cluster.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 60, versions = 0..=2, flexible = 0.., response = DescribeClusterResponse)]
pub struct DescribeClusterRequest {
    /// Whether to tell what the caller may do to the cluster (KIP-430).
    pub include_cluster_authorized_operations: bool,
    /// Which nodes are meant: 1 brokers, 2 controllers.
    #[field(versions = 1.., default = 1)]
    pub endpoint_type: i8,
    /// Whether to list brokers too that the controller keeps from serving.
    #[field(versions = 2..)]
    pub include_fenced_brokers: bool,
}

/// The nodes of the cluster.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 60, versions = 0..=2, flexible = 0..)]
pub struct DescribeClusterResponse {
    /// For how many milliseconds a quota makes the client wait; 0 for none.
    pub throttle_time_ms: i32,
    /// The error of the whole request, MISMATCHED_ENDPOINT_TYPE for instance; 0 for none.
    pub error_code: i16,
    /// The reason in words, `None` if the broker gives none.
    #[field(default = null)]
    pub error_message: Option<Str>,
    /// Which nodes these are: 1 brokers, 2 controllers.
    #[field(versions = 1.., default = 1)]
    pub endpoint_type: i8,
    /// The cluster's id.
    pub cluster_id: Str,
    /// From a controller the leader of the quorum; from a broker any live broker; -1 if unknown.
    #[field(default = -1)]
    pub controller_id: i32,
    /// The nodes.
    pub brokers: Vec<DescribeClusterBroker>,
    /// A bit set of what the caller may do to the cluster; `i32::MIN` when that was not asked for.
    #[field(default = -2147483648)]
    pub cluster_authorized_operations: i32,
}

/// One node and where to reach it.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=2, flexible = 0..)]
pub struct DescribeClusterBroker {
    /// The node's id.
    pub broker_id: i32,
    /// The advertised host name or address.
    pub host: Str,
    /// The advertised port.
    pub port: i32,
    /// The rack the node says it stands in, `None` if it does not say.
    #[field(default = null)]
    pub rack: Option<Str>,
    /// Whether the controller keeps the broker from serving.
    #[field(versions = 2..)]
    pub is_fenced: bool,
}
