//! InitProducerId (22): gives a producer the id and epoch that make its writes idempotent.
//!
//! From version 3 on a producer may bring the id it has and only have its epoch raised (KIP-360).
//! Version 6, two-phase commit (KIP-939), is unstable in Kafka 4.4.

use crate::{Message, Str};

/// Asks for a producer id; with a transactional id also ends what an earlier holder of it left
/// open, and fences it.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 22, versions = 0..=5, unstable = 6, flexible = 2.., response = InitProducerIdResponse)]
pub struct InitProducerIdRequest {
    /// The transactional id, `None` for a producer that is only idempotent.
    pub transactional_id: Option<Str>,
    /// After how many milliseconds the coordinator aborts an idle transaction. Of no effect without
    /// a transactional id.
    pub transaction_timeout_ms: i32,
    /// The id that the producer has already, -1 if it has none.
    #[field(versions = 3.., default = -1)]
    pub producer_id: i64,
    /// The epoch that goes with `producer_id`, -1 if it has none.
    #[field(versions = 3.., default = -1)]
    pub producer_epoch: i16,
    /// Whether transactions shall be prepared before they end, as a part of ones that another system coordinates; then
    /// no timeout aborts them.
    #[field(versions = 6..)]
    pub enable2_pc: bool,
    /// Whether a transaction that an earlier holder of the transactional id left open is kept, so that the coordinator
    /// of the whole can still decide how it ends.
    #[field(versions = 6..)]
    pub keep_prepared_txn: bool,
}

/// The producer's identity from now on.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 22, versions = 0..=5, unstable = 6, flexible = 2..)]
pub struct InitProducerIdResponse {
    /// For how many milliseconds a quota makes the client wait; 0 for none.
    #[field(ignorable)]
    pub throttle_time_ms: i32,
    /// Why there is no id, 0 if there is.
    pub error_code: i16,
    /// The producer's id, -1 after an error.
    #[field(default = -1)]
    pub producer_id: i64,
    /// The producer's epoch, to be written into its batches.
    pub producer_epoch: i16,
    /// The producer id in the transaction that was kept open, -1 if there is none.
    #[field(versions = 6.., default = -1)]
    pub ongoing_txn_producer_id: i64,
    /// The epoch that goes with `ongoing_txn_producer_id`, -1 if there is none.
    #[field(versions = 6.., default = -1)]
    pub ongoing_txn_producer_epoch: i16,
}
