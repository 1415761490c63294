//! EndTxn (26): commits or aborts a transaction.
//!
//! Sent by a transactional producer to its transaction coordinator (KIP-98). The answer comes when the decision is in
//! the coordinator's log; the markers are written to the partitions after it (see
//! [`write_txn_markers`](super::write_txn_markers)), and until they all are, the next transaction hears
//! CONCURRENT_TRANSACTIONS.
//!
//! From version 1 on the broker answers before it throttles (KIP-219); from 2 on PRODUCER_FENCED is told apart from
//! INVALID_PRODUCER_EPOCH (KIP-588); 3 is the first in the flexible encoding (KIP-482); 4 may answer
//! TRANSACTION_ABORTABLE (KIP-890). Version 5 means transactions of version 2: each end raises the producer's epoch,
//! and the answer tells it (KIP-890, part 2). A client may send 5 only where the cluster's finalized feature
//! `transaction.version` is 2 or more.

use crate::{Message, Str};

/// Ends a transaction.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 26, versions = 0..=5, flexible = 3.., response = EndTxnResponse)]
pub struct EndTxnRequest {
    /// The producer's transactional id.
    pub transactional_id: Str,
    /// The producer id that belongs to it.
    pub producer_id: i64,
    /// The producer's epoch.
    pub producer_epoch: i16,
    /// True to commit, false to abort.
    pub committed: bool,
}

/// Whether the end is decided.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 26, versions = 0..=5, flexible = 3..)]
pub struct EndTxnResponse {
    /// For how many milliseconds a quota makes the client wait; 0 for none.
    pub throttle_time_ms: i32,
    /// Why the transaction is not ended, 0 if it is. NOT_COORDINATOR and COORDINATOR_NOT_AVAILABLE: find the
    /// coordinator anew. COORDINATOR_LOAD_IN_PROGRESS and CONCURRENT_TRANSACTIONS: try again. INVALID_TXN_STATE:
    /// there is no transaction to end, or it is already ending the other way. PRODUCER_FENCED (INVALID_PRODUCER_EPOCH
    /// before version 2): a newer producer has the transactional id, or the transaction has timed out.
    pub error_code: i16,
    /// The producer id for the next transaction, another than before when the epochs were used up; -1 after an error.
    #[field(versions = 5.., ignorable, default = -1)]
    pub producer_id: i64,
    /// The epoch for the next transaction, -1 after an error.
    #[field(versions = 5.., ignorable, default = -1)]
    pub producer_epoch: i16,
}
