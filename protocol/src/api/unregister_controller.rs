//! UnregisterController (94): an administrator's tool tells the active controller to forget another one that is gone
//! for good.
//!
//! Controllers register themselves (see [`controller_registration`](super::controller_registration)), and one that is
//! never started again would hold back feature levels for ever. Its vote is another matter: that is taken away by
//! [`remove_raft_voter`](super::remove_raft_voter). Brokers pass the request on to the active controller.
//!
//! Version 0 came with Kafka 4.4 (KIP-1312).

use crate::{Message, Str};

/// Takes a controller's registration back.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 94, versions = 0..=0, flexible = 0.., response = UnregisterControllerResponse)]
pub struct UnregisterControllerRequest {
    /// The controller to forget. It cannot be the active one.
    pub controller_id: i32,
}

/// Whether the controller is forgotten.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 94, versions = 0..=0, flexible = 0..)]
pub struct UnregisterControllerResponse {
    /// For how many milliseconds a quota makes the client wait; 0 for none.
    pub throttle_time_ms: i32,
    /// Why it is not, 0 if it is: CONTROLLER_ID_NOT_REGISTERED, INVALID_REQUEST for the active controller,
    /// UNSUPPORTED_VERSION while the cluster's metadata version is older than Kafka 4.4's,
    /// CLUSTER_AUTHORIZATION_FAILED, or NOT_CONTROLLER from a controller that is not the active one.
    pub error_code: i16,
    /// The reason in words, `None` without an error.
    pub error_message: Option<Str>,
}
