//! FindCoordinator (10): which broker looks after a group, a transactional id or a share partition.
//!
//! Version 1 adds the kind of key and the message; from 4 on one request asks for many keys
//! (KIP-699), and the fields of the single key are gone; 6 knows share groups (KIP-932), whose key
//! is `group:topic id:partition`.

use crate::{Message, Str};

/// Asks where the coordinators of some keys are.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 10, versions = 0..=6, flexible = 3.., response = FindCoordinatorResponse)]
pub struct FindCoordinatorRequest {
    /// The one key, before version 4.
    #[field(versions = ..=3)]
    pub key: Str,
    /// What the keys are: 0 group ids, 1 transactional ids, 2 share partitions.
    #[field(versions = 1..)]
    pub key_type: i8,
    /// The keys, from version 4 on.
    #[field(versions = 4..)]
    pub coordinator_keys: Vec<Str>,
}

/// Where the coordinators are: one in the message itself before version 4, a list of them after.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 10, versions = 0..=6, flexible = 3..)]
pub struct FindCoordinatorResponse {
    /// For how many milliseconds a quota makes the client wait; 0 for none.
    #[field(versions = 1.., ignorable)]
    pub throttle_time_ms: i32,
    /// Why there is no coordinator, 0 if there is one.
    #[field(versions = ..=3)]
    pub error_code: i16,
    /// The reason in words, `None` if the broker gives none.
    #[field(versions = 1..=3, nullable = 1..=3, ignorable)]
    pub error_message: Option<Str>,
    /// The coordinator's broker id, -1 after an error.
    #[field(versions = ..=3)]
    pub node_id: i32,
    /// The coordinator's advertised host, empty after an error.
    #[field(versions = ..=3)]
    pub host: Str,
    /// The coordinator's advertised port, -1 after an error.
    #[field(versions = ..=3)]
    pub port: i32,
    /// One answer for each key asked for.
    #[field(versions = 4..)]
    pub coordinators: Vec<Coordinator>,
}

/// The coordinator of one key.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 4..=6, flexible = 3..)]
pub struct Coordinator {
    /// The key asked for.
    pub key: Str,
    /// The coordinator's broker id, -1 after an error.
    pub node_id: i32,
    /// The coordinator's advertised host, empty after an error.
    pub host: Str,
    /// The coordinator's advertised port, -1 after an error.
    pub port: i32,
    /// Why there is no coordinator, 0 if there is one.
    pub error_code: i16,
    /// The reason in words, `None` if the broker gives none.
    #[field(ignorable)]
    pub error_message: Option<Str>,
}
