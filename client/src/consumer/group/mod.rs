//! Membership in a consumer group: who is in it, and who reads what.

pub(crate) mod classic;

use std::time::Duration;

use krafka_protocol::Str;

use crate::backoff::Backoff;

/// Who a member is to its coordinator. Commits and heartbeats speak in this name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    /// -1 outside of a group.
    pub(crate) generation: i32,
    /// Empty until the coordinator has given one.
    pub(crate) member_id: Str,
    pub(crate) group_instance_id: Option<Str>,
}

impl Identity {
    /// Nobody: a consumer that uses a group's offsets without being a member.
    pub(crate) fn outside() -> Self {
        Self { generation: -1, member_id: Str::default(), group_instance_id: None }
    }
}

/// How a member behaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MemberConfig {
    pub(crate) group_id: Str,
    pub(crate) group_instance_id: Option<Str>,
    /// Where it stands, if that is known (KIP-881).
    pub(crate) rack: Option<Str>,
    pub(crate) session_timeout: Duration,
    /// How long the group waits for its members to join a rebalance: the maximum poll interval.
    pub(crate) rebalance_timeout: Duration,
    pub(crate) heartbeat_interval: Duration,
    pub(crate) backoff: Backoff,
}
