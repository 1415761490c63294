//! ListTransactions (66): an administrator's tool asks a broker for the transactions that it coordinates.
//!
//! Each broker knows its own only, so the whole list takes a request to every broker. All filters have to hold at
//! once.
//!
//! Version 0 came with KIP-664; 1 finds transactions that have run for long (KIP-994); 2 finds ids by a pattern
//! (KIP-1152).

use crate::{Message, Str};

/// Asks for transactions.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 66, versions = 0..=2, flexible = 0.., response = ListTransactionsResponse)]
pub struct ListTransactionsRequest {
    /// Only transactions in one of these states, `Ongoing` for instance; empty for any state.
    pub state_filters: Vec<Str>,
    /// Only transactions of one of these producer ids; empty for any producer.
    pub producer_id_filters: Vec<i64>,
    /// Only transactions that began more than this many milliseconds ago; negative for any.
    #[field(versions = 1.., default = -1)]
    pub duration_filter: i64,
    /// Only transactional ids that match this regular expression of RE2 as a whole; `None` or empty for any.
    #[field(versions = 2.., default = null)]
    pub transactional_id_pattern: Option<Str>,
}

/// The transactions of one broker.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 66, versions = 0..=2, flexible = 0..)]
pub struct ListTransactionsResponse {
    /// For how many milliseconds a quota makes the client wait; 0 for none.
    pub throttle_time_ms: i32,
    /// Why there is no list, 0 if there is: COORDINATOR_LOAD_IN_PROGRESS or COORDINATOR_NOT_AVAILABLE, which are worth
    /// another try, or INVALID_REGULAR_EXPRESSION.
    pub error_code: i16,
    /// The states among the request's filters that the broker does not know.
    pub unknown_state_filters: Vec<Str>,
    /// The transactions that pass the filters and that the sender may describe.
    pub transaction_states: Vec<TransactionState>,
}

/// A transaction in brief.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=2, flexible = 0..)]
pub struct TransactionState {
    /// The transactional id.
    pub transactional_id: Str,
    /// The producer id that it stands for now.
    pub producer_id: i64,
    /// How it stands, in the words of [`describe_transactions`](super::describe_transactions).
    pub transaction_state: Str,
}
