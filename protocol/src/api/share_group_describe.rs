//! ShareGroupDescribe (77): an administrator's tool asks a coordinator for the state of share groups.
//!
//! Each group is asked of its own coordinator. How far a group has read is told by DescribeShareGroupOffsets.
//!
//! Version 0 was early access in Kafka 3.9 and 4.0, unstable and withdrawn since; 1 is the first stable one (KIP-932).

use crate::{Message, Str, Uuid};

/// Asks for the state of groups.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 77, versions = 1..=1, unstable = 0, flexible = 0.., response = ShareGroupDescribeResponse)]
pub struct ShareGroupDescribeRequest {
    /// The groups.
    pub group_ids: Vec<Str>,
    /// Whether to tell what the sender may do with each group.
    pub include_authorized_operations: bool,
}

/// The state of each group that was asked for.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 77, versions = 1..=1, unstable = 0, flexible = 0..)]
pub struct ShareGroupDescribeResponse {
    /// For how many milliseconds a quota makes the client wait; 0 for none.
    pub throttle_time_ms: i32,
    /// The groups.
    pub groups: Vec<DescribedGroup>,
}

/// The state of one group.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=1, flexible = 0..)]
pub struct DescribedGroup {
    /// Why there is no state, 0 if there is: GROUP_ID_NOT_FOUND (also for a group of another type),
    /// GROUP_AUTHORIZATION_FAILED, TOPIC_AUTHORIZATION_FAILED where the members' topics must not be told,
    /// INVALID_GROUP_ID, INVALID_REQUEST, UNSUPPORTED_VERSION while the cluster's `share.version` is 0;
    /// NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE and COORDINATOR_LOAD_IN_PROGRESS are worth another try.
    pub error_code: i16,
    /// The reason in words, `None` without an error.
    #[field(default = null)]
    pub error_message: Option<Str>,
    /// The group.
    pub group_id: Str,
    /// `Empty`, `Stable` or `Dead`; empty after an error.
    pub group_state: Str,
    /// Goes up with each change to members, subscriptions or topics that calls for another assignment.
    pub group_epoch: i32,
    /// The group epoch that the assignment was made for. It lags behind while the coordinator assigns.
    pub assignment_epoch: i32,
    /// The assignor that made it, `simple` for instance.
    pub assignor_name: Str,
    /// The members.
    pub members: Vec<Member>,
    /// A bit set of what the caller may do to the group; `i32::MIN` when that was not asked for.
    #[field(default = -2147483648)]
    pub authorized_operations: i32,
}

/// A member of a group.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=1, flexible = 0..)]
pub struct Member {
    /// The member's id.
    pub member_id: Str,
    /// The rack where it stands, `None` if it does not say.
    #[field(default = null)]
    pub rack_id: Option<Str>,
    /// The group epoch up to which the member has caught up.
    pub member_epoch: i32,
    /// The client id in its last heartbeat's header.
    pub client_id: Str,
    /// The address where that came from.
    pub client_host: Str,
    /// The topics that it subscribes to.
    pub subscribed_topic_names: Vec<Str>,
    /// The partitions that it reads; others may read them too.
    pub assignment: Assignment,
}

/// Partitions of a member.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=1, flexible = 0..)]
pub struct Assignment {
    /// The partitions, by topic.
    pub topic_partitions: Vec<TopicPartitions>,
}

/// Partitions of one topic.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=1, flexible = 0..)]
pub struct TopicPartitions {
    /// The topic's id.
    pub topic_id: Uuid,
    /// Its name.
    pub topic_name: Str,
    /// The numbers of the partitions.
    pub partitions: Vec<i32>,
}
