//! JoinGroup (11): a member of a classic group asks to take part in the next generation.
//!
//! Version 1 separates the rebalance timeout from the session's; 4 makes a new member come back
//! with the id it was given (KIP-394); 5 knows static members (KIP-345); 7 echoes the protocol type
//! (KIP-559); 8 says why (KIP-800); 9 can spare a static leader the assignment (KIP-814).

use crate::{Bytes, Message, Str};

/// Joins a group, or joins it again after a rebalance was called.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 11, versions = 0..=9, flexible = 6.., response = JoinGroupResponse)]
pub struct JoinGroupRequest {
    /// The group.
    pub group_id: Str,
    /// After how many milliseconds without a heartbeat the member is taken for dead.
    pub session_timeout_ms: i32,
    /// For how many milliseconds a rebalance waits for members to join; in version 0 the session
    /// timeout serves for both.
    #[field(versions = 1.., ignorable, default = -1)]
    pub rebalance_timeout_ms: i32,
    /// The member's id, empty the first time.
    pub member_id: Str,
    /// The name of a static member, `None` for a dynamic one.
    #[field(versions = 5.., nullable = 5.., default = null)]
    pub group_instance_id: Option<Str>,
    /// What kind of group it is: `consumer` for consumers, `connect` for Kafka Connect.
    pub protocol_type: Str,
    /// The assignors that the member can work with, the one it likes best first.
    pub protocols: Vec<JoinGroupRequestProtocol>,
    /// Why the member joins, for the broker's log.
    #[field(versions = 8.., nullable = 8.., ignorable, default = null)]
    pub reason: Option<Str>,
}

/// An assignor, and what the member tells it.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=9, flexible = 6..)]
pub struct JoinGroupRequestProtocol {
    /// The assignor's name, `range` for instance.
    pub name: Str,
    /// What the assignor needs to know of the member; a
    /// [`Subscription`](crate::group::Subscription) for consumers.
    pub metadata: Bytes,
}

/// The group's new generation, once all members have joined.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 11, versions = 0..=9, flexible = 6..)]
pub struct JoinGroupResponse {
    /// For how many milliseconds a quota makes the client wait; 0 for none.
    #[field(versions = 2.., ignorable)]
    pub throttle_time_ms: i32,
    /// Why the member has not joined, 0 if it has. MEMBER_ID_REQUIRED: join again with `member_id`.
    pub error_code: i16,
    /// The generation's number, -1 after an error.
    #[field(default = -1)]
    pub generation_id: i32,
    /// The kind of group, `None` after an error.
    #[field(versions = 7.., nullable = 7.., ignorable, default = null)]
    pub protocol_type: Option<Str>,
    /// The assignor that all members can work with; `None` or empty after an error.
    #[field(nullable = 7..)]
    pub protocol_name: Option<Str>,
    /// The member that is to make the assignment.
    pub leader: Str,
    /// Whether the leader leaves the assignment as it is: it is a static member that came back
    /// (KIP-814).
    #[field(versions = 9..)]
    pub skip_assignment: bool,
    /// The receiver's own id.
    pub member_id: Str,
    /// All members, for the leader; empty for the others.
    pub members: Vec<JoinGroupResponseMember>,
}

/// One member, as the leader sees it.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=9, flexible = 6..)]
pub struct JoinGroupResponseMember {
    /// The member's id.
    pub member_id: Str,
    /// The name of a static member, `None` for a dynamic one.
    #[field(versions = 5.., nullable = 5.., ignorable, default = null)]
    pub group_instance_id: Option<Str>,
    /// What the member told the chosen assignor.
    pub metadata: Bytes,
}
