//! ConsumerGroupHeartbeat (68): a member of a consumer group joins, stays, and leaves; the coordinator assigns.
//!
//! The one request of the protocol that replaces JoinGroup, SyncGroup, Heartbeat and LeaveGroup (KIP-848). It goes to
//! the group's coordinator. What did not change since the last heartbeat is left out of it, in both directions; after
//! an error, a member sends everything again. The coordinator takes partitions away and gives others bit by bit, and
//! the member says in `topic_partitions` what it still holds.
//!
//! Version 1 lets members subscribe by a regular expression that the coordinator evaluates (KIP-848), and demands that
//! they choose their id themselves (KIP-1082).

use crate::{Message, Str, Uuid};

/// Tells the coordinator that the member is there, and what it wants and holds.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 68, versions = 0..=1, flexible = 0.., response = ConsumerGroupHeartbeatResponse)]
pub struct ConsumerGroupHeartbeatRequest {
    /// The group.
    pub group_id: Str,
    /// The member, by an id that stays the same as long as its process lives. From version 1 on the member draws it, a
    /// random UUID as text; in version 0 it may be empty on joining, and the coordinator draws it.
    pub member_id: Str,
    /// The epoch that the member got with the last answer: 0 to join, -1 to leave for good; -2 when a static member
    /// leaves and will be back, so that its partitions are kept for it until the session times out.
    pub member_epoch: i32,
    /// The name that makes a member static (`group.instance.id`); `None` for a dynamic one, or if unchanged.
    #[field(default = null)]
    pub instance_id: Option<Str>,
    /// The rack where the member stands; `None` if it does not say, or if unchanged.
    #[field(default = null)]
    pub rack_id: Option<Str>,
    /// For how many milliseconds the coordinator waits for the member to give partitions up; -1 if unchanged.
    #[field(default = -1)]
    pub rebalance_timeout_ms: i32,
    /// The topics that the member subscribes to by name; `None` if unchanged.
    #[field(default = null)]
    pub subscribed_topic_names: Option<Vec<Str>>,
    /// The regular expression of RE2 by which the member subscribes besides; `None` if unchanged, empty to end that.
    #[field(versions = 1.., default = null)]
    pub subscribed_topic_regex: Option<Str>,
    /// The coordinator's assignor that the member would like, `uniform` for instance; `None` for no wish, or if
    /// unchanged.
    #[field(default = null)]
    pub server_assignor: Option<Str>,
    /// The partitions that the member holds; `None` if unchanged. On joining it holds none: an empty list.
    #[field(default = null)]
    pub topic_partitions: Option<Vec<TopicPartitions>>,
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

/// The member's epoch, and what it is to hold.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 68, versions = 0..=1, flexible = 0..)]
pub struct ConsumerGroupHeartbeatResponse {
    /// For how many milliseconds a quota makes the member wait; 0 for none.
    pub throttle_time_ms: i32,
    /// What went wrong, 0 for nothing.
    ///
    /// - The coordinator is elsewhere or not ready: NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE,
    ///   COORDINATOR_LOAD_IN_PROGRESS.
    /// - The member gives up its partitions and joins again: UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH.
    /// - Another member has the static name: UNRELEASED_INSTANCE_ID while it lives, FENCED_INSTANCE_ID to the one
    ///   that was replaced.
    /// - The member cannot go on: GROUP_AUTHORIZATION_FAILED, TOPIC_AUTHORIZATION_FAILED, INVALID_REQUEST,
    ///   UNSUPPORTED_ASSIGNOR, GROUP_MAX_SIZE_REACHED, GROUP_ID_NOT_FOUND (also for a group of another type),
    ///   UNSUPPORTED_VERSION while the cluster's `group.version` is 0, and from version 1 on
    ///   INVALID_REGULAR_EXPRESSION.
    pub error_code: i16,
    /// The reason in words, `None` without an error.
    #[field(default = null)]
    pub error_message: Option<Str>,
    /// The member's id, `None` after an error. In version 0 it may be one that the coordinator drew.
    #[field(default = null)]
    pub member_id: Option<Str>,
    /// The epoch to send with the next heartbeat; that of the request after leaving.
    pub member_epoch: i32,
    /// After how many milliseconds the next heartbeat is due; 0 after leaving.
    pub heartbeat_interval_ms: i32,
    /// The partitions that the member is to hold from now on, `None` if unchanged.
    #[field(default = null)]
    pub assignment: Option<Assignment>,
}

/// What a member is to hold.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=1, flexible = 0..)]
pub struct Assignment {
    /// All partitions of the member, those that it has already among them. Nobody else holds any of these, so it can
    /// begin at once; what is not among them it gives up.
    pub topic_partitions: Vec<TopicPartitions>,
}
