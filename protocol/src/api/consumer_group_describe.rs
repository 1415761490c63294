//! ConsumerGroupDescribe (69): an administrator's tool asks a coordinator for the state of consumer groups.
//!
//! For the groups of the protocol of KIP-848; DescribeGroups is the one for classic groups. Each group is asked of its
//! own coordinator.
//!
//! Version 0 came with KIP-848; 1 tells members of the two protocols apart, while a group moves from one to the other
//! (KIP-1099).

use crate::{Message, Str, Uuid};

/// Asks for the state of groups.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 69, versions = 0..=1, flexible = 0.., response = ConsumerGroupDescribeResponse)]
pub struct ConsumerGroupDescribeRequest {
    /// The groups.
    pub group_ids: Vec<Str>,
    /// Whether to tell what the sender may do with each group.
    pub include_authorized_operations: bool,
}

/// The state of each group that was asked for.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 69, versions = 0..=1, flexible = 0..)]
pub struct ConsumerGroupDescribeResponse {
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
    /// INVALID_GROUP_ID, INVALID_REQUEST, UNSUPPORTED_VERSION while the cluster's `group.version` is 0;
    /// NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE and COORDINATOR_LOAD_IN_PROGRESS are worth another try.
    pub error_code: i16,
    /// The reason in words, `None` without an error.
    #[field(default = null)]
    pub error_message: Option<Str>,
    /// The group.
    pub group_id: Str,
    /// `Empty`, `Assigning`, `Reconciling`, `Stable` or `Dead`; empty after an error.
    pub group_state: Str,
    /// Goes up with each change to members, subscriptions or topics that calls for another assignment.
    pub group_epoch: i32,
    /// The group epoch that the target assignment was made for. It lags behind while the coordinator assigns.
    pub assignment_epoch: i32,
    /// The assignor that made it, `uniform` for instance.
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
    /// Its static name, `None` if it is a dynamic member.
    #[field(default = null)]
    pub instance_id: Option<Str>,
    /// The rack where it stands, `None` if it does not say.
    #[field(default = null)]
    pub rack_id: Option<Str>,
    /// The group epoch up to which the member has caught up.
    pub member_epoch: i32,
    /// The client id in its last heartbeat's header.
    pub client_id: Str,
    /// The address where that came from.
    pub client_host: Str,
    /// The topics that it subscribes to by name.
    pub subscribed_topic_names: Vec<Str>,
    /// The regular expression by which it subscribes, `None` if by names only.
    #[field(default = null)]
    pub subscribed_topic_regex: Option<Str>,
    /// The partitions that it holds.
    pub assignment: Assignment,
    /// The partitions that it shall hold in the end.
    pub target_assignment: Assignment,
    /// The protocol that the member speaks: 0 the classic one, 1 that of KIP-848; -1 unknown.
    #[field(versions = 1.., ignorable, default = -1)]
    pub member_type: i8,
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
