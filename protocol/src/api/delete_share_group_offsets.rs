//! DeleteShareGroupOffsets (92): makes a share group without members forget topics (KIP-932), sent by tools to the
//! group's coordinator.

use crate::{Message, Str, Uuid};

/// Makes a share group forget topics: it begins anew if it reads them again.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 92, versions = 0, flexible = 0.., response = DeleteShareGroupOffsetsResponse)]
pub struct DeleteShareGroupOffsetsRequest {
    /// The group, which must have no members.
    pub group_id: Str,
    /// The topics, with all of their partitions.
    pub topics: Vec<DeleteShareGroupOffsetsRequestTopic>,
}

/// A topic to forget.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0, flexible = 0..)]
pub struct DeleteShareGroupOffsetsRequestTopic {
    /// The topic's name.
    pub topic_name: Str,
}

/// Whether the topics are forgotten.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 92, versions = 0, flexible = 0..)]
pub struct DeleteShareGroupOffsetsResponse {
    /// For how many milliseconds a quota makes the client wait; 0 for none.
    pub throttle_time_ms: i32,
    /// Why nothing was forgotten, 0 if the topics have the outcome. NON_EMPTY_GROUP while the group has members.
    pub error_code: i16,
    /// The reason in words, `None` if there is no error.
    #[field(default = null)]
    pub error_message: Option<Str>,
    /// The outcome for each topic.
    pub responses: Vec<DeleteShareGroupOffsetsResponseTopic>,
}

/// The outcome for one topic.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0, flexible = 0..)]
pub struct DeleteShareGroupOffsetsResponseTopic {
    /// The topic's name.
    pub topic_name: Str,
    /// The topic's id, zero if the broker does not know the topic.
    pub topic_id: Uuid,
    /// Why the topic was not forgotten, 0 if it was.
    pub error_code: i16,
    /// The reason in words, `None` if there is no error.
    #[field(default = null)]
    pub error_message: Option<Str>,
}
