//! FetchSnapshot (59): reads a snapshot of the metadata log, piece by piece (KIP-630).
//!
//! A controller or broker sends it to the leader of the log when the leader's answer to a Fetch has named a snapshot:
//! what the replica lacks is no longer in the log. Version 1 says which log directory is to have it, and where a leader
//! is reached (KIP-853).

use crate::{Bytes, Message, Str, Uuid};

/// Asks for pieces of snapshots.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 59, versions = 0..=1, flexible = 0.., response = FetchSnapshotResponse)]
pub struct FetchSnapshotRequest {
    /// The cluster that the replica belongs to, `None` if it does not say.
    #[field(tag = 0, default = null)]
    pub cluster_id: Option<Str>,
    /// The id of the replica that fetches, -1 if it has none.
    #[field(default = -1)]
    pub replica_id: i32,
    /// How many bytes of snapshots the answer may have at most.
    #[field(default = 0x7fffffff)]
    pub max_bytes: i32,
    /// The snapshots, by topic. Kafka has them of `__cluster_metadata` 0 only.
    pub topics: Vec<TopicSnapshot>,
}

/// Snapshots of partitions of one topic to read.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=1, flexible = 0..)]
pub struct TopicSnapshot {
    /// The topic's name.
    pub name: Str,
    /// The snapshots, by partition.
    pub partitions: Vec<PartitionSnapshot>,
}

/// A snapshot to read, and from where.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=1, flexible = 0..)]
pub struct PartitionSnapshot {
    /// The partition's number.
    pub partition: i32,
    /// The leader epoch that the replica knows, -1 if none.
    pub current_leader_epoch: i32,
    /// Which snapshot.
    pub snapshot_id: SnapshotId,
    /// How many bytes of it the replica has already.
    pub position: i64,
    /// The replica's log directory; zero if it does not say.
    #[field(versions = 1.., tag = 0, ignorable)]
    pub replica_directory_id: Uuid,
}

/// A snapshot, named by where it ends.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=1, flexible = 0..)]
pub struct SnapshotId {
    /// The offset after the last record in the snapshot.
    pub end_offset: i64,
    /// The epoch of the last record in the snapshot.
    pub epoch: i32,
}

/// Pieces of snapshots.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 59, versions = 0..=1, flexible = 0..)]
pub struct FetchSnapshotResponse {
    /// For how many milliseconds a quota makes the replica wait; 0 for none.
    #[field(ignorable)]
    pub throttle_time_ms: i32,
    /// The error of the whole request, 0 for none. INCONSISTENT_CLUSTER_ID: the replica belongs to another cluster.
    /// INVALID_REQUEST: it asks for another number of snapshots than one.
    pub error_code: i16,
    /// The pieces, by topic.
    pub topics: Vec<TopicResponse>,
    /// Where the leaders named in the answers can be reached; absent if there are none.
    #[field(versions = 1.., tag = 0)]
    pub node_endpoints: Vec<NodeEndpoint>,
}

/// Pieces of snapshots of partitions of one topic.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=1, flexible = 0.., name = "TopicSnapshot")]
pub struct TopicResponse {
    /// The topic's name.
    pub name: Str,
    /// The pieces, by partition.
    pub partitions: Vec<PartitionResponse>,
}

/// A piece of one snapshot.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=1, flexible = 0.., name = "PartitionSnapshot")]
pub struct PartitionResponse {
    /// The partition's number.
    pub index: i32,
    /// Why there is no piece, 0 if there is. SNAPSHOT_NOT_FOUND: the leader has deleted the snapshot, fetch the log to
    /// hear of the next one. POSITION_OUT_OF_RANGE: the snapshot is not that long. FENCED_LEADER_EPOCH,
    /// UNKNOWN_LEADER_EPOCH, NOT_LEADER_OR_FOLLOWER: look at `current_leader`.
    pub error_code: i16,
    /// Which snapshot.
    pub snapshot_id: SnapshotId,
    /// Who leads the partition; absent if the receiver does and there is no error.
    #[field(tag = 0)]
    pub current_leader: LeaderIdAndEpoch,
    /// How many bytes the whole snapshot has.
    pub size: i64,
    /// How many bytes of it lie before this piece.
    pub position: i64,
    /// The piece: bytes of record batches, which may begin and end anywhere inside one.
    #[field(records)]
    pub unaligned_records: Bytes,
}

/// The leader of a partition, as far as the answering controller knows.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=1, flexible = 0..)]
pub struct LeaderIdAndEpoch {
    /// The leader's id, -1 if unknown.
    pub leader_id: i32,
    /// The leader's epoch.
    pub leader_epoch: i32,
}

/// Where a controller can be reached.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 1..=1, flexible = 0..)]
pub struct NodeEndpoint {
    /// The controller's id.
    pub node_id: i32,
    /// The host name or address of its listener.
    pub host: Str,
    /// The port of its listener.
    pub port: u16,
}
