//! What a test sees of a group.

use std::fmt;

use bytes::Bytes;
use krafka_protocol::Str;

/// Where a classic group is in its life.
///
/// ```text
///             first member                 all joined, or time is up            the leader's assignment
///     Empty ───────────────▶ Preparing ────────────────────────▶ Completing ─────────────────────────▶ Stable
///       ▲                    Rebalance ◀──── join, leave, loss ── Rebalance                              │
///       └──── nobody left ──────┘  ▲─────────────────────────── join, leave, loss ───────────────────────┘
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum GroupState {
    /// No members; there may be offsets.
    Empty,
    /// Members are asked to join again; the answers wait until all have.
    PreparingRebalance,
    /// The generation is known, its assignment is not.
    CompletingRebalance,
    /// Every member has been told its assignment, or can ask for it.
    Stable,
}

impl fmt::Display for GroupState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "Empty",
            Self::PreparingRebalance => "PreparingRebalance",
            Self::CompletingRebalance => "CompletingRebalance",
            Self::Stable => "Stable",
        })
    }
}

/// A group at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupView {
    /// Where the group is in its life.
    pub state: GroupState,
    /// Counts the rebalances; 0 before the first.
    pub generation: i32,
    /// `consumer` for consumers; `None` before the first member.
    pub protocol_type: Option<Str>,
    /// The assignor that the members voted for.
    pub protocol: Option<Str>,
    /// The id of the member that computes the assignment.
    pub leader: Option<Str>,
    /// The members, oldest first.
    pub members: Vec<MemberView>,
}

/// A member at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberView {
    /// The id that the coordinator gave it.
    pub id: Str,
    /// Its name, if it is a static member.
    pub instance_id: Option<Str>,
    /// The client id of its connection.
    pub client_id: Str,
    /// The address of its connection.
    pub client_host: Str,
    /// What it told about itself for the chosen protocol.
    pub metadata: Bytes,
    /// What it was assigned in the current generation.
    pub assignment: Bytes,
}
