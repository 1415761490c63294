//! AllocateProducerIds (67): a broker asks the controller for a block of producer ids, to hand out by InitProducerId.
//!
//! No id is in two blocks, so brokers need not agree on each one.
//!
//! Version 0 came with KIP-730.

use crate::Message;

/// Asks for a block of ids.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 67, versions = 0..=0, flexible = 0.., response = AllocateProducerIdsResponse)]
pub struct AllocateProducerIdsRequest {
    /// The broker that asks.
    pub broker_id: i32,
    /// The epoch that the broker got when it registered, -1 if it has none.
    #[field(default = -1)]
    pub broker_epoch: i64,
}

/// A block of ids.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 67, versions = 0..=0, flexible = 0..)]
pub struct AllocateProducerIdsResponse {
    /// For how many milliseconds a quota makes the broker wait; 0 for none.
    pub throttle_time_ms: i32,
    /// Why there is no block, 0 if there is: STALE_BROKER_EPOCH, CLUSTER_AUTHORIZATION_FAILED, or NOT_CONTROLLER from a
    /// controller that is not the active one.
    pub error_code: i16,
    /// The block's first id.
    pub producer_id_start: i64,
    /// How many ids the block has; Kafka gives 1000 at a time.
    pub producer_id_len: i32,
}
