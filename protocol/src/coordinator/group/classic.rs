//! Committed offsets, and classic groups.

use crate::{Bytes, Message, Str, Uuid};

/// Whose offset it is: as [`OffsetCommitKey`], from Kafka 0.8.2.
#[derive(Clone, Debug, PartialEq, Eq, Message)]
#[message(versions = 0)]
pub struct LegacyOffsetCommitKey {
    /// The group.
    pub group: Str,
    /// The topic's name.
    pub topic: Str,
    /// The partition's number.
    pub partition: i32,
}

/// A committed offset as Kafka 0.8.2 wrote it.
#[derive(Clone, Debug, PartialEq, Eq, Message)]
#[message(versions = 0)]
pub struct LegacyOffsetCommitValue {
    /// The offset of the next record to read.
    pub offset: i64,
    /// What the committer put beside it.
    pub metadata: Str,
    /// When it was committed, in milliseconds since 1970.
    pub commit_timestamp: i64,
}

/// Whose offset it is.
#[derive(Clone, Debug, PartialEq, Eq, Message)]
#[message(versions = 0)]
pub struct OffsetCommitKey {
    /// The group.
    pub group: Str,
    /// The topic's name.
    pub topic: Str,
    /// The partition's number.
    pub partition: i32,
}

/// A committed offset.
///
/// Version 1 says when it expires; 2 leaves that to the group's end (KIP-211); 3 adds the leader epoch (KIP-320); 4 is
/// flexible (KIP-915), and has the topic's id. Kafka 3.9 writes 3, and 4.4 writes 4 where it knows the id.
#[derive(Clone, Debug, PartialEq, Eq, Message)]
#[message(versions = 0..=4, flexible = 4..)]
pub struct OffsetCommitValue {
    /// The offset of the next record to read.
    pub offset: i64,
    /// The leader epoch of the last record that was dealt with, -1 if unknown.
    #[field(versions = 3.., ignorable, default = -1)]
    pub leader_epoch: i32,
    /// What the committer put beside it.
    pub metadata: Str,
    /// When it was committed, in milliseconds since 1970.
    pub commit_timestamp: i64,
    /// When it expires, in milliseconds since 1970; -1 for as long as the group lives and the broker is set up to.
    #[field(versions = 1, ignorable, default = -1)]
    pub expire_timestamp: i64,
    /// The topic's id, zero if the commit named the topic by name.
    #[field(versions = 4.., tag = 0, ignorable)]
    pub topic_id: Uuid,
}

/// A classic group.
#[derive(Clone, Debug, PartialEq, Eq, Message)]
#[message(versions = 0)]
pub struct GroupMetadataKey {
    /// The group.
    pub group: Str,
}

/// A classic group and its members as they are after a rebalance.
///
/// Version 1 has rebalance timeouts (KIP-62); 2 dates the state (KIP-211); 3 knows static members (KIP-345); 4 is
/// flexible (KIP-915). Kafka 3.9 and 4.4 write 3.
#[derive(Clone, Debug, PartialEq, Eq, Message)]
#[message(versions = 0..=4, flexible = 4..)]
pub struct GroupMetadataValue {
    /// What kind of clients the group is for: `consumer` or `connect`; empty if it has only ever stored offsets.
    pub protocol_type: Str,
    /// The generation, one more with each rebalance.
    pub generation: i32,
    /// The assignor that the members agreed on, `None` if there are none.
    pub protocol: Option<Str>,
    /// The id of the member that makes the assignments, `None` if there are none.
    pub leader: Option<Str>,
    /// When the group came into its state, in milliseconds since 1970; -1 if unknown.
    #[field(versions = 2.., ignorable, default = -1)]
    pub current_state_timestamp: i64,
    /// The members.
    pub members: Vec<MemberMetadata>,
}

/// A member of a classic group.
#[derive(Clone, Debug, PartialEq, Eq, Message)]
#[message(versions = 0..=4, flexible = 4..)]
pub struct MemberMetadata {
    /// The member's id.
    pub member_id: Str,
    /// The name of a static member, `None` for a dynamic one.
    #[field(versions = 3.., nullable = 3.., ignorable, default = null)]
    pub group_instance_id: Option<Str>,
    /// What the client calls itself.
    pub client_id: Str,
    /// The host that it connects from.
    pub client_host: Str,
    /// For how many milliseconds a rebalance waits for the member; -1 for as long as the session timeout.
    #[field(versions = 1.., ignorable, default = -1)]
    pub rebalance_timeout: i32,
    /// After how many milliseconds without a heartbeat it counts as gone.
    pub session_timeout: i32,
    /// What it wants: for a consumer, a [`Subscription`](crate::group::Subscription).
    pub subscription: Bytes,
    /// What it was given: for a consumer, an [`Assignment`](crate::group::Assignment).
    pub assignment: Bytes,
}
