//! ControllerRegistration (70): a controller tells the active one where it listens and which features it knows.
//!
//! Each controller does so when it starts. The active controller writes it to the metadata log, so that tools can find
//! the controllers, and no feature level is raised beyond what all of them know.
//!
//! Version 0 came with KIP-919.

use crate::{Message, Str, Uuid};

/// Registers a controller.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 70, versions = 0..=0, flexible = 0.., response = ControllerRegistrationResponse)]
pub struct ControllerRegistrationRequest {
    /// The controller.
    pub controller_id: i32,
    /// Which of its lives this is: an id drawn anew each time the process starts.
    pub incarnation_id: Uuid,
    /// Whether it is set up to move a cluster off ZooKeeper. Kafka 4, which cannot do that, takes no notice.
    pub zk_migration_ready: bool,
    /// Where it listens.
    pub listeners: Vec<Listener>,
    /// The features that it knows.
    pub features: Vec<Feature>,
}

/// Where a controller listens.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=0, flexible = 0..)]
pub struct Listener {
    /// The listener's name, `CONTROLLER` for instance.
    pub name: Str,
    /// The host name or address.
    pub host: Str,
    /// The port.
    pub port: u16,
    /// How it is protected: 0 plaintext, 1 TLS, 2 SASL in plaintext, 3 SASL in TLS.
    pub security_protocol: i16,
}

/// A feature, and the levels of it that a controller knows.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=0, flexible = 0..)]
pub struct Feature {
    /// The feature's name, `metadata.version` for instance.
    pub name: Str,
    /// The lowest level.
    pub min_supported_version: i16,
    /// The highest level.
    pub max_supported_version: i16,
}

/// Whether the controller is registered.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 70, versions = 0..=0, flexible = 0..)]
pub struct ControllerRegistrationResponse {
    /// For how many milliseconds a quota makes the controller wait; 0 for none.
    pub throttle_time_ms: i32,
    /// Why it is not, 0 if it is: UNSUPPORTED_VERSION while the cluster's metadata version is older than Kafka 3.7's,
    /// CLUSTER_AUTHORIZATION_FAILED, or NOT_CONTROLLER from a controller that is not the active one.
    pub error_code: i16,
    /// The reason in words, `None` without an error.
    pub error_message: Option<Str>,
}
