//! WriteTxnMarkers (27): writes the markers that end transactions into their partitions.
//!
//! Sent by transaction coordinators to the leaders of the partitions (KIP-98), which need the right to act for the
//! cluster. Tools send it too, to abort a transaction that hangs because its coordinator has forgotten it (KIP-664);
//! for them the right to alter the cluster is enough. No quota applies, and the answer has no throttle time.
//!
//! Version 1 is the first in the flexible encoding (KIP-482); Kafka 4.0 dropped version 0 (KIP-896); 2 tells the
//! version of the transactions (KIP-1228).

use crate::{Message, Str};

/// Writes markers to partitions that the receiving broker leads.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 27, versions = 0..=2, flexible = 1.., response = WriteTxnMarkersResponse)]
pub struct WriteTxnMarkersRequest {
    /// The markers, one for each transaction.
    pub markers: Vec<WritableTxnMarker>,
}

/// The end of one transaction.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=2, flexible = 1..)]
pub struct WritableTxnMarker {
    /// The producer id of the transaction.
    pub producer_id: i64,
    /// The epoch with which the marker is written. In transactions of version 2 it is greater than that of the
    /// records, so that a record that comes late is refused.
    pub producer_epoch: i16,
    /// True for a commit, false for an abort.
    pub transaction_result: bool,
    /// The partitions that get the marker, by topic.
    pub topics: Vec<WritableTxnMarkerTopic>,
    /// The leader epoch of the coordinator's partition of `__transaction_state`. A leader refuses markers of an older
    /// one with TRANSACTION_COORDINATOR_FENCED.
    pub coordinator_epoch: i32,
    /// The version of the transaction: 0 and 1 are the old ones, for which an epoch equal to the producer's last will
    /// do; from 2 on it must be greater (KIP-890).
    #[field(versions = 2.., ignorable)]
    pub transaction_version: i8,
}

/// Partitions of one topic.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=2, flexible = 1..)]
pub struct WritableTxnMarkerTopic {
    /// The topic's name.
    pub name: Str,
    /// The numbers of the partitions.
    pub partition_indexes: Vec<i32>,
}

/// Which markers are written.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 27, versions = 0..=2, flexible = 1..)]
pub struct WriteTxnMarkersResponse {
    /// The outcomes, by producer id. Two markers of one producer id have one entry together.
    pub markers: Vec<WritableTxnMarkerResult>,
}

/// The outcomes for one producer id.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=2, flexible = 1..)]
pub struct WritableTxnMarkerResult {
    /// The producer id.
    pub producer_id: i64,
    /// The outcomes, by topic.
    pub topics: Vec<WritableTxnMarkerTopicResult>,
}

/// The outcomes for one topic.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=2, flexible = 1..)]
pub struct WritableTxnMarkerTopicResult {
    /// The topic's name.
    pub name: Str,
    /// The outcomes, by partition.
    pub partitions: Vec<WritableTxnMarkerPartitionResult>,
}

/// The outcome for one partition.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=2, flexible = 1..)]
pub struct WritableTxnMarkerPartitionResult {
    /// The partition's number.
    pub partition_index: i32,
    /// Why the marker is not in the log of all in-sync replicas, 0 if it is. NOT_LEADER_OR_FOLLOWER (also where a
    /// group coordinator is not ready), UNKNOWN_TOPIC_OR_PARTITION, NOT_ENOUGH_REPLICAS and
    /// NOT_ENOUGH_REPLICAS_AFTER_APPEND: the coordinator tries again, to the leader of then. INVALID_PRODUCER_EPOCH
    /// and TRANSACTION_COORDINATOR_FENCED: a newer producer or coordinator has been here.
    pub error_code: i16,
}
