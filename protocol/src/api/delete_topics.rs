//! DeleteTopics (20): deletes topics with all their records.
//!
//! Version 1 tells for how long a quota mutes the client; 3 may say that deleting is disabled; 5 adds messages and
//! may be refused for a quota (KIP-599); 6 takes topics by name or by id (KIP-516).

use crate::{Message, Str, Uuid};

/// Deletes topics.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 20, versions = 0..=6, flexible = 4.., response = DeleteTopicsResponse)]
pub struct DeleteTopicsRequest {
    /// The topics, from version 6 on.
    #[field(versions = 6..)]
    pub topics: Vec<DeleteTopicState>,
    /// The names of the topics, before version 6.
    #[field(versions = ..=5, ignorable)]
    pub topic_names: Vec<Str>,
    /// For how many milliseconds the broker may wait until the topics are gone.
    pub timeout_ms: i32,
}

/// A topic to delete: its name, or its id, not both.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 6..=6, flexible = 4..)]
pub struct DeleteTopicState {
    /// The topic's name, `None` when it is named by id.
    #[field(default = null)]
    pub name: Option<Str>,
    /// The topic's id, zero when it is named by name.
    pub topic_id: Uuid,
}

/// Which topics were deleted.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 20, versions = 0..=6, flexible = 4..)]
pub struct DeleteTopicsResponse {
    /// For how many milliseconds a quota makes the client wait; 0 for none.
    #[field(versions = 1.., ignorable)]
    pub throttle_time_ms: i32,
    /// The outcome for each topic.
    pub responses: Vec<DeletableTopicResult>,
}

/// The outcome for one topic.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=6, flexible = 4..)]
pub struct DeletableTopicResult {
    /// The topic's name, `None` if it was named by an id that the broker does not know.
    #[field(nullable = 6..)]
    pub name: Option<Str>,
    /// The topic's id, zero if it was named by a name that the broker does not know.
    #[field(versions = 6.., ignorable)]
    pub topic_id: Uuid,
    /// Why the topic was not deleted, 0 if it was.
    pub error_code: i16,
    /// The reason in words, `None` if the broker gives none.
    #[field(versions = 5.., nullable = 5.., ignorable, default = null)]
    pub error_message: Option<Str>,
}
