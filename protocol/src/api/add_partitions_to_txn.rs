//! AddPartitionsToTxn (24): adds partitions to a transaction before a producer writes to them, or verifies that they
//! are in it.
//!
//! Two senders share it. A transactional producer sends versions 0 to 3 to its transaction coordinator, for its one
//! transaction. Brokers send 4 and 5 to coordinators, for many transactions at once: before a partition's leader lets
//! a transaction write for the first time, it has the coordinator verify that the partition is in it (KIP-890). These
//! need the right to act for the cluster, so a client stays at 3 whatever the broker offers. A producer that uses
//! transactions of version 2 (KIP-890, part 2) does not send this at all: Produce 12 and later have the partition
//! leader do it.
//!
//! Versions 0 to 3 speak of one transaction in the fields that begin with `v3_and_below`, 4 and 5 of a list of them.
//! From version 1 on the broker answers before it throttles (KIP-219); from 2 on PRODUCER_FENCED is told apart from
//! INVALID_PRODUCER_EPOCH (KIP-588); 3 is the first in the flexible encoding (KIP-482); 5 may answer
//! TRANSACTION_ABORTABLE (KIP-890).

use crate::{Message, Str};

/// Adds partitions to one transaction (up to version 3) or to many.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 24, versions = 0..=5, flexible = 3.., response = AddPartitionsToTxnResponse)]
pub struct AddPartitionsToTxnRequest {
    /// The transactions, from version 4 on. No transactional id may be in it twice.
    #[field(versions = 4..)]
    pub transactions: Vec<AddPartitionsToTxnTransaction>,
    /// The producer's transactional id, before version 4.
    #[field(versions = ..=3)]
    pub v3_and_below_transactional_id: Str,
    /// The producer id that belongs to it, before version 4.
    #[field(versions = ..=3)]
    pub v3_and_below_producer_id: i64,
    /// The producer's epoch, before version 4.
    #[field(versions = ..=3)]
    pub v3_and_below_producer_epoch: i16,
    /// The partitions to add, by topic, before version 4.
    #[field(versions = ..=3)]
    pub v3_and_below_topics: Vec<AddPartitionsToTxnTopic>,
}

/// One transaction, from version 4 on.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 4..=5, flexible = 3..)]
pub struct AddPartitionsToTxnTransaction {
    /// The producer's transactional id.
    pub transactional_id: Str,
    /// The producer id that belongs to it.
    pub producer_id: i64,
    /// The producer's epoch.
    pub producer_epoch: i16,
    /// Whether only to verify that the partitions are in the open transaction, and to add none.
    pub verify_only: bool,
    /// The partitions, by topic.
    pub topics: Vec<AddPartitionsToTxnTopic>,
}

/// Partitions of one topic.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=5, flexible = 3..)]
pub struct AddPartitionsToTxnTopic {
    /// The topic's name.
    pub name: Str,
    /// The numbers of the partitions.
    pub partitions: Vec<i32>,
}

/// Which partitions are in the transaction.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 24, versions = 0..=5, flexible = 3..)]
pub struct AddPartitionsToTxnResponse {
    /// For how many milliseconds a quota makes the client wait; 0 for none.
    pub throttle_time_ms: i32,
    /// Why nothing at all was done, CLUSTER_AUTHORIZATION_FAILED for instance; 0 if there are results.
    #[field(versions = 4.., ignorable)]
    pub error_code: i16,
    /// The outcomes, by transaction, from version 4 on.
    #[field(versions = 4..)]
    pub results_by_transaction: Vec<AddPartitionsToTxnResult>,
    /// The outcomes for the one transaction, by topic, before version 4.
    #[field(versions = ..=3)]
    pub results_by_topic_v3_and_below: Vec<AddPartitionsToTxnTopicResult>,
}

/// The outcomes for one transaction, from version 4 on.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 4..=5, flexible = 3..)]
pub struct AddPartitionsToTxnResult {
    /// The transactional id.
    pub transactional_id: Str,
    /// The outcomes, by topic.
    pub topic_results: Vec<AddPartitionsToTxnTopicResult>,
}

/// The outcomes for one topic.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=5, flexible = 3..)]
pub struct AddPartitionsToTxnTopicResult {
    /// The topic's name.
    pub name: Str,
    /// The outcomes, by partition.
    pub results_by_partition: Vec<AddPartitionsToTxnPartitionResult>,
}

/// The outcome for one partition.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=5, flexible = 3..)]
pub struct AddPartitionsToTxnPartitionResult {
    /// The partition's number.
    pub partition_index: i32,
    /// Why the partition was not added (or is not in the transaction), 0 if it was. When one partition of a
    /// transaction is refused, none is added, and the good ones have OPERATION_NOT_ATTEMPTED.
    /// CONCURRENT_TRANSACTIONS: the end of the last transaction is still being written, try again. PRODUCER_FENCED
    /// (INVALID_PRODUCER_EPOCH before version 2): a newer producer has the transactional id.
    /// INVALID_PRODUCER_ID_MAPPING: the coordinator has another producer id, or none. One that was only to be
    /// verified, and is not in the transaction, has TRANSACTION_ABORTABLE, from brokers before Kafka 3.8
    /// INVALID_TXN_STATE.
    pub partition_error_code: i16,
}
