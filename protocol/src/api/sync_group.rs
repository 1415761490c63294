//! SyncGroup (14): the leader of a classic group hands out the assignment, the others collect
//! theirs.
//!
//! Version 3 knows static members (KIP-345); 5 lets the broker check that all talk of the same
//! protocol (KIP-559).

use crate::{Bytes, Message, Str};

/// Asks for the member's assignment in a generation; the leader brings everybody's.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 14, versions = 0..=5, flexible = 4.., response = SyncGroupResponse)]
pub struct SyncGroupRequest {
    /// The group.
    pub group_id: Str,
    /// The generation that the member joined.
    pub generation_id: i32,
    /// The member's id.
    pub member_id: Str,
    /// The name of a static member, `None` for a dynamic one.
    #[field(versions = 3.., nullable = 3.., default = null)]
    pub group_instance_id: Option<Str>,
    /// The kind of group that the member believes to be in; `None` skips the check.
    #[field(versions = 5.., nullable = 5.., ignorable, default = null)]
    pub protocol_type: Option<Str>,
    /// The assignor that the member believes to be chosen; `None` skips the check.
    #[field(versions = 5.., nullable = 5.., ignorable, default = null)]
    pub protocol_name: Option<Str>,
    /// Everybody's assignment from the leader; empty from the others.
    pub assignments: Vec<SyncGroupRequestAssignment>,
}

/// The assignment of one member.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=5, flexible = 4..)]
pub struct SyncGroupRequestAssignment {
    /// The member's id.
    pub member_id: Str,
    /// What the member gets; an [`Assignment`](crate::group::Assignment) for consumers.
    pub assignment: Bytes,
}

/// The member's assignment, once the leader has handed it in.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 14, versions = 0..=5, flexible = 4..)]
pub struct SyncGroupResponse {
    /// For how many milliseconds a quota makes the client wait; 0 for none.
    #[field(versions = 1.., ignorable)]
    pub throttle_time_ms: i32,
    /// Why there is no assignment, 0 if there is.
    pub error_code: i16,
    /// The kind of group, `None` after an error.
    #[field(versions = 5.., nullable = 5.., ignorable, default = null)]
    pub protocol_type: Option<Str>,
    /// The assignor of this generation, `None` after an error.
    #[field(versions = 5.., nullable = 5.., ignorable, default = null)]
    pub protocol_name: Option<Str>,
    /// What the member gets; an [`Assignment`](crate::group::Assignment) for consumers, empty after
    /// an error.
    pub assignment: Bytes,
}
