//! `__share_group_state`: how far share groups have come in each partition (KIP-932).
//!
//! A snapshot says all about a share-partition; the updates behind it, what has changed since. Once a newer snapshot is
//! there the coordinator deletes what lies before it, for this topic is not compacted. The preview in Kafka 4.0 wrote
//! other fields under the same versions, and Kafka does not read them any more.

use crate::{Message, Str, Uuid};

log! {
    /// A record of `__share_group_state`.
    ShareRecord {
        /// Everything about a share-partition.
        ShareSnapshot = 0: ShareSnapshotKey, ShareSnapshotValue;
        /// What has changed about a share-partition.
        ShareUpdate = 1: ShareUpdateKey, ShareUpdateValue;
    }
}

/// A partition as one share group sees it.
#[derive(Clone, Debug, PartialEq, Eq, Message)]
#[message(versions = 0)]
pub struct ShareSnapshotKey {
    /// The group.
    pub group_id: Str,
    /// The topic's id.
    pub topic_id: Uuid,
    /// The partition's number.
    pub partition: i32,
}

/// Everything about a share-partition.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0, flexible = 0..)]
pub struct ShareSnapshotValue {
    /// The number of this snapshot: 0, then one more each time.
    pub snapshot_epoch: i32,
    /// The group's epoch when the state was made, or its offset last set from outside.
    pub state_epoch: i32,
    /// The epoch of the partition's leader, who wrote this.
    pub leader_epoch: i32,
    /// The first offset that the group has not done with; -1 if it has not begun.
    pub start_offset: i64,
    /// How many offsets from there on the group has done with, -1 if nobody has counted (Kafka 4.2, KIP-1226).
    #[field(tag = 0, default = -1)]
    pub delivery_complete_count: i32,
    /// When the state was first made, in milliseconds since 1970.
    pub create_timestamp: i64,
    /// When this snapshot was written, in milliseconds since 1970.
    pub write_timestamp: i64,
    /// The states of offsets behind the start, lowest first; what is not in them is available.
    pub state_batches: Vec<StateBatch>,
}

/// Offsets in one state.
#[derive(Clone, Debug, PartialEq, Eq, Message)]
#[message(versions = 0, flexible = 0..)]
pub struct StateBatch {
    /// The first offset.
    pub first_offset: i64,
    /// The last offset, included.
    pub last_offset: i64,
    /// 0 available, 2 acknowledged, 4 given up.
    pub delivery_state: i8,
    /// How often the records were handed out.
    pub delivery_count: i16,
}

/// A partition as one share group sees it.
#[derive(Clone, Debug, PartialEq, Eq, Message)]
#[message(versions = 0)]
pub struct ShareUpdateKey {
    /// The group.
    pub group_id: Str,
    /// The topic's id.
    pub topic_id: Uuid,
    /// The partition's number.
    pub partition: i32,
}

/// What has changed about a share-partition.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0, flexible = 0..)]
pub struct ShareUpdateValue {
    /// The number of the snapshot that this adds to.
    pub snapshot_epoch: i32,
    /// The epoch of the partition's leader, who wrote this.
    pub leader_epoch: i32,
    /// The first offset that the group has not done with, -1 if that has not changed.
    pub start_offset: i64,
    /// How many offsets from there on the group has done with, -1 if nobody has counted (Kafka 4.2, KIP-1226).
    #[field(tag = 0, default = -1)]
    pub delivery_complete_count: i32,
    /// The states that have changed.
    pub state_batches: Vec<StateBatch>,
}
