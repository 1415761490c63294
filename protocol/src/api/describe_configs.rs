//! DescribeConfigs (32): the settings of topics, brokers, loggers, client metrics and groups.
//!
//! Any broker or controller (KIP-919) answers for topics, groups and client metrics; what is set on one node, and its
//! loggers, only that node can tell. The numbers for the type of a resource stand in this API, in AlterConfigs (33)
//! and in IncrementalAlterConfigs (44):
//!
//! | number | resource                     | its name                                                               |
//! |--------|------------------------------|------------------------------------------------------------------------|
//! | 2      | topic                        | the topic's name                                                       |
//! | 4      | broker (or controller)       | the node's id in decimal; empty for the defaults of the whole cluster  |
//! | 8      | loggers of a node (KIP-412)  | the node's id in decimal                                               |
//! | 16     | client metrics (KIP-714)     | the subscription's name                                                |
//! | 32     | group (KIP-848)              | the group's id                                                         |
//!
//! Version 1 tells where a value comes from and what it hides (KIP-226); from 2 on the broker answers before it
//! throttles (KIP-219); 3 adds types and texts (KIP-569); 4 is the first in the flexible encoding (KIP-482). Kafka
//! 4.0 dropped version 0 (KIP-896).

use crate::{Message, Str};

/// Asks for settings.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 32, versions = 0..=4, flexible = 4.., response = DescribeConfigsResponse)]
pub struct DescribeConfigsRequest {
    /// The resources.
    pub resources: Vec<DescribeConfigsResource>,
    /// Whether to tell all the places that have a value for a setting, not only the one that wins.
    #[field(versions = 1..)]
    pub include_synonyms: bool,
    /// Whether to send the text that explains each setting.
    #[field(versions = 3..)]
    pub include_documentation: bool,
}

/// A resource asked about.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=4, flexible = 4..)]
pub struct DescribeConfigsResource {
    /// What it is, by the table above.
    pub resource_type: i8,
    /// Its name.
    pub resource_name: Str,
    /// The names of the settings to tell, `None` for all of them. A name that the resource does not have is left out
    /// of the answer. Kafka takes an empty list for all too.
    pub configuration_keys: Option<Vec<Str>>,
}

/// The settings.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 32, versions = 0..=4, flexible = 4..)]
pub struct DescribeConfigsResponse {
    /// For how many milliseconds a quota makes the client wait; 0 for none.
    pub throttle_time_ms: i32,
    /// One for each resource of the request, in any order.
    pub results: Vec<DescribeConfigsResult>,
}

/// The settings of one resource.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=4, flexible = 4..)]
pub struct DescribeConfigsResult {
    /// Why there are no settings, 0 if there are. UNKNOWN_TOPIC_OR_PARTITION, TOPIC_AUTHORIZATION_FAILED,
    /// CLUSTER_AUTHORIZATION_FAILED, GROUP_AUTHORIZATION_FAILED; INVALID_REQUEST where another node should have been
    /// asked or the type is not known.
    pub error_code: i16,
    /// The reason in words, `None` if there was no error.
    pub error_message: Option<Str>,
    /// What the resource is, by the table above.
    pub resource_type: i8,
    /// Its name.
    pub resource_name: Str,
    /// The settings.
    pub configs: Vec<DescribeConfigsResourceResult>,
}

/// A setting.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=4, flexible = 4..)]
pub struct DescribeConfigsResourceResult {
    /// Its name.
    pub name: Str,
    /// Its value, `None` if it has none or is secret.
    pub value: Option<Str>,
    /// Whether it can only be set where the node is started, not through the protocol.
    pub read_only: bool,
    /// Whether nobody has set it. Version 0 alone; later ones tell the source instead.
    #[field(versions = 0)]
    pub is_default: bool,
    /// Where the value comes from: 1 this topic, 2 this broker, set through the protocol, 3 the same for all brokers,
    /// 4 the node's own file, 5 Kafka's default, 6 this node's logger, 7 this client metrics subscription, 8 this
    /// group; 0 unknown, and -1 not told.
    #[field(versions = 1.., ignorable, default = -1)]
    pub config_source: i8,
    /// Whether the value is secret and therefore not told.
    pub is_sensitive: bool,
    /// The places that have a value for the setting, the one that wins first; empty when that was not asked for.
    #[field(versions = 1.., ignorable)]
    pub synonyms: Vec<DescribeConfigsSynonym>,
    /// What the value is: 1 boolean, 2 string, 3 to 5 an integer of 32, 16 or 64 bits, 6 a floating-point number, 7 a
    /// list with commas, 8 the name of a class, 9 a password; 0 unknown.
    #[field(versions = 3.., ignorable)]
    pub config_type: i8,
    /// The text that explains the setting, `None` when that was not asked for or there is none.
    #[field(versions = 3.., ignorable)]
    pub documentation: Option<Str>,
}

/// A place that has a value for a setting.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 1..=4, flexible = 4..)]
pub struct DescribeConfigsSynonym {
    /// What the setting is called there: a topic's `retention.ms` is a broker's `log.retention.ms`.
    pub name: Str,
    /// The value, `None` if it is secret.
    pub value: Option<Str>,
    /// Which place it is, by the numbers of [`config_source`](DescribeConfigsResourceResult::config_source).
    pub source: i8,
}
