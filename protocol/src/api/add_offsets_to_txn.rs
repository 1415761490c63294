//! AddOffsetsToTxn (25): announces to the transaction coordinator that a transaction will commit offsets of a group.
//!
//! Sent by a transactional producer before its first TxnOffsetCommit for that group (KIP-98): the coordinator adds
//! the partition of `__consumer_offsets` that holds the group to the transaction, so that its end reaches the offsets
//! too. In transactions of version 2, TxnOffsetCommit 5 and later do that by themselves, and this is not sent
//! (KIP-890, part 2).
//!
//! From version 1 on the broker answers before it throttles (KIP-219); from 2 on PRODUCER_FENCED is told apart from
//! INVALID_PRODUCER_EPOCH (KIP-588); 3 is the first in the flexible encoding (KIP-482); 4 may answer
//! TRANSACTION_ABORTABLE (KIP-890).

use crate::{Message, Str};

/// Adds a group's offsets to a transaction.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 25, versions = 0..=4, flexible = 3.., response = AddOffsetsToTxnResponse)]
pub struct AddOffsetsToTxnRequest {
    /// The producer's transactional id.
    pub transactional_id: Str,
    /// The producer id that belongs to it.
    pub producer_id: i64,
    /// The producer's epoch.
    pub producer_epoch: i16,
    /// The group whose offsets the transaction will commit.
    pub group_id: Str,
}

/// Whether they are in the transaction.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 25, versions = 0..=4, flexible = 3..)]
pub struct AddOffsetsToTxnResponse {
    /// For how many milliseconds a quota makes the client wait; 0 for none.
    pub throttle_time_ms: i32,
    /// Why the offsets were not added, 0 if they were. NOT_COORDINATOR and COORDINATOR_NOT_AVAILABLE: find the
    /// coordinator anew. COORDINATOR_LOAD_IN_PROGRESS and CONCURRENT_TRANSACTIONS (the end of the last transaction is
    /// still being written): try again. TRANSACTION_ABORTABLE, from version 4 on: abort, and the producer may go on.
    /// PRODUCER_FENCED (INVALID_PRODUCER_EPOCH before version 2): a newer producer has the transactional id.
    /// INVALID_PRODUCER_ID_MAPPING and INVALID_TXN_STATE: the producer is not, or no longer, who the transaction
    /// belongs to. TRANSACTIONAL_ID_AUTHORIZATION_FAILED and GROUP_AUTHORIZATION_FAILED say which of the two the
    /// caller may not use.
    pub error_code: i16,
}
