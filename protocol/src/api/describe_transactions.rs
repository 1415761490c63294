//! DescribeTransactions (65): an administrator's tool asks a transaction coordinator how certain transactions stand.
//!
//! Each id goes to the broker that coordinates it (FindCoordinator, key type 1). Tools use this to find transactions
//! that hang: together with DescribeProducers, which asks the partitions, and ListTransactions, which finds the ids.
//!
//! Version 0 came with KIP-664.

use crate::{Message, Str};

/// Asks for the state of transactions.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 65, versions = 0..=0, flexible = 0.., response = DescribeTransactionsResponse)]
pub struct DescribeTransactionsRequest {
    /// The ids to describe; none for an empty answer.
    pub transactional_ids: Vec<Str>,
}

/// The state of each transaction that was asked for.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 65, versions = 0..=0, flexible = 0..)]
pub struct DescribeTransactionsResponse {
    /// For how many milliseconds a quota makes the client wait; 0 for none.
    pub throttle_time_ms: i32,
    /// The states, in the order of the request.
    pub transaction_states: Vec<TransactionState>,
}

/// What the coordinator knows of one transactional id.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=0, flexible = 0..)]
pub struct TransactionState {
    /// Why there is no state, 0 if there is: TRANSACTIONAL_ID_NOT_FOUND, TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    /// INVALID_REQUEST for an empty id; NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE and COORDINATOR_LOAD_IN_PROGRESS are
    /// worth another try. After an error the other fields say nothing.
    pub error_code: i16,
    /// The id.
    pub transactional_id: Str,
    /// How it stands: `Empty`, `Ongoing`, `PrepareCommit`, `PrepareAbort`, `CompleteCommit`, `CompleteAbort` or
    /// `PrepareEpochFence`.
    pub transaction_state: Str,
    /// After how many milliseconds the coordinator aborts a transaction; the producer's setting.
    pub transaction_timeout_ms: i32,
    /// When the transaction began, in milliseconds since 1970; -1 if none has.
    pub transaction_start_time_ms: i64,
    /// The producer id that the transactional id stands for now.
    pub producer_id: i64,
    /// The producer's epoch: whoever uses an older one is fenced.
    pub producer_epoch: i16,
    /// The partitions in the transaction; while it is being ended, those whose marker has yet to be written. Topics
    /// that the sender may not describe are left out.
    pub topics: Vec<TopicData>,
}

/// Partitions of one topic that are in a transaction.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=0, flexible = 0..)]
pub struct TopicData {
    /// The topic's name.
    pub topic: Str,
    /// The numbers of the partitions.
    pub partitions: Vec<i32>,
}
