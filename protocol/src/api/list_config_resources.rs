//! ListConfigResources (74): an administrator's tool asks which resources have settings.
//!
//! What DescribeConfigs cannot tell: it wants to know the resources' names.
//!
//! Version 0 lists client metrics subscriptions only, and was then called ListClientMetricsResources (KIP-1000); 1
//! lists resources of any type (KIP-1142).

use crate::{Message, Str};

/// Asks for resources.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 74, versions = 0..=1, flexible = 0.., response = ListConfigResourcesResponse)]
pub struct ListConfigResourcesRequest {
    /// The types to list: 2 topics, 4 brokers, 8 brokers' loggers, 16 client metrics, 32 groups; empty for all of them.
    #[field(versions = 1..)]
    pub resource_types: Vec<i8>,
}

/// The resources.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 74, versions = 0..=1, flexible = 0..)]
pub struct ListConfigResourcesResponse {
    /// For how many milliseconds a quota makes the client wait; 0 for none.
    pub throttle_time_ms: i32,
    /// Why there is no list, 0 if there is: CLUSTER_AUTHORIZATION_FAILED, or UNSUPPORTED_VERSION for a type that the
    /// broker does not know.
    pub error_code: i16,
    /// The resources.
    pub config_resources: Vec<ConfigResource>,
}

/// A resource that can have settings.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=1, flexible = 0..)]
pub struct ConfigResource {
    /// Its name: a topic's or a group's, or a broker's id as text.
    pub resource_name: Str,
    /// Its type, by the numbers of the request.
    #[field(versions = 1.., ignorable, default = 16)]
    pub resource_type: i8,
}
