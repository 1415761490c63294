//! Fetch (1): reads record batches from partitions, for consumers and for following replicas.
//!
//! Version 1 tells for how long a quota mutes the client; 2 may deliver messages with a timestamp (magic 1, KIP-32);
//! 3 limits the whole answer and keeps the order of the partitions (KIP-74); 4 reads record batches (magic 2) and
//! transactions (KIP-98); 5 tells where the log starts (KIP-107); 7 has fetch sessions (KIP-227); 9 and
//! 12 detect that the log was cut (KIP-320, KIP-595); 10 may deliver zstd (KIP-110); 11 can send a
//! consumer to a replica near it (KIP-392); 13 names topics by id (KIP-516); 15 moves the replica
//! into a tagged structure (KIP-903); 16 tells where a moved leader went (KIP-951); 17 and 18 are
//! for replicas (KIP-853, KIP-1166).

use crate::wire::{Rare, RarelySet};
use crate::{Bytes, Message, Str, Uuid};

/// Asks a leader for records from a set of its partitions.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 1, versions = 0..=18, flexible = 12.., response = FetchResponse)]
pub struct FetchRequest {
    /// The cluster the sender believes it is talking to. Only replicas of the metadata log send it.
    #[field(versions = 12.., tag = 0, nullable = 12.., ignorable, default = null)]
    pub cluster_id: Option<Str>,
    /// The fetching replica, -1 for a consumer.
    #[field(versions = ..=14, default = -1)]
    pub replica_id: i32,
    /// The fetching replica from version 15 on; absent for a consumer.
    #[field(versions = 15.., tag = 1)]
    pub replica_state: ReplicaState,
    /// For how many milliseconds the broker may hold the answer back until `min_bytes` are there.
    pub max_wait_ms: i32,
    /// How many bytes are worth an answer; 0 or 1 answers as soon as there is anything.
    pub min_bytes: i32,
    /// How many bytes the answer should have at most. The first batch is sent whole even if it is
    /// larger (KIP-74).
    #[field(versions = 3.., ignorable, default = 0x7fffffff)]
    pub max_bytes: i32,
    /// 0 reads every record; 1 stops at the last stable offset and lists aborted transactions.
    #[field(versions = 4.., ignorable)]
    pub isolation_level: i8,
    /// The fetch session to go on with, 0 for none.
    #[field(versions = 7.., ignorable)]
    pub session_id: i32,
    /// The number of this request within its session: 0 opens one, -1 closes it or fetches without.
    #[field(versions = 7.., ignorable, default = -1)]
    pub session_epoch: i32,
    /// The partitions to read; within a session only those that are new or have changed.
    pub topics: Vec<FetchTopic>,
    /// The partitions to take out of the session.
    #[field(versions = 7..)]
    pub forgotten_topics_data: Vec<ForgottenTopic>,
    /// The rack where the consumer stands, so that the leader can name a replica near it; empty if
    /// unknown.
    #[field(versions = 11.., ignorable)]
    pub rack_id: Str,
}

/// The replica that fetches, and which life of it.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 15..=18, flexible = 12..)]
pub struct ReplicaState {
    /// The replica's broker id, -1 for a consumer.
    #[field(default = -1)]
    pub replica_id: i32,
    /// The epoch that the controller gave the broker when it registered, -1 if unknown.
    #[field(default = -1)]
    pub replica_epoch: i64,
}

/// Partitions of one topic to read.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=18, flexible = 12..)]
pub struct FetchTopic {
    /// The topic's name.
    #[field(versions = ..=12, ignorable)]
    pub topic: Str,
    /// The topic's id.
    #[field(versions = 13.., ignorable)]
    pub topic_id: Uuid,
    /// The partitions; the broker fills its answer in this order.
    pub partitions: Vec<FetchPartition>,
}

/// One partition to read, and from where.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=18, flexible = 12..)]
pub struct FetchPartition {
    /// The partition's number.
    pub partition: i32,
    /// The leader epoch that the sender knows, -1 if none. The broker refuses one that differs from
    /// its own.
    #[field(versions = 9.., ignorable, default = -1)]
    pub current_leader_epoch: i32,
    /// The offset to read from.
    pub fetch_offset: i64,
    /// The leader epoch of the last record that the sender has, -1 for none; lets the leader notice
    /// a cut log.
    #[field(versions = 12.., default = -1)]
    pub last_fetched_epoch: i32,
    /// Where the following replica's log starts; -1 from a consumer.
    #[field(versions = 5.., ignorable, default = -1)]
    pub log_start_offset: i64,
    /// How many bytes to send of this partition at most; the first batch of the answer may be
    /// larger (KIP-74).
    pub partition_max_bytes: i32,
    /// The log directory of the replica; zero from a consumer.
    #[field(versions = 17.., tag = 0, ignorable)]
    pub replica_directory_id: Uuid,
    /// The high watermark that the replica knows, -1 if it knows none; `i64::MAX` when it does not
    /// take part in this.
    #[field(versions = 18.., tag = 1, ignorable, default = 9223372036854775807)]
    pub high_watermark: i64,
}

/// Partitions of one topic to take out of the session.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 7..=18, flexible = 12..)]
pub struct ForgottenTopic {
    /// The topic's name.
    #[field(versions = ..=12, ignorable)]
    pub topic: Str,
    /// The topic's id.
    #[field(versions = 13.., ignorable)]
    pub topic_id: Uuid,
    /// The numbers of the partitions.
    pub partitions: Vec<i32>,
}

