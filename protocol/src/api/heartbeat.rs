//! Heartbeat (12): a member of a classic group says that it lives, and hears whether the group
//! rebalances.
//!
//! Version 3 knows static members (KIP-345).

use crate::{Message, Str};

/// Keeps a member's session alive.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 12, versions = 0..=4, flexible = 4.., response = HeartbeatResponse)]
pub struct HeartbeatRequest {
    /// The group.
    pub group_id: Str,
    /// The generation that the member is in.
    pub generation_id: i32,
    /// The member's id.
    pub member_id: Str,
    /// The name of a static member, `None` for a dynamic one.
    #[field(versions = 3.., nullable = 3.., default = null)]
    pub group_instance_id: Option<Str>,
}

/// How the group stands.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 12, versions = 0..=4, flexible = 4..)]
pub struct HeartbeatResponse {
    /// For how many milliseconds a quota makes the client wait; 0 for none.
    #[field(versions = 1.., ignorable)]
    pub throttle_time_ms: i32,
    /// 0 if all is well. REBALANCE_IN_PROGRESS: join again. UNKNOWN_MEMBER_ID: join as a new
    /// member.
    pub error_code: i16,
}
