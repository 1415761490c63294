//! CreateTopics (19): creates topics, or tells whether it could.
//!
//! Version 1 can only check, and gives the reason in words (both KIP-4); 2 tells for how long a quota mutes the
//! client; 4 lets the broker choose counts that are -1 (KIP-464); 5 tells what was created
//! (KIP-525); 6 may be refused for a quota (KIP-599); 7 tells the topic's id (KIP-516).

use crate::{Message, Str, Uuid};

/// Creates topics.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 19, versions = 0..=7, flexible = 5.., response = CreateTopicsResponse)]
pub struct CreateTopicsRequest {
    /// The topics.
    pub topics: Vec<CreatableTopic>,
    /// For how many milliseconds the broker may wait until the topics are there.
    #[field(default = 60000)]
    pub timeout_ms: i32,
    /// Whether only to check the request and create nothing.
    #[field(versions = 1..)]
    pub validate_only: bool,
}

/// A topic to create.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=7, flexible = 5..)]
pub struct CreatableTopic {
    /// The topic's name.
    pub name: Str,
    /// How many partitions; -1 for the broker's default, and when `assignments` says it.
    pub num_partitions: i32,
    /// How many replicas of each; -1 for the broker's default, and when `assignments` says it.
    pub replication_factor: i16,
    /// Which brokers hold which partition; empty to let the controller choose.
    pub assignments: Vec<CreatableReplicaAssignment>,
    /// The settings that differ from the broker's defaults.
    pub configs: Vec<CreatableTopicConfig>,
}

/// The brokers of one partition.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=7, flexible = 5..)]
pub struct CreatableReplicaAssignment {
    /// The partition's number.
    pub partition_index: i32,
    /// The brokers that shall hold it, the preferred leader first.
    pub broker_ids: Vec<i32>,
}

/// A setting of a new topic.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=7, flexible = 5..)]
pub struct CreatableTopicConfig {
    /// The setting's name, `cleanup.policy` for instance.
    pub name: Str,
    /// Its value. The schema allows null, the controller does not.
    pub value: Option<Str>,
}

/// Which topics were created.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 19, versions = 0..=7, flexible = 5..)]
pub struct CreateTopicsResponse {
    /// For how many milliseconds a quota makes the client wait; 0 for none.
    #[field(versions = 2.., ignorable)]
    pub throttle_time_ms: i32,
    /// The outcome for each topic.
    pub topics: Vec<CreatableTopicResult>,
}

/// The outcome for one topic.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=7, flexible = 5..)]
pub struct CreatableTopicResult {
    /// The topic's name.
    pub name: Str,
    /// The new topic's id.
    #[field(versions = 7.., ignorable)]
    pub topic_id: Uuid,
    /// Why the topic was not created, 0 if it was.
    pub error_code: i16,
    /// The reason in words, `None` if the broker gives none.
    #[field(versions = 1.., ignorable)]
    pub error_message: Option<Str>,
    /// Why the broker does not tell the settings, TOPIC_AUTHORIZATION_FAILED for instance; 0 if it
    /// does.
    #[field(versions = 5.., tag = 0, ignorable)]
    pub topic_config_error_code: i16,
    /// How many partitions the topic has, -1 if the broker does not tell.
    #[field(versions = 5.., ignorable, default = -1)]
    pub num_partitions: i32,
    /// How many replicas each has, -1 if the broker does not tell.
    #[field(versions = 5.., ignorable, default = -1)]
    pub replication_factor: i16,
    /// The topic's settings, `None` if the broker does not tell.
    #[field(versions = 5.., nullable = 5.., ignorable)]
    pub configs: Option<Vec<CreatableTopicConfigs>>,
}

/// A setting of the topic as it was created.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 5..=7, flexible = 5..)]
pub struct CreatableTopicConfigs {
    /// The setting's name.
    pub name: Str,
    /// Its value, `None` if it is sensitive or has none.
    pub value: Option<Str>,
    /// Whether it cannot be changed.
    pub read_only: bool,
    /// Where the value comes from: 1 the topic itself, 2 to 4 the brokers' settings, 5 Kafka's
    /// default; -1 unknown.
    #[field(ignorable, default = -1)]
    pub config_source: i8,
    /// Whether the value is secret and therefore not told.
    pub is_sensitive: bool,
}
