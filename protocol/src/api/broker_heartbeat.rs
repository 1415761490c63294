//! BrokerHeartbeat (63): a registered broker tells the controller that it lives, and what it wants (KIP-631).
//!
//! Version 1 reports log directories that have failed (KIP-858); 2 those that shall get no more partitions (KIP-1066).

use crate::{Message, Uuid};

/// Keeps a broker's session alive.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 63, versions = 0..=2, flexible = 0.., response = BrokerHeartbeatResponse)]
pub struct BrokerHeartbeatRequest {
    /// The broker's id.
    pub broker_id: i32,
    /// The epoch that the controller gave the broker when it registered, -1 if unknown.
    #[field(default = -1)]
    pub broker_epoch: i64,
    /// The offset of the last metadata record that the broker has acted on. It is unfenced only once it has come as far
    /// as the record of its own registration.
    pub current_metadata_offset: i64,
    /// Whether the broker wants to be fenced: kept in the cluster, but neither leading nor shown to clients.
    pub want_fence: bool,
    /// Whether the broker wants to shut down. The controller then moves the leaders away from it.
    pub want_shut_down: bool,
    /// The ids of log directories that have failed.
    #[field(versions = 1.., tag = 0)]
    pub offline_log_dirs: Vec<Uuid>,
    /// The ids of log directories that shall get no more partitions; `None` while the broker is still starting, and
    /// leaves what the controller knows as it is.
    #[field(versions = 2.., tag = 1, default = null)]
    pub cordoned_log_dirs: Option<Vec<Uuid>>,
}

/// How the controller sees the broker.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 63, versions = 0..=2, flexible = 0..)]
pub struct BrokerHeartbeatResponse {
    /// For how many milliseconds a quota makes the broker wait; 0 for none.
    pub throttle_time_ms: i32,
    /// 0 for none. STALE_BROKER_EPOCH: the controller does not know this registration, or a later one.
    /// NOT_CONTROLLER: ask the active one.
    pub error_code: i16,
    /// Whether the broker has come as far in the metadata as the record of its own registration.
    pub is_caught_up: bool,
    /// Whether the broker is fenced.
    #[field(default = true)]
    pub is_fenced: bool,
    /// Whether the broker may shut down now: it leads nothing any more.
    pub should_shut_down: bool,
}
