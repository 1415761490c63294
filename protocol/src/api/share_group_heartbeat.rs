//! ShareGroupHeartbeat (76): a member of a share group joins, stays, and leaves; the coordinator assigns.
//!
//! What [`consumer_group_heartbeat`](super::consumer_group_heartbeat) is to consumer groups, for groups whose members
//! share partitions: several members may hold the same one, so nobody has to give anything up before another begins.
//! What did not change since the last heartbeat is left out of it, in both directions.
//!
//! Version 0 was early access in Kafka 3.9 and 4.0, unstable and withdrawn since; 1 is the first stable one (KIP-932).

use crate::{Message, Str, Uuid};

/// Tells the coordinator that the member is there, and what it wants.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 76, versions = 1..=1, unstable = 0, flexible = 0.., response = ShareGroupHeartbeatResponse)]
pub struct ShareGroupHeartbeatRequest {
    /// The group.
    pub group_id: Str,
    /// The member, by an id that stays the same as long as its process lives: a random UUID as text, which the member
    /// draws itself. In version 0 it may be empty on joining, and the coordinator draws it.
    pub member_id: Str,
    /// The epoch that the member got with the last answer: 0 to join, -1 to leave.
    pub member_epoch: i32,
    /// The rack where the member stands; `None` if it does not say, or if unchanged.
    #[field(default = null)]
    pub rack_id: Option<Str>,
    /// The topics that the member subscribes to; `None` if unchanged. On joining there has to be one at least.
    #[field(default = null)]
    pub subscribed_topic_names: Option<Vec<Str>>,
}

/// The member's epoch, and what it is to read.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 76, versions = 1..=1, unstable = 0, flexible = 0..)]
pub struct ShareGroupHeartbeatResponse {
    /// For how many milliseconds a quota makes the member wait; 0 for none.
    pub throttle_time_ms: i32,
    /// What went wrong, 0 for nothing.
    ///
    /// - The coordinator is elsewhere or not ready: NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE,
    ///   COORDINATOR_LOAD_IN_PROGRESS.
    /// - The member joins again: UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH.
    /// - The member cannot go on: GROUP_AUTHORIZATION_FAILED, TOPIC_AUTHORIZATION_FAILED, INVALID_REQUEST,
    ///   GROUP_MAX_SIZE_REACHED, GROUP_ID_NOT_FOUND (also for a group of another type), or UNSUPPORTED_VERSION while
    ///   the cluster's `share.version` is 0.
    pub error_code: i16,
    /// The reason in words, `None` without an error.
    #[field(default = null)]
    pub error_message: Option<Str>,
    /// The member's id, `None` after an error. In version 0 it may be one that the coordinator drew.
    #[field(default = null)]
    pub member_id: Option<Str>,
    /// The epoch to send with the next heartbeat; -1 after leaving.
    pub member_epoch: i32,
    /// After how many milliseconds the next heartbeat is due; 0 after leaving.
    pub heartbeat_interval_ms: i32,
    /// The partitions that the member is to read from now on, `None` if unchanged.
    #[field(default = null)]
    pub assignment: Option<Assignment>,
}

/// What a member is to read.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=1, flexible = 0..)]
pub struct Assignment {
    /// All partitions of the member, those that it has already among them; others may have them too.
    pub topic_partitions: Vec<TopicPartitions>,
}

/// Partitions of one topic.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=1, flexible = 0..)]
pub struct TopicPartitions {
    /// The topic's id.
    pub topic_id: Uuid,
    /// The numbers of the partitions.
    pub partitions: Vec<i32>,
}