/// Records and progress marks of the partitions asked for.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 1, versions = 0..=18, flexible = 12..)]
pub struct FetchResponse {
    /// For how many milliseconds a quota makes the client wait; 0 for none.
    #[field(versions = 1.., ignorable)]
    pub throttle_time_ms: i32,
    /// The error of the whole request, of its session for instance; 0 for none.
    #[field(versions = 7.., ignorable)]
    pub error_code: i16,
    /// The session that the broker keeps for the sender, 0 for none.
    #[field(versions = 7..)]
    pub session_id: i32,
    /// The answers by topic; within a session, partitions with nothing new are left out.
    pub responses: Vec<FetchableTopicResponse>,
    /// Where the leaders named in the answers can be reached (KIP-951); absent if no leader has
    /// moved.
    #[field(versions = 16.., tag = 0)]
    pub node_endpoints: Vec<NodeEndpoint>,
}

/// Answers for partitions of one topic.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=18, flexible = 12..)]
pub struct FetchableTopicResponse {
    /// The topic's name.
    #[field(versions = ..=12, ignorable)]
    pub topic: Str,
    /// The topic's id.
    #[field(versions = 13.., ignorable)]
    pub topic_id: Uuid,
    /// The answers, by partition.
    pub partitions: Vec<PartitionData>,
}

/// What one partition has to give.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=18, flexible = 12..)]
pub struct PartitionData {
    /// The partition's number.
    pub partition_index: i32,
    /// Why nothing could be read, 0 if it could.
    pub error_code: i16,
    /// The offset after the last record that all in-sync replicas have: the end of what may be
    /// read; -1 after an error.
    pub high_watermark: i64,
    /// Below this offset the fate of every transaction is known; -1 if unknown.
    #[field(versions = 4.., ignorable, default = -1)]
    pub last_stable_offset: i64,
    /// The first offset that the partition still has; -1 if unknown.
    #[field(versions = 5.., ignorable, default = -1)]
    pub log_start_offset: i64,
    /// Set when the sender's log has gone another way than the leader's: go back to this epoch's
    /// end (KIP-595).
    #[field(versions = 12.., tag = 0)]
    pub diverging_epoch: Rare<EpochEndOffset>,
    /// Who leads the partition now, if the receiver does not (KIP-951).
    #[field(versions = 12.., tag = 1)]
    pub current_leader: LeaderIdAndEpoch,
    /// Set when the offset lies before the log's start, to a replica that must load this snapshot
    /// first (KIP-630).
    #[field(versions = 12.., tag = 2)]
    pub snapshot_id: Rare<SnapshotId>,
    /// The aborted transactions that have records in this answer; `None` unless committed records
    /// only were asked for.
    #[field(versions = 4.., ignorable)]
    pub aborted_transactions: Option<Vec<AbortedTransaction>>,
    /// The replica to read from next time, -1 for the leader (KIP-392).
    #[field(versions = 11.., default = -1)]
    pub preferred_read_replica: i32,
    /// Record batches, from the one that holds the offset asked for; the last may be cut short. Before version 4 the
    /// broker converts them to messages of the older formats.
    #[field(records)]
    pub records: Option<Bytes>,
}

/// Where an epoch ends, as the leader has it.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 12..=18, flexible = 12..)]
pub struct EpochEndOffset {
    /// The largest epoch that both logs may share, -1 if the logs agree.
    #[field(default = -1)]
    pub epoch: i32,
    /// The offset after the last record of that epoch, -1 if the logs agree.
    #[field(default = -1)]
    pub end_offset: i64,
}

impl RarelySet for EpochEndOffset {
    const UNSET: &'static Self = &Self::DEFAULT;
}

/// The leader of a partition, as far as the answering broker knows.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 12..=18, flexible = 12..)]
pub struct LeaderIdAndEpoch {
    /// The leader's broker id, -1 if unknown.
    #[field(default = -1)]
    pub leader_id: i32,
    /// The leader's epoch, -1 if unknown.
    #[field(default = -1)]
    pub leader_epoch: i32,
}

/// A snapshot of the metadata log, named by where it ends.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 12..=18, flexible = 12..)]
pub struct SnapshotId {
    /// The offset after the last record in the snapshot, -1 for no snapshot.
    #[field(default = -1)]
    pub end_offset: i64,
    /// The epoch of the last record in the snapshot, -1 for no snapshot.
    #[field(default = -1)]
    pub epoch: i32,
}

impl RarelySet for SnapshotId {
    const UNSET: &'static Self = &Self::DEFAULT;
}

/// A transaction that was aborted, so that the reader can leave its records out.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 4..=18, flexible = 12..)]
pub struct AbortedTransaction {
    /// Whose transaction it was.
    pub producer_id: i64,
    /// The transaction's first offset in this partition.
    pub first_offset: i64,
}

/// Where a broker can be reached.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 16..=18, flexible = 12..)]
pub struct NodeEndpoint {
    /// The broker's id.
    pub node_id: i32,
    /// The advertised host name or address.
    pub host: Str,
    /// The advertised port.
    pub port: i32,
    /// The rack the broker says it stands in, `None` if it does not say.
    #[field(default = null)]
    pub rack: Option<Str>,
}
