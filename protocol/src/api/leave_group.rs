//! LeaveGroup (13): takes members out of a classic group at once, without waiting for their
//! sessions to end.
//!
//! Before version 3 a member leaves alone; from then on a list may go, static members by name
//! (KIP-345). Version 5 says why (KIP-800).

use crate::{Message, Str};

/// Takes members out of a group.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 13, versions = 0..=5, flexible = 4.., response = LeaveGroupResponse)]
pub struct LeaveGroupRequest {
    /// The group.
    pub group_id: Str,
    /// The one member that leaves, before version 3.
    #[field(versions = ..=2)]
    pub member_id: Str,
    /// The members that leave, from version 3 on.
    #[field(versions = 3..)]
    pub members: Vec<MemberIdentity>,
}

/// A member that leaves, by its id, its name or both.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 3..=5, flexible = 4..)]
pub struct MemberIdentity {
    /// The member's id, empty if only its name is known.
    pub member_id: Str,
    /// The name of a static member, `None` for a dynamic one.
    #[field(default = null)]
    pub group_instance_id: Option<Str>,
    /// Why it leaves, for the broker's log.
    #[field(versions = 5.., nullable = 5.., ignorable, default = null)]
    pub reason: Option<Str>,
}

/// Whether they have left.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 13, versions = 0..=5, flexible = 4..)]
pub struct LeaveGroupResponse {
    /// For how many milliseconds a quota makes the client wait; 0 for none.
    #[field(versions = 1.., ignorable)]
    pub throttle_time_ms: i32,
    /// The error of the whole request, 0 for none.
    pub error_code: i16,
    /// The outcome for each member.
    #[field(versions = 3..)]
    pub members: Vec<MemberResponse>,
}

/// The outcome for one member.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 3..=5, flexible = 4..)]
pub struct MemberResponse {
    /// The member's id, as it was asked for.
    pub member_id: Str,
    /// The name of a static member, `None` for a dynamic one.
    pub group_instance_id: Option<Str>,
    /// Why the member is still there, or never was; 0 if it has left.
    pub error_code: i16,
}
