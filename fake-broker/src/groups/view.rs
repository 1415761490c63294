//! What a test sees of a group.

use std::fmt;

use bytes::Bytes;
use krafka_protocol::Str;

/// Which protocol a group is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum GroupKind {
    /// JoinGroup and SyncGroup: the members assign.
    Classic,
    /// KIP-848: the coordinator assigns.
    Consumer,
    /// KIP-932: the members share partitions.
    Share,
    /// KIP-1071: the members share the tasks of a topology.
    Streams,
}

/// Where a group is in its life.
///
/// A classic group:
///
/// ```text
///             first member                 all joined, or time is up            the leader's assignment
///     Empty ───────────────▶ Preparing ────────────────────────▶ Completing ─────────────────────────▶ Stable
///       ▲                    Rebalance ◀──── join, leave, loss ── Rebalance                              │
///       └──── nobody left ──────┘  ▲─────────────────────────── join, leave, loss ───────────────────────┘
/// ```
///
/// A group of KIP-848:
///
/// ```text
///             first member              next heartbeat               all have given up and taken over
///     Empty ───────────────▶ Assigning ────────────────▶ Reconciling ─────────────────────────────────▶ Stable
///       ▲                        ▲──── join, leave, loss, other topics ──┴────────────────────────────────┤
///       └────────────────────────────────────────── nobody left ─────────────────────────────────────────┘
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum GroupState {
    /// No members; there may be offsets.
    Empty,
    /// Members are asked to join again; the answers wait until all have.
    PreparingRebalance,
    /// The generation is known, its assignment is not.
    CompletingRebalance,
    /// The topics of a streams group's topology are not as they must be.
    NotReady,
    /// The group's epoch is ahead of its assignment's.
    Assigning,
    /// Some member is still on its way to the assignment.
    Reconciling,
    /// Every member has been told its assignment, or can ask for it.
    Stable,
}

impl GroupKind {
    /// Kafka's word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Classic => "classic",
            Self::Consumer => "consumer",
            Self::Share => "share",
            Self::Streams => "streams",
        }
    }
}

impl fmt::Display for GroupKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl GroupState {
    /// Kafka's word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Empty => "Empty",
            Self::PreparingRebalance => "PreparingRebalance",
            Self::CompletingRebalance => "CompletingRebalance",
            Self::NotReady => "NotReady",
            Self::Assigning => "Assigning",
            Self::Reconciling => "Reconciling",
            Self::Stable => "Stable",
        }
    }
}

impl fmt::Display for GroupState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A group at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupView {
    /// Which protocol it is of.
    pub kind: GroupKind,
    /// Where the group is in its life.
    pub state: GroupState,
    /// Counts the rebalances; 0 before the first. For a group of KIP-848, its epoch.
    pub generation: i32,
    /// `consumer` for consumers; `None` before the first member.
    pub protocol_type: Option<Str>,
    /// The assignor that the members voted for.
    pub protocol: Option<Str>,
    /// The id of the member that computes the assignment; `None` where the coordinator does.
    pub leader: Option<Str>,
    /// The members: of a classic group the oldest first, else by id.
    pub members: Vec<MemberView>,
}

impl GroupView {
    /// Whether so many members are in, and all of them know their assignment. Without members, a group is empty.
    pub fn is_stable_with(&self, members: usize) -> bool {
        let settled = if members == 0 { GroupState::Empty } else { GroupState::Stable };
        self.state == settled && self.members.len() == members
    }
}

/// A member at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberView {
    /// The id that the coordinator gave it, or that it gave itself.
    pub id: Str,
    /// Its name, if it is a static member.
    pub instance_id: Option<Str>,
    /// The client id of its connection.
    pub client_id: Str,
    /// The address of its connection.
    pub client_host: Str,
    /// The protocol that the member itself speaks.
    pub kind: GroupKind,
    /// The generation or member epoch that it has come to.
    pub epoch: i32,
    /// What it told about itself for the chosen protocol; empty for a member of KIP-848.
    pub metadata: Bytes,
    /// What it was assigned in the current generation; empty for a member of KIP-848.
    pub assignment: Bytes,
    /// The partitions that it holds, by topic and partition; none if they cannot be read out of the assignment.
    pub partitions: Vec<(Str, i32)>,
    /// The partitions that it shall hold in the end.
    pub target: Vec<(Str, i32)>,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whoever waits for a group to be left waits for no members.
    #[test]
    fn group_without_members_is_stable_when_it_is_empty() {
        let view = |state| GroupView {
            kind: GroupKind::Classic,
            state,
            generation: 1,
            protocol_type: None,
            protocol: None,
            leader: None,
            members: Vec::new(),
        };

        assert!(view(GroupState::Empty).is_stable_with(0));
        assert!(!view(GroupState::Empty).is_stable_with(1));
        assert!(!view(GroupState::PreparingRebalance).is_stable_with(0));
    }
}
