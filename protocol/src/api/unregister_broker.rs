//! UnregisterBroker (64): an administrator's tool tells the controller to forget a broker that is gone for good.
//!
//! A broker that only stops stays registered, fenced, and counts wherever all brokers have to agree, when a feature
//! level is raised for instance; its replicas stay assigned to it, too. Brokers pass the request on to the controller,
//! which from Kafka 4.1 on also takes it directly (KIP-919).
//!
//! Version 0 came with KRaft (KIP-631).

use crate::{Message, Str};

/// Takes a broker's registration back.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 64, versions = 0..=0, flexible = 0.., response = UnregisterBrokerResponse)]
pub struct UnregisterBrokerRequest {
    /// The broker to forget. One that still runs is fenced at once, and has to register again.
    pub broker_id: i32,
}

/// Whether the broker is forgotten.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 64, versions = 0..=0, flexible = 0..)]
pub struct UnregisterBrokerResponse {
    /// For how many milliseconds a quota makes the client wait; 0 for none.
    pub throttle_time_ms: i32,
    /// Why it is not, 0 if it is: BROKER_ID_NOT_REGISTERED, CLUSTER_AUTHORIZATION_FAILED, or NOT_CONTROLLER from a
    /// controller that is not the active one.
    pub error_code: i16,
    /// The reason in words, `None` without an error.
    pub error_message: Option<Str>,
}
