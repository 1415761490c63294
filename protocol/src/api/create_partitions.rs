//! CreatePartitions (37): gives topics more partitions.
//!
//! Version 3 may be refused for a quota (KIP-599).

use crate::{Message, Str};

/// Raises the number of partitions of topics. It cannot be lowered.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 37, versions = 0..=3, flexible = 2.., response = CreatePartitionsResponse)]
pub struct CreatePartitionsRequest {
    /// The topics.
    pub topics: Vec<CreatePartitionsTopic>,
    /// For how many milliseconds the broker may wait until the partitions are there.
    pub timeout_ms: i32,
    /// Whether only to check the request and create nothing.
    pub validate_only: bool,
}

/// One topic and its new size.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=3, flexible = 2..)]
pub struct CreatePartitionsTopic {
    /// The topic's name.
    pub name: Str,
    /// How many partitions it shall have in all.
    pub count: i32,
    /// The brokers of each new partition; `None` to let the controller choose.
    pub assignments: Option<Vec<CreatePartitionsAssignment>>,
}

/// The brokers of one new partition.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=3, flexible = 2..)]
pub struct CreatePartitionsAssignment {
    /// The brokers that shall hold it, the preferred leader first.
    pub broker_ids: Vec<i32>,
}

/// Which topics have grown.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 37, versions = 0..=3, flexible = 2..)]
pub struct CreatePartitionsResponse {
    /// For how many milliseconds a quota makes the client wait; 0 for none.
    pub throttle_time_ms: i32,
    /// The outcome for each topic.
    pub results: Vec<CreatePartitionsTopicResult>,
}

/// The outcome for one topic.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=3, flexible = 2..)]
pub struct CreatePartitionsTopicResult {
    /// The topic's name.
    pub name: Str,
    /// Why the topic has not grown, 0 if it has.
    pub error_code: i16,
    /// The reason in words, `None` if the broker gives none.
    #[field(default = null)]
    pub error_message: Option<Str>,
}
