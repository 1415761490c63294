//! BrokerRegistration (62): a broker that starts tells the controller that it is there, and what it can do (KIP-631).
//!
//! Version 1 lets brokers of a ZooKeeper cluster register that is being migrated (KIP-866); 2 lists log directories
//! (KIP-858); 3 tells whether the broker last shut down cleanly (KIP-966); 4 only lets the least level of a feature be
//! 0.

use crate::{Message, Str, Uuid};

/// Registers a broker.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 62, versions = 0..=4, flexible = 0.., response = BrokerRegistrationResponse)]
pub struct BrokerRegistrationRequest {
    /// The broker's id.
    pub broker_id: i32,
    /// The cluster that the broker belongs to.
    pub cluster_id: Str,
    /// An id that the process made up when it started: it tells two brokers from one that asks twice.
    pub incarnation_id: Uuid,
    /// Where the broker can be reached.
    pub listeners: Vec<Listener>,
    /// The features that the broker supports. Before version 4 those are left out whose least level is 0.
    pub features: Vec<Feature>,
    /// The rack where the broker stands, `None` if it does not say.
    pub rack: Option<Str>,
    /// Whether this is a broker of a ZooKeeper cluster on its way to KRaft. Kafka 4 refuses one.
    #[field(versions = 1..)]
    pub is_migrating_zk_broker: bool,
    /// The ids of the broker's log directories, but for those that are offline.
    #[field(versions = 2.., ignorable)]
    pub log_dirs: Vec<Uuid>,
    /// The epoch that the broker had when it last shut down cleanly, -1 if it did not: then it may have lost records,
    /// and does not count as in sync any more.
    #[field(versions = 3.., ignorable, default = -1)]
    pub previous_broker_epoch: i64,
}

/// One listener of the broker.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=4, flexible = 0..)]
pub struct Listener {
    /// The listener's name, `PLAINTEXT` for instance.
    pub name: Str,
    /// The advertised host name or address.
    pub host: Str,
    /// The advertised port.
    pub port: u16,
    /// How to talk to it: 0 PLAINTEXT, 1 SSL, 2 SASL_PLAINTEXT, 3 SASL_SSL.
    pub security_protocol: i16,
}

/// One feature and the levels of it that the broker supports.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=4, flexible = 0..)]
pub struct Feature {
    /// The feature's name, `metadata.version` for instance.
    pub name: Str,
    /// The least level.
    pub min_supported_version: i16,
    /// The highest level.
    pub max_supported_version: i16,
}

/// Whether the broker is registered.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 62, versions = 0..=4, flexible = 0..)]
pub struct BrokerRegistrationResponse {
    /// For how many milliseconds a quota makes the broker wait; 0 for none.
    pub throttle_time_ms: i32,
    /// Why the broker is not registered, 0 if it is. DUPLICATE_BROKER_REGISTRATION: another one with this id is alive.
    /// INCONSISTENT_CLUSTER_ID: the broker belongs to another cluster. UNSUPPORTED_VERSION: it lacks a feature that the
    /// cluster uses. INVALID_REGISTRATION: its log directories make no sense. NOT_CONTROLLER: ask the active one.
    pub error_code: i16,
    /// The epoch of this registration, which the broker's requests to the controller bring; -1 after an error.
    #[field(default = -1)]
    pub broker_epoch: i64,
}
