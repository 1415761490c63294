//! AlterClientQuotas (49): sets and removes quotas of users, client ids and addresses, for admin tools.
//!
//! A broker hands the request on to the controller (KIP-546). Each entry succeeds or fails on its own. Version 1 only
//! brought the flexible encoding.

use crate::{Message, Str};

/// Asks for changes to quotas.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 49, versions = 0..=1, flexible = 1.., response = AlterClientQuotasResponse)]
pub struct AlterClientQuotasRequest {
    /// The changes, an entity at most once.
    pub entries: Vec<EntryData>,
    /// Whether only to check the changes and make none.
    pub validate_only: bool,
}

/// The changes to one entity.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=1, flexible = 1..)]
pub struct EntryData {
    /// Whose quotas change: a user, a client id, both together, or an address.
    pub entity: Vec<EntityData>,
    /// The changes, a quota at most once. What is not named stays as it is.
    pub ops: Vec<OpData>,
}

/// One part of an entity's name.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=1, flexible = 1..)]
pub struct EntityData {
    /// `user`, `client-id`, or `ip` (KIP-612), which stands alone.
    pub entity_type: Str,
    /// The name; `None` for the default, which holds for those of this type without a quota of their own.
    pub entity_name: Option<Str>,
}

/// The change to one quota.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=1, flexible = 1..)]
pub struct OpData {
    /// Which quota: `producer_byte_rate` and `consumer_byte_rate` (bytes per second), `request_percentage` (of a
    /// thread's time), `controller_mutation_rate` (partitions created or deleted per second), and for an `ip`
    /// `connection_creation_rate` (connections per second).
    pub key: Str,
    /// The limit, above 0 and in the unit that `key` has; a rate of bytes or connections is a whole number. Not looked
    /// at if the quota is removed.
    pub value: f64,
    /// Whether the quota is removed; otherwise it is set.
    pub remove: bool,
}

/// How the changes went.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 49, versions = 0..=1, flexible = 1..)]
pub struct AlterClientQuotasResponse {
    /// For how many milliseconds a quota makes the client wait; 0 for none.
    pub throttle_time_ms: i32,
    /// One result for each entity of the request, in any order.
    pub entries: Vec<EntryResponse>,
}

/// How the changes to one entity went.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=1, flexible = 1.., name = "EntryData")]
pub struct EntryResponse {
    /// Why nothing was changed, 0 if it was. CLUSTER_AUTHORIZATION_FAILED: the caller may not alter the cluster's
    /// configuration. INVALID_REQUEST: no such entity or quota, a value out of range, or one named twice.
    pub error_code: i16,
    /// The reason in words, `None` if all went well or the controller gives none.
    pub error_message: Option<Str>,
    /// Whose quotas these are.
    pub entity: Vec<EntityData>,
}
